"""Decoded frames as one wide table: a row a frame, a column a field, written to a file through polars."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import Full, Queue
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from mxwire.errors import MxwireError, OutputError
from mxwire.wire.address import mac_text
from mxwire.wire.checks import Reason
from mxwire.wire.codes import CodeTable
from mxwire.wire.columns import NO_TYPE, Block, Columns
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import packet_type_name
from mxwire.wire.layout import layout_of
from mxwire.wire.text import hostname_text

TABLES_WAITING: Final = 2
"""Batches that may wait for being written before decoding has to wait; so memory does not grow with the capture."""

VLAN_ID_BITS: Final = 12

_UNSIGNED: Final = {1: pl.UInt8, 2: pl.UInt16, 4: pl.UInt32}


def _field_widths() -> dict[str, int]:
    """Every integer field of every layout, in the order of the formats, with the bytes of its widest form."""
    widths: dict[str, int] = {}
    for dialect in (MXOE, omx()):
        for packet_format in dialect.formats:
            for field in layout_of(packet_format).defined:
                if field.kind == "integer" and field.name != "ethertype":
                    widths[field.name] = max(widths.get(field.name, 0), field.size or 0)
    return widths


FIELD_WIDTHS: Final = _field_widths()
"""Size in bytes of each field's column."""

# A frame's own length is wire_length here: `length` is the specification's name of a field.
FRAME_COLUMNS: Final = (
    "frame",
    "time_ns",
    "wire_length",
    "captured",
    "source",
    "destination",
    "vlan",
    "dialect",
    "type",
)
TAIL_COLUMNS: Final = ("hostname", "payload_offset", "payload_length", "malformed_reason", "malformed_offset")
COLUMN_NAMES: Final = ("file", *FRAME_COLUMNS, *FIELD_WIDTHS, *TAIL_COLUMNS)
"""The columns of the table, in order."""


class TableBuilder:
    """Turns decoded batches into polars frames; one builder for a table, so that it names each host once."""

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        self._wanted = set(columns or COLUMN_NAMES)
        self._order = list(columns or COLUMN_NAMES)
        self._hosts: CodeTable | None = None
        self._host_names: list[str] = []

    def frame(self, decoded: DecodedBatch, file: str, which: NDArray[np.intp] | None = None) -> pl.DataFrame:
        """One row for each MXoE frame of a batch, or for those at the places ``which``."""
        columns = decoded.columns
        made = self._general(decoded, columns, file) | self._fields(columns) | self._tail(decoded, columns)
        table = pl.DataFrame([made[name].alias(name) for name in self._order])
        return table if which is None else table[which]

    def _general(self, decoded: DecodedBatch, columns: Columns, file: str) -> dict[str, pl.Series]:
        batch, located, count = decoded.batch, decoded.located, len(decoded)
        destination = self._addresses(decoded.assignment.destination, located.destination, decoded)
        if not located.has_destination:
            destination = _nothing(count, pl.String)
        return {
            "file": _same(file, count, pl.String),
            "frame": pl.Series(batch.number),
            "time_ns": pl.Series(batch.timestamp_ns),
            "wire_length": pl.Series(np.maximum(batch.wire_length, batch.length).astype(np.uint32)),
            "captured": pl.Series(batch.length.astype(np.uint32)),
            "source": self._addresses(decoded.assignment.source, located.source, decoded),
            "destination": destination,
            "vlan": _vlan(decoded),
            "dialect": _dialects(decoded),
            "type": _named(columns.packet_type.astype(np.int64) - NO_TYPE, _type_names()),
        }

    def _addresses(self, codes: NDArray[np.intp], addresses: NDArray[np.uint64], decoded: DecodedBatch) -> pl.Series:
        """Addresses as text, made once for each host."""
        if decoded.hosts.is_full:
            distinct, codes = np.unique(addresses, return_inverse=True)
            return _named(codes, [mac_text(each) for each in distinct.tolist()])
        if self._hosts is not decoded.hosts:
            self._hosts, self._host_names = decoded.hosts, []
        self._host_names += [mac_text(key) for key in decoded.hosts.keys[len(self._host_names) :]]
        return _named(codes, self._host_names)

    def _fields(self, columns: Columns) -> dict[str, pl.Series]:
        """All fields; those that no frame of the batch has cost next to nothing."""
        count = len(columns)
        holders: dict[str, list[int]] = {}
        for number, block in enumerate(columns.blocks):
            for name in block.names:
                holders.setdefault(name, []).append(number)
        presence: dict[tuple[int, ...], pl.Series] = {}
        made: dict[str, pl.Series] = {}
        for name in FIELD_WIDTHS.keys() & self._wanted:
            kind = _UNSIGNED[FIELD_WIDTHS[name]]
            blocks = [columns.blocks[number] for number in holders.get(name, ())]
            held = sum(len(block) for block in blocks)
            if not held:
                made[name] = _nothing(count, kind)
                continue
            if len(blocks) == 1 and held == count:
                made[name] = pl.Series(blocks[0][name], dtype=kind)
                continue
            values = np.zeros(count, f"u{FIELD_WIDTHS[name]}")
            for block in blocks:
                values[block.place] = block[name]
            if held == count:
                made[name] = pl.Series(values)
                continue
            # Many fields come in the same packets, so they have their mask in common.
            which = tuple(holders[name])
            if which not in presence:
                presence[which] = _presence(count, blocks)
            made[name] = _masked(values, presence[which])
        return made

    def _tail(self, decoded: DecodedBatch, columns: Columns) -> dict[str, pl.Series]:
        faulty = columns.reason != Reason.NONE
        has_payload = columns.payload_length >= 0
        return {
            "hostname": _hostnames(decoded, columns),
            "payload_offset": _masked(columns.payload_offset.astype(np.uint32), pl.Series(has_payload)),
            "payload_length": _masked(columns.payload_length.astype(np.uint32), pl.Series(has_payload)),
            "malformed_reason": _named(columns.reason, [None, *(reason.text for reason in Reason if reason)]),
            "malformed_offset": _masked(columns.reason_offset.astype(np.uint32), pl.Series(faulty)),
        }


