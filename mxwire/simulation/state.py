"""The state of a simulated world as a digest: two worlds with equal digests continue in the same way.

The digest covers all objects that are reachable from the hosts, the network, the schedule and the ledger. It omits
objects that only record the past and have no effect on later steps: counters, the digest of the run, and the judge of
the wire. Numbers of steps and frames are omitted too, since faults are planned by number.
"""

from __future__ import annotations

from collections import Counter, deque
from enum import Enum
from hashlib import blake2b
from itertools import count
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

import numpy as np

from mxwire.protocol.counters import Counters
from mxwire.simulation.digest import Digest
from mxwire.simulation.network import Network
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.schedule import Schedule
from mxwire.simulation.world import World
from mxwire.wire.codec import Codec
from mxwire.wire.dialect import Dialect

_ATOMS: Final = (int, float, str, bytes, bytearray, bool, type(None), Enum, range)
_PLAIN: Final = frozenset((int, float, str, bytes, bool, type(None)))
_RECORDS: Final = (Codec, Counter, Counters, Dialect, Digest, Scenario, type)
"""Types of objects that have no effect on later steps, or that do not change in a run."""
_SKIPPED: Final = {Network: ("frames", "lost", "observers", "_planned"), World: ("restart_listeners", "taps")}


def state_digest(world: World) -> bytes:
    """Return the digest of the state of a world, 16 bytes."""
    digest = blake2b(digest_size=16)
    seen: dict[int, int] = {}
    kept: list[Any] = []  # objects made for the walk, kept alive so that their ids are not reused
    stack: list[Any] = [world]
    while stack:
        value = stack.pop()
        if isinstance(value, _ATOMS):
            # Terminated, so that 1 and 23 differ from 12 and 3.
            digest.update(repr(value).encode() + b",")
            continue
        if (number := seen.get(id(value))) is not None:
            digest.update(b"^%d," % number)
            continue
        seen[id(value)] = len(seen)
        digest.update(type(value).__name__.encode())
        if isinstance(value, _RECORDS):
            continue
        parts = _parts(value)
        kept.append(parts)
        digest.update(b"(%d," % len(parts))
        stack.extend(reversed(parts))
    return digest.digest()


def _parts(value: Any) -> list[Any]:
    """Return the objects that an object consists of, in an order that is the same in every run."""
    if isinstance(value, dict):
        return [part for item in value.items() for part in item]
    if isinstance(value, (list, tuple, deque)):
        return [repr(list(value))] if _PLAIN.issuperset(map(type, value)) else list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr) if all(isinstance(each, _ATOMS) for each in value) else list(value)
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.shape, value.tobytes()]
    if isinstance(value, memoryview):
        return [value.tobytes()]
    if isinstance(value, MethodType):
        return [value.__func__.__qualname__, value.__self__]
    if isinstance(value, FunctionType):
        return [value.__qualname__, *(cell.cell_contents for cell in value.__closure__ or ())]
    if isinstance(value, BuiltinFunctionType):
        return [value.__qualname__, value.__self__]
    if isinstance(value, Random):
        version, numbers, following = value.getstate()
        return [version, np.array(numbers, np.uint32), following]
    if isinstance(value, (count, np.generic)):
        return [repr(value)]
    if isinstance(value, Schedule):
        return [value.now, [(time, action, details) for time, _, action, details in sorted(value._heap, key=_due)]]
    return [getattr(value, name) for name in _names(value)]


def _due(entry: tuple[Any, ...]) -> tuple[int, int]:
    time, entered = entry[:2]
    return time, entered


def _names(value: Any) -> list[str]:
    """Return the names of the attributes of an object, in a compiled class too."""
    skipped = _SKIPPED.get(type(value), ())
    names: dict[str, None] = dict.fromkeys(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
        names |= dict.fromkeys(base.__dict__.get("__mypyc_attrs__", ()))
    return [name for name in names if name not in skipped and not name.startswith("__") and hasattr(value, name)]
