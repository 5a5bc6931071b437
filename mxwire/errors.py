"""Errors caused by the user: one clear line each, with the problem, its place and the remedy."""

from __future__ import annotations


class MxwireError(Exception):
    """Invalid input or use; the text is one line for the user.

    Commands print it and exit with code 2.
    """


class CaptureError(MxwireError):
    """A capture file that cannot be read or written."""


class CaptureNotFoundError(CaptureError, FileNotFoundError):
    """A capture file that does not exist."""


class OutputError(MxwireError):
    """The output cannot be written: processing more input would be useless."""


class CaptureOutputError(CaptureError, OutputError):
    """A capture file that cannot be written."""


class MergeError(MxwireError):
    """The captures do not show the same traffic, or not enough of it to compare their clocks."""


class InvalidRecordError(MxwireError):
    """Shared memory with content that no correct process writes; the channel to that process ends."""
