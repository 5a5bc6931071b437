"""The program of a pair: two processes with a mechanism between them, which play roles for the study.

    python -m mxwire.bench.intranode.pair MECHANISM SLOT PROCESSOR PROCESSOR

It reads one role per line, as a name with numbers, and writes one line of JSON: the values of both sides, or an error.
The twin in C (``mechanisms.c``) has the same lines for the first three roles. Data moves from side 0 to side 1, and in
round trips back. Messages begin ``step`` bytes after each other in a pool of ``length`` bytes, and all at its beginning
if ``step`` is 0; the pool is kept for the next role with the same length. Times are in ns.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from statistics import median
from typing import Any, Final, cast

import numpy as np

from mxwire.bench.intranode.catalogue import mechanism_named
from mxwire.bench.intranode.counters import CACHE_MISSES, EventCounter, ProbedBuffer, missing_counter
from mxwire.bench.intranode.mechanism import (
    Direction,
    GetMechanism,
    Mechanism,
    MechanismError,
    OneSided,
    Piece,
    Pool,
    SharedFlags,
    reason_of,
    run_program,
)
from mxwire.bench.intranode.memory import KeptPool
from mxwire.bench.intranode.registration import PinnedPages, registration_times
from mxwire.bench.intranode.window import AccessWindow, ServedWindow, WindowMechanism
from mxwire.bench.processors import read_use
from mxwire.errors import MxwireError
from mxwire.lab.child import end_with_parent
from mxwire.lab.machine import cache_bytes, cold_bytes, pin

Values = dict[str, float]
_ARRIVED, _STOP, _COUNTED = 0, 2, 3
"""Flags of the pair: barriers passed by each side, the end of a role, and messages moved in it."""
_LOOP: Final = 2000
"""Iterations of the loop that the other side runs: about 50 µs."""
_SETUP_NS: Final = 50_000_000
_SLOWED_NS: Final = 50_000_000
"""Longest time for which the loop runs while data moves, and without."""
_BLOCK: Final = 4
"""Runs of the loop in a block, at least."""
_PAUSED, _OVER, _MOVING = 0, 1, 2
"""Values of the flag of the end of a role: the initiator of one-sided transfers also pauses."""
_LONGEST_LINE: Final = 1 << 16


class Pair:
    """A side of a pair."""

    def __init__(self, mechanism: Mechanism, flags: SharedFlags, rank: int, lock_file: int) -> None:
        self.mechanism, self.flags, self.rank = mechanism, flags, rank
        self.lock_file = lock_file
        """Descriptor of a file without content, for locks."""
        self._barriers = 0
        self.kept = KeptPool(full=not rank)

    def barrier(self) -> None:
        """Return when both sides have called it."""
        self._barriers += 1
        self.flags.set(_ARRIVED + self.rank, self._barriers)
        # The other side may have passed this barrier, and arrived at the next one.
        self.flags.wait_least(_ARRIVED + 1 - self.rank, self._barriers)

    def pool(self, length: int) -> Pool:
        """Memory of this side, with the content of a source on side 0."""
        return Pool(length, full=not self.rank)

    def check(self, pool: Pool, piece: Piece, arrived: memoryview | None) -> None:
        """Raise :class:`MechanismError` unless the last message has arrived at this side with its content."""
        if self.rank:
            pool.check(piece, piece.view if arrived is None else arrived)

    @contextmanager
    def measured(self, turns: int, found: Values) -> Iterator[None]:
        """Add the processor time of this side per turn to the values."""
        before = read_use()
        yield
        used = read_use() - before
        found["user"], found["system"] = used.user * 1e9 / turns, used.system * 1e9 / turns


def trips(pair: Pair, size: int, turns: int, step: int, length: int) -> Values:
    """Half round trips of ``turns`` messages in either direction, and the processor time per message."""
    pool, pieces = pair.kept.pieces(size, turns + max(turns // 10, 1), step, length)
    give, take, clock = pair.mechanism.give, pair.mechanism.take, time.perf_counter_ns
    found: Values = {}
    arrived = None
    # The values of the warm-up, a tenth of the turns, are overwritten by those of the second run.
    for counted in (False, True):
        part = pieces[-turns:] if counted else pieces[:-turns]
        pair.barrier()
        with pair.measured(2 * turns, found):
            begin = clock()
            if pair.rank:
                for piece in part:
                    arrived = take(piece)
                    give(piece)
            else:
                for piece in part:
                    give(piece)
                    take(piece)
            found["ns"] = (clock() - begin) / (2 * turns)
    pair.check(pool, pieces[-1], arrived)
    return found


def operations(pair: Pair, size: int, turns: int, step: int, length: int) -> Values:
    """The paper's method: a barrier and a message, without the time of barriers alone."""
    pool, pieces = pair.kept.pieces(size, turns + max(turns // 10, 1), step, length)
    part = pair.mechanism.take if pair.rank else pair.mechanism.give
    clock, found = time.perf_counter_ns, dict[str, float]()
    arrived = None
    for piece in pieces[:-turns]:
        pair.barrier()
        part(piece)
    pair.barrier()
    begin = clock()
    for _ in range(turns):
        pair.barrier()
    alone = clock() - begin
    pair.barrier()
    with pair.measured(turns, found):
        begin = clock()
        for piece in pieces[-turns:]:
            pair.barrier()
            arrived = part(piece)
        found["ns"] = (clock() - begin - alone) / turns
    pair.barrier()
    pair.check(pool, pieces[-1], arrived)
    return found


def release(pair: Pair, *_: int) -> Values:
    """Free the memory that was kept."""
    pair.kept.release()
    return {}


def _run_loop() -> None:
    for _ in range(_LOOP):
        pass


def slowdown(pair: Pair, size: int, turns: int) -> Values:
    """The time that a message adds to a loop of the other side, in ns and as a share of the loop's time, and how often
    another program has taken the processor of the loop."""
    pair.flags.set(_STOP, _PAUSED)
    pair.flags.set(_COUNTED, 0)
    piece = pair.pool(size).piece(0, size)
    pair.barrier()
    if not isinstance(pair.mechanism, OneSided):
        found = _slowed_by_taking(pair, piece, turns)
    elif pair.rank == isinstance(pair.mechanism, GetMechanism):
        found = _move_on_demand(pair, pair.mechanism, piece)
    else:
        found = _slowed_by_moves(pair, pair.mechanism, piece, turns)
    pair.barrier()
    return found


def _slowed_by_taking(pair: Pair, piece: Piece, turns: int) -> Values:
    """The loop of side 1 by itself, and with a message after each run of it."""
    clock = time.perf_counter_ns
    if not pair.rank:
        pair.barrier()
        for _ in range(turns):
            pair.mechanism.give(piece)
        return {}
    # Not within barriers, in which this side yields the processor itself.
    preempted = -read_use().preemptions
    begin = clock()
    for _ in range(turns):
        _run_loop()
    alone = clock() - begin
    preempted += read_use().preemptions
    pair.barrier()
    preempted -= read_use().preemptions
    begin = clock()
    for _ in range(turns):
        _run_loop()
        pair.mechanism.take(piece)
    took = clock() - begin
    preempted += read_use().preemptions
    share = took / alone - 1
    return {"ns": (took - alone) / turns, "share": share, "messages": turns, "preempted": preempted}


def _move_on_demand(pair: Pair, mechanism: OneSided, piece: Piece) -> Values:
    """Move data while the target wants it."""
    address, moved = mechanism.offered(), 0
    while (wanted := pair.flags.get(_STOP)) != _OVER:
        if wanted == _MOVING:
            mechanism.move(piece, address)
            moved += 1
            pair.flags.set(_COUNTED, moved)
    mechanism.report_moved()
    return {}


def _slowed_by_moves(pair: Pair, mechanism: OneSided, piece: Piece, turns: int) -> Values:
    """The loop of the target, in pairs of blocks: one while the initiator pauses, and one while it moves data.

    Both blocks of a pair take a fraction of a ms, so that they meet the same load of the machine. Medians of those in
    which data has moved, and no other program has run here.
    """
    flags, clock = pair.flags, time.perf_counter_ns
    mechanism.offer(piece)
    # A mechanism that stops this side leaves it little time.
    end = clock() + _SLOWED_NS

    def block(wanted: int) -> tuple[float, int, int]:
        """The time of a loop, the number of loops, and that of messages."""
        flags.set(_STOP, wanted)
        # The move that has begun before ends.
        _run_loop()
        first, done, begin = flags.get(_COUNTED), 0, clock()
        # A block without a message would show no slowdown: it lasts until a slow mechanism has moved one.
        while done < _BLOCK or (wanted == _MOVING and flags.get(_COUNTED) == first and clock() < end):
            _run_loop()
            done += 1
        return (clock() - begin) / done, done, flags.get(_COUNTED) - first

    shares, times = list[float](), list[float]()
    messages = number = 0
    while len(shares) * _BLOCK < turns and (not number or clock() < end):
        preempted = read_use().preemptions
        # The order changes, so that a drift of the clock rate does not count.
        order = (_PAUSED, _MOVING) if number % 2 else (_MOVING, _PAUSED)
        number += 1
        blocks = {wanted: block(wanted) for wanted in order}
        alone, (took, loops, moved) = blocks[_PAUSED][0], blocks[_MOVING]
        if moved and read_use().preemptions == preempted:
            shares.append(took / alone - 1)
            times.append((took - alone) * loops / moved)
            messages += moved
    flags.set(_STOP, _OVER)
    mechanism.await_moved()
    if not shares:
        return {"preempted": number}
    return {"ns": median(times), "share": median(shares), "messages": messages, "preempted": 0}


def accesses(pair: Pair, size: int, turns: int) -> Values:
    """The time of an access to a window by its initiator: between two fences, and under a lock.

    Only side 0 accesses the window while the lock is measured, and side 1 runs its loop. Names of the second direction
    of a mechanism begin with it. Raises :class:`MechanismError` if other content has arrived.
    """
    mechanism, found = pair.mechanism, dict[str, float]()
    for direction in mechanism.one_sided:
        prefix = "" if direction == mechanism.one_sided[0] else f"{direction}, "
        pool = pair.pool(size)
        piece = pool.piece(0, size)
        window = AccessWindow(cast("WindowMechanism", mechanism), piece, pair.barrier, pair.lock_file)
        times = _accessed(pair, window, direction, piece, turns)
        found |= {prefix + name: value for name, value in times.items()}
        if direction == "put":
            pair.check(pool, piece, window.memory)
        elif not pair.rank and any(piece.view):
            raise MechanismError("a get has other content than the target's memory")
        window.close()
        pair.barrier()
    return found


def _accessed(pair: Pair, window: AccessWindow, direction: Direction, piece: Piece, turns: int) -> Values:
    clock, found = time.perf_counter_ns, dict[str, float]()
    # Before the fence, as the initiator could otherwise set the flag before the other side has reset it.
    pair.flags.set(_STOP, 0)
    window.fence()
    begin = clock()
    for _ in range(turns):
        if not pair.rank:
            window.access(direction, piece)
        window.fence()
    found["active"] = (clock() - begin) / turns
    if pair.rank:
        while not pair.flags.get(_STOP):
            _run_loop()
    else:
        begin = clock()
        for _ in range(turns):
            window.lock()
            window.access(direction, piece)
            window.unlock()
        found["passive"] = (clock() - begin) / turns
        pair.flags.set(_STOP, 1)
    return found


def served(pair: Pair, size: int, turns: int, by_signal: int, idle_ns: int) -> Values:
    """The times of a get and of a put that the target serves by a thread, or ``by_signal``, and the target's slowdown.

    The slowdown is the processor time that the target spends on waiting for requests, per that of its loop, which runs
    for ``idle_ns`` beside. A thread of Python has the processor for 5 ms at a time, so the loop must be longer.
    """
    clock, found = time.perf_counter_ns, dict[str, float]()
    pool = pair.pool(size)
    window = ServedWindow(pair.mechanism, pool.piece(0, size), by_signal=bool(by_signal))

    if pair.rank:
        with window.service():
            pair.barrier()
            begin, all_begin = time.thread_time_ns(), time.process_time_ns()
            # Time of this thread, as it runs in turns with the one that serves.
            while time.thread_time_ns() - begin < idle_ns:
                _run_loop()
            own = time.thread_time_ns() - begin
            if idle_ns:
                found["share"] = (time.process_time_ns() - all_begin - own) / own
            pair.barrier()
            while not window.ended:
                _run_loop()
        pool.check(pool.piece(0, size), pool.view)
        return found
    # No request between both: the target measures what waiting costs.
    pair.barrier()
    pair.barrier()
    piece, arrived = pool.piece(0, size), Pool(size, full=False)
    for name, access, moved in (("put", window.put, piece), ("get", window.get, arrived.piece(0, size))):
        begin = clock()
        for _ in range(turns):
            access(moved)
        found[name] = (clock() - begin) / turns
    window.end()
    arrived.check(arrived.piece(0, size), arrived.view)
    return found


def setups(pair: Pair, most: int) -> Values:
    """The time to open and to close the mechanism, once more, on side 0."""
    kind, clock = type(pair.mechanism), time.perf_counter_ns
    opened: list[int] = []
    closed: list[int] = []
    end = clock() + _SETUP_NS
    while not pair.rank and len(opened) < most and (not opened or clock() < end):
        begin = clock()
        again = kind(pair.mechanism.slot)
        if kind.JOINS_ALONE:
            again.join(0, pair.mechanism.partner)
            again.start()
        middle = clock()
        again.close()
        opened.append(middle - begin)
        closed.append(clock() - middle)
    return {"open": median(opened), "close": median(closed), "count": len(opened)} if opened else {}


def registrations(pair: Pair, size: int, count: int) -> Values:
    """The times of :func:`~mxwire.bench.intranode.registration.registration_times` on side 0, of pinned pages or of the
    mechanism's own registration."""
    if pair.rank:
        return {}
    return registration_times(pair.mechanism.registrar or PinnedPages(), size, count)


def disturbance(pair: Pair, size: int, messages: int) -> Values:
    """The share of a buffer of half a cache that a message drives out of the caches of both levels, on each side.

    Measured by time, between that of the buffer in the cache and that of the buffer out of it, of the same message; and
    as misses per line of the buffer, if the processor counts them for this process (``L2, misses``). Medians of
    ``messages``, as that of a single message varies by half.
    """
    walk = np.zeros(cold_bytes() // 8, np.int64)
    piece = pair.pool(size).piece(0, size)
    found: Values = {}
    with ExitStack() as held:
        counter = None if missing_counter() else held.enter_context(EventCounter(*CACHE_MISSES))
        for level in (2, 3):
            buffer = ProbedBuffer(cache_bytes(level) // 2, counter)
            shares, missed = [], []
            for _ in range(messages):
                # As many bytes as all caches hold, and more: they drive the buffer out.
                walk += 1
                cold, _ = buffer.read()
                # The first one fetches the lines, and the last one is the reference.
                for _ in range(3):
                    hot, least = buffer.read()
                pair.barrier()
                if pair.rank:
                    pair.mechanism.take(piece)
                else:
                    pair.mechanism.give(piece)
                after, misses = buffer.read()
                pair.barrier()
                # By chance a read is faster than the hot reference, or slower than the cold one.
                shares.append(min(max((after - hot) / max(cold - hot, 1), 0.0), 1.0))
                missed.append(max(misses - least, 0) / buffer.lines)
            found[f"L{level}"] = median(shares)
            if counter is not None:
                found[f"L{level}, misses"] = median(missed)
    return found


ROLES: Final[dict[str, Callable[..., Values]]] = {
    each.__name__: each
    for each in (trips, operations, release, slowdown, accesses, served, setups, registrations, disturbance)
}


def _played(pair: Pair, line: str) -> Values:
    name, *numbers = line.split()
    return ROLES[name](pair, *map(int, numbers))


def serve(name: str, slot: int, processors: tuple[int, int]) -> None:
    """Play roles until the input ends."""
    mechanism = mechanism_named(name)(slot or None)
    flags = SharedFlags(4)
    control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    lock_file = os.memfd_create("mxwire-intranode", os.MFD_CLOEXEC)
    child = os.fork()
    rank = 0 if child else 1
    connection = control[rank]
    control[1 - rank].close()
    try:
        # Either side polls memory, which does not show that the other one has died.
        if rank:
            end_with_parent()
        else:
            flags.watch(child)
        pin(processors[rank])
        mechanism.join(rank, child or os.getppid())
        pair = Pair(mechanism, flags, rank, lock_file)
        pair.barrier()
        # Between barriers: a start may use the other side, which must have joined.
        mechanism.start()
        pair.barrier()
        if rank:
            while role := connection.recv(_LONGEST_LINE):
                connection.send(json.dumps(_played(pair, role.decode())).encode())
        for line in sys.stdin if not rank else ():
            connection.send(line.encode())
            own = _played(pair, line)
            answer: dict[str, Any] = json.loads(connection.recv(_LONGEST_LINE) or "{}")
            if "error" in answer:
                raise MechanismError(answer["error"])
            print(json.dumps([own, answer]), flush=True)
    except (OSError, EOFError, MxwireError) as error:
        reason = reason_of(error)
        if rank:
            connection.send(json.dumps({"error": reason}).encode())
        else:
            # The reason of the other side, if it has ended, is the first one.
            connection.settimeout(1.0)
            with suppress(OSError, ValueError):
                reason = json.loads(connection.recv(_LONGEST_LINE)).get("error", reason)
            raise MechanismError(reason) from None
    finally:
        mechanism.close()
        if rank:
            # Exit handlers and unwritten output are those of the parent, which runs them itself.
            os._exit(0)


def main() -> int:
    """Run the program of the command line."""
    name, slot, first, second = sys.argv[1:]
    return run_program(lambda: serve(name, int(slot), (int(first), int(second))))


if __name__ == "__main__":
    sys.exit(main())
