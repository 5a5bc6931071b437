"""The check that scapy is installed; imported before everything that needs it."""

from __future__ import annotations

from mxwire.errors import MxwireError, install_hint


class ScapyMissingError(MxwireError, ImportError):
    """scapy is not installed; both an error for the user and an :class:`ImportError`."""


try:
    import scapy.packet  # noqa: F401
except ImportError as error:
    raise ScapyMissingError(
        f"mxwire.scapy needs scapy, which cannot be imported ({error}): {install_hint('scapy')}"
    ) from error
