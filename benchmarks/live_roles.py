"""The contestants of live.py: for each contest, what the active and the passive side do."""

from __future__ import annotations

import resource
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.host import Endpoint, Host
from mxwire.link import PacketLink
from mxwire.protocol import Partner
from mxwire.wire.dialect import dialect_by_name

LARGE = 4 << 20
UNDER_WAY = 4
"""Large messages under way."""
SPIN = 0.0002
"""Seconds that hosts with large messages look before they sleep, as who has not got a processor for himself should."""
TINY_UNDER_WAY = 64
FULL = {"large": {"count": 100}, "round trip": {"count": 3000}, "tiny rate": {"count": 20_000}}
QUICK = {"large": {"count": 6}, "round trip": {"count": 50}, "tiny rate": {"count": 640}}
_ADDRESS = ("10.77.0.1", "10.77.0.2")
_PORT = 7777
_PATIENCE = 30.0
_WARM = 0.1
"""Part of the round trips that are not counted."""
PATTERNS = [Random(seed).randbytes(LARGE) for seed in range(UNDER_WAY + 1)]
"""What is sent in turn; a buffer gets another one each time that it is used."""

Found = dict[str, float]


@dataclass(frozen=True)
class There:
    """Where a side is, and who is at the other end."""

    interface: str
    own: bytes
    other: bytes

    @property
    def active(self) -> bool:
        return self.interface == "veth0"


class Meter:
    """Wall and processor time since it was made."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), _processor_seconds()

    def large(self, count: int, length: int = LARGE) -> Found:
        """What there is to say of so many messages of one length."""
        seconds = time.perf_counter() - self._wall
        return {"value": count * length * 8 / seconds / 1e9, "bytes": count * length} | self.passive()

    def passive(self) -> Found:
        """The same at the other side."""
        return {"cpu": _processor_seconds() - self._processor}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def family(contestant: str) -> str:
    """Who plays the roles."""
    if contestant.startswith("frames alone"):
        return "frames"
    return "host" if contestant.startswith(("mxoe", "omx")) else contestant


# Hosts of mxwire.


@contextmanager
def _host(there: There, dialect: str, spin: bool | float = True) -> Iterator[tuple[Host, Endpoint, Partner | None]]:
    """Our host; on the active side with a partner."""
    with Host.open(
        there.interface,
        name="alpha" if there.active else "beta",
        dialect=dialect,
        peers={there.other: "beta:0" if there.active else "alpha:0"},
        announce=False,
        spin=spin,
        background=False,
    ) as host:
        endpoint = host.open_endpoint(0)
        partner = endpoint.connect("beta", 0, timeout=_PATIENCE) if there.active else None
        yield host, endpoint, partner
        endpoint.close(1.0)


def host_large_sender(there: There, dialect: str, count: int) -> Found:
    with _host(there, dialect, SPIN) as (_, endpoint, partner):
        assert partner is not None
        meter = Meter()
        under_way = [endpoint.isend(partner, PATTERNS[each % len(PATTERNS)]) for each in range(UNDER_WAY)]
        for number in range(UNDER_WAY, count + UNDER_WAY):
            endpoint.wait(under_way.pop(0), _PATIENCE)
            if number < count:
                under_way.append(endpoint.isend(partner, PATTERNS[number % len(PATTERNS)]))
        endpoint.receive(timeout=_PATIENCE)
        return meter.large(count)


def host_large_receiver(there: There, dialect: str, count: int) -> Found:
    with _host(there, dialect, SPIN) as (_, endpoint, _):
        buffers = [bytearray(LARGE) for _ in range(UNDER_WAY)]
        receives = [endpoint.ireceive(buffer=each) for each in buffers]
        meter = Meter()
        for number in range(count):
            message = endpoint.wait(receives[number % UNDER_WAY], _PATIENCE)
            _compare(buffers[number % UNDER_WAY], number)
            if number + UNDER_WAY < count:
                receives[number % UNDER_WAY] = endpoint.ireceive(buffer=buffers[number % UNDER_WAY])
        assert message.source is not None
        endpoint.send(message.source, b"done")
        endpoint.flush(_PATIENCE)
        return meter.passive()


def _compare(buffer: Any, number: int) -> None:
    if buffer != PATTERNS[number % len(PATTERNS)]:
        raise AssertionError(f"message {number} is not what was sent")


def host_trip_active(there: There, dialect: str, count: int) -> Found:
    with _host(there, dialect) as (_, endpoint, partner):
        assert partner is not None

        def trip() -> None:
            endpoint.isend(partner, b"")
            # While it is on its way.
            answer = endpoint.ireceive(maximum=0)
            endpoint.wait(answer, _PATIENCE)

        return _half_trips(trip, count)


def host_trip_passive(there: There, dialect: str, count: int) -> Found:
    with _host(there, dialect) as (_, endpoint, _):
        answer = endpoint.ireceive(maximum=0)
        for number in range(count):
            message = endpoint.wait(answer, _PATIENCE)
            endpoint.isend(message.source, b"")
            if number + 1 < count:
                answer = endpoint.ireceive(maximum=0)
    return {}


def _half_trips(trip: Callable[[], None], count: int) -> Found:
    """Median and 99th percentile of half a round trip in µs."""
    clock, times = time.perf_counter_ns, []
    before = clock()
    for _ in range(count):
        trip()
        now = clock()
        times.append(now - before)
        before = now
    counted = sorted(times[int(count * _WARM) :])
    return {"value": counted[len(counted) // 2] / 2000, "p99": counted[int(len(counted) * 0.99)] / 2000}


def host_rate_active(there: There, dialect: str, count: int) -> Found:
    with _host(there, dialect) as (_, endpoint, partner):
        assert partner is not None
        start = time.perf_counter()
        for _ in range(count // TINY_UNDER_WAY):
            for _ in range(TINY_UNDER_WAY):
                endpoint.isend(partner, b"12345678")
            endpoint.receive(timeout=_PATIENCE)
        seconds = time.perf_counter() - start
    return {"value": count / seconds}


def host_rate_passive(there: There, dialect: str, count: int) -> Found:
    with _host(there, dialect) as (_, endpoint, _):
        for _ in range(count // TINY_UNDER_WAY):
            receives = [endpoint.ireceive(maximum=8) for _ in range(TINY_UNDER_WAY)]
            messages = endpoint.wait_all(receives, _PATIENCE)
            endpoint.isend(messages[-1].source, b"")
    return {}


def host_mixture_active(there: There, dialect: str, seconds: float) -> Found:
    """Messages of all lengths there and back for a while, ended by one that says so."""
    lengths = [0, 1, 32, 33, 128, 129, 4097, 32768, 32769, 1 << 20]
    count = 0
    with _host(there, dialect, SPIN) as (_, endpoint, partner):
        assert partner is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for length in lengths:
                answer = endpoint.ireceive(maximum=length)
                sent = endpoint.isend(partner, PATTERNS[0][:length], 1)
                endpoint.wait_all([sent, answer], _PATIENCE)
                count += 1
        endpoint.isend(partner, b"", 2)
    return {"value": count / seconds}


def host_mixture_passive(there: There, dialect: str, seconds: float) -> Found:
    with _host(there, dialect, SPIN) as (_, endpoint, _):
        while (message := endpoint.receive(timeout=_PATIENCE)).match_info != 2:
            assert message.source is not None
            endpoint.send(message.source, message.data, timeout=_PATIENCE)
    return {}


# Sockets.


@contextmanager
def _addressed(there: There) -> Iterator[tuple[str, str]]:
    """Our IP address and the other's; both are there when this goes on."""
    own, other = _ADDRESS if there.active else _ADDRESS[::-1]
    subprocess.run(["ip", "addr", "replace", f"{own}/24", "dev", there.interface], check=True)
    yield own, other


