"""Errors that prevent the merge of two captures."""

from __future__ import annotations

from mxwire.errors import MxwireError


class MergeError(MxwireError):
    """The captures do not show the same traffic, or not enough of it to compare their clocks."""
