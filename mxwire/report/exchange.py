"""The frames of an exchange as ladders show them, either of a whole capture or of one message.

Similar frames are folded into one step, and of a long exchange only notable frames have steps. ``ladder.py`` draws
steps for terminals, ``site/ladder_drawing.py`` for pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from mxwire.analysis.fate import Fate
from mxwire.analysis.marks import flag_names, flags_text
from mxwire.ethernet import mac_text
from mxwire.report.summary import endpoints_text, summary, type_text
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import hostname_text
from mxwire.wire.packets import HostReply

if TYPE_CHECKING:
    from mxwire.analysis.conversations import CapturedMessage
    from mxwire.analysis.time_sequence import FrameTrace
    from mxwire.analysis.timing import PairTable
    from mxwire.report.tree import FieldLine

MOST_READINGS: Final = 20_000
"""Maximum number of cached readings."""
MOST_FRAMES: Final = 200_000
"""Maximum number of frames examined per capture; further ones are only counted."""
FEWEST_FOLDED: Final = 4
"""Minimum number of similar frames that are folded."""
MOST_ROWS: Final = 120
"""Maximum number of steps on the page of a cell; with fewer frames, each has a step of its own."""
MOST_ROWS_WHOLE: Final = 2_000
"""Maximum number of steps on the page with all frames, one per frame."""
_FIRST_STEPS: Final = 60
_LAST_STEPS: Final = 30
_AROUND: Final = 3
"""Steps shown before and after a notable one."""
_PAUSE_NS: Final = 20_000_000
"""Minimum silence that the ladder shows as a pause."""
_GROUP_BIT: Final = 1 << 40
"""Bit of an address that marks groups of hosts."""

_NOTHING: Final = Fate()


@dataclass(slots=True)
class Reading:
    """The content of a frame; frames with equal bytes share it."""

    type: str
    text: str
    """Description in one line."""
    endpoints: str
    malformed: bool
    name: str | None = None
    """Host name in the frame, if it carries that of its sender."""
    lines: tuple[FieldLine, ...] | None = None
    """Fields of the frame, once requested."""


@dataclass(slots=True)
class ShownFrame:
    """One frame."""

    number: int
    """Number in the capture, from 1."""
    time_ns: int
    """Time since the first frame."""
    source: int
    destination: int
    reading: Reading
    fate: Fate = _NOTHING
    """Effect of the network on it."""
    comments: tuple[str, ...] = ()
    """Comments in the capture, except on its fate."""
    concerned: tuple[str, ...] = ()
    """Numbers of the rules that it breaks according to findings."""
    flags: int = 0
    """Marks, as bits of :data:`mxwire.analysis.marks.FLAGS`."""
    message: int = 0
    """Number of its message; 0 for none."""
    batch: DecodedBatch | None = field(default=None, repr=False)
    index: int = 0
    """Index in the decoded batch, for its fields."""

    @property
    def type(self) -> str:
        """Packet type."""
        return self.reading.type

    @property
    def text(self) -> str:
        """Description in one line."""
        return self.reading.text

    def lines(self) -> tuple[FieldLine, ...]:
        """Its fields."""
        lines = self.reading.lines
        if lines is None:
            from mxwire.report.tree import field_lines

            assert self.batch is not None
            lines = self.reading.lines = tuple(field_lines(self.batch, self.index))
        return lines

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks beside its content."""
        broken = tuple(f"breaks {rule}" for rule in self.concerned)
        return (*self.fate.lines, *(self.comments or broken))

    @property
    def mark(self) -> str:
        """The labels of its marks; the text states already that a refused frame names no session."""
        return flags_text(each for each in flag_names(self.flags) if each != "refused") if self.flags else ""

    @property
    def is_plain(self) -> bool:
        """True if it has no property, other than marks, that must be shown."""
        return self.fate.is_plain and not (self.reading.malformed or self.comments or self.concerned)

    @property
    def is_group(self) -> bool:
        """True if its destination is a group."""
        return bool(self.destination & _GROUP_BIT)


