"""Bare frames through the links of mxwire."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from mxwire.bench.channels.channel import POLLS, SILENCE, Channel, ChannelSetup, end_of_wait, link_counts, silence
from mxwire.bench.errors import SilenceError
from mxwire.bench.roles.common import BARE_ETHERTYPE, CONTENT
from mxwire.ethernet import HEADER_SIZE, SHORTEST_FRAME
from mxwire.frames import FrameBatch
from mxwire.link import FewLink, Link, open_link


class LinkFrameChannel(Channel):
    """A channel that builds its own frames, for a link of mxwire: AF_PACKET with a mapped ring, AF_XDP, or a network in
    memory."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        self._link = self._open(setup)
        ethertype = BARE_ETHERTYPE if setup.network is None else setup.network.ethertype
        self._head = setup.other + setup.own + ethertype.to_bytes(2, "big")

    def _open(self, setup: ChannelSetup) -> Link:
        if setup.network is not None:
            return setup.network.attach(setup.interface, setup.own)
        kind = "xdp" if setup.carrier == "xdp" else "packet"
        return open_link(setup.interface, kind, spin=setup.spin, ethertype=BARE_ETHERTYPE)

    def frames(self) -> dict[str, int]:
        """The counters of the link."""
        return link_counts(self._link)

    def close(self) -> None:
        """Close the link."""
        self._link.close()


class LinkChannel(LinkFrameChannel):
    """Bare frames through a link."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        self._few = self._link if isinstance(self._link, FewLink) else None
        self._payload = self._link.mtu
        self._batches: dict[int, FrameBatch | list[bytes]] = {}
        self._pending: deque[Any] = deque()

    def _batch(self, size: int) -> FrameBatch | list[bytes]:
        """The frames of a message, built once per size."""
        content = CONTENT
        frames = []
        for start in range(0, max(size, 1), self._payload):
            frame = self._head + content[start : min(start + self._payload, size)]
            frames.append(frame.ljust(SHORTEST_FRAME, b"\0"))
        return frames if len(frames) == 1 and self._few is not None else FrameBatch.from_frames(frames)

    def send(self, size: int) -> None:
        """Send the frames of a message in one batch."""
        batch = self._batches.get(size)
        if batch is None:
            batch = self._batches[size] = self._batch(size)
        if isinstance(batch, list):
            assert self._few is not None
            self._few.send_few(batch)
            return
        place = 0
        # A full queue refuses the rest of a batch until the receiver has taken frames from it.
        while place < len(batch):
            place += self._link.send(batch if not place else batch.select(np.arange(place, len(batch))))

    def receive(self, size: int) -> None:
        """Receive the frames of a message, and copy their content."""
        view, pending = memoryview(self.buffer), self._pending
        for start in range(0, max(size, 1), self._payload):
            while not pending:
                self._fetch()
            frame = pending.popleft()
            end = min(start + self._payload, size)
            part = frame[HEADER_SIZE : HEADER_SIZE + end - start]
            if len(part) < end - start:
                raise SilenceError("frames were lost: one of the next message arrived instead")
            view[start:end] = part

    def _fetch(self) -> None:
        """Wait for frames. Frames that are kept are copied, because the next call reuses the ring."""
        frames = self._arrived()
        if isinstance(frames, list):
            self._pending.extend(frames)
        elif len(frames) == 1:
            self._pending.append(frames.buffer[int(frames.offset[0]) :].data)
        else:
            self._pending.extend(frames.frame(place) for place in range(len(frames)))

    def _arrived(self) -> list[bytes] | FrameBatch:
        few = self._few
        # In memory both sides share the interpreter: a polling side would starve the other.
        if few is None or not self.setup.spin or self.setup.network is not None:
            batch = self._link.receive(SILENCE)
            if not len(batch):
                raise silence()
            return batch
        end = 0.0
        while True:
            for _ in range(POLLS):
                found = few.receive_few()
                if len(found):
                    return found
            end = end_of_wait(end)
