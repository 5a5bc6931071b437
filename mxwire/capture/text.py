"""Text that comes from outside, made fit for a message of one line."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text itself if it can be printed on one line, else with its odd characters escaped.

    File and interface names may hold line ends, terminal escapes and bytes that are no text at all.
    """
    return text if text.isprintable() else ascii(text)[1:-1]


def count_of(number: int, noun: str) -> str:
    """A number and its noun: "1 byte", "2 bytes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
