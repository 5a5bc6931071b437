"""Programs of the classic libraries whose card is a process of its own (``card_ring.py``)."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from mxwire.bench.channels.card_process import Card, FrameCard, MessageCard, run_card
from mxwire.bench.channels.card_ring import CardRecord, CardRecordKind, CardRing, SharedArena
from mxwire.bench.channels.channel import POLLS, ChannelSetup
from mxwire.bench.channels.models import ModelChannel
from mxwire.bench.errors import SilenceError
from mxwire.bench.models.catalogue import CARD, Model, model_of
from mxwire.bench.models.header import PAYLOAD
from mxwire.bench.models.layer import ModelLayer
from mxwire.bench.models.port import ModelPort
from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.lab.child import forked
from mxwire.link import Link, LinkStatistics
from mxwire.link.fork import keep_from_children
from mxwire.link.local import SharedMemoryChannel, SharedMemoryPath

_QUEUE: Final = 16
"""Messages that the card has not taken yet."""
_PATIENCE: Final = 10.0
"""Seconds for the start of a card, and for its counters."""
_LINGER: Final = 1.0
_NAP: Final = 0.02
_SPARE: Final = 16 << 20
"""Bytes of a part of the arena beyond what messages need."""


class CardLink:
    """The program's end: a link whose frames pass through a card, and the source of all other records.

    ``make_card`` is called in the card's process. Raises :class:`~mxwire.errors.MxwireError` if the card cannot start.
    """

    def __init__(self, setup: ChannelSetup, make_card: Callable[[CardRing], Card]) -> None:
        self.name, self.address = setup.interface, setup.own
        """Interface, and Ethernet address."""
        self.mtu = 0
        """MTU of the interface of the card."""
        self.on_record: Callable[[CardRecord], object] = lambda _: None
        """Called with each record that concerns messages."""
        self.counters: dict[str, int] = {}
        """The last answer of the card to :meth:`statistics`."""
        self._counted = False
        self._kept: list[bytes] = []
        """Frames that have arrived while this end waited for something else."""
        self._idle = 0
        """Polls without a record."""
        self._ring: CardRing | None = None
        # In a folder that other users cannot enter, so that only this process finds the card.
        with TemporaryDirectory(prefix="mxwire-card-") as folder, socket.socket(socket.AF_UNIX) as listener:
            place = Path(folder, "card")
            keep_from_children(listener).bind(str(place))
            listener.listen()
            self.card = forked(partial(run_card, setup, place, make_card))
            """Process id of the card; 0 once it has ended."""
            self._path = SharedMemoryPath(lambda _interface, _endpoint: place)
            self._path.listen(listener)
            try:
                self._ring = CardRing(self._path, self._accepted())
                self._until(lambda: self.mtu > 0, "does not start")
                self._path.ignore(listener)
            except BaseException:
                self.close()
                raise

    def _accepted(self) -> SharedMemoryChannel:
        end = time.monotonic() + _PATIENCE
        while not self._path.channels:
            if time.monotonic() > end:
                raise MxwireError("the card's process does not start")
            self._path.arm()
            select.select([self._path.fileno()], [], [], _NAP)
            self._path.poll(time.monotonic_ns())
        return self._path.channels[0]

    def _until(self, condition: Callable[[], bool], complaint: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise SilenceError(f"the card's process {complaint} within {_PATIENCE:g} s")
            # The partner may send frames at any time; those of an earlier wait are among the received ones.
            found = list(self.receive(_NAP))
            self._kept = found

    def put(self, kind: CardRecordKind, length: int = 0, place: int = 0, data: bytes | memoryview = b"") -> bool:
        """Append a record; return False if there is no room now.

        Raises :class:`~mxwire.bench.errors.SilenceError` if the card has ended.
        """
        assert self._ring is not None
        self._check(self._ring)
        return self._ring.put(kind, length, place, data)

    @staticmethod
    def _check(ring: CardRing) -> None:
        if ring.channel.ended:
            raise SilenceError("the card's process has ended")

    def send_few(self, frames: list[bytes]) -> int:
        """Hand frames to the card; return the number for which there was room."""
        for number, each in enumerate(frames):
            if not self.put(CardRecordKind.FRAME, data=each):
                return number
        return len(frames)

    def send(self, batch: FrameBatch) -> int:
        """Hand a batch of frames to the card."""
        return self.send_few(list(batch))

    def receive_few(self) -> list[bytes]:
        """Take all records, and return those that are frames.

        Raises :class:`~mxwire.bench.errors.SilenceError` if the card has failed or ended.
        """
        ring, frames, self._kept = self._ring, self._kept, []
        assert ring is not None
        self._idle += 1
        for record in ring.records():
            self._idle = 0
            kind, length, _, data = record
            match kind:
                case CardRecordKind.FRAME:
                    frames.append(bytes(data))
                case CardRecordKind.READY:
                    self.mtu = length
                case CardRecordKind.COUNT:
                    self.counters, self._counted = json.loads(bytes(data)), True
                case CardRecordKind.FAILED:
                    raise (SilenceError if self.mtu else MxwireError)(str(data, "utf-8"))
                case _:
                    self.on_record(record)
        if self._idle >= POLLS:
            self._idle = 0
            ring.look()
            self._check(ring)
        return frames

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Receive frames; return an empty batch if other records have arrived."""
        found = self.receive_few()
        if not found and self._idle and timeout != 0 and self._ring is not None:
            self._ring.sleep(_NAP if timeout is None else timeout)
            self._idle = POLLS
            found = self.receive_few()
        return FrameBatch.from_frames(found)

    def wake(self) -> None:
        """Do nothing: no other thread waits."""

    def fileno(self) -> int:
        """The descriptor of the path."""
        return self._path.fileno()

    def statistics(self) -> LinkStatistics:
        """Ask the card for the counters of its interface."""
        self._counted = False
        self._until(lambda: self.put(CardRecordKind.COUNT), "takes no records")
        self._until(lambda: self._counted, "does not answer")
        return LinkStatistics(**{each: self.counters[each] for each in ("sent", "received", "dropped")})

    def close(self) -> None:
        """Have the card answer its partner for a moment and end, and release everything."""
        if not self.card:
            return
        end = time.monotonic()
        if self._ring is not None:
            with suppress(MxwireError):
                self._until(lambda: self.put(CardRecordKind.CLOSE), "takes no records")
                end += _LINGER
        while not os.waitpid(self.card, os.WNOHANG)[0]:
            if time.monotonic() > end:
                os.kill(self.card, signal.SIGKILL)
            time.sleep(0.001)
        self.card = 0
        self._path.close()


