"""Tables as files: written batch by batch, and visible under their name only when complete.

polars writes all formats, in a separate thread while the next rows are prepared, or in another process
(``mxwire/cli/writer_process.py``). Without polars (it is most of the size of an installation, and an extra) CSV and
NDJSON are written here, to the same bytes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Full, Queue
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast

from mxwire.analysis.table_columns import (
    LIST_KINDS,
    ColumnKind,
    Table,
    has_polars,
    polars_table,
    record_columns,
    require_polars,
)
from mxwire.errors import OutputError

if TYPE_CHECKING:
    import polars as pl
from collections.abc import Sequence

from mxwire.errors import MxwireError, check_regular, check_writable

ROWS: Final = 10_000
"""Number of records that are written to a file at a time."""
TABLES_WAITING: Final = 2
"""Maximum number of batches that wait to be written; then decoding waits, so that memory stays bounded."""

_JOINT: Final = {"half_seen": "; "}
"""Separators of lists written as text, for columns whose separator is not a space."""


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of a text that a spreadsheet runs as a formula; the last three may precede one."""


def _flat(table: pl.LazyFrame) -> pl.LazyFrame:
    """Convert lists to text, for CSV, which has no lists, and disarm formulas as :func:`_csv_cell` does."""
    import polars as pl

    kinds = table.collect_schema()
    lists = [name for name, kind in kinds.items() if isinstance(kind, pl.List)]
    texts = [
        name for name, kind in kinds.items() if getattr(kind, "inner", kind) in (pl.String, pl.Categorical, pl.Enum)
    ]
    joined = table.with_columns(
        pl.col(name).cast(pl.List(pl.String)).list.join(_JOINT.get(name, " ")) for name in lists
    )
    return joined.with_columns(
        pl.when(pl.any_horizontal(pl.col(name).cast(pl.String).str.starts_with(each) for each in _FORMULA))
        .then(pl.concat_str(pl.lit("'"), pl.col(name).cast(pl.String)))
        .otherwise(pl.col(name).cast(pl.String))
        .alias(name)
        for name in texts
    )


_SINKS: Final[dict[str, Callable[[pl.LazyFrame, Path], object]]] = {
    ".parquet": lambda table, path: table.sink_parquet(path, compression="zstd", compression_level=1, statistics=False),
    ".csv": lambda table, path: _flat(table).sink_csv(path),
    ".ndjson": lambda table, path: table.sink_ndjson(path),
    ".arrow": lambda table, path: table.sink_ipc(path),
}
SUFFIXES: Final = tuple(_SINKS)
"""The file name endings that a table can be written to."""
_PLAIN_TEXT: Final = (".csv", ".ndjson")
"""The suffixes that do not require polars."""


class TableSink(Protocol):
    """Receiver of the tables of one file, in order."""

    def put(self, table: Table) -> None:
        """Write rows, or raise the exception that ended the writing of earlier ones."""

    def close(self) -> None:
        """Wait until all is written."""


class _PolarsSink:
    """Writer of tables to one file by polars, in a thread."""

    def __init__(self, path: Path, first: Table, sink: Callable[[pl.LazyFrame, Path], object]) -> None:
        from polars.io.plugins import register_io_source

        self._waiting: Queue[pl.DataFrame | None] = Queue(TABLES_WAITING)
        self._thread = ThreadPoolExecutor(1)
        schema = polars_table({name: column.part(0, 0) for name, column in first.items()}).schema
        self._written = self._thread.submit(sink, register_io_source(self._tables, schema=schema), path)

    def _tables(self, *_projection: object) -> Iterator[pl.DataFrame]:
        """Yield data frames to polars; it never requests fewer columns or rows, since all are written."""
        while (table := self._waiting.get()) is not None:
            yield table

    def put(self, table: Table) -> None:
        """Enqueue the next rows; raise the exception that ended the writing of earlier ones."""
        self._put(polars_table(table))

    def _put(self, table: pl.DataFrame | None) -> None:
        while not self._written.done():
            try:
                self._waiting.put(table, timeout=0.1)
            except Full:
                continue  # the queue is full because the file is slow, or writing has just failed
            return
        self._written.result()

    def close(self) -> None:
        """Wait until all is written."""
        try:
            self._put(None)
            self._written.result()
        finally:
            self._thread.shutdown()


def polars_sink(path: Path, first: Table) -> TableSink:
    """Open a file for tables with the columns of ``first``, in the format of its suffix."""
    return _PolarsSink(path, first, _SINKS[path.suffix.lower()])


