"""Says clearly that scapy is missing; imported before everything that needs it."""

from __future__ import annotations

from mxwire.errors import MxwireError


class ScapyMissingError(MxwireError, ImportError):
    """scapy is not installed; both an error for the user and an :class:`ImportError`."""


try:
    import scapy.packet  # noqa: F401
except ImportError as error:
    raise ScapyMissingError(
        f"mxwire.scapy needs scapy, which cannot be imported ({error}): pip install 'mxwire[scapy]'"
    ) from error
