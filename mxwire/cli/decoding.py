"""The work behind ``mxwire decode``; apart from its options so that ``--help`` loads nothing."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from mxwire.cli.notes import note, wrote
from mxwire.cli.options import Range
from mxwire.cli.reading import (
    Failures,
    capture_of,
    decoded_batches,
    is_undecided,
    refuse_empty,
    refuse_overwriting,
    tell_notes,
    tell_undecided,
)
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE, mac_bytes
from mxwire.report.frame_line import FrameLines
from mxwire.report.json_line import json_line
from mxwire.report.legend import LEGEND
from mxwire.report.record import RECORD_KEYS, record
from mxwire.report.summary import type_text
from mxwire.report.terminal import is_coloured, terminal_width
from mxwire.report.tree import tree
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import Dialect, dialect_or_auto
from mxwire.wire.enums import PacketType
from mxwire.words import suggestion


@dataclass(frozen=True)
class Selection:
    """Which frames are wanted; None where there is no such limit."""

    types: frozenset[int] | None
    hosts: tuple[int, ...]
    frames: list[Range] | None
    endpoint: int | None

    @classmethod
    def of(
        cls, types: tuple[str, ...], hosts: tuple[str, ...], frames: list[Range] | None, endpoint: int | None
    ) -> Selection:
        """What the user wrote; raises :class:`~mxwire.errors.MxwireError` for what is no type or no address."""
        return cls(
            types=frozenset(_packet_type(each) for each in types) if types else None,
            hosts=tuple(int.from_bytes(mac_bytes(each), "big") for each in hosts),
            frames=frames,
            endpoint=endpoint,
        )

    @property
    def is_limited(self) -> bool:
        """Whether anything was chosen at all."""
        return self != Selection(None, (), None, None)

    def places(self, decoded: DecodedBatch) -> NDArray[np.intp]:
        """The places in a batch of the frames wanted."""
        columns = decoded.columns
        mask = np.ones(len(decoded), np.bool_)
        if self.types is not None:
            mask &= np.isin(columns.packet_type, list(self.types))
        if self.hosts:
            wanted = np.array(self.hosts, np.uint64)
            mask &= np.isin(decoded.located.source, wanted) | np.isin(decoded.located.destination, wanted)
        if self.frames is not None:
            number = decoded.batch.number
            inside = np.zeros(len(decoded), np.bool_)
            for first, last in self.frames:
                inside |= (number >= first) & (number <= last if last is not None else True)
            mask &= inside
        if self.endpoint is not None:
            found = np.zeros(len(decoded), np.bool_)
            for name in ("src_endpoint", "dst_endpoint"):
                values, present = columns.field(name)
                found |= present & (values == self.endpoint)
            mask &= found
        return np.flatnonzero(mask)

    def is_over(self, number: int) -> bool:
        """Whether no frame after this number can be wanted."""
        return self.frames is not None and all(last is not None and number >= last for _, last in self.frames)


@dataclass(frozen=True)
class Request:
    """All options of the command, understood."""

    selection: Selection
    dialect: Dialect | None
    ethertypes: tuple[int, ...]
    count: int | None
    verbose: bool
    as_json: bool
    fields: list[str] | None
    target: Path | None
    clock: str

    @classmethod
    def of(
        cls,
        *,
        types: tuple[str, ...],
        hosts: tuple[str, ...],
        frames: list[Range] | None,
        endpoint: int | None,
        dialect: str,
        ethertypes: tuple[int, ...],
        fields: str | None,
        **rest: Any,
    ) -> Request:
        """Understand the options; raises :class:`~mxwire.errors.MxwireError` for what is not possible."""
        _refuse_contradictions(fields is not None, **rest)
        return cls(
            selection=Selection.of(types, hosts, frames, endpoint),
            dialect=dialect_or_auto(dialect),
            ethertypes=ethertypes or (ETHERTYPE_MXOE,),
            fields=_field_names(fields) if fields is not None else None,
            **rest,
        )


def _refuse_contradictions(fields: bool, *, as_json: bool, target: Path | None, verbose: bool, **_: Any) -> None:
    """Options that would silently do nothing."""
    if target is not None and (as_json or verbose):
        raise MxwireError(f"--to writes a table: {'--json' if as_json else '--verbose'} does not go with it")
    if fields and verbose and not as_json:
        raise MxwireError("--fields prints columns: --verbose does not go with it")


def _packet_type(name: str) -> int:
    """A packet type by name or number."""
    if name.upper() in PacketType.__members__:
        return int(PacketType[name.upper()])
    try:
        number = int(name, 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFF:
        raise MxwireError(
            f"no packet type {name!r}{suggestion(name, PacketType.__members__, lister='mxwire formats', most=1)}"
        )
    return number


def _field_names(text: str) -> list[str]:
    """Names of columns, checked against those that exist."""
    from mxwire.analysis.table import COLUMN_NAMES

    names = [each.strip() for each in text.split(",") if each.strip()]
    for name in names:
        if name not in COLUMN_NAMES:
            raise MxwireError(_unknown_field(name, COLUMN_NAMES))
    if len(set(names)) < len(names):
        raise MxwireError(f"--fields names a field twice: {text}")
    if not names:
        raise MxwireError("--fields names no field: write it like --fields frame,type,lib_seqnum")
    return names


def _unknown_field(name: str, known: Sequence[str]) -> str:
    """The error for a name that is no field: the labels of lines have fields, others the nearest ones."""
    lister = "mxwire formats --fields"
    label = LEGEND.get(name.lower())
    if label is None:
        return f"no field {name!r}{suggestion(name, known, lister=lister, most=1)}"
    return f"no field {name!r}: the label in a line stands for {label.fields_text}; {lister} lists them all"


def run(files: tuple[str, ...], request: Request) -> None:
    """Decode the files one after the other."""
    failures = Failures()
    undecided: list[str] = []
    left, shown = request.count, 0
    with ExitStack() as stack:
        output = _output(request, files, stack)
        for path in files:
            with failures.noted():
                told = _file(path, request, output, left, undecided)
                shown += told
                left = None if left is None else left - told
            if left == 0:
                break
    if request.target is not None and (shown or not failures.count):
        wrote(shown, "frame", request.target)
    tell_undecided(undecided, len(files))
    if not shown and not failures.count and request.selection.is_limited:
        note("no frame matches the selection")
    failures.end()


def _file(path: str, request: Request, output: Output, left: int | None, undecided: list[str]) -> int:
    """Decode one file; returns how many frames were shown, ``left`` at most."""
    decoder = Decoder(request.dialect, request.ethertypes)
    shown = 0
    with capture_of(path) as reader:
        output.begin(reader.name, decoder)
        for decoded in decoded_batches(decoder, reader, streams=request.target is None):
            places = request.selection.places(decoded)[: None if left is None else left - shown]
            output.show(decoded, places)
            shown += len(places)
            if shown == left or (len(decoded) and request.selection.is_over(int(decoded.batch.number[-1]))):
                return shown
        refuse_empty(reader, decoder)
        tell_notes(reader.name, decoder)
        if is_undecided(decoder):
            undecided.append(reader.name)
    return shown


class Output(ABC):
    """Where decoded frames go."""

    def begin(self, path: str, decoder: Decoder) -> None:
        """The frames of another capture follow."""
        self.path = path
        self.decoder = decoder

    @abstractmethod
    def show(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> None:
        """The frames of a batch at some places."""


class Text(Output):
    """Lines of text on standard output."""

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> None:
        """Print the lines of the frames at some places."""
        for place in places.tolist():
            for line in self.lines(decoded, place):
                sys.stdout.write(line + "\n")
        sys.stdout.flush()

    @abstractmethod
    def lines(self, decoded: DecodedBatch, place: int) -> Iterator[str]:
        """The lines of one frame."""


def _output(request: Request, files: tuple[str, ...], stack: ExitStack) -> Output:
    several = len(files) > 1
    if request.target is not None:
        return _Table(request.target, request.fields, files, stack)
    if request.as_json:
        return Json(request, several)
    if request.fields is not None:
        return _Columns(request.fields)
    return Lines(request, several)


class _Table(Output):
    """All columns into a file."""

    def __init__(self, target: Path, fields: list[str] | None, files: tuple[str, ...], stack: ExitStack) -> None:
        from mxwire.analysis.table import TableWriter

        refuse_overwriting(files, target)
        self._table = stack.enter_context(TableWriter(target, fields))

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> None:
        self._table.write(decoded, self.path, None if len(places) == len(decoded) else places)


class Json(Text):
    """One object a line."""

    def __init__(self, request: Request, several: bool) -> None:
        self._verbose = request.verbose
        self._fields = request.fields
        self._several = several

    def lines(self, decoded: DecodedBatch, place: int) -> Iterator[str]:
        """The object of a frame."""
        made = record(decoded, place, verbose=self._verbose)
        if self._fields is not None:
            made["fields"] = {name: value for name, value in made["fields"].items() if name in self._fields}
        yield json_line({"file": self.path} | made if self._several else made, self.decoder.start_ns)


class _Columns(Text):
    """Tab-separated values, nothing where a frame does not have the field."""

    def __init__(self, fields: list[str]) -> None:
        self._fields = fields

    def lines(self, decoded: DecodedBatch, place: int) -> Iterator[str]:
        flat = _flat(record(decoded, place), self.path)
        yield "\t".join(_cell(flat.get(name)) for name in self._fields)


def _flat(made: dict[str, Any], path: str) -> dict[str, Any]:
    """A record with the names of the table's columns."""
    general = {name: made[name] for name in RECORD_KEYS if name not in ("fields", "payload", "malformed", "length")}
    flat: dict[str, Any] = {"file": path} | general | {"wire_length": made["length"]} | made["fields"]
    for group in ("payload", "malformed"):
        flat |= {f"{group}_{name}": value for name, value in (made[group] or {}).items()}
    return flat


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


