"""The process of a card: the interface, and the adapter's part of a library (``card_ring.py``)."""

from __future__ import annotations

import json
import select
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mxwire.bench.channels.card_ring import CardRecord, CardRecordKind, CardRing, SharedArena
from mxwire.bench.channels.channel import POLLS, ChannelSetup, link_counts
from mxwire.bench.channels.models import ModelChannel
from mxwire.bench.models.catalogue import Model
from mxwire.bench.models.layer import CatastropheError, ModelLayer
from mxwire.bench.roles.common import BARE_ETHERTYPE
from mxwire.frames import FrameBatch
from mxwire.lab.machine import pin
from mxwire.link import Link, open_link
from mxwire.link.local import SharedMemoryPath

_NAP: Final = 0.02
"""Longest sleep of a card, in seconds."""


class Card(ABC):
    """A card's work, in its process; ``polls``: without sleeping."""

    over = False
    """True once the program has closed its end, and its messages have been sent."""
    polls: bool
    _ring: CardRing
    _link: Link
    _counted = _closing = False
    """True once the program has requested counters, and its end."""

    def fileno(self) -> int:
        """Descriptor of the interface."""
        return self._link.fileno()

    def take(self, record: CardRecord) -> None:
        """Take a record of the program."""
        self._counted |= record[0] == CardRecordKind.COUNT
        self._closing |= record[0] == CardRecordKind.CLOSE

    @abstractmethod
    def turn(self) -> bool:
        """Do the work that is due; return whether there was any."""

    def _answer(self, counters: dict[str, int]) -> None:
        """Return the counters, if they were requested and there is room."""
        self._counted &= not self._ring.put(CardRecordKind.COUNT, data=json.dumps(counters).encode())

    @abstractmethod
    def pause(self) -> float:
        """Seconds until there is work without a frame or a record."""

    @abstractmethod
    def close(self) -> None:
        """Answer the partner for a moment, and close the link."""


def run_card(setup: ChannelSetup, place: Path, make_card: Callable[[CardRing], Card]) -> None:
    """Be the card until the program closes its end, or ends."""
    path = SharedMemoryPath(lambda _interface, _endpoint: place)
    channel = path.connect(place)
    if channel is not None:
        ring = CardRing(path, channel)
        try:
            pin(setup.card_processor)
            card = make_card(ring)
            _serve(ring, card)
            card.close()
        except Exception as error:
            ring.put(CardRecordKind.FAILED, data=(str(error) or repr(error)).encode())


def _serve(ring: CardRing, card: Card) -> None:
    ring.poller.register(card.fileno(), select.POLLIN)
    idle = 0
    while not card.over and not ring.channel.ended:
        idle += 1
        for record in ring.records():
            idle = 0
            card.take(record)
        if card.turn():
            idle = 0
        if idle and not card.polls:
            ring.sleep(card.pause())
        elif idle >= POLLS:
            idle = 0
            ring.look()


class FrameCard(Card):
    """A card that moves frames between the link and the program."""

    def __init__(self, setup: ChannelSetup, ring: CardRing) -> None:
        self.polls = setup.spin
        self._link = open_link(setup.interface, "packet", spin=setup.spin, ethertype=BARE_ETHERTYPE)
        self._ring = ring
        self._received: deque[bytes] = deque()
        self._queued: list[bytes] = []
        ring.put(CardRecordKind.READY, self._link.mtu)

    def take(self, record: CardRecord) -> None:
        """Take a frame or a request."""
        super().take(record)
        if record[0] == CardRecordKind.FRAME:
            self._queued.append(bytes(record[3]))

    def turn(self) -> bool:
        """Move frames in both directions."""
        queued, received = self._queued, self._received
        if queued:
            self._queued = queued[self._link.send(FrameBatch.from_frames(queued)) :]
        received.extend(self._link.receive(0))
        moved = len(queued) - len(self._queued)
        while received and self._ring.put(CardRecordKind.FRAME, data=received[0]):
            received.popleft()
            moved += 1
        if self._counted:
            self._answer(link_counts(self._link))
        self.over = self._closing and not self._queued
        return moved > 0

    def pause(self) -> float:
        """Wait for a moment if the link took no more frames."""
        # No descriptor reports that a link has room: it is tried after 1 ms.
        return _NAP / 20 if self._queued else _NAP

    def close(self) -> None:
        """Close the link."""
        self._link.close()


