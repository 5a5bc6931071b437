"""What goes wrong with an interface."""

from __future__ import annotations

from mxwire.errors import MxwireError


class LinkError(MxwireError):
    """An interface cannot be used: there is none, it may not be opened, it is not Ethernet, it has gone."""
