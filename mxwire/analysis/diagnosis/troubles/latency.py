"""Steps in latency: interrupt coalescing of network cards, and sleep states of processors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations import CapturedMessage, Conversation
from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import Finding, Party, evidence
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.diagnosis.traffic import pairs_of
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch

COALESCING: Final = Diagnosis("interrupt-coalescing", "latency")
SLEEP: Final = Diagnosis("latency-after-idle", "latency")
_PAIRS: Final = 1024
_GAPS: Final = 8192
_ENOUGH: Final = 200
_SHORT_NS: Final = 5_000
_LONG_NS: Final = 15_000
_LONGEST_NS: Final = 1_000_000
_MANY: Final = 30
_ALIKE: Final = 0.1
_TRIPS: Final = 4096
_PAUSE_NS: Final = 1_000_000
_GROUP: Final = 8
_STEP_NS: Final = 20_000


@dataclass(slots=True)
class _Trips:
    """The round trips of one conversation: the preceding pause and the duration of each."""

    ping: tuple[CapturedMessage, int] | None = None
    last_ns: int | None = None
    samples: list[tuple[int, int, int]] = field(default_factory=list)

    def take(self, message: CapturedMessage) -> None:
        """Add the next message, in the order of first frames."""
        ping = self.ping
        if ping is not None and message.flow is ping[0].flow.back and message.length == ping[0].length:
            if ping[1] >= 0 and not message.retransmissions:
                self.samples.append((ping[1], message.first_ns - ping[0].first_ns, message.run_first))
                del self.samples[:-_TRIPS]
            self.ping = None
        else:
            idle = message.first_ns - self.last_ns if self.last_ns is not None else -1
            self.ping = message, idle
        self.last_ns = message.first_ns


@examines(COALESCING, SLEEP)
class LatencyExaminer(Examiner):
    """Collector of gaps within blocks, and of round trips of short messages with the pauses before them."""

    def __init__(self) -> None:
        self._gaps: FirstKeys[tuple[int, int], tuple[list[NDArray[np.int64]], int]] = FirstKeys(_PAIRS)
        self._trips: FirstKeys[Conversation, _Trips] = FirstKeys(_PAIRS, _Trips)

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Collect the gaps between the replies of a block."""
        for block in decoded.columns.of("pull_reply"):
            # All dialects share this layout, so a block may hold frames of several.
            dialects, which = decoded.assignment.dialects, decoded.assignment.which[block.place]
            number = block["msg_offset"] // np.array([each.reply_payload for each in dialects])[which]
            within = number % np.array([each.frames_per_block for each in dialects])[which] != 0
            same = block["dst_pull_handle"][1:] == block["dst_pull_handle"][:-1]
            same &= (np.diff(number) == 1) & within[1:]
            self._add_gaps(decoded, block.place, same)
        for block in decoded.columns.of("medium"):
            same = block["lib_seqnum"][1:] == block["lib_seqnum"][:-1]
            same &= np.diff(block["frag_seqnum"].astype(np.int64)) == 1
            self._add_gaps(decoded, block.place, same)

    def _add_gaps(self, decoded: DecodedBatch, place: NDArray[np.intp], same: NDArray[np.bool_]) -> None:
        if not same.any():
            return
        gaps = np.diff(decoded.batch.timestamp_ns[place])
        source, destination = decoded.assignment.source[place], decoded.assignment.destination[place]
        same &= (source[1:] == source[:-1]) & (destination[1:] == destination[:-1]) & (gaps >= 0)
        which = np.flatnonzero(same)
        keys = decoded.hosts.keys
        for one, other, members in pairs_of(source[which], destination[which]):
            key = keys[one], keys[other]
            kept, number = self._gaps.get(key, ([], 0))
            if number >= _GAPS:
                continue
            kept.append(gaps[which[members[: _GAPS - number]]])
            self._gaps[key] = kept, number + len(members)

    def any_message(self, message: CapturedMessage, facts: Facts) -> None:
        """Add a short message at its completion; round trips require the order of first frames."""
        trips = self._trips[message.flow.conversation]
        if message.kind in ("TINY", "SMALL"):
            trips.take(message)
        else:
            trips.ping, trips.last_ns = None, message.last_ns

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield both kinds of findings."""
        for (source, destination), (gaps, _) in self._gaps.items():
            comb = _comb(np.concatenate(gaps))
            if comb is None:
                continue
            pause, bunch, number = comb
            text = f"{number} pauses of about {pause / 1000:.0f} microseconds, and {bunch:.1f} frames per burst"
            direction = f"from {mac_text(source)} to {mac_text(destination)}"
            summary = f"frames {direction} arrive every {pause / 1000:.0f} microseconds"
            parties, shown = (Party(destination), Party(source)), [evidence(text, weight="sign")]
            yield COALESCING.found(parties, summary, shown, stalled_ns=int(pause * number))
        for conversation, trips in self._trips.items():
            step = _step(trips.samples)
            if step is not None:
                yield _asleep(conversation, trips, *step)


def _comb(gaps: NDArray[np.int64]) -> tuple[float, float, int] | None:
    """Return the pause in ns, the frames per burst, and the number of pauses; None if gaps do not alternate so."""
    if len(gaps) < _ENOUGH:
        return None
    short = int((gaps < _SHORT_NS).sum())
    pauses = gaps[(gaps >= _LONG_NS) & (gaps <= _LONGEST_NS)]
    if len(pauses) < _MANY or short < len(gaps) / 2 or short + len(pauses) < 0.9 * len(gaps):
        return None
    pause = float(np.median(pauses))
    alike = np.abs(pauses - pause) <= _ALIKE * pause
    if alike.mean() < 0.8:
        return None
    return pause, len(gaps) / len(pauses), len(pauses)


def _step(samples: list[tuple[int, int, int]]) -> tuple[float, float, int] | None:
    """Return the median round trips after a pause and without one, in ns, and a frame; None if they are similar."""
    cold = np.array([trip for idle, trip, _ in samples if idle >= _PAUSE_NS])
    # Below 0: the first message of a conversation, before which no pause is known.
    warm = np.array([trip for idle, trip, _ in samples if 0 <= idle < _PAUSE_NS])
    if min(len(cold), len(warm)) < _GROUP:
        return None
    slow, fast = float(np.median(cold)), float(np.median(warm))
    # Medians of few samples differ by chance: most of the two groups must not overlap.
    apart = np.percentile(cold, 20) > np.percentile(warm, 80)
    if slow < fast * 1.5 or slow - fast < _STEP_NS or not apart:
        return None
    return slow, fast, next(frame for idle, _, frame in samples if idle >= _PAUSE_NS)


def _asleep(conversation: Conversation, trips: _Trips, slow: float, fast: float, frame: int) -> Finding:
    one, other = conversation.flows
    text = (
        f"round trips after a pause of 1 ms and more took {slow / 1000:.0f} microseconds, others {fast / 1000:.0f} "
        f"(medians of {len(trips.samples)})"
    )
    summary = f"between {mac_text(one.address)} and {mac_text(other.address)} messages are slow after each pause"
    parties = Party(one.address), Party(other.address)
    slept = sum(idle >= _PAUSE_NS for idle, _, _ in trips.samples)
    shown = [evidence(text, [frame], weight="sign")]
    return SLEEP.found(parties, summary, shown, stalled_ns=int((slow - fast) * slept))
