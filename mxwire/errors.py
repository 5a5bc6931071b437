"""The errors that a user of mxwire meets: one clear line each, saying what, where and what to do."""

from __future__ import annotations


class MxwireError(Exception):
    """Input or use that mxwire cannot work with; its text is one line meant for the user.

    Commands print it and exit with code 2.
    """


class CaptureError(MxwireError):
    """A capture file that cannot be read or written at all."""


class CaptureNotFoundError(CaptureError, FileNotFoundError):
    """A capture file that does not exist."""


class OutputError(MxwireError):
    """The output cannot be written: going on with other input would be in vain."""
