"""Examine a capture, batch by batch, for the troubles of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis import troubles as troubles  # registers the diagnoses
from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import Confidence, Finding, Severity, standstill
from mxwire.analysis.diagnosis.losses import DirectionLoss
from mxwire.analysis.diagnosis.registry import CATALOGUE, EXAMINERS, Examiner, catalogue
from mxwire.analysis.diagnosis.troubles.loss import LossExaminer
from mxwire.analysis.diagnosis.troubles.recording import RecordingExaminer
from mxwire.analysis.verification import PROVEN
from mxwire.frames import FrameBatch
from mxwire.units import SECOND
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.words import count_of, starvation_text

_ORDER: Final[dict[Confidence, int]] = {"high": 0, "medium": 1, "low": 2}
_SEVERITY: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2}
_STARVED: Final = "mxwire lacked the processor then, and hosts of this machine may have lacked it, too"
_BEFORE_NS: Final = SECOND
"""Time around a period without the processor in which timers may expire because of it."""
_HOLES: Final = {
    "capture-incomplete": "the capture itself lost frames",
    "capture-one-direction": "the capture shows one direction only",
}
"""Diagnoses of missing frames, and the doubt that they cast on those that need every frame."""


class Examination:
    """Examination of one capture for all troubles of the catalogue.

    Pass batches through :meth:`watch` before ``decoder``, and decoded batches to :meth:`observe`; the
    :meth:`findings` are complete after :meth:`finish`, and preliminary before. With ``marks``, the follower in
    ``facts`` marks the frames.
    """

    def __init__(self, decoder: Decoder, *, marks: bool = False) -> None:
        self.facts = Facts(decoder, marks=marks)
        self._examiners = [each() for each in EXAMINERS]
        self._for_raw = [each for each in self._examiners if _has(each, "raw")]
        self._for_frames = [each for each in self._examiners if _has(each, "frames")]
        self._for_messages = [each for each in self._examiners if _has(each, "message")]
        self._for_any_message = [each for each in self._examiners if _has(each, "any_message")]

    def watch(self, batches: Iterable[FrameBatch]) -> Iterator[FrameBatch]:
        """Yield batches unchanged, and examine their frames of other protocols."""
        last_ns = 0
        for batch in batches:
            if len(batch):
                # The first frame is compared with the last one of the previous batch.
                times = np.concatenate([[last_ns], batch.timestamp_ns])
                self.facts.disordered += int((np.diff(times) < 0).sum())
                last_ns = int(times[-1])
            for each in self._for_raw:
                each.raw(batch)
            yield batch

    def observe(self, decoded: DecodedBatch) -> list[CapturedMessage]:
        """Process a batch; return the finished messages."""
        done = self.facts.observe(decoded)
        if len(decoded):
            for each in self._for_frames:
                each.frames(decoded, self.facts)
        self._take(done)
        return done

    def wait_until(self, now_ns: int) -> list[CapturedMessage]:
        """Advance the time, because no earlier frame is expected; return the finished messages."""
        done = self.facts.follower.wait_until(now_ns)
        self._take(done)
        return done

    def lose(self, frames: int) -> None:
        """Record the number of frames that the capturing program lost."""
        self.facts.dropped = frames

    def starve(self, periods: list[tuple[int, int]]) -> None:
        """Record the periods in which the capturing program lacked the processor, as start and end."""
        self.facts.starved = periods

    def finish(self) -> list[CapturedMessage]:
        """End the capture; return the remaining messages."""
        done = self.facts.follower.finish()
        self._take(done)
        return done

    def findings(self) -> list[Finding]:
        """Return the findings, the most costly first, then by severity; omit findings that follow from another
        finding.
        """
        places = {each.id: place for place, each in enumerate(catalogue())}
        findings = [each for examiner in self._examiners for each in examiner.findings(self.facts)]
        findings = [each for each in findings if not any(_explains(other, each) for other in findings)]
        # One doubt for all missing frames: a second one would lower the confidence twice for the same cause.
        doubt = next((_HOLES[each.id] for each in findings if each.id in _HOLES), None)
        if doubt is not None:
            findings = [_doubted(each, doubt) if _needs_every_frame(each) else each for each in findings]
        findings = [_doubted(each, _STARVED) if self._is_starved(each) else each for each in findings]

        def rank(each: Finding) -> tuple[object, ...]:
            cost = each.cost
            severity, sure = _SEVERITY[each.severity], _ORDER[each.confidence]
            return -(cost.ns or 0), severity, -(cost.frames or 0), sure, places[each.id], each.concerns

        return sorted(findings, key=rank)

    def _is_starved(self, found: Finding) -> bool:
        """Return whether a finding that depends on times is from a period without the processor: other programs of the
        machine lacked it as well, perhaps a host.
        """
        if not {"every frame", "exact times"}.intersection(CATALOGUE[found.id].text.needs):
            return False
        times = [each.time_ns for each in found.evidence if each.time_ns is not None]
        return any(
            start - _BEFORE_NS <= time_ns <= end + _BEFORE_NS for time_ns in times for start, end in self.facts.starved
        )

    def losses(self) -> list[DirectionLoss]:
        """Return the frames lost per direction of all pairs of hosts, as far as the capture shows them: those of the
        most frames first. Empty if the capture itself lost frames, since the two cannot be distinguished.
        """
        if self._is_incomplete():
            return []
        (examiner,) = (each for each in self._examiners if isinstance(each, LossExaminer))
        return sorted(examiner.losses(self.facts), key=lambda each: -each.frames)

    def _is_incomplete(self) -> bool:
        (examiner,) = (each for each in self._examiners if isinstance(each, RecordingExaminer))
        return any(each.id == "capture-incomplete" for each in examiner.findings(self.facts))

    def limits(self) -> list[str]:
        """Return the limits of the examination, one sentence per limit."""
        remarks = limits(self.facts)
        if self._is_incomplete():
            remarks.append("the capture itself lost frames, so the loss per direction is unknown")
        return remarks

    def _take(self, messages: list[CapturedMessage]) -> None:
        for message in messages:
            self.facts.note(message)
            for each in self._for_any_message:
                each.any_message(message, self.facts)
            # Few messages are: otherwise these examiners would take most of the time.
            if is_eventful(message):
                for each in self._for_messages:
                    each.message(message, self.facts)


def is_eventful(message: CapturedMessage) -> bool:
    """Return whether a message was repeated, refused, or not answered."""
    if message.transmissions > 1 or message.nack is not None or message.ack is None:
        return True
    pull = message.pull
    if pull is None:
        return False
    notice = pull.notice
    return (
        notice is None
        or pull.re_requests > 0
        or pull.refusal is not None
        or notice.transmissions > 1
        or notice.nack is not None
    )


def _has(examiner: Examiner, hook: str) -> bool:
    return getattr(type(examiner), hook) is not getattr(Examiner, hook)


def _needs_every_frame(found: Finding) -> bool:
    return "every frame" in CATALOGUE[found.id].text.needs


def _doubted(found: Finding, doubt: str) -> Finding:
    return replace(found, doubts=(*found.doubts, doubt))


def _explains(cause: Finding, finding: Finding) -> bool:
    """Return whether one finding follows from another: the catalogue relates them, and both concern the same hosts."""
    if cause.id not in CATALOGUE[finding.id].text.follows_from:
        return False
    hosts = {each.address for each in cause.concerns}
    return {each.address for each in finding.concerns} <= hosts


def limits(facts: Facts) -> list[str]:
    """Return one sentence per limit of the examination, without its full stop."""
    follower = facts.follower
    remarks = []
    if not follower.frames:
        skipped = facts.decoder.skipped
        if skipped:
            types = ", ".join(f"0x{each:04x}" for each in facts.decoder.ethertypes)
            remarks.append(
                f"no frame of MXoE (EtherType {types}) among {count_of(skipped, 'frame')} of other protocols: "
                "only a changed EtherType could be detected"
            )
        else:
            remarks.append("the capture has no frames: nothing could be judged")
        return remarks
    if follower.cooked:
        remarks.append(
            "the capture lacks the destinations of frames (Linux cooked, as from tcpdump -i any): nothing that "
            "concerns two hosts could be judged; capture one interface (-i eth0)"
        )
    if follower.malformed:
        remarks.append(f"{count_of(follower.malformed, 'malformed frame')} were left out")
    late = sum(not each.connect_count and not each.is_stray for each in follower.conversations)
    if late:
        remarks.append(
            f"{count_of(late, 'conversation')} without a connect: the capture began later, or is incomplete; the "
            "connects could not be judged"
        )
    if facts.disordered:
        remarks.append(
            f"{count_of(facts.disordered, 'frame')} behind later ones in the file: "
            "results that depend on order are less certain"
        )
    if facts.starved:
        remarks.append(f"{starvation_text(standstill(facts.starved) or 0)}: findings of these periods are less certain")
    _, answers_first = facts.sequences.disorders()
    if answers_first >= PROVEN:
        remarks.append(
            f"replies to {count_of(answers_first, 'PULL')} before the PULL itself: the capture has another order than "
            "the wire, so that the order of frames could not be judged"
        )
    if facts.backwards:
        remarks.append(
            f"{count_of(facts.backwards, 'message')} acknowledged before being sent: the times are those of two clocks "
            "(mxwire merge compares them); results that depend on times are less certain"
        )
    if facts.traffic.forgotten or follower.evicted or follower.forgotten_conversations:
        remarks.append("too many simultaneous hosts, conversations or unfinished messages: some were not followed")
    return remarks
