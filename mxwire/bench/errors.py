"""Errors of studies, beside those of their testbeds."""

from __future__ import annotations

from mxwire.errors import MxwireError


class SilenceError(MxwireError):
    """A message did not arrive: frames were lost, or the other side is gone."""