class CardPort(ModelPort[ModelLayer]):
    """The program's part of a library whose layer runs on the card: messages are described, or written to records."""

    def __init__(
        self,
        model: Model,
        link: CardLink,
        arena: SharedArena,
        layer: ModelLayer,
        partner: tuple[int, int],
        **options: Any,
    ) -> None:
        super().__init__(layer, partner, **options)
        facts, self._kind = model.facts, model.port
        self._link, self._arena = link, arena
        link.on_record = self._take
        # Libraries without copies take data anywhere.
        self._buffers = [
            arena.allocate(layer.payload if self._kind.cuts else self.size)
            for _ in range(_QUEUE if self.copied and facts.elsewhere[0] else 0)
        ]
        self.anywhere = not facts.elsewhere[1]
        self._waits = facts.stages[2] == "o_s"
        self._posts = self._kind.expect is not ModelPort.expect
        self._returns = self._kind.take_back is not ModelPort.take_back
        self._end = 0
        """Place of the end of the message that is being sent."""
        self._described = False
        self._offered = self._taken = self._settled = self._held = 0
        self._expected = False
        self._arrived: deque[memoryview] = deque()

    def _take(self, record: CardRecord) -> None:
        kind, length, place, data = record
        match kind:
            case CardRecordKind.TAKEN:
                self._taken, self._settled = place, place - length
            case CardRecordKind.PIECE:
                self._arrived.append(self._arena.view[place : place + length])
            case CardRecordKind.DATA:
                self._arrived.append(memoryview(bytes(data)))

    def unsettled(self) -> int:
        """Number of messages whose data the card may still read."""
        return self._offered - self._settled

    def expect(self, size: int) -> None:
        """Post a receive, where the library wants that of messages which are described."""
        if self._posts and not self._expected and size > self._kind.written:
            self._expected = self._link.put(CardRecordKind.EXPECT, size)

    def send(self, data: memoryview) -> None:
        """Begin to send a message, which is at the beginning of memory of the arena."""
        self.release()
        super().send(data)
        self._end = (self._arena.place_of(data) or 0) + len(data)

    def offer(self, data: memoryview) -> int | None:
        """Describe the message, or its next packet, to the card."""
        if self._offered - (self._settled if self._buffers else self._taken) >= _QUEUE:
            return None
        part = data[: self.layer.payload] if self._kind.cuts else data
        length = len(part)
        self._described = length > self._kind.written
        if not self._described:
            done = self._link.put(CardRecordKind.WRITE, data=part)
        elif self._buffers:
            buffer = self._buffers[self._offered % _QUEUE]
            self.program.copy(buffer, part)
            done = self._link.put(CardRecordKind.SEND, length, self._arena.place_of(buffer) or 0)
        else:
            done = self._link.put(CardRecordKind.SEND, length, self._end - len(data))
        self._offered += done
        return length if done else None

    def completed(self) -> bool:
        """Return whether a message that was described is in the network, if the library makes its sender wait."""
        return not (self._waits and self._described) or self._taken == self._offered

    def received(self, size: int) -> bool:
        """Return whether the next message has been received."""
        self.expect(size)
        found = super().received(size)
        self._expected = self._expected and not found
        return found

    def next_piece(self) -> memoryview | None:
        """The next data that the card has received."""
        if not self._arrived:
            return None
        self._held += self._returns
        return self._arrived.popleft()

    def release(self, count: int | None = None) -> None:
        """Return the buffers of the last message."""
        if self._held and self._link.put(CardRecordKind.RELEASE, self._held):
            self._held = 0


