"""JSON Lines output: one object per line, with each time in seconds beside the nanoseconds."""

from __future__ import annotations

import json
from typing import Any, Final

from mxwire.report.ascii_text import is_ascii
from mxwire.units import SECOND

INSTANTS: Final = frozenset(
    {
        *("time_ns", "start_ns", "end_ns", "first_ns", "last_ns", "complete_ns", "abandoned_ns", "ack_ns"),
        *("refused_ack_ns", "nack_ns", "first_pull_ns", "last_reply_ns", "notify_ns", "notify_ack_ns"),
        *("answered_ns", "offset_at_ns"),
    }
)
"""Keys of points in time, in nanoseconds since 1970; all other ``_ns`` keys are durations."""

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ENCODE_ASCII: Final = json.JSONEncoder(separators=(",", ":")).encode


def json_line(record: dict[str, Any], start_ns: int | None = None) -> str:
    """Format a record as JSON without a newline; ``start_ns`` is the time of the capture's first frame."""
    return plain_line(with_seconds(record, start_ns))


def plain_line(record: dict[str, Any]) -> str:
    """Format a record as JSON without a newline, as it is."""
    return (_ENCODE_ASCII if is_ascii() else _ENCODE)(record)


def with_seconds(record: dict[str, Any], start_ns: int | None = None) -> dict[str, Any]:
    """A copy of ``record`` with ``X_s``, in seconds, after each ``X_ns`` at any depth.

    Points in time also get ``X_relative_s``, the seconds since ``start_ns``, unless that is None. Integers in
    nanoseconds exceed 2**53, beyond which jq and JavaScript round them.
    """
    entry: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            entry[key] = with_seconds(value, start_ns)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            entry[key] = [with_seconds(each, start_ns) for each in value]
        else:
            entry[key] = value
            if key.endswith("_ns"):
                name = key[:-3]
                entry[f"{name}_s"] = _seconds(value)
                if start_ns is not None and key in INSTANTS:
                    entry[f"{name}_relative_s"] = None if value is None else _seconds(value - start_ns)
    return entry


def without_seconds(record: dict[str, Any]) -> dict[str, Any]:
    """Undo :func:`with_seconds`."""
    added = {f"{key[:-3]}{end}" for key in record if key.endswith("_ns") for end in ("_s", "_relative_s")}
    return {key: _without(value) for key, value in record.items() if key not in added}


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(each) for each in value]
    return without_seconds(value) if isinstance(value, dict) else value


def _seconds(nanoseconds: Any) -> Any:
    """Convert a number, a list of numbers or None, by one division each: the result is the nearest float."""
    if isinstance(nanoseconds, list):
        return [each / SECOND for each in nanoseconds]
    return None if nanoseconds is None else nanoseconds / SECOND
