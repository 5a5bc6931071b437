"""Counts, suggestions for mistyped words, and external text in messages, in the same form in all rooms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

_ALIKE = 0.6
"""Similarity of two words, from 0 to 1, from which one may be a misspelling of the other."""


def count_of(number: int, noun: str, several: str = "", *, none: str = "0", grouped: bool = False) -> str:
    """Return ``1 frame``, ``2 frames``; ``several`` is an irregular plural, ``none`` the text for zero.

    ``grouped`` separates thousands: ``12,000 frames``.
    """
    shown = none if not number else f"{number:,}" if grouped else str(number)
    return f"{shown} {noun if number == 1 else several or noun + 's'}"


def size_text(size: float) -> str:
    """A length in bytes: ``64 KiB`` if it is a multiple, otherwise ``32,769 B``."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size / unit:g} {name}"
    return f"{size:,.15g} B"


def starvation_text(nanoseconds: int) -> str:
    """Return the statement that this process lacked the processor for a time, although it had frames to analyse."""
    return f"mxwire lacked the processor for {nanoseconds / 1e9:.1f} s while frames waited"


def nearest(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return up to ``most`` known words that resemble ``word`` or begin with it, ignoring case, best first."""
    from difflib import get_close_matches

    key = word.strip().lower()
    by_lower = {each.lower(): each for each in known}
    beginning = [each for each in by_lower if key and each.startswith(key)]
    close = get_close_matches(key, by_lower, most, _ALIKE)
    return [by_lower[each] for each in dict.fromkeys([*close, *beginning])][:most]


def alternatives(words: Sequence[str]) -> str:
    """Return ``A``, ``A or B``, ``A, B or C``."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def suggestion(word: str, known: Collection[str], *, lister: str = "", most: int = 3, listed: int = 0) -> str:
    """Return the end of an error about an unknown word: up to ``most`` similar words, and the command ``lister``.

    If no word is similar and at most ``listed`` are known, all of them are named.
    """
    near = nearest(word, known, most)
    if not near and 0 < len(known) <= listed:
        return f": use {', '.join(sorted(known))}"
    rest = f"; {lister} lists them all" if lister else ""
    return (f" (did you mean {alternatives(near)}?)" if near else "") + rest


def printable(text: str) -> str:
    """Return ``text``, with its unprintable characters escaped if it has any.

    File and interface names may contain newlines, terminal escapes and undecodable bytes.
    """
    return text if text.isprintable() else ascii(text)[1:-1]
