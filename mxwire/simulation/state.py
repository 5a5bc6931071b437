"""The state of a simulated world as a digest: two worlds with equal digests continue in the same way.

The digest covers all objects that are reachable from the hosts, the network, the schedule and the ledger. It omits
objects that only record the past and have no effect on later steps: counters, the digest of the run, and the judge of
the wire. Numbers of steps and frames are omitted too, since faults are planned by number.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from hashlib import blake2b
from itertools import count
from random import Random
from struct import Struct
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
_RANDOM: Final = Struct(f">{len(Random().getstate()[1])}I")
"""The numbers in the state of a random generator."""
_ABSENT: Final = object()
_SKIPPED: Final = {Network: ("frames", "lost", "observers", "_planned"), World: ("restart_listeners", "taps")}


def state_digest(world: World) -> bytes:
    """Return the digest of the state of a world, 16 bytes."""
    written: list[bytes | bytearray] = []
    seen: dict[int, int] = {}
    kept: list[Any] = []  # objects made for the walk, kept alive so that their ids are not reused
    stack: list[Any] = [world]
    while stack:
        value = stack.pop()
        kind: Any = type(value)
        if kind is bytes or kind is bytearray:
            written += b"%d:" % len(value), value
            continue
        if _is_atom(kind):
            # Terminated, so that 1 and 23 differ from 12 and 3.
            written.append(f"{value!r},".encode())
            continue
        if (number := seen.get(id(value))) is not None:
            written.append(b"^%d," % number)
            continue
        seen[id(value)] = len(seen)
        written.append(kind.__name__.encode())
        if _is_record(kind):
            continue
        parts = _taker(kind)(value)
        kept.append(parts)
        written.append(b"(%d," % len(parts))
        stack += reversed(parts)
    return blake2b(b"".join(written), digest_size=16).digest()


@cache
def _is_atom(kind: type) -> bool:
    return issubclass(kind, _ATOMS)


@cache
def _is_record(kind: type) -> bool:
    return issubclass(kind, _RECORDS)


@cache
def _taker(kind: type) -> Callable[[Any], list[Any]]:
    """Return a function for the objects that an object of a class consists of, in an order that is the same in every
    run."""
    for classes, take in _TAKERS:
        if issubclass(kind, classes):
            return take
    skipped, slots = _SKIPPED.get(kind, ()), _slots(kind)

    def attributes(value: Any) -> list[Any]:
        names: Iterable[str] = slots
        if own := getattr(value, "__dict__", None):
            names = dict.fromkeys((*own, *slots))
        return [
            part for name in names if name not in skipped and (part := getattr(value, name, _ABSENT)) is not _ABSENT
        ]

    return attributes


def _of_sequence(value: Any) -> list[Any]:
    return [repr(list(value))] if _PLAIN.issuperset(map(type, value)) else list(value)


def _of_set(value: Any) -> list[Any]:
    return sorted(value, key=repr) if all(isinstance(each, _ATOMS) for each in value) else list(value)


def _of_random(value: Random) -> list[Any]:
    version, numbers, following = value.getstate()
    return [version, _RANDOM.pack(*numbers), following]


def _of_schedule(value: Schedule) -> list[Any]:
    return [value.now, [(time, action, details) for time, _, action, details in sorted(value._heap, key=_due)]]


def _due(entry: tuple[Any, ...]) -> tuple[int, int]:
    time, entered = entry[:2]
    return time, entered


_TAKERS: Final[tuple[tuple[Any, Callable[[Any], list[Any]]], ...]] = (
    (dict, lambda value: [part for item in value.items() for part in item]),
    ((list, tuple, deque), _of_sequence),
    ((set, frozenset), _of_set),
    (np.ndarray, lambda value: [str(value.dtype), value.shape, value.tobytes()]),
    (memoryview, lambda value: [value.tobytes()]),
    (MethodType, lambda value: [value.__func__.__qualname__, value.__self__]),
    (FunctionType, lambda value: [value.__qualname__, *(cell.cell_contents for cell in value.__closure__ or ())]),
    (BuiltinFunctionType, lambda value: [value.__qualname__, value.__self__]),
    (Random, _of_random),
    ((count, np.generic), lambda value: [repr(value)]),
    (Schedule, _of_schedule),
)
"""By classes: the functions for the parts of all objects but those that consist of their attributes."""


def _slots(kind: type) -> tuple[str, ...]:
    """Return the names of the attributes that a class declares, a compiled one too."""
    names: dict[str, None] = {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
        names |= dict.fromkeys(base.__dict__.get("__mypyc_attrs__", ()))
    return tuple(name for name in names if not name.startswith("__"))
