"""Messages as records with stable names: one JSON object per message, or rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mxwire.analysis.conversations import CapturedMessage, Flow
from mxwire.analysis.table_columns import ColumnKind, Table, record_columns
from mxwire.analysis.table_file import RecordTable
from mxwire.ethernet import mac_text
from mxwire.wire.numbers import NUMBER_MASK

_Getter = Callable[[CapturedMessage, Mapping[int, str]], Any]


def _of_message(name: str) -> _Getter:
    return lambda message, _: getattr(message, name)


def _via(*names: str) -> _Getter:
    """Return a function for the value at a path of attributes; None if one of them is None."""

    def get(message: CapturedMessage, _: Mapping[int, str]) -> Any:
        value: Any = message
        for name in names:
            value = getattr(value, name)
            if value is None:
                return None
        return value

    return get


def _address(flow: Flow) -> str | None:
    return mac_text(flow.address) if flow.address else None


def frames_text(message: CapturedMessage, before: int = 0) -> str:
    """Return the frames of a message as ranges: ``35-50 63``; ``before`` is subtracted from the numbers."""
    ranges = ((first - before, last - before) for first, last in message.frames)
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


_FIELDS: Final[Mapping[str, tuple[ColumnKind, _Getter]]] = {
    "message": ("UInt64", _of_message("number")),
    "conversation": ("UInt32", lambda message, _: message.flow.conversation.number),
    "kind": ("String", _of_message("kind")),
    "source": ("String", lambda message, _: _address(message.flow)),
    "source_name": ("String", lambda message, names: names.get(message.flow.address)),
    "source_endpoint": ("UInt8", lambda message, _: message.flow.endpoint),
    "source_session": ("UInt32", lambda message, _: message.flow.back.session),
    "destination": ("String", lambda message, _: _address(message.flow.back)),
    "destination_name": ("String", lambda message, names: names.get(message.flow.back.address)),
    "destination_endpoint": ("UInt8", lambda message, _: message.flow.back.endpoint),
    "destination_session": ("UInt32", lambda message, _: message.flow.session),
    "sequence": ("UInt16", lambda message, _: message.position & NUMBER_MASK if message.position >= 0 else None),
    "length": ("UInt32", _of_message("length")),
    "match": ("UInt64", _of_message("match")),
    "start_ns": ("Int64", _of_message("first_ns")),
    "complete_ns": ("Int64", _of_message("complete_ns")),
    "end_ns": ("Int64", _of_message("end_ns")),
    "last_ns": ("Int64", _of_message("last_ns")),
    "sender": ("String", _of_message("sender")),
    "receiver": ("String", _of_message("receiver")),
    "half_seen": ("List(String)", lambda message, _: list(message.half_seen)),
    "frame_count": ("UInt32", _of_message("frame_count")),
    "frames": ("String", lambda message, _: frames_text(message)),
    "transmissions": ("UInt32", _of_message("transmissions")),
    "duplicates": ("UInt32", _of_message("duplicates")),
    "fragments": ("UInt32", lambda message, _: message.fragments.bit_count() if message.kind == "MEDIUM" else None),
    "bytes_seen": (
        "UInt64",
        lambda message, _: message.bytes_seen if message.pull is None else message.pull.ranges.total,
    ),
    "ack_ns": ("Int64", _via("ack", "time_ns")),
    "ack_frame": ("UInt64", _via("ack", "frame")),
    "ack_how": ("String", _via("ack", "how")),
    "refused_ack_ns": ("Int64", _via("refused_ack", "time_ns")),
    "refused_ack_frame": ("UInt64", _via("refused_ack", "frame")),
    "nacks": ("UInt32", _of_message("nacks")),
    "nack_ns": ("Int64", _via("nack", "time_ns")),
    "nack_reason": ("String", _via("nack", "reason")),
    "abandoned_ns": ("Int64", _of_message("abandoned_ns")),
    "region": ("UInt32", _via("pull", "region")),
    "region_counter": ("UInt8", _via("pull", "counter")),
    "requested": ("UInt32", _via("pull", "requested")),
    "pulls": ("UInt32", _via("pull", "pulls")),
    "re_requests": ("UInt32", _via("pull", "re_requests")),
    "duplicate_pulls": ("UInt32", _via("pull", "duplicate_pulls")),
    "replies": ("UInt32", _via("pull", "replies")),
    "repeated_replies": ("UInt32", _via("pull", "repeated_replies")),
    "duplicate_replies": ("UInt32", _via("pull", "duplicate_replies")),
    "pull_nacks": ("UInt32", _via("pull", "nacks")),
    "pull_nack_reason": ("String", _via("pull", "refusal", "reason")),
    "first_pull_ns": ("Int64", _via("pull", "first_pull_ns")),
    "last_reply_ns": ("Int64", _via("pull", "last_reply_ns")),
    "notify_ns": ("Int64", _via("pull", "notice", "first_ns")),
    "notify_frame": ("UInt64", _via("pull", "notice", "frame")),
    "notify_length": ("UInt32", _via("pull", "notice", "total_length")),
    "notify_transmissions": ("UInt32", _via("pull", "notice", "transmissions")),
    "notify_ack_ns": ("Int64", _via("pull", "notice", "ack", "time_ns")),
}
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
