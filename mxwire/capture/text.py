"""Text that comes from outside, made fit for a message of one line."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text itself if it can be printed on one line, else with its odd characters escaped.

    File and interface names may hold line ends, terminal escapes and bytes that are no text at all.
    """
    return text if text.isprintable() else ascii(text)[1:-1]
