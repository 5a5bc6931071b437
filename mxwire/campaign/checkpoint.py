"""The checkpoint of a campaign: a file of finished chunks, from which an interrupted campaign continues.

One JSON object per line: first the header with the version of mxwire and the campaign, then per finished chunk a digest
of the rest of its line, the series, the position of its first piece, and the answers. A line cut off by the end of the
process is ignored; one that does not agree with its digest is an error, since its answers may be anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Self

from mxwire import __version__
from mxwire.errors import MxwireError, OutputError, check_regular

_LONGEST_HEADER: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class AnswerCodec:
    """Conversion of the answers of a series to values of JSON, and back."""

    encode: Callable[[Any], Any] = lambda answer: answer
    decode: Callable[[Any, Any], Any] = lambda value, _piece: value
    """Takes the value and the piece."""


class Checkpoint:
    """The finished chunks of the campaign ``campaign``, a text that identifies its pieces and options.

    Raises :class:`~mxwire.errors.MxwireError` if the file belongs to another campaign or version, and
    :class:`~mxwire.errors.OutputError` if it cannot be written.
    """

    def __init__(self, path: Path, campaign: str) -> None:
        self.path = path
        self._header = {"mxwire": __version__, "campaign": campaign}
        self._known: dict[tuple[str, int], Any] = {}
        check_regular(path)
        try:
            size = self._read()
            self._file = path.open("ab")
            self._file.truncate(size)
            if not size:
                self._write(_text(self._header))
        except OSError as error:
            raise OutputError.of(path, error) from None

    def _read(self) -> int:
        """Read the chunks of an earlier run; return the number of bytes in complete lines."""
        if not self.path.exists():
            return 0
        with self.path.open("rb") as lines:
            header = lines.readline(_LONGEST_HEADER)
            if not header:
                return 0
            entry = _json(header) if header.endswith(b"\n") else None
            if entry != self._header:
                raise MxwireError(self._refusal(entry))
            size = len(header)
            for number, line in enumerate(lines, 2):
                if not line.endswith(b"\n"):
                    break
                entry = _json(line) if line == _line(line.partition(b",")[2]) else None
                if entry is None:
                    raise MxwireError(f"{self.path}: line {number} is damaged: name another file")
                answers = enumerate(entry["answers"], entry["first"])
                self._known |= {(entry["series"], place): answer for place, answer in answers}
                size += len(line)
        return size

    def _refusal(self, header: Any) -> str:
        if not isinstance(header, dict) or header.keys() != self._header.keys():
            return f"{self.path}: not a checkpoint of mxwire: name another file"
        if header["mxwire"] != __version__:
            return f"{self.path}: a checkpoint of mxwire {header['mxwire']}, this is {__version__}: name another file"
        return f"{self.path}: a checkpoint of another campaign: repeat its options, or name another file"

    def has(self, series: str, place: int) -> bool:
        """Return whether a piece was finished in an earlier run."""
        return (series, place) in self._known

    def take(self, series: str, place: int) -> Any:
        """Return the answer to a piece that :meth:`has` knows."""
        return self._known[series, place]

    def add(self, series: str, first: int, answers: Sequence[Any]) -> None:
        """Append a finished chunk, and sync the file."""
        entry = {"series": series, "first": first, "answers": list(answers)}
        try:
            self._write(_line(_text(entry)[1:]))
        except OSError as error:
            raise OutputError.of(self.path, error) from None

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()


def _text(entry: Any) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _line(rest: bytes) -> bytes:
    """Return the line of a chunk that ends with ``rest``, and begins with its digest."""
    return b'{"digest":"%s",%s' % (blake2b(rest, digest_size=16).hexdigest().encode(), rest)


def _json(line: bytes) -> Any:
    """Return the value of a line; None if it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
