"""Captures as polars data frames, by one call each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mxwire.analysis.conversations import Follower
from mxwire.analysis.marks import MARK_COLUMNS, FrameMarker
from mxwire.analysis.message_table import message_columns, message_row
from mxwire.analysis.selection import MessageSelector, Selection
from mxwire.analysis.table import COLUMN_NAMES, TableBuilder
from mxwire.analysis.table_columns import polars_table, require_polars
from mxwire.capture import open_capture
from mxwire.capture.time_order import in_time_order
from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import Dialect

if TYPE_CHECKING:
    import polars as pl


def read_frames(
    source: str | Path | BinaryIO,
    columns: Sequence[str] | None = None,
    *,
    where: str | Selection | None = None,
    dialect: Dialect | str | None = None,
    skip_damage: bool = False,
) -> pl.DataFrame:
    """Read a capture into a data frame with one row per MXoE frame.

    ``source`` is a path, ``"-"`` for standard input, or a binary stream. ``columns`` are names of columns, in
    order; by default all except ``file``, which repeats the name of the source in every row. ``where`` selects frames:
    an expression, as in ``mxwire decode --where``, or a :class:`~mxwire.analysis.selection.Selection`. ``dialect`` is a
    :class:`~mxwire.wire.dialect.Dialect` or its name, such as ``"mxoe"``; by default it is detected for each pair of
    hosts. ``skip_damage`` continues behind damage, and accepts a file that is cut off. Raises
    :class:`~mxwire.errors.CaptureError` for a damaged file, and for one that is not a capture (a missing one is a
    :class:`FileNotFoundError` too), and :class:`~mxwire.errors.MxwireError` for an unknown column or dialect, and for a
    mistake in the expression.
    """
    require_polars()
    import polars as pl

    for name in columns or ():
        if name not in COLUMN_NAMES:
            raise MxwireError(f"no column {name!r}: see mxwire.analysis.table.COLUMN_NAMES")
    decoder, builder, selection = Decoder(dialect), TableBuilder(columns or COLUMN_NAMES[1:]), _selection(where)
    with open_capture(source, skip_damage=skip_damage) as reader:
        marked = selection.uses_marks or not set(columns or COLUMN_NAMES).isdisjoint(MARK_COLUMNS)
        marker = FrameMarker(facts=selection.uses_facts) if marked else None
        parts = []
        for decoded in decoder.decode_all(reader):
            marks = None if marker is None else marker.observe(decoded)
            places = selection.places(decoded, marks, decoder.start_ns) if selection.is_limited else None
            parts.append(builder.frame(decoded, reader.name, places, marks))
        # A capture without frames has the same columns, with their types.
        nothing = builder.frame(decoder.decode(FrameBatch.from_frames([])), reader.name)
    return pl.concat([nothing, *parts], rechunk=False)


def read_messages(
    source: str | Path | BinaryIO,
    *,
    where: str | Selection | None = None,
    dialect: Dialect | str | None = None,
    skip_damage: bool = False,
) -> pl.DataFrame:
    """Read a capture into a data frame with one row per message, in the order of their first frames.

    The arguments and errors are those of :func:`read_frames`; the columns are those of ``mxwire messages --to``. A
    message is selected if ``where`` selects one of its frames.
    """
    require_polars()
    selector = MessageSelector(_selection(where))
    decoder, follower = Decoder(dialect), Follower(marks=selector.needs_marks)
    with open_capture(source, skip_damage=skip_damage) as reader:
        messages = []
        for decoded in decoder.decode_all(in_time_order(reader)):
            messages += follower.observe(decoded)
            selector.observe(decoded, follower.take_marks, decoder.start_ns)
        messages += follower.finish()
        messages.sort(key=lambda message: message.number)
        rows = [message_row(reader.name, each, follower.names) for each in messages if selector.takes(each)]
    return polars_table(message_columns(rows)).drop("file")


def _selection(where: str | Selection | None) -> Selection:
    """The selection of an argument ``where``.

    Raises :class:`~mxwire.errors.MxwireError` for a mistake in an expression.
    """
    return where if isinstance(where, Selection) else Selection.of(where=where)
