"""All conclusions that a report of one capture shows, from one pass over its frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from mxwire.analysis.compatibility import Sides, judge_sides
from mxwire.analysis.compatibility.judgement import MessageClass, Word
from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.conversations.message_rows import MessageGroup
from mxwire.analysis.diagnosis import Examination, Finding
from mxwire.analysis.selection import FindingSelector, MessageSelector, Selection
from mxwire.analysis.time_sequence import FrameTrace
from mxwire.analysis.timing import SORT_KEYS, PairStatistics, PairTable
from mxwire.analysis.timing.measured_messages import NO_ROWS, MeasuredMessages
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.enums import ConnectStatus

MESSAGES: Final = 30_000
"""Maximum number of messages kept, and of remarkable messages kept in addition."""
PAIRS_JUDGED: Final = 200
"""Maximum number of pairs of hosts for which classes are judged: those with the most bytes."""

CLASSES_SHOWN: Final[tuple[MessageClass, ...]] = ("connect", "tiny", "small", "medium", "large")
State = Literal["works", "partly", "fails", "unknown"]
_STATES: Final[dict[Word, State]] = {"yes": "works", "partly": "partly", "no": "fails", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class ClassState:
    """The state of one class of messages between two hosts."""

    name: MessageClass
    state: State
    """The state shown by the messages of the capture, if there are any; otherwise by the builds of the hosts."""
    why: str
    """The reason, or the number of messages."""


@dataclass(frozen=True, slots=True)
class PairState:
    """Two hosts with their statistics, and the classes of messages that work between them."""

    statistics: PairStatistics
    classes: tuple[ClassState, ...]
    """Empty if one of the two hosts never sends, or if the pair was not judged."""


class CaptureOverview:
    """Accumulator of findings, pairs, messages and frames of one capture, within bounded memory.

    Pass batches through :meth:`watch` before ``decoder``. With a ``selection`` all frames are followed, but only
    selected frames are counted, and only selected messages and findings reported. ``names`` are known host names; those
    that the capture announces are added.
    """

    def __init__(
        self, decoder: Decoder, selection: Selection | None = None, names: Mapping[int, str] | None = None
    ) -> None:
        limited = selection is not None and selection.is_limited
        self._selector = MessageSelector(selection) if selection is not None and limited else None
        self._findings = FindingSelector(selection) if selection is not None and limited else None
        self._names = names or {}
        self.examination = Examination(decoder, marks=True)
        self.pairs = PairTable()
        self.trace = FrameTrace()
        self.messages: list[CapturedMessage] = []
        """The first messages, and later messages if they are remarkable."""
        self.omitted_messages = 0
        # The examination already follows all messages, and passes them on: following twice would take twice the time.
        self._sides = Sides(follows=False)

    def watch(self, batches: Iterable[FrameBatch]) -> Iterator[FrameBatch]:
        """Yield batches unchanged, and examine their frames of other protocols."""
        return self.examination.watch(batches)

    def observe(self, decoded: DecodedBatch) -> None:
        """Process a batch."""
        messages = self.examination.observe(decoded)
        if not len(decoded):
            return
        marks = self.examination.facts.follower.take_marks(decoded)
        self.trace.observe(decoded, marks)
        if self._selector is not None and self._findings is not None:
            start_ns = self.examination.facts.decoder.start_ns
            self._selector.observe(decoded, lambda _: marks, start_ns)
            self._findings.observe(decoded, marks, start_ns)
            places = self._selector.selection.places(decoded, marks, start_ns)
            self.pairs.observe(decoded.select(places), marks.select(places))
        else:
            self.pairs.observe(decoded, marks)
        self._sides.observe(decoded)
        self._take(messages)

    def finish(self) -> None:
        """End the capture."""
        self._take(self.examination.finish())
        # The follower returns messages in the order in which they end.
        self.messages.sort(key=lambda each: each.number)

    @property
    def names(self) -> dict[int, str]:
        """Host names by address: the known names, and the names that the capture announces for other hosts."""
        return {**self.examination.facts.follower.names, **self._names}

    def findings(self) -> list[Finding]:
        """Return the selected findings, the most costly first."""
        found = self.examination.findings()
        if self._findings is None:
            return found
        return [each for each in found if self._is_selected(self._findings, each)]

    @staticmethod
    def _is_selected(selector: FindingSelector, found: Finding) -> bool:
        concerns = [(each.address, each.endpoint) for each in found.concerns]
        return selector.takes(concerns, [frame for each in found.evidence for frame in each.frames])

    @property
    def left_out(self) -> int:
        """Number of findings that were not selected by the previous call of :meth:`findings`."""
        return 0 if self._findings is None else self._findings.left_out

    def _take(self, found: list[CapturedMessage]) -> None:
        self._sides.take(found)
        messages = found if self._selector is None else [each for each in found if self._selector.takes(each)]
        self.pairs.take(MeasuredMessages.of(MessageGroup(NO_ROWS, messages=messages)))
        self.trace.take(messages)
        for each in messages:
            count = len(self.messages)
            # Ordinary messages fill the first half only, so that a fault at the end of a long capture still finds room.
            if count < MESSAGES or (count < 2 * MESSAGES and is_notable(each)):
                self.messages.append(each)
            else:
                self.omitted_messages += 1

    def pair_states(self) -> list[PairState]:
        """Return the pairs of hosts, in descending order of bytes."""
        pairs = sorted(self.pairs.by_hosts(), key=SORT_KEYS["bytes"], reverse=True)
        return [
            PairState(each, self._classes(each) if place < PAIRS_JUDGED else ()) for place, each in enumerate(pairs)
        ]

    def _classes(self, pair: PairStatistics) -> tuple[ClassState, ...]:
        hosts = [each.address for each in pair.ends]
        # A build shows in the frames that its host sends, so that nothing is known of a host that only receives.
        if not set(hosts) <= set(self._sides.hosts) or hosts[0] == hosts[1]:
            return ()
        exchanged = self._sides.between(*hosts)
        arrived = {name for (_, name), (count, _) in exchanged.items() if count}
        one, other = (self._sides.side(each, "") for each in hosts)
        judgement = judge_sides(one, other, arrived)
        classes = []
        for name in CLASSES_SHOWN:
            seen = [exchanged.get((direction, name), (0, 0)) for direction in (0, 1)]
            if name == "connect":
                seen = [self._connects(hosts)]
            good, every = (sum(each[place] for each in seen) for place in (0, 1))
            if every:
                state: State = "works" if good == every else "partly" if good else "fails"
                noun = "connects succeeded" if name == "connect" else "messages were received"
                why = f"{good} of {every} {noun}"
            else:
                state, why = _STATES[judgement[name].word], judgement[name].why or "by the builds of the hosts"
            classes.append(ClassState(name, state, why))
        return tuple(classes)

    def _connects(self, hosts: list[int]) -> tuple[int, int]:
        """Return the number of successful connects between two hosts, and the number of all connects answered or
        refused.
        """
        good = every = 0
        for conversation in self.examination.facts.follower.conversations:
            if {flow.address for flow in conversation.flows} == set(hosts):
                for connect in conversation.connects:
                    # A reply without a request answers one from before the capture.
                    every += connect.requests > 0
                    good += connect.requests > 0 and connect.status == ConnectStatus.SUCCESS
        return good, every


def is_notable(message: CapturedMessage) -> bool:
    """Return whether a message failed, was repeated, or is incomplete."""
    pull = message.pull
    repeated = message.transmissions > 1 or message.duplicates or message.nacks
    pulled = pull is not None and (pull.re_requests or pull.duplicate_replies or pull.nacks or pull.duplicate_pulls)
    return bool(repeated or pulled or message.is_incomplete)
