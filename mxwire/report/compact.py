"""Records of frames and messages without what was not there, and without what another key states.

The ordinary value of a key is left out: None, an empty list, and that of :data:`_ORDINARY` or :data:`_SAME`.
Sessions are left out because the record of the conversation has them.
"""

from __future__ import annotations

from typing import Any, Final

_ORDINARY: Final[dict[str, Any]] = dict.fromkeys(
    ("duplicates", "nacks", "re_requests", "duplicate_pulls", "repeated_replies", "duplicate_replies", "pull_nacks"), 0
) | {"frame_count": 1, "transmissions": 1, "notify_transmissions": 1, "ack_how": "piggyback"}
_SAME: Final = {
    "captured": "wire_length",
    "complete_ns": "start_ns",
    "last_ns": "start_ns",
    "end_ns": "ack_ns",
    "bytes_seen": "length",
}
"""Keys whose ordinary value is that of another key."""
_FIRST: Final = ("time_relative_s", "start_relative_s")
"""The time of a record since the first frame of the capture; other times have nanoseconds only."""
_OF_CONVERSATION: Final = ("source_session", "destination_session")
STATED: Final = frozenset({"dst_mac", "src_mac", "ethertype", "ptype"})
"""Fields of every frame that ``source``, ``destination`` and ``type`` state."""


def compact(record: dict[str, Any], *, all_fields: bool = False) -> dict[str, Any]:
    """Return the keys of a record, with seconds, that are not ordinary; ``all_fields`` keeps those of the packet."""
    kept = {key: value for key, value in record.items() if key in _FIRST or not _is_ordinary(key, value, record)}
    if "payload" in kept and not record["vlan"] and record["destination"] is not None:
        # Directly behind the header, and as long as the packet states.
        del kept["payload"]
    if "fields" in kept and not all_fields:
        kept["fields"] = {
            key: value for key, value in kept["fields"].items() if key not in STATED and (value or key != "checksum")
        }
    return kept


def _is_ordinary(key: str, value: Any, record: dict[str, Any]) -> bool:
    if key.endswith("_s") or key in _OF_CONVERSATION:
        return True
    same = record.get(_SAME.get(key, ""))
    if same is not None:
        return bool(value == same)
    return value is None or value == [] or value == _ORDINARY.get(key)
