"""Errors of links."""

from __future__ import annotations

from mxwire.errors import MxwireError


class LinkError(MxwireError):
    """An interface cannot be used: it does not exist, is not Ethernet or is gone, or permission is missing."""
