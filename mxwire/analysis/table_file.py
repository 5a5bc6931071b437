"""Tables as files: written bit by bit through polars, and there only when complete."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Full, Queue
from types import TracebackType
from typing import Final, Self

import polars as pl
from polars.io.plugins import register_io_source

from mxwire.analysis.target import check_format, check_place
from mxwire.errors import OutputError

TABLES_WAITING: Final = 2
"""Batches that may wait for being written before decoding has to wait; so memory does not grow with the capture."""

_JOINT: Final = {"half_seen": "; "}
"""What stands between the members of a list that is written as text, if not a space."""


def _flat(table: pl.LazyFrame) -> pl.LazyFrame:
    """Lists as text, for formats that have none."""
    lists = [name for name, kind in table.collect_schema().items() if isinstance(kind, pl.List)]
    return table.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(_JOINT.get(name, " ")) for name in lists)


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


class TableFile:
    """A table in a file, written bit by bit; the file is there when closed without an error, if it was given anything.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown suffix, or when the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        check_format(path, "table format", SUFFIXES)
        check_place(path)
        self.path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stream: _Stream | None = None

    def put(self, table: pl.DataFrame) -> None:
        """Add rows; all tables have the columns of the first."""
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
