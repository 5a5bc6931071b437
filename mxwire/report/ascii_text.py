"""Text in ASCII, for locales without UTF-8: an arrow is ``>``, µ is u, a box consists of ``-``, ``|`` and ``+``.

Standard output and standard error get a codec that spells characters so, whatever prints them. It has a name of its
own, as click would replace a stream in ASCII by one in UTF-8. Most spellings are as wide as the character, so that
columns stay aligned; text whose width counts is spelled before it is laid out (:func:`spelled`).
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from typing import Final, TextIO

_CODEC: Final = "mxwire-ascii"
_POSIX: Final = {"C", "POSIX"}
_UTF_8: Final = re.compile("utf-?8", re.IGNORECASE)
_OF_PYTHON: Final = ("PYTHONIOENCODING", "PYTHONUTF8")
"""Variables that choose an encoding for Python; it then overrides that of the locale."""
_SPELLINGS: Final = dict(
    zip("→▶←◀↔µ·•≠≤≥", [">", ">", "<", "<", "-", "u", "-", "*", "!=", "<=", ">="], strict=True)
) | {"\N{GREEK SMALL LETTER MU}": "u", "±": "+/-", "\N{MULTIPLICATION SIGN}": "x", "\N{EN DASH}": "-"}
"""Others are spelled by their decomposition in Unicode."""
_LINES: Final = {"-": {"HORIZONTAL", "LEFT", "RIGHT"}, "|": {"VERTICAL", "UP", "DOWN"}}
"""Words in the names of boxes' lines; those with words of both are corners and crossings."""


def prepare_streams() -> None:
    """Have standard output and standard error print ASCII if they, or the locale, have no UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        # Tests and notebooks replace the streams by objects without an encoding.
        if isinstance(stream, io.TextIOWrapper):
            if _is_utf_8(stream) and _locale_has_utf_8(os.environ):
                # Names of files may contain bytes that are not UTF-8.
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding=_CODEC, errors="replace")


def is_ascii() -> bool:
    """Return True if standard output prints ASCII only."""
    return getattr(sys.stdout, "encoding", None) == _CODEC


def spelled(text: str) -> str:
    """``text`` as standard output prints it."""
    return _in_ascii(text) if is_ascii() else text


def print_octets(text: bytes) -> None:
    """Print UTF-8, without decoding it if standard output takes it as it is."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and _is_utf_8(stream):
        stream.flush()
        stream.buffer.write(text)
    else:
        stream.write(text.decode())
    stream.flush()


def cut(text: str, width: int) -> str:
    """``text``, or its beginning and an ellipsis, in at most ``width`` columns of standard output."""
    if len(text) <= width:
        return text
    # It is three characters in ASCII, so that the room depends on the stream.
    end = spelled("…")
    return f"{text[: max(width - len(end), 0)]}{end}"


def _is_utf_8(stream: TextIO) -> bool:
    return codecs.lookup(stream.encoding).name == "utf-8"


def _locale_has_utf_8(environment: Mapping[str, str]) -> bool:
    """Return False if variables of the environment choose a locale without UTF-8.

    Python prints UTF-8 in the locales C and POSIX as well. Here it does so only without any of the variables, as in
    containers and services.
    """
    if any(environment.get(each) for each in _OF_PYTHON):
        return True
    names = [environment.get(each) for each in ("LC_ALL", "LC_CTYPE", "LANG")]
    if not names[0] and names[1] == "C.UTF-8" and names[2] in _POSIX:
        # Python has set LC_CTYPE itself, when it found C or POSIX in LANG.
        return False
    chosen = next(filter(None, names), None)
    return chosen is None or _UTF_8.search(chosen) is not None


def _in_ascii(text: str) -> str:
    return text if text.isascii() else "".join(map(_spelling, text))


def _spelling(character: str) -> str:
    if character.isascii():
        return character
    known = _SPELLINGS.get(character)
    if known is not None:
        return known
    if "\u2500" <= character < "\u2580":
        words = {*unicodedata.name(character).split()}
        lines = [line for line, known in _LINES.items() if words & known]
        return lines[0] if len(lines) == 1 else "+"
    # Blocks and shades, which only fill areas.
    if "\u2580" <= character < "\u25a0":
        return " "
    # Letters without their accents.
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"


def _encode(text: str, _errors: str = "strict") -> tuple[bytes, int]:
    return _in_ascii(text).encode("ascii"), len(text)


class _AsciiEncoder(codecs.IncrementalEncoder):
    """Encodes the text of a stream."""

    def encode(self, input: str, final: bool = False) -> bytes:
        """Return ``input`` in ASCII."""
        return _encode(input)[0]


def _find(name: str) -> codecs.CodecInfo | None:
    # Python normalises the names of codecs before it asks for them.
    if name != _CODEC.replace("-", "_"):
        return None
    return codecs.CodecInfo(_encode, codecs.ascii_decode, incrementalencoder=_AsciiEncoder, name=_CODEC)


codecs.register(_find)
