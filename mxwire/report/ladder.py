"""The frames of one message as a ladder: two hosts, and arrows between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from mxwire.analysis.conversations import Flow, Message, Role
from mxwire.ethernet import mac_text
from mxwire.report.arrows import NARROWEST, arrow, room_for
from mxwire.report.messages import host_text, match_text, message_notes
from mxwire.report.summary import summary, type_text
from mxwire.report.times import seconds_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.packets import PullReply, Truc
from mxwire.words import count_of

STEPS: Final = 20_000
"""Steps of a ladder that are remembered; runs of replies are one."""
WIDEST: Final = 104
"""Most characters between the two hosts."""
_BESIDE: Final = 45
"""Characters of the numbers of frames and their times before the ladder, …"""
_TIME_NARROW: Final = 14
"""… and of the times where there is little room."""


@dataclass(slots=True)
class Step:
    """A frame of the message, or a run of replies with no other frame of it in between."""

    role: Role
    first: int
    last: int
    count: int
    time_ns: int
    end_ns: int
    source: int
    destination: int
    type: str
    text: str
    offset: int = 0
    """Of replies: where the data of the first begins in the message, and where that of the last ends."""
    end: int = 0
    bytes: int = 0
    straight: bool = True
    """Each of them follows the one before it without a gap."""

    def as_object(self, message: int) -> dict[str, Any]:
        """The step with stable keys."""
        return {
            "message": message,
            "role": self.role.value,
            "type": self.type,
            "frame": self.first,
            "last_frame": self.last,
            "count": self.count,
            "time_ns": self.time_ns,
            "end_ns": self.end_ns,
            "source": mac_text(self.source),
            "destination": mac_text(self.destination),
            "text": self.text,
        }


class Ladder:
    """Gathers the steps, batch by batch."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.dropped = 0
        """Frames beyond what is remembered."""

    def take(self, decoded: DecodedBatch, frames: Iterable[tuple[int, Role]]) -> None:
        """Take the frames of a batch, given as their places and what they are to the message."""
        for place, role in frames:
            frame = decoded.frame(place)
            number, time_ns = int(decoded.batch.number[place]), int(decoded.batch.timestamp_ns[place])
            if isinstance(frame, PullReply) and self._continues(frame, number, time_ns):
                continue
            if len(self.steps) >= STEPS:
                self.dropped += 1
                continue
            source, destination = int(decoded.located.source[place]), int(decoded.located.destination[place])
            text = summary(frame, decoded.dialect(place))
            if role is Role.ACK and not isinstance(frame, Truc):
                text = f"(acknowledges this one) {text}"
            step = Step(role, number, number, 1, time_ns, time_ns, source, destination, type_text(frame), text)
            if isinstance(frame, PullReply):
                step.offset, step.end = frame.msg_offset, frame.msg_offset + frame.frame_length
                step.bytes = frame.frame_length
                step.text = _reply_text(step)
            self.steps.append(step)

    def _continues(self, frame: PullReply, number: int, time_ns: int) -> bool:
        """Add a reply to those before it, if it follows them."""
        last = self.steps[-1] if self.steps else None
        if last is None or last.role is not Role.REPLY:
            return False
        last.last, last.end_ns = number, time_ns
        last.count += 1
        last.straight = last.straight and last.end == frame.msg_offset
        last.end = frame.msg_offset + frame.frame_length
        last.bytes += frame.frame_length
        last.text = _reply_text(last)
        return True


def _reply_text(step: Step) -> str:
    if step.count == 1:
        return f"{count_of(step.bytes, 'byte')} at {step.offset}"
    where = f"at {step.offset}" if step.straight else "out of order"
    return f"{count_of(step.count, 'frame')}, {count_of(step.bytes, 'byte')} {where}"


def ladder_lines(message: Message, ladder: Ladder, start_ns: int, width: int | None = None) -> Iterator[str]:
    """The message in words, then its ladder; times count from ``start_ns`` and from the first frame.

    Where that does not fit into ``width`` characters, times are from the first frame only, and labels are cut.
    """
    flow = message.flow
    length = "of unknown length" if message.length is None else f"{count_of(message.length, 'byte')}"
    yield (
        f"message {message.number}: {message.kind}, {length}, match {match_text(message.match)}, "
        f"{_end_text(flow)} → {_end_text(flow.back)}"
    )
    yield f"sender: {message.sender}; receiver: {message.receiver}"
    notes = "; ".join(message_notes(message))
    if notes:
        yield notes
    yield ""
    yield from _drawn(flow, ladder, start_ns, width)
    if ladder.dropped:
        yield f"… and {count_of(ladder.dropped, 'more frame')}"


def _drawn(flow: Flow, ladder: Ladder, start_ns: int, width: int | None) -> Iterator[str]:
    labels = [f"{each.type} {each.text}" for each in ladder.steps]
    inner = room_for(labels, WIDEST)
    one, other = _end_text(flow), _end_text(flow.back)
    narrow = width is not None and _BESIDE + inner + len(other) > width
    frames = [str(each.first) if each.first == each.last else f"{each.first}-{each.last}" for each in ladder.steps]
    aside = max(map(len, ["frame", *frames])) if narrow else 13
    if width is not None and narrow:
        inner = room_for(labels, max(NARROWEST, width - aside - _TIME_NARROW))
        yield f"{'frame':>{aside}}  {'after ms':>10}  {one}{other:>{max(inner - len(one), len(other) + 1)}}"
    else:
        yield f"{'frame':>{aside}}  {'seconds':>14}  {'after ms':>12}  {one:{inner}}{other}"
    first_ns = ladder.steps[0].time_ns if ladder.steps else 0
    for step, which, label in zip(ladder.steps, frames, labels, strict=True):
        after = (step.time_ns - first_ns) / 1e6
        times = f"{after:>10.3f}" if narrow else f"{seconds_text(step.time_ns - start_ns)}  {after:>12.6f}"
        yield f"{which:>{aside}}  {times}  {arrow(label, inner, step.source == flow.address)}"


def _end_text(flow: Flow) -> str:
    return f"{host_text(flow)} endpoint {'?' if flow.endpoint is None else flow.endpoint}"
