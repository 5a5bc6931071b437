"""Frames that the network loses, and where it hurts most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mxwire.analysis.conversations import Message
from mxwire.analysis.conversations.message import Pulled, Repeat
from mxwire.analysis.diagnosis.facts import Facts, about, voice_of
from mxwire.analysis.diagnosis.finding import Confidence, Cost, Evidence, Finding, Party, evidence, seconds, standstill
from mxwire.analysis.diagnosis.keeping import KEPT, SHOWN
from mxwire.analysis.diagnosis.registry import Examiner, examines
from mxwire.analysis.diagnosis.troubles.loss_entries import BURST, LOST, TAIL
from mxwire.analysis.diagnosis.troubles.order import reordered_pairs
from mxwire.analysis.diagnosis.troubles.reverse import connected_ns
from mxwire.ethernet import mac_text
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.words import count_of

_RECENT: Final = 256
_KEPT_OF_RECENT: Final = _RECENT // 2
"""Number kept of the most recent when there are too many of a kind: those with the longest gaps."""
_BURST_FRAMES: Final = 4
_RESET_NS: Final = 1_000_000_000

Pair = tuple[int, int]


@examines(LOST, TAIL, BURST)
class Loss(Examiner):
    """Collects retransmissions, by the frames that must have been lost."""

    def __init__(self) -> None:
        self._pulled: list[Message] = []
        self._repeated: list[Message] = []
        self._tails: dict[Pair, list[tuple[Message, Repeat]]] = {}
        self._gaps: dict[Pair, list[tuple[Message, Repeat]]] = {}

    def message(self, message: Message, facts: Facts) -> None:
        """A message that was repeated, or re-requested."""
        pair = message.flow.address, message.flow.back.address
        if self._may_be_lost(message, facts) and len(self._repeated) < KEPT:
            self._repeated.append(message)
        pull = message.pull
        if pull is None or not pull.requests or message.receiver not in ("received", "truncated"):
            return
        if message.position < 0 or not (message.flow.frames and message.flow.back.frames):
            return
        if len(self._pulled) < KEPT:
            self._pulled.append(message)
        self._look_at_requests(pair, message, pull)

    def _look_at_requests(self, pair: Pair, message: Message, pull: Pulled) -> None:
        for each in pull.requests:
            if each.cause == "timer" and each.end >= (pull.requested or 0):
                self._keep(self._tails, pair, message, each)
            if each.longest_gap and _missing(pull):
                self._keep(self._gaps, pair, message, each)

    @staticmethod
    def _keep(kept: dict[Pair, list[tuple[Message, Repeat]]], pair: Pair, message: Message, each: Repeat) -> None:
        if pair not in kept and len(kept) >= KEPT:
            return
        found = kept.setdefault(pair, [])
        found.append((message, each))
        if len(found) > _RECENT:
            found.sort(key=lambda known: -known[1].longest_gap)
            del found[_KEPT_OF_RECENT:]

    @staticmethod
    def _may_be_lost(message: Message, facts: Facts) -> bool:
        """Return whether a message was retransmitted although its receiver was up."""
        if not message.retransmissions or message.nacks or message.position < 0 or message.ack is None:
            return False
        voice = voice_of(message.flow.back)
        return facts.libraries.silence(voice, message.first_ns, message.last_sent_ns) is None

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """All kinds of loss."""
        dialects = facts.dialects()
        mixed = facts.numberings.found
        lost = [each for each in self._repeated if not _is_reset(each, facts) and each.flow not in mixed]
        reordered = reordered_pairs(facts)
        by_pair: dict[Pair, tuple[list[Message], list[Message]]] = {}
        for message in lost:
            by_pair.setdefault(_pair(message), ([], []))[0].append(message)
        for message in self._pulled:
            if _is_pull_lost(message, _pair(message) in reordered):
                by_pair.setdefault(_pair(message), ([], []))[1].append(message)
        for pair, found in by_pair.items():
            yield _lost_finding(pair, *found)
        for pair, tails in self._tails.items():
            yield self._tail_finding(pair, tails)
        for pair, gaps in self._gaps.items():
            dialect = dialects.get((min(pair), max(pair)), MXOE)
            bursts = [each for each in gaps if _is_burst(each[1], dialect)]
            if bursts:
                yield _burst_finding(pair, bursts, dialect)

    @staticmethod
    def _tail_finding(pair: Pair, tails: list[tuple[Message, Repeat]]) -> Finding:
        shown = [
            evidence(
                f"message {message.number}, {message.length} bytes: its end was re-requested after "
                f"{seconds(each.after_ns)}",
                [each.frame],
                each.time_ns,
            )
            for message, each in tails[:SHOWN]
        ]
        number = len({message.number for message, _ in tails})
        waited = f"{count_of(number, 'large message')} to {mac_text(pair[1])} waited for the timer at the end"
        summary = _at_least(len(tails), _KEPT_OF_RECENT) + waited
        cost = Cost(standstill(_waits(each for _, each in tails)))
        return TAIL.found("high", (Party(pair[0]), Party(pair[1])), summary, shown, cost=cost)


def _is_pull_lost(message: Message, reordered: bool) -> bool:
    """Return whether blocks were requested again because replies, or PULLs, were lost.

    An early request (R-PUL-07) is not evidence where the puller itself had requested the later block first (R-MEA-15),
    or where ``reordered`` replies explain it.
    """
    pull = message.pull
    assert pull is not None
    if _missing(pull) or _timers(pull):
        return True
    return not reordered and not all(each.explained for each in pull.requests)


def _is_reset(message: Message, facts: Facts) -> bool:
    """Return whether the receiver restarted its numbers because of a late connect (R-CON-12)."""
    connected = connected_ns(message.flow)
    first = facts.first_numbered.get(message.flow)
    if connected is None or first is None:
        return False
    return first < connected < message.last_sent_ns and message.first_ns < connected + _RESET_NS


def _pair(message: Message) -> Pair:
    return message.flow.address, message.flow.back.address


def _lost_finding(pair: Pair, lost: list[Message], pulled: list[Message]) -> Finding:
    again = sum(_unexplained(each.pull) for each in pulled if each.pull is not None)
    what = [count_of(len(lost), "message") + " retransmitted"] if lost else []
    what += [count_of(again, "block") + " re-requested"] if again else []
    shown = [about(each, f"was sent {each.transmissions} times") for each in lost[:SHOWN]]
    shown += [_pull_evidence(each.number, each.pull) for each in pulled[:SHOWN] if each.pull is not None]
    bounded = _at_least(max(len(lost), len(pulled)), KEPT)
    summary = f"from {mac_text(pair[0])} to {mac_text(pair[1])}: {bounded}{', '.join(what)}"
    # Only early requests, and no reply that never passed: behind here replies may just as well be reordered.
    certain = lost or any(_missing(pull) or _timers(pull) for each in pulled if (pull := each.pull) is not None)
    several = len(lost) + again > 1
    waits = [wait for each in lost for wait in _waits(each.resends)]
    waits += [wait for each in pulled if each.pull is not None for wait in _waits(_by_timer(each.pull.requests))]
    repeated = sum(each.repeated_frames for each in lost)
    repeated += sum(each.pull.repeated_replies for each in pulled if each.pull is not None)
    cost = Cost(standstill(waits), repeated)
    sure: Confidence = "high" if several and certain else "medium"
    return LOST.found(sure, (Party(pair[0]), Party(pair[1])), summary, shown, cost=cost)


def _by_timer(requests: Iterable[Repeat]) -> list[Repeat]:
    """Those that nothing but the timer of 1000 ms caused (R-PUL-08): until then the transfer stood still."""
    return [each for each in requests if each.cause == "timer"]


def _waits(repeats: Iterable[Repeat]) -> list[tuple[int, int]]:
    """The time before each repetition in which nothing passed: from when until when."""
    return [(each.time_ns - each.quiet_ns, each.time_ns) for each in repeats]


def _at_least(number: int, kept: int) -> str:
    """Return the words before a number that is a lower bound once ``kept`` is reached."""
    return "at least " if number >= kept else ""


def _missing(pull: Pulled) -> int:
    """Replies that were requested and never seen: every valid PULL is answered in full (R-PUL-12)."""
    return 0 if pull.nacks else max(pull.asked_replies - pull.replies, 0)


def _timers(pull: Pulled) -> int:
    return sum(each.cause == "timer" for each in pull.requests)


def _unexplained(pull: Pulled) -> int:
    """Repeated requests that the order of the PULLs does not explain."""
    return pull.re_requests - (0 if _missing(pull) else sum(each.explained for each in pull.requests))


def _pull_evidence(number: int, pull: Pulled) -> Evidence:
    text = f"blocks of message {number} were re-requested {count_of(_unexplained(pull), 'time')}"
    if _missing(pull):
        text += f", and {count_of(_missing(pull), 'reply', 'replies')} never passed here"
    return evidence(text, [each.frame for each in pull.requests], pull.requests[0].time_ns)


def _is_burst(again: Repeat, dialect: Dialect) -> bool:
    """Return whether several consecutive frames of a block were missing, but not all of them."""
    start = (again.end - 1) // dialect.block_length * dialect.block_length
    return again.longest_gap >= _BURST_FRAMES * dialect.reply_payload and again.missing < again.end - start


def _burst_finding(pair: Pair, bursts: list[tuple[Message, Repeat]], dialect: Dialect) -> Finding:
    shown = [
        evidence(
            f"message {message.number}: {again.longest_gap // dialect.reply_payload} consecutive replies were missing",
            [again.frame],
            again.time_ns,
        )
        for message, again in bursts[:SHOWN]
    ]
    times = _at_least(len(bursts), _KEPT_OF_RECENT) + count_of(len(bursts), "time")
    summary = f"from {mac_text(pair[0])} to {mac_text(pair[1])} whole bursts are lost, {times}"
    cost = Cost(standstill(_waits(_by_timer(each for _, each in bursts))))
    sure: Confidence = "high" if len(bursts) > 1 else "medium"
    return BURST.found(sure, (Party(pair[0]), Party(pair[1])), summary, shown, cost=cost)
