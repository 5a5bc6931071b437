"""Follow captures for the tests, and list the messages that applications sent, from their calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from mxwire.analysis.conversations import CapturedMessage, Follower, MessageWatch
from mxwire.analysis.conversations.content import Content
from mxwire.analysis.time_sequence import FrameTrace
from mxwire.analysis.timing import Timing
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import Dialect
from tests.conformance.programs import PROGRAMS, REAL_PAYLOAD
from tests.conformance.words import pattern, programs
from tests.wire.support import CAPTURES, dialect_of, read_capture, split

HOSTS = {"A": 0x5254000A0001, "B": 0x5254000A0002}
CALLED = tuple(
    each for each in CAPTURES if each.split("-", 1)[1] in PROGRAMS and "real" not in PROGRAMS[each.split("-", 1)[1]]
)
"""Captures for which the calls of both applications are known."""
PATTERNED = tuple(each for each in CALLED if each.split("-", 1)[1] not in REAL_PAYLOAD)
"""Captures for which the contents of the messages are known."""


@dataclass(frozen=True)
class Sent:
    """A message as an application sent it."""

    kind: str
    length: int
    match: int


def sent_by(capture: str, host: str) -> list[Sent]:
    """The messages that the application on a host sent, in order."""
    called = PROGRAMS[capture.split("-", 1)[1]]
    found = []
    echoed = iter(sent_by(capture, "A")) if host == "B" else iter(())
    for program in programs(called.get(host, ())):
        for call in program.calls:
            name, *arguments = call.split(":")
            if name == "echo":
                found.append(next(echoed))
            elif name in ("send", "isend", "ssend", "issend", "vsend"):
                length = sum(map(int, arguments[0].split(",")))
                found.append(Sent(kind_of(length, name), length, int(arguments[1], 16)))
    return found


def kind_of(length: int, call: str) -> str:
    """The packet type in which the library sends a message (R-SND-01)."""
    if call in ("ssend", "issend") or length > 32768:
        return "RNDV"
    return "TINY" if length <= 32 else "SMALL" if length <= 128 else "MEDIUM"


def decoded(batches: Iterable[FrameBatch], dialect: Dialect | None = None) -> list[DecodedBatch]:
    return list(Decoder(dialect).decode_all(batches))


def follow(
    batches: Iterable[DecodedBatch], watch: MessageWatch | None = None
) -> tuple[Follower, list[CapturedMessage]]:
    """All messages, by number."""
    follower = Follower(watch)
    found = [message for each in batches for message in follower.observe(each)] + follower.finish()
    return follower, sorted(found, key=lambda message: message.number)


@cache
def followed(capture: str) -> tuple[Follower, list[CapturedMessage]]:
    return follow(decoded([read_capture(capture)], dialect_of(capture)))


def extracted(batches: Iterable[DecodedBatch], number: int) -> tuple[bytes, Content, CapturedMessage]:
    """The bytes of a message, with zeros where they are missing."""
    data = bytearray()

    def write(offset: int, piece: bytes) -> None:
        data.extend(bytes(max(offset + len(piece) - len(data), 0)))
        data[offset : offset + len(piece)] = piece

    watch, content = MessageWatch(number), Content(write)
    follower = Follower(watch)
    for each in batches:
        follower.observe(each)
        taken = watch.frames(follower.take_marks(each))
        if watch.message is not None:
            content.take(each, taken, watch.message)
    assert watch.message is not None, number
    return bytes(data), content, watch.message


__all__ = [
    "CALLED",
    "CAPTURES",
    "HOSTS",
    "PATTERNED",
    "Sent",
    "decoded",
    "dialect_of",
    "extracted",
    "follow",
    "followed",
    "pattern",
    "read_capture",
    "sent_by",
    "split",
]


@cache
def timed(capture: str, size: int | None = None, trace: FrameTrace | None = None) -> Timing:
    """The timing of a capture, observed at once or in batches of ``size`` frames."""
    batch = read_capture(capture)
    timing = Timing(trace=trace)
    for each in decoded([batch] if size is None else split(batch, size), dialect_of(capture)):
        timing.observe(each)
    timing.finish()
    return timing
