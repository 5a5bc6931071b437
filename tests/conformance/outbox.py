"""The frames of a node, checked against those of the real host."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

from mxwire.replay.stateful.records import Record
from mxwire.units import MILLISECOND
from mxwire.wire.codec import Codec
from mxwire.wire.packets import Announcement, HostQuery, HostReply, NackMcp, Pull, PullReply

UNDEFINED = frozenset({"checksum"})
"""The real library does not compute checksums, and sends whatever its memory held."""
ACKS = frozenset({"lib_piggyack"})
"""Fields that show how much of its ring the library had read."""
DAEMON = (Announcement,)
DRIVER = (HostQuery, HostReply)
CARD = (Pull, PullReply, NackMcp)
"""Frames sent without the library: by the discovery daemon, by the driver for its peer table, and for pulls."""


class Difference(AssertionError):
    """The node behaves differently from the real host."""


def sender_of(frame: Any) -> int:
    """Part of a host that sends such frames; each part sends its own in order, without waiting for the others."""
    return next((place for place, kinds in enumerate((DAEMON, DRIVER, CARD)) if isinstance(frame, kinds)), 3)


def differences(frame: Any, length: int, record: Record, ignored: Collection[str]) -> Iterator[str]:
    """Differences of a frame of the node from a captured one: all fields that a sender defines, payload, length."""
    real = record.frame
    name = type(real).__name__
    if type(frame) is not type(real):
        yield f"{type(frame).__name__} is sent, expected {name}: {frame} instead of {real}"
        return
    if length != record.length:
        yield f"{name}: {length} bytes are sent, expected {record.length}"
    for each in fields(real):
        ours, theirs = getattr(frame, each.name), getattr(real, each.name)
        if each.name == "data" and record.cut:
            # Bytes that the capture has cut off cannot be compared.
            kept = max(0, len(theirs) - record.cut)
            ours, theirs = ours[:kept], theirs[:kept]
        if ours != theirs and each.name not in ignored:
            yield f"{name}.{each.name} is {ours!r:.60}, expected {theirs!r:.60}"


class Outbox:
    """The frames of the node that have not been compared yet, in order."""

    def __init__(self, codec: Codec, latest: int, modulo_acks: bool = False) -> None:
        self.codec = codec
        self.ignored = UNDEFINED | ACKS if modulo_acks else UNDEFINED
        self.latest = latest
        """Time by which the real host may have sent a frame later than the node, in ns."""
        self.sent: list[tuple[int, int, Any]] = []
        """Time, length and frame."""
        self.equal = 0
        """Number of frames that were compared, and were the same."""

    def put(self, time: int, data: bytes) -> None:
        """Keep a frame that the node sends."""
        self.sent.append((time, len(data), self.codec.parse(data)))

    def place(self, record: Record) -> int | None:
        """The place of the frame that must be the captured one: the first of the same sender.

        PULLs that are queued together may be sent in any order (section 25).
        """
        sender = sender_of(record.frame)
        places = [place for place, (_, _, frame) in enumerate(self.sent) if sender_of(frame) == sender]
        if isinstance(record.frame, Pull):
            pulls = [place for place in places if isinstance(self.sent[place][2], Pull)]
            places = [place for place in pulls if self._is_equal(place, record)] or pulls
        return places[0] if places else None

    def take(self, record: Record) -> None:
        """Compare with a captured frame; raises :class:`Difference`."""
        place = self.place(record)
        if place is None:
            raise Difference(f"nothing is sent, expected {record.frame}")
        time, length, frame = self.sent.pop(place)
        wrong = list(differences(frame, length, record, self.ignored))
        if wrong:
            raise Difference("; ".join(wrong))
        if record.time - time > self.latest:
            early = (record.time - time) / MILLISECOND
            raise Difference(f"{type(frame).__name__} is sent {early:.3f} ms too early")
        self.equal += 1

    def finish(self, left: int) -> None:
        """Check that ``left`` frames remain at the end that the host has not sent; raises :class:`Difference`."""
        if len(self.sent) > left:
            raise Difference(f"{self.sent[0][2]} is sent, expected nothing")
        if len(self.sent) < left:
            raise Difference(f"{len(self.sent)} frames are left, expected {left}")

    def _is_equal(self, place: int, record: Record) -> bool:
        _, length, frame = self.sent[place]
        # This function is called often, and most frames differ by type, which is the cheapest test.
        return type(frame) is type(record.frame) and not any(differences(frame, length, record, self.ignored))


class LossyOutbox(Outbox):
    """The frames of the node behind a network that loses, duplicates, delays and reorders before the recorder.

    So every captured frame must be one that the node has sent, but not every one that it has sent is captured.
    """

    def __init__(self, codec: Codec, latest: int, modulo_acks: bool = False) -> None:
        super().__init__(codec, latest, modulo_acks)
        self.found: set[int] = set()
        """Places of the frames that were captured."""
        self.again = 0
        """Number of captured frames that were duplicates."""

    @property
    def lost(self) -> int:
        """Number of frames that were never captured."""
        return len(self.sent) - len(self.found)

    def place(self, record: Record) -> int | None:
        """The place of the frame: one that was not captured yet, rather than one that was."""
        places = [place for place in reversed(range(len(self.sent))) if self._is_equal(place, record)]
        return next((place for place in places if place not in self.found), places[0] if places else None)

    def take(self, record: Record) -> None:
        """Look for a captured frame; raises :class:`Difference`."""
        place = self.place(record)
        if place is None:
            raise Difference(f"nothing like it is sent, expected {record.frame}")
        if place in self.found:
            self.again += 1
        self.found.add(place)
        self.equal += 1

    def finish(self, left: int) -> None:
        """The remaining frames were lost."""
