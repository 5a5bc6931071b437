"""Sanitising of external text for messages of one line."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return ``text``, with its unprintable characters escaped if it has any.

    File and interface names may contain newlines, terminal escapes and undecodable bytes.
    """
    return text if text.isprintable() else ascii(text)[1:-1]