@contextmanager
def _tcp(there: There) -> Iterator[socket.socket]:
    with _addressed(there) as (own, other), socket.socket() as opened:
        if there.active:
            _connect(opened, other)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield opened
            return
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((own, _PORT))
        opened.listen()
        opened.settimeout(_PATIENCE)
        accepted, _ = opened.accept()
        with accepted:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield accepted


def _connect(opened: socket.socket, other: str) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            opened.connect((other, _PORT))
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def tcp_large_sender(there: There, _name: str, count: int) -> Found:
    with _tcp(there) as connection:
        meter = Meter()
        for number in range(count):
            connection.sendall(PATTERNS[number % len(PATTERNS)])
        _read(connection, memoryview(bytearray(1)))
        return meter.large(count)


def tcp_large_receiver(there: There, _name: str, count: int) -> Found:
    with _tcp(there) as connection:
        buffers = [bytearray(LARGE) for _ in range(UNDER_WAY)]
        meter = Meter()
        for number in range(count):
            _read(connection, memoryview(buffers[number % UNDER_WAY]))
            _compare(buffers[number % UNDER_WAY], number)
        connection.sendall(b"!")
        return meter.passive()


def _read(connection: socket.socket, view: memoryview) -> None:
    while view.nbytes:
        count = connection.recv_into(view)
        if not count:
            raise EOFError("the other side has closed the connection")
        view = view[count:]


