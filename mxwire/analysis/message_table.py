"""Messages as records with stable names: one JSON object per message, or rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from mxwire.analysis.conversations import CapturedMessage, Flow
from mxwire.analysis.table_columns import ColumnKind, Table, record_columns
from mxwire.analysis.table_file import RecordTable
from mxwire.ethernet import mac_text
from mxwire.texts import table_rows
from mxwire.wire.numbers import NUMBER_MASK

_Getter = Callable[[CapturedMessage, Mapping[int, str]], Any]


def _attribute(path: str) -> _Getter:
    """Return a function for the value at a path of attributes; None if one of them is None."""
    name, *names = path.split(".")
    if not names:
        return lambda message, _: getattr(message, name)

    def get(message: CapturedMessage, _: Mapping[int, str]) -> Any:
        value = getattr(message, name)
        for each in names:
            if value is None:
                return None
            value = getattr(value, each)
        return value

    return get


def _address(flow: Flow) -> str | None:
    return mac_text(flow.address) if flow.address else None


def frames_text(message: CapturedMessage, before: int = 0) -> str:
    """Return the frames of a message as ranges: ``35-50 63``; ``before`` is subtracted from the numbers."""
    ranges = ((first - before, last - before) for first, last in message.frames)
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


_COMPUTED: Final[Mapping[str, _Getter]] = {
    "source": lambda message, _: _address(message.flow),
    "source_name": lambda message, names: names.get(message.flow.address),
    "destination": lambda message, _: _address(message.flow.back),
    "destination_name": lambda message, names: names.get(message.flow.back.address),
    "sequence": lambda message, _: message.position & NUMBER_MASK if message.position >= 0 else None,
    "half_seen": lambda message, _: list(message.half_seen),
    "frames": lambda message, _: frames_text(message),
    "fragments": lambda message, _: message.fragments.bit_count() if message.kind == "MEDIUM" else None,
    "bytes_seen": lambda message, _: message.bytes_seen if message.pull is None else message.pull.ranges.total,
}


def _read_fields() -> Iterator[tuple[str, tuple[ColumnKind, _Getter]]]:
    for _, (name, kind, path) in table_rows(__file__, "message_fields.md"):
        yield name, (_KINDS[kind], _COMPUTED[name] if name in _COMPUTED else _attribute(path))


_KINDS: Final[dict[str, ColumnKind]] = {each: each for each in get_args(ColumnKind)}
_FIELDS: Final = dict(_read_fields())
_FRAME_NUMBERS: Final = ("ack_frame", "refused_ack_frame", "notify_frame")
_FILE: Final[dict[str, ColumnKind]] = {"file": "String"}
MESSAGE_KINDS: Final = _FILE | {name: kind for name, (kind, _) in _FIELDS.items()}
"""The columns of the table, and the keys of a record, in order, with their kinds."""


def message_fields(message: CapturedMessage, names: Mapping[int, str]) -> dict[str, Any]:
    """Return all fields of a message, with stable names; times are in ns, unknown values are None.

    ``names`` are the host names by address.
    """
    return {name: get(message, names) for name, (_, get) in _FIELDS.items()}


def message_columns(rows: Sequence[tuple[Any, ...]]) -> Table:
    """Return a table of ``rows``, tuples in the order of ``MESSAGE_KINDS``."""
    return record_columns(rows, MESSAGE_KINDS)


def message_row(file: str, message: CapturedMessage, names: Mapping[int, str], before: int = 0) -> tuple[Any, ...]:
    """Return a row of the table: ``file``, then the values of :func:`message_fields`.

    ``before`` frames of other files precede those of ``file``: numbers are those in this file.
    """
    values = message_fields(message, names)
    if before:
        values["frames"] = frames_text(message, before)
        for name in _FRAME_NUMBERS:
            values[name] = None if values[name] is None else values[name] - before
    return file, *values.values()


class MessageTable(RecordTable):
    """Writer of messages to a file, one row per message.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown suffix, or when the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, MESSAGE_KINDS)

    def add_message(self, file: str, message: CapturedMessage, names: Mapping[int, str]) -> None:
        """Add a message of a capture."""
        self.add_row(message_row(file, message, names))
