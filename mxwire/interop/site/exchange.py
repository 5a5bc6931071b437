"""The frames of a cell's capture, as its page tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final

from mxwire.capture import open_capture
from mxwire.capture.notes import read_notes
from mxwire.ethernet import mac_text
from mxwire.interop.fates import Fate
from mxwire.report.summary import endpoints_text, summary, type_text
from mxwire.report.tree import FieldLine, field_lines
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import HostReply
from mxwire.wire.text import hostname_text

MOST_READINGS: Final = 20_000
"""That are remembered."""
MOST_FRAMES: Final = 200_000
"""Frames of a capture beyond these are counted, and not looked at."""
_GROUP_BIT: Final = 1 << 40
"""In an address: it belongs to no single host."""

_NOTHING: Final = Fate()


@dataclass(slots=True)
class Reading:
    """What a frame says; frames that are alike in all bytes share one."""

    type: str
    text: str
    """In a line."""
    endpoints: str
    malformed: bool
    name: str | None = None
    """Of its sender, if it says that."""
    lines: tuple[FieldLine, ...] | None = None
    """Its fields, when somebody has asked for them."""


@dataclass(slots=True)
class Seen:
    """One frame."""

    number: int
    """In the capture, from 1."""
    time_ns: int
    """Since the first frame."""
    source: int
    destination: int
    reading: Reading
    fate: Fate = _NOTHING
    """What befell it on its way."""
    comments: tuple[str, ...] = ()
    """What the capture says of it, besides its fate."""
    concerned: tuple[str, ...] = ()
    """Numbers of the rules that findings see broken in it."""
    batch: DecodedBatch | None = field(default=None, repr=False)
    index: int = 0
    """Where its fields are decoded from."""

    @property
    def type(self) -> str:
        """Of the packet."""
        return self.reading.type

    @property
    def text(self) -> str:
        """What it says, in a line."""
        return self.reading.text

    def lines(self) -> tuple[FieldLine, ...]:
        """Its fields."""
        lines = self.reading.lines
        if lines is None:
            assert self.batch is not None
            lines = self.reading.lines = tuple(field_lines(self.batch, self.index))
        return lines

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is worth saying of it besides its content."""
        broken = tuple(f"shows that {rule} is broken" for rule in self.concerned)
        return (*self.fate.lines, *(self.comments or broken))

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing about it that a reader must see."""
        return self.fate.is_plain and not (self.reading.malformed or self.comments or self.concerned)

    @property
    def is_group(self) -> bool:
        """Whether it is for all hosts."""
        return bool(self.destination & _GROUP_BIT)


@dataclass
class Exchange:
    """All frames of a capture."""

    frames: list[Seen]
    names: dict[int, str]
    """What hosts call themselves, by their addresses."""
    skipped: int = 0
    """Frames that are not MXoE."""
    dropped: int = 0
    """Frames beyond those that are looked at."""

    @cached_property
    def hosts(self) -> list[int]:
        """Addresses of hosts: those with a name, others in the order in which they first send, then mere receivers."""
        senders = dict.fromkeys(each.source for each in self.frames)
        receivers = dict.fromkeys(each.destination for each in self.frames if not each.is_group)
        return list(dict.fromkeys(self.names) | senders | receivers)

    def name(self, address: int) -> str:
        """A host's name, or its address."""
        return self.names.get(address) or mac_text(address)


class Readings:
    """Reads frames, and remembers: in cells of one seed most of them are the same, to the last byte."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Reading] = {}

    def of(self, decoded: DecodedBatch, index: int) -> Reading:
        """What a frame of a batch says."""
        digest = blake2b(decoded.batch.frame(index), digest_size=16).digest()
        located = decoded.located
        place = int(located.wire_length[index]), int(located.shift[index]), located.has_destination
        key = (digest, place, decoded.dialect(index), decoded.is_swapped(index))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_READINGS:
                self._known.clear()
            found = self._known[key] = _read(decoded, index)
        return found


def _read(decoded: DecodedBatch, index: int) -> Reading:
    frame = decoded.frame(index)
    return Reading(
        type=type_text(frame),
        text=summary(frame, decoded.dialect(index)),
        endpoints=endpoints_text(frame),
        malformed=isinstance(frame, Malformed),
        name=hostname_text(frame.hostname) if isinstance(frame, HostReply) else None,
    )


def read_exchange(
    path: Path,
    readings: Readings,
    dialects: Sequence[Dialect | None] = (None,),
    concerned: Mapping[int, tuple[str, ...]] | None = None,
) -> Exchange:
    """Read a cell's capture.

    ``dialects`` are those of its hosts, in the order in which the capture names them, or else in which they first
    send; the last is that of all others too, and None is found out. ``concerned`` has the rules that are broken by
    the numbers of frames. Raises :class:`~mxwire.errors.CaptureError` where the file cannot be read.
    """
    notes = read_notes(path)
    hosts = [int.from_bytes(each, "big") for each in notes.names]
    exchange = Exchange([], dict(zip(hosts, notes.names.values(), strict=True)))
    with open_capture(path) as reader:
        batches = list(reader)
    speaking = {each: Decoder(each) for each in dialects}
    decoded = {each: list(decoder.decode_all(batches)) for each, decoder in speaking.items()}
    first = speaking[dialects[0]]
    exchange.skipped = first.skipped
    start_ns = first.start_ns or 0
    places = {host: place for place, host in enumerate(hosts)}
    for part, same in enumerate(decoded[dialects[0]]):
        for index, source in enumerate(same.located.source.tolist()):
            if len(exchange.frames) >= MOST_FRAMES:
                exchange.dropped += 1
                continue
            place = places.setdefault(source, len(places))
            spoken = dialects[min(place, len(dialects) - 1)]
            batch = decoded[spoken][part]
            seen = _seen(batch, index, start_ns, readings.of(batch, index))
            if seen.reading.name is not None:
                exchange.names.setdefault(source, seen.reading.name)
            _annotate(seen, notes.comments.get(seen.number, ""), concerned or {})
            exchange.frames.append(seen)
    return exchange


def _seen(decoded: DecodedBatch, index: int, start_ns: int, reading: Reading) -> Seen:
    return Seen(
        number=int(decoded.batch.number[index]),
        time_ns=int(decoded.batch.timestamp_ns[index]) - start_ns,
        source=int(decoded.located.source[index]),
        destination=int(decoded.located.destination[index]),
        reading=reading,
        batch=decoded,
        index=index,
    )


def _annotate(seen: Seen, comment: str, concerned: Mapping[int, tuple[str, ...]]) -> None:
    lines = [each.strip() for each in comment.splitlines() if each.strip()]
    seen.fate = Fate.from_lines(lines)
    seen.comments = tuple(each for each in lines if each not in seen.fate.lines)
    seen.concerned = concerned.get(seen.number, ())


def runs(frames: list[Seen], shortest: int) -> Iterator[list[Seen]]:
    """The frames in order, with those together that follow each other, are alike and have nothing about them.

    Fewer than ``shortest`` of them stay apart.
    """
    run: list[Seen] = []
    for frame in [*frames, None]:
        if run and frame is not None and _continues(run[-1], frame):
            run.append(frame)
            continue
        yield from [run] if len(run) >= shortest else [[each] for each in run]
        run = [frame] if frame is not None else []


def _continues(last: Seen, frame: Seen) -> bool:
    return (
        frame.is_plain
        and last.is_plain
        and (last.type, last.source, last.destination) == (frame.type, frame.source, frame.destination)
    )