class MessageCard(ModelChannel, Card):
    """A card with the layer of a library; received data are put where the program finds them."""

    def __init__(self, setup: ChannelSetup, ring: CardRing, arena: SharedArena) -> None:
        self._ring, self._arena = ring, arena
        arena.become_cards()
        super().__init__(setup)
        self.polls = setup.spin
        self._calls: deque[memoryview | None] = deque()
        """Messages of the program, or the rest of one; None for a message that the library has, and has not sent."""
        self._taken = 0
        self._reported = (0, 0)
        """Messages that the library has taken, and of these those whose data it may still read, as reported."""
        self._pieces: deque[memoryview] = deque()
        ring.put(CardRecordKind.READY, self._link.mtu)

    def _layer_class(self, model: Model) -> type[ModelLayer]:
        return type(model.layer.__name__, (model.layer,), {"allocate": staticmethod(self._arena.allocate)})

    def take(self, record: CardRecord) -> None:
        """Take a call of the program."""
        kind, length, place, data = record
        match kind:
            case CardRecordKind.SEND:
                self._calls.append(self._arena.view[place : place + length])
            case CardRecordKind.WRITE:
                self._calls.append(memoryview(bytes(data)))
            case CardRecordKind.EXPECT:
                self.port.expect(length)
            case CardRecordKind.RELEASE:
                self.port.release(length)
            case _:
                super().take(record)

    def turn(self) -> bool:
        """Handle frames, hand messages to the library, and report received data and messages that were taken."""
        worked = self._turn(0) > 0
        worked |= self._send_calls()
        while (piece := self.port.next_piece()) is not None:
            self._pieces.append(piece)
        while self._pieces and self._report(self._pieces[0]):
            self._pieces.popleft()
            worked = True
        taken = self._taken, min(self.port.unsettled(), self._taken)
        if taken != self._reported and self._ring.put(CardRecordKind.TAKEN, taken[1], taken[0]):
            self._reported = taken
            worked = True
        if self._counted:
            self._answer(self.frames())
        # The library may still wait for the partner before it takes the last message.
        self.over = self._closing and not self._calls
        if self._layer.catastrophe:
            raise CatastropheError(self._layer.catastrophe)
        return worked

    def _report(self, piece: memoryview) -> bool:
        place = self._arena.place_of(piece)
        if place is None:
            return self._ring.put(CardRecordKind.DATA, data=piece)
        return self._ring.put(CardRecordKind.PIECE, len(piece), place)

    def _send_calls(self) -> bool:
        """Hand messages to the library as it takes them; return whether it has taken any."""
        taken = self._taken
        while self._calls:
            if not self._begun:
                # The other side is open now: it is the passive one, or has sent a message.
                self._begun = True
                self.port.start()
            left = self._calls[0]
            if left is None:
                self._flush()
                if not self.port.completed():
                    break
                self._calls.popleft()
                self._taken += 1
                continue
            count = self.port.offer(left) if self.port.started() else None
            if count is not None:
                self._calls[0] = left[count:] if count < len(left) else None
            elif self._layer.outgoing:
                # A library with one send at a time, or without free buffers, takes more when frames have left.
                self._flush()
            else:
                break
        self._flush()
        return self._taken > taken

    def pause(self) -> float:
        """The time until the library has something to do; a moment if the link took no more frames."""
        due = self._layer.deadline()
        longest = _NAP / 20 if self._queued else _NAP
        return longest if due is None else min(longest, (due - self.clock()) / 1e9)