@dataclass
class Exchange:
    """The frames of a capture, or of one of its messages."""

    frames: list[ShownFrame]
    names: dict[int, str]
    """Host names by address."""
    start_ns: int = 0
    """Time of the first frame of the capture."""
    messages: list[CapturedMessage] = field(default_factory=list)
    """The messages in the order of their numbers."""
    trace: FrameTrace | None = None
    """The frames of the messages, for their time-sequence graphs."""
    pairs: PairTable | None = None
    skipped: int = 0
    """Number of frames that are not MXoE."""
    dropped: int = 0
    """Number of frames beyond the limit."""

    @cached_property
    def hosts(self) -> list[int]:
        """Addresses of hosts: named ones, then other senders in the order of their first frame, then mere receivers."""
        senders = dict.fromkeys(each.source for each in self.frames)
        receivers = dict.fromkeys(each.destination for each in self.frames if not each.is_group)
        return list(dict.fromkeys(self.names) | senders | receivers)

    def name(self, address: int) -> str:
        """Return a host's name, or its address."""
        return self.names.get(address) or mac_text(address)


class ReadingCache:
    """Cache of readings, because in cells with the same seed most frames are identical."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Reading] = {}

    def of(self, decoded: DecodedBatch, index: int) -> Reading:
        """Return the reading of a frame in a batch."""
        digest = blake2b(decoded.batch.frame(index), digest_size=16).digest()
        located = decoded.located
        place = int(located.wire_length[index]), int(located.shift[index]), located.has_destination
        # Equal bytes mean different frames with another dialect, byte order or position in the capture's frame.
        key = (digest, place, decoded.dialect(index), decoded.is_swapped(index))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_READINGS:
                # Emptied as a whole: frames that recur are read again soon, and an order of use would cost more per
                # frame.
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
    batches: Iterable[DecodedBatch],
    names: Mapping[int, str],
    readings: ReadingCache,
    *,
    comments: Mapping[int, str] | None = None,
    concerned: Mapping[int, tuple[str, ...]] | None = None,
) -> Exchange:
    """Follow all frames of a capture.

    ``names`` are known host names by address, ``comments`` those of frames in the capture by frame number, and
    ``concerned`` maps frame numbers to the rules broken there.
    """
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.time_sequence import FrameTrace
    from mxwire.analysis.timing import PairTable

    trace, pairs = FrameTrace(), PairTable()
    exchange = Exchange([], dict(names), trace=trace, pairs=pairs)
    follower = Follower(marks=True)
    for decoded in batches:
        exchange.messages += follower.observe(decoded)
        marks = follower.take_marks(decoded)
        trace.observe(decoded, marks)
        pairs.observe(decoded, marks)
        if len(decoded) and not exchange.frames:
            exchange.start_ns = int(decoded.batch.timestamp_ns[0])
        for index, source in enumerate(decoded.located.source.tolist()):
            if len(exchange.frames) >= MOST_FRAMES:
                exchange.dropped += 1
                continue
            seen = shown_frame(decoded, index, exchange.start_ns, readings)
            seen.flags, seen.message = int(marks.flags[index]), int(marks.message[index])
            if seen.reading.name is not None:
                # The caller's names take precedence over those in frames.
                exchange.names.setdefault(source, seen.reading.name)
            _annotate(seen, (comments or {}).get(seen.number, ""), concerned or {})
            exchange.frames.append(seen)
    exchange.messages += follower.finish()
    # Messages are returned when they end, which is not the order in which they began.
    exchange.messages.sort(key=lambda each: each.number)
    trace.take(exchange.messages)
    return exchange


def shown_frame(decoded: DecodedBatch, index: int, start_ns: int, readings: ReadingCache) -> ShownFrame:
    """Return the frame at ``index`` of a batch, with its time since ``start_ns``."""
    return ShownFrame(
        number=int(decoded.batch.number[index]),
        time_ns=int(decoded.batch.timestamp_ns[index]) - start_ns,
        source=int(decoded.located.source[index]),
        destination=int(decoded.located.destination[index]),
        reading=readings.of(decoded, index),
        batch=decoded,
        index=index,
    )


def _annotate(seen: ShownFrame, comment: str, concerned: Mapping[int, tuple[str, ...]]) -> None:
    lines = [each.strip() for each in comment.splitlines() if each.strip()]
    seen.fate = Fate.from_lines(lines)
    seen.comments = tuple(each for each in lines if each not in seen.fate.lines)
    seen.concerned = concerned.get(seen.number, ())


@dataclass(slots=True)
class FrameStep:
    """A frame, or a run of similar frames."""

    first: ShownFrame
    """The first frame, which represents the step."""
    last: ShownFrame
    count: int = 1

    @property
    def numbers(self) -> str:
        """The numbers of its frames."""
        return str(self.first.number) if self.count == 1 else f"{self.first.number}-{self.last.number}"


@dataclass(frozen=True, slots=True)
class Pause:
    """Time without frames."""

    duration_ns: int


@dataclass(frozen=True, slots=True)
class Omission:
    """Frames that are not shown."""

    frames: int


Row = FrameStep | Pause | Omission


def rows_of(frames: list[ShownFrame], *, whole: bool = False) -> list[Row]:
    """Return the rows of a ladder from top to bottom; with ``whole`` nothing is folded."""
    if whole or len(frames) <= MOST_ROWS:
        steps = [FrameStep(frame, frame) for frame in frames]
    else:
        steps = [FrameStep(each[0], each[-1], len(each)) for each in _runs(frames, FEWEST_FOLDED)]
    places = set(range(MOST_ROWS_WHOLE)) if whole else _chosen(steps)
    return list(_with_pauses(_with_omissions(steps, places)))


def is_everything(rows: list[Row]) -> bool:
    """Return whether each frame has a step of its own."""
    return all(isinstance(row, Pause) or (isinstance(row, FrameStep) and row.count == 1) for row in rows)


def _chosen(steps: list[FrameStep]) -> set[int]:
    """Return the indexes of the shown steps: all, or the first, the last and the notable ones."""
    if len(steps) <= MOST_ROWS:
        return set(range(len(steps)))
    chosen = {*range(_FIRST_STEPS), *range(len(steps) - _LAST_STEPS, len(steps))}
    concerned = [place for place, step in enumerate(steps) if step.first.concerned]
    special = [place for place, step in enumerate(steps) if not step.first.is_plain]
    marked = [place for place, step in enumerate(steps) if step.first.flags]
    for places in (concerned, special, marked):
        for place in places:
            if len(chosen) >= MOST_ROWS:
                return chosen
            chosen.update(range(max(place - _AROUND, 0), min(place + _AROUND + 1, len(steps))))
    return chosen


def _with_omissions(steps: list[FrameStep], kept: set[int]) -> Iterator[FrameStep | Omission]:
    left_out = 0
    for place, step in enumerate(steps):
        if place not in kept:
            left_out += step.count
            continue
        if left_out:
            yield Omission(left_out)
            left_out = 0
        yield step
    if left_out:
        yield Omission(left_out)


def _with_pauses(rows: Iterator[FrameStep | Omission]) -> Iterator[Row]:
    last: ShownFrame | None = None
    for row in rows:
        if isinstance(row, FrameStep):
            if last is not None and row.first.time_ns - last.time_ns >= _PAUSE_NS:
                yield Pause(row.first.time_ns - last.time_ns)
            last = row.last
        else:
            last = None
        yield row


def _runs(frames: list[ShownFrame], shortest: int) -> Iterator[list[ShownFrame]]:
    """Yield the frames in order, grouped into runs of consecutive frames that are similar and without remarks.

    Runs shorter than ``shortest`` are split into single frames.
    """
    run: list[ShownFrame] = []
    for frame in [*frames, None]:
        if run and frame is not None and _continues(run[-1], frame):
            run.append(frame)
            continue
        yield from [run] if len(run) >= shortest else [[each] for each in run]
        run = [frame] if frame is not None else []


def _continues(last: ShownFrame, frame: ShownFrame) -> bool:
    return (
        frame.is_plain
        and last.is_plain
        and (last.type, last.source, last.destination, last.flags)
        == (frame.type, frame.source, frame.destination, frame.flags)
    )
