"""A table of many captures as a folder of Parquet files, partitioned by hour.

The files are ``hour=YYYY-MM-DDTHH/NAME-N.parquet``, the layout of Hive, which polars, DuckDB, Arrow and Spark read as
one table with the column ``hour`` (UTC). A partition per host as well would be thousands of small files in a large
fabric; instead the rows of each batch are sorted by ``host`` (the source). Each capture has its own files, so that many
processes can write at the same time, and a capture that is processed again after the loss of a worker replaces its
files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.table_columns import Table, TableColumn, require_polars
from mxwire.analysis.table_file import TableFile
from mxwire.errors import MxwireError, OutputError, create_folder

if TYPE_CHECKING:
    import polars as pl

    from mxwire.analysis.capture_parts import CapturePart

_NUMBERS: Final = ("message", "conversation", "acknowledges")
"""Columns with numbers of messages or conversations."""


def check_dataset(folder: Path) -> None:
    """Create the folder of a data set; raise :class:`~mxwire.errors.MxwireError` if it cannot be written, or polars is
    missing or too old.
    """
    require_polars()
    import polars as pl

    if not hasattr(pl, "PartitionBy"):
        raise MxwireError(f"{folder}: partitioned tables need a newer polars than {pl.__version__}: update it")
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is a file; name a folder for the tables")
    create_folder(folder)


class DatasetPart(TableFile):
    """The rows of the capture ``capture`` in a data set, batch by batch; ``time`` is the column of their time in ns.

    A column ``capture`` is added: messages are numbered per capture. If the rows are those of a ``part`` of it, numbers
    of messages and conversations are replaced by unique ones. The files appear when the part is closed without
    an error. Raises :class:`~mxwire.errors.MxwireError` if they cannot be written.
    """

    def __init__(self, folder: Path, capture: str, time: str, part: CapturePart | None = None) -> None:
        # The class expects the path of a plain table, of which only the folder and the suffix are used here.
        number = "" if part is None else f"-{part.number}"
        super().__init__(folder / f"{sha256(capture.encode()).hexdigest()[:12]}{number}.parquet")
        self._part = part
        self.sink = self._partition
        self._capture = capture
        self._time = time

    def put(self, table: Table) -> None:
        """Add rows, sorted by their source: equal values beside each other are smaller, and faster to find."""
        source = table["source"]
        places = source.values if source.distinct is None else _ranks(source.distinct)[source.values]
        order = np.argsort(places, kind="stable")
        super().put({name: self._unique(name, column).select(order) for name, column in table.items()})

    def _unique(self, name: str, column: TableColumn) -> TableColumn:
        """Return a column with the numbers of messages and conversations that no other part has."""
        part = self._part
        if part is None or name not in _NUMBERS:
            return column
        if column.distinct is None:
            return replace(column, values=part.unique(column.values))
        return replace(column, distinct=[None if each is None else part.unique(each) for each in column.distinct])

    def _partition(self, table: pl.LazyFrame, path: Path) -> object:
        import polars as pl

        hour = pl.from_epoch(self._time, "ns").dt.strftime("%Y-%m-%dT%H")
        rows = table.with_columns(capture=pl.lit(self._capture), host=pl.col("source"), hour=hour)
        return rows.sink_parquet(
            pl.PartitionBy(path, key=["hour"], include_key=False),
            compression="zstd",
            compression_level=3,
            mkdir=True,
        )

    def _place(self, written: Path) -> None:
        """Move the partitions to those of the data set."""
        for file in written.rglob("*.parquet"):
            target = self.path.parent / file.parent.relative_to(written) / f"{self.path.stem}-{file.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)


def _ranks(texts: Sequence[Any]) -> NDArray[np.intp]:
    """Return the rank of each text, None first."""
    ranks = np.empty(len(texts), np.intp)
    ranks[sorted(range(len(texts)), key=lambda place: texts[place] or "")] = np.arange(len(texts))
    return ranks
