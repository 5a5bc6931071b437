"""The messages that ``mxwire send`` makes of files and of standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

from mxwire.errors import MxwireError

LONGEST: Final = (1 << 32) - 1
"""Bytes of a message at most."""
_AT_ONCE: Final = 1 << 20
"""Bytes that are asked for at a time: Python reserves memory for all that it is asked to read, whatever comes."""


def pieces(files: Sequence[str], chunk: int | None) -> Iterator[tuple[str, bytearray]]:
    """What each message is called, and its bytes: a file each (``-``: standard input), or ``chunk`` bytes of one.

    Raises :class:`~mxwire.errors.MxwireError` at once for a file that is not there, and when it is their turn for those
    that cannot be read, are longer than a message can be, or find no room in memory.
    """
    for name in files:
        if name != "-" and not Path(name).exists():
            raise MxwireError(f"{name}: no such file")
    return _read(files, chunk)


def size_of(files: Sequence[str]) -> int | None:
    """All their bytes, where that is known."""
    if "-" in files:
        return None
    return sum(Path(each).stat().st_size for each in files)


def _read(files: Sequence[str], chunk: int | None) -> Iterator[tuple[str, bytearray]]:
    for name in files:
        called = "standard input" if name == "-" else name
        try:
            with ExitStack() as stack:
                source: IO[bytes] = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
                yield from messages(called, source, chunk)
        except OSError as error:
            raise MxwireError(f"{called}: cannot be read: {error.strerror or error}") from None
        except MemoryError:
            raise MxwireError(f"{called}: finds no room in memory: send it in smaller pieces, with --chunk") from None


def messages(name: str, source: IO[bytes], chunk: int | None) -> Iterator[tuple[str, bytearray]]:
    """The messages of one file; without ``chunk`` it is one, and may be empty."""
    if chunk is None:
        data = _up_to(source, LONGEST + 1)
        if len(data) > LONGEST:
            raise MxwireError(
                f"{name} is longer than a message can be ({LONGEST} bytes): send it in pieces, with --chunk"
            )
        yield name, data
        return
    number = 0
    while data := _up_to(source, chunk):
        number += 1
        yield f"{name} piece {number}", data


def _up_to(source: IO[bytes], most: int) -> bytearray:
    """So many bytes, or all that are left; takes no more memory than they need."""
    data = bytearray()
    while len(data) < most and (some := source.read(min(_AT_ONCE, most - len(data)))):
        data += some
    return data