def _busy_trip(send: Callable[[], object], take: Callable[[], object]) -> Callable[[], None]:
    def trip() -> None:
        send()
        while True:
            try:
                take()
                return
            except BlockingIOError:
                pass

    return trip


def _serve_busy(count: int, send: Callable[[], object], take: Callable[[], object]) -> None:
    until = time.monotonic() + _PATIENCE
    for _ in range(count):
        while True:
            try:
                take()
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
        send()


def tcp_trip_active(there: There, _name: str, count: int) -> Found:
    with _tcp(there) as connection:
        connection.setblocking(False)
        return _half_trips(_busy_trip(lambda: connection.send(b"!"), lambda: connection.recv(64)), count)


def tcp_trip_passive(there: There, _name: str, count: int) -> Found:
    with _tcp(there) as connection:
        connection.setblocking(False)
        _serve_busy(count, lambda: connection.send(b"!"), lambda: connection.recv(64))
    return {}


@contextmanager
def _udp(there: There) -> Iterator[socket.socket]:
    with _addressed(there) as (own, other), socket.socket(type=socket.SOCK_DGRAM) as opened:
        opened.bind((own, _PORT))
        opened.connect((other, _PORT))
        _meet(opened, there.active)
        yield opened


def _meet(opened: socket.socket, active: bool) -> None:
    """Go on only when the other side listens: what is sent before that is lost.

    The active side greets until it is greeted, which happens once; so the passive side must ignore further greetings.
    """
    opened.settimeout(0.02)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            if active:
                opened.send(_GREETING)
            if len(opened.recv(2048)) >= len(_GREETING):
                break
        except (TimeoutError, ConnectionRefusedError):
            continue
    if not active:
        opened.send(_GREETING)
    opened.setblocking(False)


def _taker(opened: socket.socket) -> Callable[[], None]:
    """Takes a message that is no greeting; raises BlockingIOError where there is none."""
    receive = opened.recv

    def take() -> None:
        if len(receive(256)) >= len(_GREETING):
            raise BlockingIOError

    return take


_GREETING = bytes(100)


def udp_trip_active(there: There, _name: str, count: int) -> Found:
    with _udp(there) as opened:
        return _half_trips(_busy_trip(lambda: opened.send(b"!"), lambda: opened.recv(64)), count)


def udp_trip_passive(there: There, _name: str, count: int) -> Found:
    with _udp(there) as opened:
        _serve_busy(count, lambda: opened.send(b"!"), _taker(opened))
    return {}


def udp_rate_active(there: There, _name: str, count: int) -> Found:
    with _udp(there) as opened:
        start = time.perf_counter()
        for _ in range(count // TINY_UNDER_WAY):
            for _ in range(TINY_UNDER_WAY - 1):
                opened.send(b"12345678")
            _busy_trip(lambda: opened.send(b"12345678"), lambda: opened.recv(64))()
        seconds = time.perf_counter() - start
    return {"value": count / seconds}


def udp_rate_passive(there: There, _name: str, count: int) -> Found:
    with _udp(there) as opened:
        for _ in range(count // TINY_UNDER_WAY):
            _serve_busy(TINY_UNDER_WAY - 1, lambda: None, _taker(opened))
            _serve_busy(1, lambda: opened.send(b"!"), _taker(opened))
    return {}


# Bare frames.


@contextmanager
def _packet(there: There) -> Iterator[socket.socket]:
    ethertype = 0x88B5
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ethertype)) as opened:
        opened.bind((there.interface, ethertype))
        header = there.other + there.own + ethertype.to_bytes(2, "big")
        _meet(_Framed(opened, header), there.active)
        yield opened


class _Framed(socket.socket):
    """A packet socket that puts headers before what it sends."""

    def __init__(self, inner: socket.socket, header: bytes) -> None:
        self._inner, self._header = inner, header

    def __del__(self) -> None:
        pass

    def send(self, data: Any, *_: Any) -> int:
        return self._inner.send(self._header + data)

    def recv(self, size: int, *_: Any) -> bytes:
        return self._inner.recv(size)

    def settimeout(self, value: float | None) -> None:
        self._inner.settimeout(value)

    def setblocking(self, flag: bool) -> None:
        self._inner.setblocking(flag)


def _frame(there: There) -> bytes:
    return there.other + there.own + b"\x88\xb5" + bytes(46)


def packet_trip_active(there: There, _name: str, count: int) -> Found:
    with _packet(there) as opened:
        frame = _frame(there)
        return _half_trips(_busy_trip(lambda: opened.send(frame), lambda: opened.recv(64)), count)


def packet_trip_passive(there: There, _name: str, count: int) -> Found:
    with _packet(there) as opened:
        frame = _frame(there)
        _serve_busy(count, lambda: opened.send(frame), _taker(opened))
    return {}


