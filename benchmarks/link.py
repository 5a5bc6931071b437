"""Measure frame rates between two network namespaces: mxwire's links and plain sockets, in one run.

    sudo python benchmarks/link.py [--seconds S] [--rounds N] [--json]

Two processes, one CPU each, run on the two ends of a veth pair of MTU 9000. Every contestant sends as fast as possible,
and received frames count; the contestants take turns, and the best round of each counts. Ratios are relative to one
``send`` and one ``recv`` per frame. On a loaded machine, CPU times per frame are more reliable than rates. Needs root,
for the namespaces.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Protocol

from laboratory import Laboratory, Port, missing

from mxwire.ethernet import ETHERTYPE_MXOE, HEADER_SIZE
from mxwire.frames import FrameBatch
from mxwire.link import PacketLink

LENGTHS = (64, 1514, 4136, 9014)
"""Frame lengths in bytes: minimum, full, a full PULL_REPLY of MXoE, a full jumbo frame."""
BATCH = 64
SILENCE = 0.3
"""Seconds without a frame after which a round ends."""
GO, STOP = b"\0", b"\1"


class End(Protocol):
    """One end of the wire."""

    def send(self, count: int, frame: bytes) -> None:
        """Send a frame ``count`` times."""

    def take(self, timeout: float) -> int:
        """Return the number of received frames, waiting for one for some time."""

    def exchange(self) -> bytes:
        """Return the next frame, polling."""

    def close(self) -> None:
        """Release all resources."""


class Plain:
    """A packet socket, with one system call per frame."""

    def __init__(self, port: Port) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
        self._socket.bind((port.interface, ETHERTYPE_MXOE))
        self._space = bytearray(1 << 16)

    def send(self, count: int, frame: bytes) -> None:
        send = self._socket.send
        for _ in range(count):
            send(frame)

    def take(self, timeout: float) -> int:
        self._socket.settimeout(timeout)
        try:
            self._socket.recv_into(self._space)
            self._socket.setblocking(False)
            count = 1
            while count < BATCH:
                self._socket.recv_into(self._space)
                count += 1
        except BlockingIOError:
            return count
        except TimeoutError:
            return 0
        return count

    def exchange(self) -> bytes:
        receive, space = self._socket.recv_into, self._space
        while True:
            try:
                return bytes(space[: receive(space, 0, socket.MSG_DONTWAIT)])
            except BlockingIOError:
                continue

    def close(self) -> None:
        self._socket.close()


class Ours:
    """A link of mxwire in one of its modes."""

    def __init__(self, port: Port, mode: str) -> None:
        self._link = PacketLink.open(port.interface, mode=mode)
        self._frame = b""
        self._batch = FrameBatch.from_frames(())

    def send(self, count: int, frame: bytes) -> None:
        if (len(self._batch), self._frame) != (count, frame):
            self._batch, self._frame = FrameBatch.from_frames([frame] * count), frame
        self._link.send(self._batch)

    def take(self, timeout: float) -> int:
        return len(self._link.receive(timeout))

    def exchange(self) -> bytes:
        return self._link.receive(None).frame(0)

    def close(self) -> None:
        self._link.close()


Open = Callable[[Port], End]
PLAIN = "send/recv"
CONTESTANTS: dict[str, Open] = {
    PLAIN: Plain,
    **{f"link, {mode}": partial(Ours, mode=mode) for mode in ("sleep", "spin", "bulk")},
}
ROUND_TRIPS: dict[str, Open] = {PLAIN: Plain, "link, spin": CONTESTANTS["link, spin"]}


@dataclass(frozen=True)
class Rate:
    """The best round of a contestant with frames of one length."""

    contestant: str
    length: int
    frames_per_second: float
    gigabits_per_second: float
    loss: float
    """Fraction of the transmitted frames that the receiver did not get."""
    sender_us: float
    """CPU time of the sender per frame; on a veth pair this includes receive processing in the kernel."""
    receiver_us: float
    """CPU time of the receiver per frame."""
    ratio: float = 1.0
    """Frames per second, divided by those of plain sockets."""


@dataclass(frozen=True)
class RoundTrip:
    """Round trip of a 64-byte frame, with both ends polling."""

    contestant: str
    median_us: float
    p99_us: float
    ratio: float = 1.0
    """The median, divided by that of plain sockets."""


# The second process.


def _serve(port: Port, orders: Connection, processor: int | None) -> None:
    """Execute the commands of the first process, at the other end of the wire."""
    _pin(processor)
    with port.namespace.inside():
        while (order := orders.recv()) is not None:
            what, contestant = order
            end = CONTESTANTS[contestant](port)
            orders.send("ready")
            orders.send(_count(end) if what == "count" else _answer(end, port))
            end.close()


def _count(end: End) -> tuple[int, float, float]:
    """Return the number of received frames, the seconds from the first to the last, and CPU seconds."""
    while not (frames := end.take(10.0)):
        continue
    first = last = time.perf_counter()
    used = used_until_last = time.process_time()
    counted = 0
    while more := end.take(SILENCE):
        counted += more
        last, used_until_last = time.perf_counter(), time.process_time()
    return frames + counted, last - first, used_until_last - used


def _answer(end: End, port: Port) -> None:
    """Return every frame to its sender, until a stop frame."""
    address = port.address
    while (frame := end.exchange())[HEADER_SIZE : HEADER_SIZE + 1] == GO:
        end.send(1, frame[6:12] + address + frame[12:])


def _pin(processor: int | None) -> None:
    if processor is not None:
        os.sched_setaffinity(0, {processor})


# The first process.


@dataclass
class Wire:
    """Both ends: the local one, and the remote-controlled one in the second process."""

    here: Port
    there: Port
    orders: Connection

    def frame(self, length: int, kind: bytes = GO) -> bytes:
        """Return a frame addressed to the other end."""
        head = self.there.address + self.here.address + ETHERTYPE_MXOE.to_bytes(2, "big") + kind
        return head.ljust(length, b"\0")

    def rate(self, contestant: str, length: int, seconds: float) -> Rate:
        """Run one round."""
        frame = self.frame(length)
        with self.here.namespace.inside():
            end = CONTESTANTS[contestant](self.here)
        self.orders.send(("count", contestant))
        self.orders.recv()
        sent, used = 0, time.process_time()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            end.send(BATCH, frame)
            sent += BATCH
        used = time.process_time() - used
        frames, duration, receiver_used = self.orders.recv()
        end.close()
        if not duration:  # a loaded machine may receive all frames of a short round at once, which has no rate
            return self.rate(contestant, length, 2 * seconds)
        rate = frames / duration
        return Rate(
            contestant=contestant,
            length=length,
            frames_per_second=rate,
            gigabits_per_second=rate * length * 8 / 1e9,
            loss=max(1 - frames / sent, 0.0),
            sender_us=used / sent * 1e6,
            receiver_us=receiver_used / frames * 1e6,
        )

    def round_trip(self, contestant: str, count: int) -> RoundTrip:
        """Run one round."""
        frame, stop = self.frame(64), self.frame(64, STOP)
        with self.here.namespace.inside():
            end = ROUND_TRIPS[contestant](self.here)
        self.orders.send(("answer", contestant))
        self.orders.recv()
        times = []
        for _ in range(count):
            start = time.perf_counter_ns()
            end.send(1, frame)
            end.exchange()
            times.append(time.perf_counter_ns() - start)
        end.send(1, stop)
        self.orders.recv()
        end.close()
        times.sort()
        return RoundTrip(contestant, times[len(times) // 2] / 1e3, times[len(times) * 99 // 100] / 1e3)


def _rates(wire: Wire, lengths: Iterable[int], rounds: int, seconds: float) -> list[Rate]:
    results = []
    for length in lengths:
        measured = [[wire.rate(each, length, seconds) for each in CONTESTANTS] for _ in range(rounds)]
        best = [max(column, key=lambda each: each.frames_per_second) for column in zip(*measured, strict=True)]
        plain = best[0].frames_per_second
        results += [Rate(**asdict(each) | {"ratio": each.frames_per_second / plain}) for each in best]
    return results


def _round_trips(wire: Wire, rounds: int, count: int) -> list[RoundTrip]:
    measured = [[wire.round_trip(each, count) for each in ROUND_TRIPS] for _ in range(rounds)]
    best = [min(column, key=lambda each: each.median_us) for column in zip(*measured, strict=True)]
    plain = best[0].median_us
    return [RoundTrip(**asdict(each) | {"ratio": each.median_us / plain}) for each in best]


def measure(options: argparse.Namespace) -> dict[str, list[Any]]:
    """Return all results, by kind."""
    processors = sorted(os.sched_getaffinity(0))
    mine, other = (processors[0], processors[1]) if len(processors) > 1 else (None, None)
    orders, for_other = multiprocessing.Pipe()
    with Laboratory() as laboratory:
        here, there = laboratory.pair(9000)
        server = multiprocessing.get_context("fork").Process(target=_serve, args=(there, for_other, other), daemon=True)
        server.start()
        _pin(mine)
        wire = Wire(here, there, orders)
        results = {
            "rates": _rates(wire, options.lengths, options.rounds, options.seconds),
            "round_trips": _round_trips(wire, options.rounds, options.round_trips),
        }
        orders.send(None)
        server.join()
    return results


def _as_text(results: dict[str, list[Any]]) -> Iterable[str]:
    yield (
        f"{'bytes':>5}  {'contestant':12}  {'Mframes/s':>9}  {'Gb/s':>6}  {'ratio':>5}  {'lost':>6}"
        f"  {'sender µs':>9}  {'receiver µs':>11}"
    )
    for each in results["rates"]:
        yield (
            f"{each.length:5}  {each.contestant:12}  {each.frames_per_second / 1e6:9.3f}"
            f"  {each.gigabits_per_second:6.2f}  {each.ratio:5.2f}  {each.loss:6.1%}"
            f"  {each.sender_us:9.2f}  {each.receiver_us:11.2f}"
        )
    yield ""
    yield f"64 bytes there and back  {'median µs':>9}  {'p99 µs':>7}  {'ratio':>5}"
    for each in results["round_trips"]:
        yield f"{each.contestant:23}  {each.median_us:9.2f}  {each.p99_us:7.2f}  {each.ratio:5.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each contestant (%(default)s)")
    parser.add_argument("--round-trips", type=int, default=5000, help="round trips per round (%(default)s)")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="frame lengths in bytes")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    options = parser.parse_args()
    why_not = missing()
    if why_not:
        sys.exit(why_not)
    results = measure(options)
    if options.json:
        print(json.dumps({name: [asdict(each) for each in many] for name, many in results.items()}, indent=2))
    else:
        print("\n".join(_as_text(results)))


if __name__ == "__main__":
    main()
