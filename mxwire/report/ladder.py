"""Ladders for terminals: the frames of one message, or of a short exchange, as arrows between two hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mxwire.analysis.conversations import CapturedMessage, Flow, Role
from mxwire.analysis.marks import FrameMarks, flag_names
from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.report.ascii_text import cut
from mxwire.report.exchange import FrameStep, ReadingCache, shown_frame
from mxwire.report.messages import host_text, match_text, message_notes
from mxwire.report.summary import summary, type_text
from mxwire.report.times import seconds_text
from mxwire.wire.codec import parse
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import PullReply
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames

STEPS: Final = 20_000
"""Steps kept per ladder, to bound memory; a run of replies is one step."""
_WIDEST: Final = 104
"""Maximum number of characters between the two hosts of a message."""
_NARROWEST: Final = 44
"""Minimum number of characters between the two hosts."""
_AROUND: Final = 8
"""Characters of an arrow besides its label."""
_WIDEST_FRAMES: Final = 96
"""Maximum number of characters between the two hosts of a short exchange."""
_MARK: Final = "  ◀ not as expected"
_BESIDE: Final = 45
"""Characters to the left of the ladder: frame numbers and both times, …"""
_LONGEST_NAME: Final = 32
"""Maximum length of a host name that is shown instead of the address, in characters."""
_TIME_NARROW: Final = 14
"""… and in the narrow form, the remaining time alone."""


@dataclass(slots=True)
class LadderStep(FrameStep):
    """A frame of the message, or a run of its replies without another of its frames in between."""

    role: Role = Role.DATA
    offset: int = 0
    """Replies only: offset of the first reply's data in the message, in bytes; ``end`` is the end of the last one's."""
    end: int = 0
    bytes: int = 0
    straight: bool = True
    """Each reply continues where the previous one ended."""

    @property
    def text(self) -> str:
        """Description in one line."""
        if self.role is not Role.REPLY:
            acks = self.role is Role.ACK and self.first.type != "TRUC"
            return f"(acks this message) {self.first.text}" if acks else self.first.text
        if self.count == 1:
            return f"{count_of(self.bytes, 'byte')} at {self.offset}"
        # Not "out of order": that is a mark, of replies within one block; these may belong to blocks requested in
        # parallel.
        where = f"at {self.offset}" if self.straight else "at several offsets"
        return f"{count_of(self.count, 'frame')}, {count_of(self.bytes, 'byte')} {where}"

    def as_object(self, message: int) -> dict[str, Any]:
        """The step as a record for JSON; ``message`` is the message's number."""
        return {
            "message": message,
            "role": self.role.value,
            "type": self.first.type,
            "frame": self.first.number,
            "last_frame": self.last.number,
            "count": self.count,
            "time_ns": self.first.time_ns,
            "end_ns": self.last.time_ns,
            "source": mac_text(self.first.source),
            "destination": mac_text(self.first.destination),
            "flags": flag_names(self.first.flags),
            "text": self.text,
        }


class MessageLadder:
    """Collects the steps of one message, batch by batch."""

    def __init__(self) -> None:
        self.steps: list[LadderStep] = []
        self.dropped = 0
        """Frames not kept, beyond ``STEPS``."""
        self._readings = ReadingCache()

    def take(self, decoded: DecodedBatch, frames: Iterable[tuple[int, Role]], marks: FrameMarks) -> None:
        """Add frames of a batch, given as places in it and their roles in the message, with their marks."""
        for place, role in frames:
            seen = shown_frame(decoded, place, 0, self._readings)
            # Without its batch, whose memory a ladder of many steps would keep.
            seen.flags, seen.batch = int(marks.flags[place]), None
            frame = decoded.frame(place)
            start, length = (frame.msg_offset, frame.frame_length) if isinstance(frame, PullReply) else (0, 0)
            last = self.steps[-1] if self.steps else None
            # A large message has thousands of replies; one with a mark, such as a duplicate, must stay visible.
            if role is Role.REPLY and last is not None and last.role is Role.REPLY and last.first.flags == seen.flags:
                last.straight = last.straight and last.end == start
                last.last, last.end = seen, start + length
                last.count += 1
                last.bytes += length
            elif len(self.steps) < STEPS:
                self.steps.append(LadderStep(seen, seen, 1, role, start, start + length, length))
            else:
                self.dropped += 1