# The frames of the protocol without the protocol: what the wire, the links and one copy allow.


def _sizes(name: str) -> tuple[int, int, int]:
    """Payload of a frame, frames that are acked together, frames under way."""
    dialect = dialect_by_name(name.split(", ")[1])
    return dialect.reply_payload, dialect.frames_per_block, UNDER_WAY * 4 * dialect.frames_per_block


_DATA_AT = 32


def frames_large_sender(there: There, name: str, count: int) -> Found:
    payload, block, window = _sizes(name)
    total = -(-LARGE // payload) * count
    with PacketLink.open(there.interface, ethertype=0x88B6) as link:
        link.spin = SPIN
        head = there.other + there.own + b"\x88\xb6"
        room = np.zeros((block, _DATA_AT + payload), np.uint8)
        room[:, :14] = np.frombuffer(head, np.uint8)
        data = np.frombuffer(PATTERNS[0], np.uint8)
        blocks = [FrameBatch.from_frames([bytes(_DATA_AT + payload)] * each) for each in range(1, block + 1)]
        _meet_link(link, head, active=True)
        meter = Meter()
        sent = acked = place = 0
        while acked < total:
            while sent < total and sent + block - acked <= window:
                size = min(block, total - sent)
                if place + size * payload > LARGE:
                    place = 0
                room[:size, _DATA_AT:] = data[place : place + size * payload].reshape(size, payload)
                place += size * payload
                link.send(replace(blocks[size - 1], buffer=room.reshape(-1)))
                sent += size
            for each in range(len(batch := link.receive(_PATIENCE))):
                acked = max(acked, int.from_bytes(batch.frame(each)[14:22], "big"))
        return meter.large(total, payload)


def frames_large_receiver(there: There, name: str, count: int) -> Found:
    payload, block, _ = _sizes(name)
    total = -(-LARGE // payload) * count
    memory = np.zeros(2 * LARGE, np.uint8)
    until = time.monotonic() + _PATIENCE
    with PacketLink.open(there.interface, ethertype=0x88B6) as link:
        link.spin = SPIN
        head = there.other + there.own + b"\x88\xb6"
        _meet_link(link, head, active=False)
        meter = Meter()
        got = told = place = 0
        while got < total and time.monotonic() < until:
            batch = link.receive(_PATIENCE)
            if batch.length.size and int(batch.length.min()) < payload:
                batch = batch.select(batch.length >= payload)
            for rows in _rows(batch, payload):
                if place + rows.size > LARGE:
                    place = 0
                memory[place : place + rows.size].reshape(rows.shape)[:] = rows
                place += rows.size
            got += len(batch)
            if got - told >= block or got == total:
                told = got
                link.send(FrameBatch.from_frames([head + got.to_bytes(8, "big") + bytes(38)]))
        if got < total:
            raise AssertionError(f"{total - got} frames were lost")
        return meter.passive()


def _rows(batch: FrameBatch, payload: int) -> Iterator[Any]:
    """The data of a batch's frames: at once where they are evenly spaced, as they are in a ring."""
    starts = batch.offset + _DATA_AT
    gaps = np.diff(starts)
    if len(starts) > 1 and (gaps == gaps[0]).all() and gaps[0] > 0:
        yield np.ndarray((len(starts), payload), np.uint8, batch.buffer, int(starts[0]), (int(gaps[0]), 1))
        return
    for start in starts.tolist():
        yield batch.buffer[start : start + payload].reshape(1, payload)


def _meet_link(link: PacketLink, head: bytes, *, active: bool) -> None:
    """The same on a link."""
    greeting = FrameBatch.from_frames([head + bytes(46)])
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if active:
            link.send(greeting)
        if len(link.receive(0.02)):
            break
    if not active:
        link.send(greeting)


Role = Callable[..., Found]
ROLES: dict[tuple[str, str], tuple[Role, Role]] = {
    ("large", "host"): (host_large_sender, host_large_receiver),
    ("large", "tcp"): (tcp_large_sender, tcp_large_receiver),
    ("large", "frames"): (frames_large_sender, frames_large_receiver),
    ("round trip", "host"): (host_trip_active, host_trip_passive),
    ("round trip", "tcp"): (tcp_trip_active, tcp_trip_passive),
    ("round trip", "udp"): (udp_trip_active, udp_trip_passive),
    ("round trip", "packet"): (packet_trip_active, packet_trip_passive),
    ("tiny rate", "host"): (host_rate_active, host_rate_passive),
    ("tiny rate", "udp"): (udp_rate_active, udp_rate_passive),
    ("mixture", "host"): (host_mixture_active, host_mixture_passive),
}
"""The active and the passive side, by contest and family."""