def _same(value: Any, count: int, kind: Any) -> pl.Series:
    return pl.Series([value], dtype=kind).new_from_index(0, count)


def _nothing(count: int, kind: Any) -> pl.Series:
    return _null(kind).new_from_index(0, count)


@cache
def _null(kind: Any) -> pl.Series:
    return pl.Series([None], dtype=kind)


def _presence(count: int, blocks: Sequence[Block]) -> pl.Series:
    """Which frames are in one of some blocks."""
    present = np.zeros(count, np.bool_)
    for block in blocks:
        present[block.place] = True
    return pl.Series(present)


def _masked(values: NDArray[Any], present: pl.Series) -> pl.Series:
    """A column that is null where ``present`` is False."""
    series = pl.Series(values)
    return series.zip_with(present, _null(series.dtype))


def _named(codes: NDArray[Any], names: Sequence[Any], kind: Any = pl.String) -> pl.Series:
    """A column of texts (or what ``kind`` says), given by their places in ``names``."""
    if len(codes) and (codes == codes[0]).all():
        return _same(names[codes[0]], len(codes), kind)
    return pl.Series(names, dtype=kind).gather(pl.Series(codes.astype(np.uint32)))


@cache
def _type_names() -> list[str | None]:
    """Names of the types from -1 (none) on."""
    return [None, *(packet_type_name(value) for value in range(256))]


def _vlan(decoded: DecodedBatch) -> pl.Series:
    """Null for untagged frames: a column of empty lists would cost more than all others."""
    kind = pl.List(pl.Int32)
    vlan = decoded.located.vlan
    if not vlan.shape[1]:
        return _nothing(len(decoded), kind)
    # One number for all tags of a frame: few frames have tags that no other has.
    stacks = np.zeros(len(vlan), np.int64)
    for depth in range(vlan.shape[1]):
        stacks = stacks << VLAN_ID_BITS + 1 | vlan[:, depth] + 1
    _, first, codes = np.unique(stacks, return_index=True, return_inverse=True)
    return _named(codes, [decoded.vlan(int(index)) or None for index in first], kind)


def _dialects(decoded: DecodedBatch) -> pl.Series:
    assignment = decoded.assignment
    names = [None, *(dialect.name for dialect in assignment.dialects)]
    return _named(np.where(assignment.decided, assignment.which + 1, 0), names)


