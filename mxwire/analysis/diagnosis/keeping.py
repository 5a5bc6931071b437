"""Bounded samples of an examiner: the first few of each kind, of a bounded number of kinds."""

from __future__ import annotations

from typing import Final, TypeVar

KEPT: Final = 4096
"""Kinds that are remembered: pairs of hosts, of endpoints, flows."""
SHOWN: Final = 4
"""Number of samples kept of each, for display."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def keep(kept: dict[_Key, list[_Value]], key: _Key, value: _Value) -> bool:
    """Keep a value if it is one of the first of its kind; False where the kind is one too many to be remembered."""
    if key not in kept and len(kept) >= KEPT:
        return False
    values = kept.setdefault(key, [])
    if len(values) < SHOWN:
        values.append(value)
    return True
