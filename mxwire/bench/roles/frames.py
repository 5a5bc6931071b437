"""The frames of the protocol without the protocol: the limit set by the wire, the links and one copy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mxwire.bench.roles.common import BARE_ETHERTYPE, LARGE, PATIENCE, PATTERNS, SPIN, UNDER_WAY, Found, Meter, RoleSide
from mxwire.frames import FrameBatch
from mxwire.link import PacketLink
from mxwire.wire.dialect import dialect_by_name

_DATA_AT = 32
"""Offset of the data in a frame."""


def _sizes(name: str) -> tuple[int, int, int]:
    """Return the payload of a frame, the frames per ack, and the frames in flight."""
    dialect = dialect_by_name(name.split(", ")[1])
    return dialect.reply_payload, dialect.frames_per_block, UNDER_WAY * 4 * dialect.frames_per_block


def _head(side: RoleSide) -> bytes:
    return side.other + side.own + BARE_ETHERTYPE.to_bytes(2, "big")


def large_sender(side: RoleSide, name: str, count: int) -> Found:
    """Send ``count`` large messages, several in flight; the receiver's answer ends the measurement."""
    payload, block, window = _sizes(name)
    total = -(-LARGE // payload) * count
    with PacketLink.open(side.interface, ethertype=BARE_ETHERTYPE) as link:
        link.spin = SPIN
        head = _head(side)
        room = np.zeros((block, _DATA_AT + payload), np.uint8)
        room[:, :14] = np.frombuffer(head, np.uint8)
        data = np.frombuffer(PATTERNS[0], np.uint8)
        blocks = [FrameBatch.from_frames([bytes(_DATA_AT + payload)] * each) for each in range(1, block + 1)]
        _meet(link, head, active=True)
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
            for each in range(len(batch := link.receive(PATIENCE))):
                acked = max(acked, int.from_bytes(batch.frame(each)[14:22], "big"))
        return meter.large(total, payload)


def large_receiver(side: RoleSide, name: str, count: int) -> Found:
    """Receive ``count`` large messages, and compare their content."""
    payload, block, _ = _sizes(name)
    total = -(-LARGE // payload) * count
    memory = np.zeros(2 * LARGE, np.uint8)
    until = time.monotonic() + PATIENCE
    with PacketLink.open(side.interface, ethertype=BARE_ETHERTYPE) as link:
        link.spin = SPIN
        head = _head(side)
        _meet(link, head, active=False)
        meter = Meter()
        got = told = place = 0
        while got < total and time.monotonic() < until:
            batch = link.receive(PATIENCE)
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
    """Yield the data of a batch's frames: at once if they are evenly spaced, as in a ring."""
    starts = batch.offset + _DATA_AT
    gaps = np.diff(starts)
    if len(starts) > 1 and (gaps == gaps[0]).all() and gaps[0] > 0:
        yield np.ndarray((len(starts), payload), np.uint8, batch.buffer, int(starts[0]), (int(gaps[0]), 1))
        return
    for start in starts.tolist():
        yield batch.buffer[start : start + payload].reshape(1, payload)


def _meet(link: PacketLink, head: bytes, *, active: bool) -> None:
    """Return when the other side listens, like :func:`mxwire.bench.roles.sockets.meet`."""
    greeting = FrameBatch.from_frames([head + bytes(46)])
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if active:
            link.send(greeting)
        if len(link.receive(0.02)):
            break
    if not active:
        link.send(greeting)