def _hostnames(decoded: DecodedBatch, columns: Columns) -> pl.Series:
    """The rare text field: taken from the typed frames."""
    names: list[str | None] = [None] * len(columns)
    found = [int(place) for block in columns.of("host_reply") for place in block.place]
    if not found:
        return _nothing(len(columns), pl.String)
    for place in found:
        names[place] = hostname_text(getattr(decoded.frame(place), "hostname", b""))
    return pl.Series(names, dtype=pl.String)


def _flat(table: pl.LazyFrame) -> pl.LazyFrame:
    """Lists as text, for formats that have none."""
    if "vlan" not in table.collect_schema().names():
        return table
    return table.with_columns(pl.col("vlan").cast(pl.List(pl.String)).list.join(" "))


_SINKS: Final[dict[str, Callable[[pl.LazyFrame, Path], None]]] = {
    ".parquet": lambda table, path: table.sink_parquet(path, compression="zstd", compression_level=1, statistics=False),
    ".csv": lambda table, path: _flat(table).sink_csv(path),
    ".ndjson": lambda table, path: table.sink_ndjson(path),
    ".arrow": lambda table, path: table.sink_ipc(path),
}
SUFFIXES: Final = tuple(_SINKS)
"""The file name endings that a table can be written to."""


class _Stream:
    """Writes tables to one file in a thread of its own, while the next ones are being made."""

    def __init__(self, path: Path, schema: pl.Schema) -> None:
        self._waiting: Queue[pl.DataFrame | None] = Queue(TABLES_WAITING)
        self._thread = ThreadPoolExecutor(1)
        sink = _SINKS[path.suffix.lower()]
        self._written = self._thread.submit(sink, register_io_source(self._tables, schema=schema), path)

    def _tables(self, *_wishes: object) -> Iterator[pl.DataFrame]:
        """What polars pulls; its wishes for fewer columns or rows never come, as all are to be written."""
        while (table := self._waiting.get()) is not None:
            yield table

    def put(self, table: pl.DataFrame | None) -> None:
        """Hand over the next table, or None after the last; raises what went wrong with those before."""
        while not self._written.done():
            try:
                return self._waiting.put(table, timeout=0.1)
            except Full:
                continue  # the file is slow, or writing has just failed
        return self._written.result()

    def close(self) -> None:
        """Wait until all is written."""
        try:
            self.put(None)
            self._written.result()
        finally:
            self._thread.shutdown()


class TableWriter:
    """Writes a table batch by batch; the file is there when closed without an error, if it was given any batch.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown suffix, or when the file cannot be written.
    """

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        if path.suffix.lower() not in _SINKS:
            suffix = path.suffix or "a name without suffix"
            raise MxwireError(f"{path}: no table format for {suffix}: use one of {', '.join(SUFFIXES)}")
        if path.is_dir() or not path.absolute().parent.is_dir():
            problem = "it is a directory" if path.is_dir() else "its directory does not exist"
            raise MxwireError(f"{path}: cannot be written: {problem}")
        self.path = path
        self._builder = TableBuilder(columns)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stream: _Stream | None = None

    def write(self, decoded: DecodedBatch, file: str, which: NDArray[np.intp] | None = None) -> None:
        """Add the frames of a batch, or those at the places ``which``."""
        table = self._builder.frame(decoded, file, which)
        with self._told_as_errors():
            if self._stream is None:
                self._stream = _Stream(self._unfinished(), table.schema)
            self._stream.put(table)

    def _unfinished(self) -> Path:
        """A file in a folder beside the target, from where it can be moved into place at once."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=".mxwire-", dir=self.path.absolute().parent)
        return Path(self._folder.name) / f"table{self.path.suffix}"

    @contextmanager
    def _told_as_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise OutputError(f"{self.path}: the table cannot be written: {error}") from None

    def __enter__(self) -> Self:
        """Start; nothing is written yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the file, unless the block failed."""
        try:
            if kind is None:
                self._finish()
            elif self._stream is not None:
                with suppress(Exception):
                    self._stream.close()
        finally:
            if self._folder is not None:
                self._folder.cleanup()

    def _finish(self) -> None:
        """Move what was written into place: an earlier file stays whole until then."""
        if self._stream is None:
            return
        with self._told_as_errors():
            self._stream.close()
            self._unfinished().replace(self.path)
