"""Objects for ``--json``: one per line, with times in seconds beside those in nanoseconds."""

from __future__ import annotations

import json
from typing import Any, Final

from mxwire.units import SECOND

INSTANTS: Final = frozenset(
    {
        "time_ns",
        "start_ns",
        "end_ns",
        "first_ns",
        "last_ns",
        "complete_ns",
        "given_up_ns",
        "ack_ns",
        "refused_ack_ns",
        "nack_ns",
        "first_pull_ns",
        "last_reply_ns",
        "notify_ns",
        "notify_ack_ns",
        "answered_ns",
        "offset_at_ns",
    }
)
"""Keys of points in time, in nanoseconds since 1970; other keys with ``_ns`` are durations."""

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_line(record: dict[str, Any], start_ns: int | None = None) -> str:
    """A record as JSON, without a newline; ``start_ns`` is the time of the capture's first frame."""
    return _ENCODE(with_seconds(record, start_ns))


def with_seconds(record: dict[str, Any], start_ns: int | None = None) -> dict[str, Any]:
    """A copy of a record in which each ``X_ns``, at any depth, is followed by ``X_s``: the same in seconds.

    A point in time is also followed by ``X_relative_s``, its seconds since ``start_ns``, unless that is None.
    """
    made: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            made[key] = with_seconds(value, start_ns)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            made[key] = [with_seconds(each, start_ns) for each in value]
        else:
            made[key] = value
            if key.endswith("_ns"):
                name = key[:-3]
                made[f"{name}_s"] = _seconds(value)
                if start_ns is not None and key in INSTANTS:
                    made[f"{name}_relative_s"] = None if value is None else _seconds(value - start_ns)
    return made


def without_seconds(record: dict[str, Any]) -> dict[str, Any]:
    """The record that :func:`with_seconds` was given."""
    added = {f"{key[:-3]}{end}" for key in record if key.endswith("_ns") for end in ("_s", "_relative_s")}
    return {key: _without(value) for key, value in record.items() if key not in added}


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(each) for each in value]
    return without_seconds(value) if isinstance(value, dict) else value


def _seconds(nanoseconds: Any) -> Any:
    """A number, or a list of numbers, divided once, so that it is the nearest to the exact value; None stays."""
    if isinstance(nanoseconds, list):
        return [each / SECOND for each in nanoseconds]
    return None if nanoseconds is None else nanoseconds / SECOND
