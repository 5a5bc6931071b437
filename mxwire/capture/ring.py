"""Rings: the numbered files of one rotating capture, read as one source.

``capture -C`` and ``-G`` write ``trace-00001.pcapng``, ``trace-00002.pcapng`` and so on. A message may begin in one of
them and end in the next, so consecutive files are analysed together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path
from typing import Final, Self

from mxwire.capture.reader import CaptureReader, open_capture
from mxwire.errors import CaptureError, CaptureNotFoundError
from mxwire.frames import FrameBatch

_MEMBER: Final = re.compile(r"(.*)-(\d{5,})((?:\.[^/]*)?)")
"""Names of files of a ring (``RotatingWriter``)."""


def expanded(names: Iterable[str]) -> list[str]:
    """Return the files for names with ``*``, ``?``, ``[…]`` and ``**``, each once; names of existing files are not
    expanded.

    Raises :class:`~mxwire.errors.CaptureNotFoundError` for a pattern without files.
    """
    paths: dict[str, None] = {}
    for name in names:
        if not has_magic(name) or Path(name).exists():
            paths[name] = None
            continue
        files = sorted(each for each in glob(name, recursive=True) if Path(each).is_file())  # noqa: PTH207 (absolute and relative patterns)
        if not files:
            raise CaptureNotFoundError(f"{name}: no such files; check the pattern")
        paths.update(dict.fromkeys(files))
    return list(paths)


def rings_of(files: Iterable[str]) -> list[tuple[str, ...]]:
    """Group files: consecutive files of a ring, in order, and each other file by itself."""
    rings: dict[tuple[str, str], list[tuple[int, str]]] = {}
    found: list[tuple[str, ...]] = []
    for file in files:
        member = _MEMBER.fullmatch(file)
        if member is None:
            found.append((file,))
        else:
            rings.setdefault((member[1], member[3]), []).append((int(member[2]), file))
    for members in rings.values():
        members.sort()
        first = 0
        for place in range(1, len(members) + 1):
            if place == len(members) or members[place][0] != members[place - 1][0] + 1:
                found.append(tuple(file for _, file in members[first:place]))
                first = place
    return sorted(found)


class CaptureRing:
    """The frames of several files, one after another, with numbers that continue from file to file."""

    def __init__(
        self,
        files: Sequence[str],
        damaged: Callable[[CaptureError], None] | None = None,
        skip_damage: bool = False,
    ) -> None:
        """``damaged`` and ``skip_damage`` are those of :func:`~mxwire.capture.open_capture`."""
        self.files = files
        self._damaged = damaged
        self._skip_damage = skip_damage
        self.warnings: list[str] = []
        self.names: dict[bytes, str] = {}
        """Host names in the files read so far."""
        self.dropped = 0
        """Number of frames lost during capture, according to the files read so far."""
        self._starts = [0]
        """Number of frames before each file that was opened."""
        self._read = 0
        self._sizes = [Path(each).stat().st_size if Path(each).exists() else 0 for each in files]
        self._reader: CaptureReader | None = None
        self._stack = ExitStack()
        self._open(0)

    def _open(self, place: int) -> None:
        self._reader = self._stack.enter_context(
            open_capture(self.files[place], damaged=self._damaged, skip_damage=self._skip_damage)
        )

    @property
    def name(self) -> str:
        """The first file."""
        return str(self.files[0])

    @property
    def bytes_read(self) -> int:
        """Bytes of all files read so far."""
        return self._read + (self._reader.bytes_read if self._reader is not None else 0)

    @property
    def total_bytes(self) -> int | None:
        """The size of all files."""
        return sum(self._sizes)

    def __iter__(self) -> Iterator[FrameBatch]:
        """Iterate over the batches of all files, once."""
        for place in range(len(self.files)):
            if self._reader is None:
                self._open(place)
            reader, before = self._reader, self._starts[-1]
            assert reader is not None
            for batch in reader:
                yield replace(batch, number=batch.number + before) if before else batch
            self.warnings += reader.warnings
            self.names |= reader.names
            self.dropped += reader.dropped
            self._read += reader.bytes_read
            if place + 1 < len(self.files):
                self._starts.append(before + reader.frames)
            self._reader = None
            self._stack.close()

    def place_of(self, number: int) -> tuple[str, int]:
        """Return the file of a frame, and the number of frames in all files before it."""
        place = max(bisect_right(self._starts, number - 1) - 1, 0)
        return self.files[place], self._starts[place]

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the current file."""
        self._stack.close()
