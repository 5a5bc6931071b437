"""The frames of one message as a ladder: arrows between two hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mxwire.analysis.conversations import CapturedMessage, Flow, Role
from mxwire.analysis.marks import FrameMarks, flag_names, flags_text
from mxwire.ethernet import mac_text
from mxwire.report.exchange import NARROWEST, arrow, room_for
from mxwire.report.messages import host_text, match_text, message_notes
from mxwire.report.summary import summary, type_text
from mxwire.report.times import seconds_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.packets import PullReply, Truc
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostNames

STEPS: Final = 20_000
"""Steps kept per ladder, to bound memory; a run of replies is one step."""
WIDEST: Final = 104
"""Maximum number of characters between the two hosts."""
_BESIDE: Final = 45
"""Characters to the left of the ladder: frame numbers and both times, …"""
_LONGEST_NAME: Final = 32
"""Maximum length of a host name that is shown instead of the address, in characters."""
_TIME_NARROW: Final = 14
"""… and in the narrow form, the remaining time alone."""


@dataclass(slots=True)
class LadderStep:
    """A frame of the message, or a run of its replies without another of its frames in between."""

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
    """Replies only: offset of the first reply's data in the message, in bytes; ``end`` is the end of the last one's."""
    end: int = 0
    bytes: int = 0
    flags: list[str] = field(default_factory=list)
    """Names of the marks, as in :data:`mxwire.analysis.marks.FLAGS`; the same for all replies of a run."""
    straight: bool = True
    """Each reply continues where the previous one ended."""

    def as_object(self, message: int) -> dict[str, Any]:
        """The step as a record for JSON; ``message`` is the message's number."""
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
            "flags": self.flags,
            "text": self.text,
        }


class MessageLadder:
    """Collects the steps of one message, batch by batch."""

    def __init__(self) -> None:
        self.steps: list[LadderStep] = []
        self.dropped = 0
        """Frames not kept, beyond ``STEPS``."""

    def take(self, decoded: DecodedBatch, frames: Iterable[tuple[int, Role]], marks: FrameMarks) -> None:
        """Add frames of a batch, given as places in it and their roles in the message, with their marks."""
        for place, role in frames:
            frame = decoded.frame(place)
            number, time_ns = int(decoded.batch.number[place]), int(decoded.batch.timestamp_ns[place])
            flags = flag_names(int(marks.flags[place])) if marks.flags[place] else []
            if isinstance(frame, PullReply) and self._continues(frame, number, time_ns, flags):
                continue
            if len(self.steps) >= STEPS:
                self.dropped += 1
                continue
            source, destination = int(decoded.located.source[place]), int(decoded.located.destination[place])
            text = summary(frame, decoded.dialect(place))
            if role is Role.ACK and not isinstance(frame, Truc):
                text = f"(acks this message) {text}"
            step = LadderStep(role, number, number, 1, time_ns, time_ns, source, destination, type_text(frame), text)
            step.flags = flags
            if isinstance(frame, PullReply):
                step.offset, step.end = frame.msg_offset, frame.msg_offset + frame.frame_length
                step.bytes = frame.frame_length
                step.text = _reply_text(step)
            self.steps.append(step)

    def _continues(self, frame: PullReply, number: int, time_ns: int, flags: list[str]) -> bool:
        """Extend the last step by a reply; False if the last step is not a run of replies with the same marks."""
        last = self.steps[-1] if self.steps else None
        if last is None or last.role is not Role.REPLY or last.flags != flags:
            return False
        last.last, last.end_ns = number, time_ns
        last.count += 1
        last.straight = last.straight and last.end == frame.msg_offset
        last.end = frame.msg_offset + frame.frame_length
        last.bytes += frame.frame_length
        last.text = _reply_text(last)
        return True


def _reply_text(step: LadderStep) -> str:
    if step.count == 1:
        return f"{count_of(step.bytes, 'byte')} at {step.offset}"
    # Not "out of order": that is a mark, of replies within one block; these may belong to blocks requested in parallel.
    where = f"at {step.offset}" if step.straight else "at several offsets"
    return f"{count_of(step.count, 'frame')}, {count_of(step.bytes, 'byte')} {where}"


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
    inner = room_for(labels, WIDEST)
    one, other = _endpoint_text(flow, names), _endpoint_text(flow.back, names)
    narrow = width is not None and _BESIDE + inner + len(other) > width
    frames = [str(each.first) if each.first == each.last else f"{each.first}-{each.last}" for each in ladder.steps]
    aside = max(map(len, ["frame", *frames])) if narrow else 13
    if width is not None and narrow:
        inner = room_for(labels, max(NARROWEST, width - aside - _TIME_NARROW))
        yield f"{'frame':>{aside}}  {'ms':>10}  {one}{other:>{max(inner - len(one), len(other) + 1)}}"
    else:
        yield f"{'frame':>{aside}}  {'seconds':>14}  {'ms':>12}  {one:{inner}}{other}"
    first_ns = ladder.steps[0].time_ns if ladder.steps else 0
    for step, which, label in zip(ladder.steps, frames, labels, strict=True):
        after = (step.time_ns - first_ns) / 1e6
        times = f"{after:>10.3f}" if narrow else f"{seconds_text(step.time_ns - start_ns)}  {after:>12.6f}"
        yield f"{which:>{aside}}  {times}  {arrow(label, inner, step.source == flow.address)}"


def _label(step: LadderStep) -> str:
    # The text states already that a refused frame names no session.
    shown = flags_text(each for each in step.flags if each != "refused")
    # Before the text, whose end is cut on narrow terminals.
    return f"{step.type} [{shown}] {step.text}" if shown else f"{step.type} {step.text}"


def _endpoint_text(flow: Flow, names: HostNames | None) -> str:
    labels = {} if names is None else names.labels(_LONGEST_NAME)
    host = labels.get(flow.address) or host_text(flow)
    return f"{host} endpoint {'?' if flow.endpoint is None else flow.endpoint}"