class Lines(Text):
    """One line per frame, as wide as the terminal at most; below it the tree where requested."""

    def __init__(self, request: Request, several: bool) -> None:
        self._verbose = request.verbose
        self._lines = FrameLines(request.clock, None)
        self._several = several
        self._colour = is_coloured()

    def begin(self, path: str, decoder: Decoder) -> None:
        """The frames of another capture follow, under its name if there are several."""
        super().begin(path, decoder)
        self._lines.restart()
        if self._several:
            click.echo(f"== {path}")

    def show(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> None:
        """Print the lines of the frames at some places; the window may have another size than it had before."""
        self._width = terminal_width()
        self._lines.resize(self._width)
        self._lines.start_ns = self.decoder.start_ns or 0
        super().show(decoded, places)

    def lines(self, decoded: DecodedBatch, place: int) -> Iterator[str]:
        """The line of a frame, and the lines of its tree."""
        colour = _colour(decoded.frame(place)) if self._colour else None
        for line in self._lines.lines(decoded, place):
            yield click.style(line, fg=colour) if self._colour else line
        if self._verbose:
            yield from tree(decoded, place, self._width)
            yield ""


_COLOURS = {
    "NACK_LIB": "red",
    "NACK_MCP": "red",
    "CONNECT": "cyan",
    "RNDV": "green",
    "NOTIFY": "green",
    "PULL": "yellow",
    "TRUC": "bright_black",
    "RAW": "magenta",
    "HOST_QUERY": "magenta",
    "HOST_REPLY": "magenta",
}


def _colour(frame: Any) -> str | None:
    return "bright_red" if isinstance(frame, Malformed) else _COLOURS.get(type_text(frame))