def ladder_lines(
    message: CapturedMessage,
    ladder: MessageLadder,
    start_ns: int,
    width: int | None = None,
    names: HostNames | None = None,
) -> Iterator[str]:
    """A summary of the message, then its ladder, with times since ``start_ns`` and since its first frame.

    If that exceeds ``width`` characters, only the time since the first frame is shown, and labels are cut. ``names``
    replace addresses of hosts.
    """
    flow = message.flow
    length = "of unknown length" if message.length is None else f"{count_of(message.length, 'byte')}"
    yield (
        f"message {message.number}: {message.kind}, {length}, match {match_text(message.match)}, "
        f"{_endpoint_text(flow, names)} → {_endpoint_text(flow.back, names)}"
    )
    yield f"sender: {message.sender}; receiver: {message.receiver}"
    notes = "; ".join(message_notes(message))
    if notes:
        yield notes
    yield ""
    yield from _drawn(flow, ladder, start_ns, width, names)
    if ladder.dropped:
        yield f"… and {count_of(ladder.dropped, 'more frame')}"


def _drawn(
    flow: Flow, ladder: MessageLadder, start_ns: int, width: int | None, names: HostNames | None
) -> Iterator[str]:
    labels = [_label(each) for each in ladder.steps]
    inner = _room_for(labels, _WIDEST)
    one, other = _endpoint_text(flow, names), _endpoint_text(flow.back, names)
    # The name of the right host stands beyond its line.
    narrow = width is not None and _BESIDE + inner + len(other) > width
    frames = [each.numbers for each in ladder.steps]
    aside = max(map(len, ["frame", *frames])) if narrow else 13
    if width is not None and narrow:
        inner = _room_for(labels, max(_NARROWEST, width - aside - _TIME_NARROW))
        yield f"{'frame':>{aside}}  {'ms':>10}  {one}{other:>{max(inner - len(one), len(other) + 1)}}"
    else:
        yield f"{'frame':>{aside}}  {'seconds':>14}  {'ms':>12}  {one:{inner}}{other}"
    first_ns = ladder.steps[0].first.time_ns if ladder.steps else 0
    for step, which, label in zip(ladder.steps, frames, labels, strict=True):
        seen = step.first
        after = (seen.time_ns - first_ns) / 1e6
        times = f"{after:>10.3f}" if narrow else f"{seconds_text(seen.time_ns - start_ns)}  {after:>12.6f}"
        yield f"{which:>{aside}}  {times}  {_arrow(label, inner, seen.source == flow.address)}"


def _label(step: LadderStep) -> str:
    # Before the text, whose end is cut on narrow terminals.
    return f"{step.first.type} [{step.first.mark}] {step.text}" if step.first.mark else f"{step.first.type} {step.text}"


def _endpoint_text(flow: Flow, names: HostNames | None) -> str:
    labels = {} if names is None else names.labels(_LONGEST_NAME)
    host = labels.get(flow.address) or host_text(flow)
    return f"{host} endpoint {'?' if flow.endpoint is None else flow.endpoint}"


def _room_for(labels: Iterable[str], widest: int) -> int:
    """The number of characters between the hosts that all ``labels`` need, at most ``widest``."""
    return min(max([_NARROWEST, *(len(label) + _AROUND for label in labels)]), widest)


def _arrow(label: str, room: int, forward: bool) -> str:
    """An arrow with ``label``, from left to right if ``forward``; a label that does not fit is cut."""
    label = cut(label, room - _AROUND)
    line = "─" * (room - 6 - len(label))
    return f"│─ {label} {line}▶│" if forward else f"│◀{line} {label} ─│"


def exchange_lines(
    frames: FrameBatch, sent: Sequence[bool], dialect: Dialect, *, names: tuple[str, str], marked: int | None = None
) -> Iterator[str]:
    """A short exchange between two hosts: one line per frame, with times in milliseconds since the first frame.

    ``sent`` is True for frames from the left host; ``marked`` is the place of an unexpected frame.
    """
    labels = []
    for place in range(len(frames)):
        frame = parse(frames.frame(place), dialect)
        labels.append(f"{type_text(frame)} {summary(frame, dialect)}")
    inner = _room_for(labels, _WIDEST_FRAMES)
    yield f"{'ms':>12}  {names[0]:{inner}}{names[1]}"
    first = int(frames.timestamp_ns[0]) if len(frames) else 0
    for place, label in enumerate(labels):
        after = f"{(int(frames.timestamp_ns[place]) - first) / 1e6:.3f}"
        yield f"{after:>12}  {_arrow(label, inner, bool(sent[place]))}{_MARK if place == marked else ''}"
