"""The frames of a cell's capture, as its page tells them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from mxwire.capture import open_capture
from mxwire.capture.comments import frame_comments
from mxwire.interop.fates import Fate
from mxwire.report.summary import endpoints_text, summary, type_text
from mxwire.wire.address import mac_text
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import HostReply
from mxwire.wire.text import hostname_text

MOST_FRAMES: Final = 200_000
"""Frames of a capture beyond these are counted, and not looked at."""
_GROUP_BIT: Final = 1 << 40
"""In an address: it belongs to no single host."""

_NOTHING: Final = Fate()


@dataclass(slots=True)
class Seen:
    """One frame."""

    number: int
    """In the capture, from 1."""
    time_ns: int
    """Since the first frame."""
    source: int
    destination: int
    type: str
    text: str
    """What it says, in a line."""
    endpoints: str
    malformed: bool
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
    def remarks(self) -> tuple[str, ...]:
        """What is worth saying of it besides its content."""
        broken = tuple(f"shows that {rule} is broken" for rule in self.concerned)
        return (*self.fate.lines, *(self.comments or broken))

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing about it that a reader must see."""
        return self.fate.is_plain and not (self.malformed or self.comments or self.concerned)

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
        """Addresses of hosts in the order in which they first send; then those that only receive."""
        senders = dict.fromkeys(each.source for each in self.frames)
        receivers = dict.fromkeys(each.destination for each in self.frames if not each.is_group)
        return list(senders | receivers)

    def name(self, address: int) -> str:
        """A host's name, or its address."""
        return self.names.get(address) or mac_text(address)


def read_exchange(
    path: Path, dialects: Collection[Dialect | None] = (None,), concerned: dict[int, tuple[str, ...]] | None = None
) -> Exchange:
    """Read a cell's capture.

    ``dialects`` is what its hosts speak, in the order in which they first send, or one for all; None is found out.
    ``concerned`` has the rules that are broken by the numbers of frames. Raises
    :class:`~mxwire.errors.CaptureError` where the file cannot be read.
    """
    exchange = Exchange([], {})
    comments = frame_comments(path)
    decoders = [Decoder(each) for each in dict.fromkeys(dialects)]
    with open_capture(path) as reader:
        batches = list(reader)
    decoded = [list(each.decode_all(batches)) for each in decoders]
    exchange.skipped = decoders[0].skipped
    start_ns = decoders[0].start_ns or 0
    senders: dict[int, int] = {}
    for same in zip(*decoded, strict=True):
        for index, source in enumerate(same[0].located.source.tolist()):
            if len(exchange.frames) >= MOST_FRAMES:
                exchange.dropped += 1
                continue
            which = senders.setdefault(source, min(len(senders), len(same) - 1))
            seen = _seen(same[which], index, start_ns)
            _annotate(seen, comments.get(seen.number, ""), concerned or {})
            exchange.frames.append(seen)
            _learn_name(exchange, same[which], index)
    return exchange


def _seen(decoded: DecodedBatch, index: int, start_ns: int) -> Seen:
    frame = decoded.frame(index)
    return Seen(
        number=int(decoded.batch.number[index]),
        time_ns=int(decoded.batch.timestamp_ns[index]) - start_ns,
        source=int(decoded.located.source[index]),
        destination=int(decoded.located.destination[index]),
        type=type_text(frame),
        text=summary(frame, decoded.dialect(index)),
        endpoints=endpoints_text(frame),
        malformed=isinstance(frame, Malformed),
        batch=decoded,
        index=index,
    )


def _annotate(seen: Seen, comment: str, concerned: dict[int, tuple[str, ...]]) -> None:
    lines = [each.strip() for each in comment.splitlines() if each.strip()]
    seen.fate = Fate.from_lines(lines)
    seen.comments = tuple(each for each in lines if each not in seen.fate.lines)
    seen.concerned = concerned.get(seen.number, ())


def _learn_name(exchange: Exchange, decoded: DecodedBatch, index: int) -> None:
    frame = decoded.frame(index)
    if isinstance(frame, HostReply):
        exchange.names[int(decoded.located.source[index])] = hostname_text(frame.hostname)


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
