"""Captures as polars data frames, by one call each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mxwire.analysis.conversations import Follower
from mxwire.analysis.marks import FrameMarker
from mxwire.analysis.message_table import message_columns, message_row
from mxwire.analysis.table import COLUMN_NAMES, MARK_COLUMNS, TableBuilder
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
    source: str | Path | BinaryIO, columns: Sequence[str] | None = None, *, dialect: Dialect | str | None = None
) -> pl.DataFrame:
    """Read a capture into a data frame with one row per MXoE frame.

    ``source`` is a path, ``"-"`` for standard input, or a binary stream. ``columns`` are names of columns, in
    order; by default all except ``file``, which repeats the name of the source in every row. ``dialect`` is a
    :class:`~mxwire.wire.dialect.Dialect` or its name, such as ``"mxoe"``; by default it is detected for each pair of
    hosts. Raises :class:`~mxwire.errors.CaptureError` for a file that is not a capture (a missing one is a
    :class:`FileNotFoundError` too), and :class:`~mxwire.errors.MxwireError` for an unknown column or dialect.
    """
    require_polars()
    import polars as pl

    for name in columns or ():
        if name not in COLUMN_NAMES:
            raise MxwireError(f"no column {name!r}: see mxwire.analysis.table.COLUMN_NAMES")
    decoder, builder = Decoder(dialect), TableBuilder(columns or COLUMN_NAMES[1:])
    with open_capture(source) as reader:
        marker = FrameMarker() if not set(columns or COLUMN_NAMES).isdisjoint(MARK_COLUMNS) else None
        parts = [
            builder.frame(decoded, reader.name, marks=None if marker is None else marker.observe(decoded))
            for decoded in decoder.decode_all(reader)
        ]
        nothing = builder.frame(decoder.decode(FrameBatch.from_frames([])), reader.name)
    return pl.concat([nothing, *parts], rechunk=False)


def read_messages(source: str | Path | BinaryIO, *, dialect: Dialect | str | None = None) -> pl.DataFrame:
    """Read a capture into a data frame with one row per message, in the order of their first frames.

    The arguments and errors are those of :func:`read_frames`; the columns are those of ``mxwire messages --to``.
    """
    require_polars()
    decoder, follower = Decoder(dialect), Follower()
    with open_capture(source) as reader:
        messages = [
            message for decoded in decoder.decode_all(in_time_order(reader)) for message in follower.observe(decoded)
        ]
        messages += follower.finish()
        messages.sort(key=lambda message: message.number)
        rows = [message_row(reader.name, each, follower.names) for each in messages]
    return polars_table(message_columns(rows)).drop("file")