class CardChannel(ModelChannel):
    """One process with a library, and its card in another."""

    _link: CardLink

    def __init__(self, setup: ChannelSetup) -> None:
        alone = os.sched_getaffinity(0) != {setup.card_processor}
        super().__init__(replace(setup, spin=setup.spin and alone))

    def _open(self, setup: ChannelSetup) -> Link:
        largest = 1 << (max(setup.size, PAYLOAD) - 1).bit_length()
        arena = self._arena = SharedArena(_SPARE + 2 * _QUEUE * largest, _SPARE + 3 * (setup.depth + 2) * largest)
        # The card's channel is that of the library without a card. Only the program copies.
        inner = replace(setup, carrier=setup.carrier.partition(CARD)[0], spin=setup.spin and setup.card_polls)
        describes = model_of(setup.carrier)[0].adapter_takes_messages
        card = (lambda ring: MessageCard(inner, ring, arena)) if describes else (lambda ring: FrameCard(inner, ring))
        return CardLink(setup, card)

    def _make_port(self, model: Model, **options: Any) -> ModelPort[Any]:
        if not model.adapter_takes_messages:
            return super()._make_port(model, **options)
        return CardPort(model, self._link, self._arena, self._layer, (self._partner, 0), **options)

    def allocate(self, length: int) -> memoryview:
        """Memory of the arena."""
        return self._arena.allocate(length)

    def frames(self) -> dict[str, int]:
        """The counters of the card's link, and the frames that the library has transmitted again."""
        found = super().frames()
        return found | {"retransmitted": found["retransmitted"] + self._link.counters.get("retransmitted", 0)}
