"""Frames that the network loses, by kind of loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.conversations.message import MessagePull, Repeat
from mxwire.analysis.diagnosis.facts import Facts, about, direction_of
from mxwire.analysis.diagnosis.finding import (
    KEPT,
    SHOWN,
    Evidence,
    Finding,
    Party,
    evidence,
    seconds,
    standstill,
    weighed,
)
from mxwire.analysis.diagnosis.libraries import SILENCE_NS
from mxwire.analysis.diagnosis.losses import (
    DirectionLoss,
    Pair,
    block_start,
    dialect_of,
    losses,
    missing_replies,
    pair_of,
)
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.diagnosis.troubles.order import reordered_pairs
from mxwire.analysis.diagnosis.troubles.reverse import connected_ns
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.dialect import Dialect
from mxwire.words import count_of

LOST: Final = Diagnosis("frames-lost", "network")
TAIL: Final = Diagnosis("tail-loss", "network")
BURST: Final = Diagnosis("burst-loss", "network")


_RECENT: Final = 256
_KEPT_OF_RECENT: Final = _RECENT // 2
"""Number of losses of a kind that are kept if there are more than ``_RECENT``: those with the longest gaps."""
_BURST_FRAMES: Final = 4
_RESET_NS: Final = 1_000_000_000


@examines(LOST, TAIL, BURST)
class LossExaminer(Examiner):
    """Collector of retransmissions, by the frames that must have been lost."""

    def __init__(self) -> None:
        self._pulled: list[CapturedMessage] = []
        self._repeated: list[CapturedMessage] = []
        self._tails: FirstKeys[Pair, list[tuple[CapturedMessage, Repeat]]] = FirstKeys(KEPT, list)
        self._gaps: FirstKeys[Pair, list[tuple[CapturedMessage, Repeat]]] = FirstKeys(KEPT, list)

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note a message that was retransmitted or re-requested."""
        pair = pair_of(message)
        if self._may_be_lost(message, facts) and len(self._repeated) < KEPT:
            self._repeated.append(message)
        pull = message.pull
        if pull is None or not pull.requests or message.receiver not in ("received", "truncated"):
            return
        if message.position < 0 or not (message.flow.frames and message.flow.back.frames):
            return
        if len(self._pulled) < KEPT:
            self._pulled.append(message)
        self._examine_requests(pair, message, pull)

    def _examine_requests(self, pair: Pair, message: CapturedMessage, pull: MessagePull) -> None:
        for each in pull.requests:
            if each.cause == "timer" and each.end >= (pull.requested or 0):
                self._keep(self._tails[pair], message, each)
            if each.longest_gap and missing_replies(pull):
                self._keep(self._gaps[pair], message, each)

    @staticmethod
    def _keep(losses: list[tuple[CapturedMessage, Repeat]], message: CapturedMessage, each: Repeat) -> None:
        losses.append((message, each))
        if len(losses) > _RECENT:
            losses.sort(key=lambda known: -known[1].longest_gap)
            del losses[_KEPT_OF_RECENT:]

    @staticmethod
    def _may_be_lost(message: CapturedMessage, facts: Facts) -> bool:
        """Return whether a message was retransmitted although its receiver was up."""
        if not message.retransmissions or message.nacks or message.position < 0 or message.ack is None:
            return False
        if _is_slow(message):
            return False
        direction = direction_of(message.flow.back)
        return facts.libraries.silence(direction, message.first_ns, message.last_sent_ns) is None

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on all kinds of loss."""
        dialects = facts.dialects()
        lost, pulled = self._lost(facts)
        by_pair: dict[Pair, tuple[list[CapturedMessage], list[CapturedMessage]]] = {}
        for place, messages in enumerate((lost, pulled)):
            for message in messages:
                by_pair.setdefault(pair_of(message), ([], []))[place].append(message)
        shares = {(each.source, each.destination): each for each in self.losses(facts)}
        for pair, (resent, requested) in by_pair.items():
            yield _lost_finding(pair, resent, requested, shares.get(pair))
        for pair, tails in self._tails.items():
            yield self._tail_finding(pair, tails)
        for pair, gaps in self._gaps.items():
            dialect = dialect_of(pair, dialects)
            bursts = [each for each in gaps if _is_burst(each[1], dialect)]
            if bursts:
                yield _burst_finding(pair, bursts, dialect)

    def losses(self, facts: Facts) -> list[DirectionLoss]:
        """Return the losses per direction of all pairs of hosts that were captured in both directions."""
        return [*losses(*self._lost(facts), facts.traffic.pairs(), facts.dialects())]

    def _lost(self, facts: Facts) -> tuple[list[CapturedMessage], list[CapturedMessage]]:
        """Return the messages that were retransmitted, and those that were re-requested, because of a loss."""
        mixed = facts.numberings.found
        reordered = reordered_pairs(facts)
        lost = [each for each in self._repeated if not _is_reset(each, facts) and each.flow not in mixed]
        return lost, [each for each in self._pulled if _is_pull_lost(each, pair_of(each) in reordered)]

    @staticmethod
    def _tail_finding(pair: Pair, tails: list[tuple[CapturedMessage, Repeat]]) -> Finding:
        # If all data had passed, the receiver may have been slow instead.
        missed = sum(each.missing > 0 for _, each in tails)
        shown = weighed((_tail_evidence(*each) for each in tails[:SHOWN]), "sign", missed or 1)
        number = len({message.number for message, _ in tails})
        waited = f"{count_of(number, 'large message')} to {mac_text(pair[1])} waited for the timer at the end"
        summary = _at_least(len(tails), _KEPT_OF_RECENT) + waited
        stalled = standstill(_waits(each for _, each in tails))
        return TAIL.found((Party(pair[0]), Party(pair[1])), summary, shown, stalled_ns=stalled)


def _tail_evidence(message: CapturedMessage, again: Repeat) -> Evidence:
    text = f"message {message.number}, {message.length} bytes: its end was re-requested after {seconds(again.after_ns)}"
    if not again.missing:
        text += ", although all of it had passed here"
    return evidence(text, [again.frame], again.time_ns)


def _is_slow(message: CapturedMessage) -> bool:
    """Return whether the ack follows no transmission soon: the receiver had the message, and was slow."""
    assert message.ack is not None
    sent = [message.first_ns, *(each.time_ns for each in message.resends)]
    before = [time_ns for time_ns in sent if time_ns <= message.ack.time_ns]
    return bool(before) and message.ack.time_ns - max(before) > SILENCE_NS


def _is_pull_lost(message: CapturedMessage, reordered: bool) -> bool:
    """Return whether blocks were re-requested because replies or PULLs were lost.

    An early request (R-PUL-07) is not evidence if the puller itself had requested the later block first (R-MEA-15), or
    if ``reordered`` replies explain the request.
    """
    pull = message.pulled
    if missing_replies(pull) or pull.timed_out:
        return True
    return not reordered and not all(each.explained for each in pull.requests)


def _is_reset(message: CapturedMessage, facts: Facts) -> bool:
    """Return whether the receiver restarted its numbers because of a late connect (R-CON-12)."""
    connected = connected_ns(message.flow)
    first = facts.first_numbered.get(message.flow)
    if connected is None or first is None:
        return False
    return first < connected < message.last_sent_ns and message.first_ns < connected + _RESET_NS


def _lost_finding(
    pair: Pair, lost: list[CapturedMessage], pulled: list[CapturedMessage], share: DirectionLoss | None
) -> Finding:
    again = sum(_unexplained(each.pull) for each in pulled if each.pull is not None)
    what = [count_of(len(lost), "message") + " retransmitted"] if lost else []
    what += [count_of(again, "block") + " re-requested"] if again else []
    shown = [about(each, f"was sent {each.transmissions} times") for each in lost[:SHOWN]]
    # The sender of a message may have retransmitted it too early, before the ack.
    overdue = sum(any(again.after_ns > SILENCE_NS for again in each.resends) for each in lost)
    shown = weighed(shown, "sign" if overdue else "hint", overdue)
    # If all requests are early and every reply passed, reordering beyond the capture point is just as likely.
    missed = sum(missing_replies(pull) + len(pull.timed_out) for each in pulled if (pull := each.pull) is not None)
    blocks = [_pull_evidence(each.number, each.pull) for each in pulled[:SHOWN] if each.pull is not None]
    shown += weighed(blocks, "sign" if missed else "hint", missed)
    bounded = _at_least(max(len(lost), len(pulled)), KEPT)
    summary = f"from {mac_text(pair[0])} to {mac_text(pair[1])}: {bounded}{', '.join(what)}"
    if share is not None and share.lost:
        summary += f"; at least {share.lost} of {share.sent} frames lost ({share.percent:.2g}%)"
    waits = [wait for each in lost for wait in _waits(each.resends)]
    waits += [wait for each in pulled if each.pull is not None for wait in _waits(each.pull.timed_out)]
    repeated = sum(each.repeated_frames for each in lost)
    repeated += sum(each.pull.repeated_replies for each in pulled if each.pull is not None)
    parties = Party(pair[0]), Party(pair[1])
    return LOST.found(parties, summary, shown, stalled_ns=standstill(waits), frames=repeated)


def _waits(repeats: Iterable[Repeat]) -> list[tuple[int, int]]:
    """Return the silence before each repetition, as start and end."""
    return [(each.time_ns - each.quiet_ns, each.time_ns) for each in repeats]


def _at_least(number: int, kept: int) -> str:
    """Return the words to print before a count, which is only a lower bound once it reaches ``kept``."""
    return "at least " if number >= kept else ""


def _unexplained(pull: MessagePull) -> int:
    """Return the number of re-requests that the order of the PULLs does not explain."""
    explained = sum(each.explained and each.cause != "timer" for each in pull.requests)
    return pull.re_requests - (0 if missing_replies(pull) else explained)


def _pull_evidence(number: int, pull: MessagePull) -> Evidence:
    text = f"blocks of message {number} were re-requested {count_of(_unexplained(pull), 'time')}"
    if missing_replies(pull):
        text += f", and {count_of(missing_replies(pull), 'reply', 'replies')} not in the capture"
    return evidence(text, [each.frame for each in pull.requests], pull.requests[0].time_ns)


def _is_burst(again: Repeat, dialect: Dialect) -> bool:
    """Return whether several consecutive frames of a block were missing, but not all of them."""
    block = again.end - block_start(again, dialect)
    return again.longest_gap >= _BURST_FRAMES * dialect.reply_payload and again.missing < block


def _burst_finding(pair: Pair, bursts: list[tuple[CapturedMessage, Repeat]], dialect: Dialect) -> Finding:
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
    parties = Party(pair[0]), Party(pair[1])
    stalled = standstill(_waits(each for _, each in bursts if each.cause == "timer"))
    return BURST.found(parties, summary, weighed(shown, "sign", len(bursts)), stalled_ns=stalled)