class _TextSink:
    """Writer of tables to one CSV or NDJSON file, byte for byte as polars does."""

    def __init__(self, path: Path, first: Table, _sink: object = None) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._json = path.suffix.lower() == ".ndjson"
        if not self._json:
            self._file.write(",".join(map(_csv_cell, first)) + "\n")

    def put(self, table: Table) -> None:
        """Write rows."""
        rows = zip(*_text_columns(table, self._json), strict=True)
        if self._json:
            keys = [json.dumps(name) for name in table]
            self._file.writelines(
                "{" + ",".join([f"{key}:{value}" for key, value in zip(keys, row, strict=True)]) + "}\n" for row in rows
            )
        else:
            self._file.writelines(",".join(row) + "\n" for row in rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _text_columns(table: Table, as_json: bool) -> Iterator[list[str]]:
    """Yield each column of ``table`` as the text of its cells."""
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    for name, column in table.items():
        joint = _JOINT.get(name, " ") if column.kind in LIST_KINDS else None
        cell: Callable[[Any], str] = encode if as_json else partial(_csv_cell, joint=joint)
        if column.distinct is not None:
            texts = [cell(value) for value in column.distinct]
            yield [texts[place] for place in column.values.tolist()]
        else:
            yield [cell(value) for value in column.to_list()]


def _csv_cell(value: Any, joint: str | None = None) -> str:
    """Return a CSV cell (RFC 4180): empty for None; quoted if necessary, and for an empty text.

    Hosts choose their names, and a text that a spreadsheet would run as a formula gets an apostrophe.
    """
    if value is None:
        return ""
    text = joint.join(map(str, value)) if joint is not None else str(value)
    if text.startswith(_FORMULA) and isinstance(value[0] if joint is not None else value, str):
        text = f"'{text}"
    if not text or any(character in text for character in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


class TableFile:
    """A table in a file, written batch by batch; the file appears when closed without an error, if anything was put.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown suffix, for one that needs polars where it is not
    installed, or when the file cannot be written. With ``opener`` the rows go to the sink that it returns for the path,
    and polars is not loaded here.
    """

    def __init__(self, path: Path, opener: Callable[..., TableSink] | None = None) -> None:
        check_format(path, "table format", SUFFIXES)
        check_writable(path)
        check_regular(path)
        if path.suffix.lower() in _PLAIN_TEXT and not has_polars():
            self._open: Callable[..., TableSink] = _TextSink
        elif opener is not None and has_polars():
            self._open = opener
        else:
            require_polars()  # a missing extra is reported before anything is read
            self._open = _PolarsSink
        self.sink = _SINKS[path.suffix.lower()]
        """Writes all rows to a path, with polars."""
        self.path = path
        self._target = path.resolve()  # a symbolic link remains one: the file to which it leads is replaced
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stream: TableSink | None = None

    def put(self, table: Table) -> None:
        """Add rows; all tables have the columns of the first."""
        with self._errors_reported():
            if self._stream is None:
                self._stream = self._open(self._unfinished(), table, self.sink)
            self._stream.put(table)

    def _unfinished(self) -> Path:
        """Return a file in a folder beside the target, from where it can be moved into place atomically."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=".mxwire-", dir=self._target.parent)
        return Path(self._folder.name) / f"table{self.path.suffix}"

    @contextmanager
    def _errors_reported(self) -> Iterator[None]:
        try:
            yield
        except _writing_errors() as error:
            # The text of an error of the operating system names a temporary file, which means nothing to the user.
            if isinstance(error, OSError):
                raise OutputError.of(self.path, error) from None
            raise OutputError(f"{self.path}: cannot be written: {error}") from None

    def __enter__(self) -> Self:
        """Start; nothing is written yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
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
        """Move the written file into place: an earlier file remains intact until then."""
        if self._stream is None:
            return
        with self._errors_reported():
            self._stream.close()
            self._place(self._unfinished())

    def _place(self, written: Path) -> None:
        """Move the finished table to its name."""
        written.replace(self._target)


class RecordTable(TableFile):
    """Writer of rows that are added one by one to a table.

    ``kinds`` are those of its columns; or a text with their names, in which a kind follows unless it is a String:
    ``host frames:UInt64``.
    """

    def __init__(self, path: Path, kinds: Mapping[str, ColumnKind] | str) -> None:
        super().__init__(path)
        if isinstance(kinds, str):
            pairs = (each.partition(":") for each in kinds.split())
            kinds = {name: cast("ColumnKind", kind or "String") for name, _, kind in pairs}
        self._kinds = kinds
        self._rows: list[tuple[Any, ...]] = []

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a row by the names of its columns; those without a value are null."""
        self.add_row(tuple(map(record.get, self._kinds)))

    def add_row(self, row: tuple[Any, ...]) -> None:
        """Add a row in the order of the columns."""
        self._rows.append(row)
        if len(self._rows) >= ROWS:
            self.flush()

    def flush(self) -> None:
        """Write the rows added so far."""
        self.put(record_columns(self._rows, self._kinds))
        self._rows = []

    def _finish(self) -> None:
        # Also an empty table, so that the file is created.
        self.flush()
        super()._finish()


def _writing_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that writing a table may raise."""
    if not has_polars():
        return OSError, TypeError, ValueError
    from polars.exceptions import PolarsError

    return OSError, TypeError, ValueError, PolarsError


def check_format(path: Path, what: str, suffixes: Sequence[str]) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if a name does not end with one of the suffixes.

    ``what`` is the term for the file in the error text.
    """
    if path.suffix.lower() not in suffixes:
        suffix = path.suffix or "a name without suffix"
        raise MxwireError(f"{path}: no {what} for {suffix}: use one of {', '.join(suffixes)}")
