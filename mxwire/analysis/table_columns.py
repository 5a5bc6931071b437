"""The columns of a table, independent of the library or file format that receives them.

A :class:`TableColumn` is a NumPy array and at most one of two companions: a mask, for fields that only some rows have,
or a list of distinct values that the array indexes, for addresses, names and lists, of which a table has few. Therefore
a million rows need only a few arrays, polars receives them without a copy per value (:func:`polars_table`), and CSV and
NDJSON can be written without polars (``table_file.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mxwire.extras import import_extra

if TYPE_CHECKING:
    import polars as pl

ColumnKind = Literal["UInt8", "UInt16", "UInt32", "UInt64", "Int64", "String", "List(Int32)", "List(String)"]
"""The type of a column, by its name in polars."""

LIST_KINDS: Final = ("List(Int32)", "List(String)")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table.

    ``values`` has shape ``(rows,)``: the values themselves, or, with ``distinct``, places in that list. Where
    ``present`` (shape ``(rows,)``) is False the value is null.
    """

    kind: ColumnKind
    values: NDArray[Any]
    distinct: Sequence[Any] | None = None
    present: NDArray[np.bool_] | None = None

    def __reduce__(self) -> tuple[Callable[..., TableColumn], tuple[Any, ...]]:
        """Pickle the column: a constant without its rows, and places in a list of distinct values with fewer bytes."""
        values = self.values
        if self.distinct is not None:
            if len(values) and values.strides == (0,):
                return constant, (self.distinct[values[0]], len(values), self.kind)
            values = values.astype(np.min_scalar_type(len(self.distinct)))
        return TableColumn, (self.kind, np.ascontiguousarray(values), self.distinct, self.present)

    def part(self, first: int, end: int) -> TableColumn:
        """Return the rows from ``first`` to ``end`` (exclusive), without copying."""
        present = None if self.present is None else self.present[first:end]
        return TableColumn(self.kind, self.values[first:end], self.distinct, present)

    def select(self, which: NDArray[np.intp]) -> TableColumn:
        """Return the rows at the places ``which``."""
        present = None if self.present is None else self.present[which]
        return TableColumn(self.kind, self.values[which], self.distinct, present)

    def to_list(self) -> list[Any]:
        """Return the values as Python objects, None for null."""
        values: list[Any] = self.values.tolist()
        if self.distinct is not None:
            return [self.distinct[each] for each in values]
        if self.present is None:
            return values
        return [value if given else None for value, given in zip(values, self.present.tolist(), strict=True)]

    def to_polars(self) -> pl.Series:
        """Return the column as a polars series."""
        require_polars()
        import polars as pl

        kind = _polars_kind(self.kind)
        if self.distinct is not None:
            # A gather of one value for all rows costs more than all other columns together.
            if len(self.values) and (self.values.strides == (0,) or (self.values == self.values[0]).all()):
                return pl.Series([self.distinct[self.values[0]]], dtype=kind).new_from_index(0, len(self.values))
            # gather() is avoided because it runs a lazy query, which takes several times as long.
            return pl.Series(self.distinct, dtype=kind)[pl.Series(self.values.astype(np.uint32))]
        series = pl.Series(self.values, dtype=kind)
        if self.present is None:
            return series
        return series.zip_with(pl.Series(self.present), pl.Series([None], dtype=kind))


Table = Mapping[str, TableColumn]
"""Columns by name, in order, all of one length."""


def constant(value: Any, rows: int, kind: ColumnKind) -> TableColumn:
    """Return a column with the same value, or None, in each of ``rows`` rows; it needs no memory per row."""
    return TableColumn(kind, np.broadcast_to(np.intp(0), rows), distinct=[value])


def column_of(values: Sequence[Any], kind: ColumnKind) -> TableColumn:
    """Return a column of Python objects, None for null."""
    return TableColumn(kind, np.arange(len(values)), distinct=values)


def record_columns(rows: Sequence[tuple[Any, ...]], kinds: Mapping[str, ColumnKind]) -> Table:
    """Return a table of ``rows``, tuples in the order of ``kinds``."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(kinds)
    return {name: column_of(values, kind) for (name, kind), values in zip(kinds.items(), columns, strict=True)}


def has_polars() -> bool:
    """Return whether polars is installed."""
    return find_spec("polars") is not None


def require_polars() -> None:
    """Raise :class:`~mxwire.extras.MissingExtraError` if polars is not installed."""
    import_extra("polars", "table", "a table in memory, or as .parquet or .arrow,")


def polars_table(table: Table) -> pl.DataFrame:
    """Return ``table`` as a polars data frame."""
    require_polars()
    import polars as pl

    return pl.DataFrame([column.to_polars().alias(name) for name, column in table.items()])


@cache
def _polars_kind(kind: ColumnKind) -> Any:
    import polars as pl

    inner = kind.removeprefix("List(").removesuffix(")")
    return pl.List(getattr(pl, inner)) if kind in LIST_KINDS else getattr(pl, kind)
