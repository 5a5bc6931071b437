"""Observe endless traffic: statistics, messages and findings at any time, in bounded memory.

Theory of operation
===================

``mxwire top`` and ``mxwire watch`` must keep up with any traffic, on one processor, so there are two levels.

*Counting.* Every frame is decoded and counted by array operations: frames and bytes per pair of hosts and per packet
type, malformed frames and nacks by reason. This takes about a microsecond per frame.

*Following.* The follower of messages and the examiners of ``diagnose`` take several microseconds per frame. They may
use a share of a processor, and pause, or follow only some pairs of hosts, if that does not suffice
(``follow_budget.py``). After a pause or a change of the selection the follower starts without state, as if the capture
began there.

The share of followed frames is part of each snapshot, and figures that depend on it are estimates: messages,
retransmissions and re-requests of a pair are multiplied by the ratio of all its frames to those followed.

*Findings.* The examiners accumulate: once they have made a finding, they report it until the end. To detect the end of
a problem, the examiners are replaced after :data:`RENEWAL_NS`, if possible when no message is unfinished, and a finding
remains open until :data:`OPEN_NS` after its last report.

*Bounds.* Follower and examiners limit their own memory, :class:`PairCounters` that of counters. The decoder numbers
hosts without limit; it is replaced together with the follower if it has more than :data:`HOSTS` at the beginning of a
slot, which only forged addresses cause. Pairs without a row of their own are not followed.

Following also pauses if frames wait for more than :data:`LAG_NS`, or are lost, although its time is not used up,
because other programs use the processor: counting comes first. Clocks are parameters; times of frames are those of the
capture.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations import CapturedMessage, Follower
from mxwire.analysis.conversations.frame_marks import DUPLICATE, RE_REQUEST, RETRANSMISSION
from mxwire.analysis.conversations.state import LINGER_NS
from mxwire.analysis.diagnosis import Examination, Finding
from mxwire.analysis.diagnosis.finding import SEVERITIES, Party
from mxwire.analysis.diagnosis.traffic import is_group
from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.follow_budget import SHARE, SLOT_NS, FollowBudget
from mxwire.analysis.host_names import HostNames
from mxwire.analysis.pair_counters import OTHERS, Pair, PairCounter, PairCounters, RateWindow, pair_of
from mxwire.analysis.selection import FrameSelector, Selection
from mxwire.analysis.snapshot import (
    ConversationSnapshot,
    DirectionRates,
    HostRates,
    MessageHistogram,
    MessageLine,
    OpenFinding,
    PairRates,
    TrafficSnapshot,
)
from mxwire.frames import FrameBatch
from mxwire.units import SECOND
from mxwire.wire.checks import Reason
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.enums import NackType, packet_type_name

LAG_NS: Final = SECOND // 4
"""Delay of frames beyond which following pauses: at 200,000 frames/s a tap of 32 MiB has room for three times that."""
RENEWAL_NS: Final = 300 * SECOND
OPEN_NS: Final = 60 * SECOND
FINDINGS_NS: Final = 2 * SECOND
"""Interval at which findings are collected, which takes longer than other parts of a snapshot."""
FINDINGS: Final = 256
"""Maximum number of open findings."""
PAIRS: Final = 4096
HOSTS: Final = 8192
WINDOW_NS: Final = 3 * SECOND
"""Time over which rates are averaged."""
RECENT: Final = 4096
"""Number of finished messages of all pairs that are kept for the conversation of one of them."""
SHOWN: Final = 200
"""Maximum number of messages and of pairs of endpoints in a conversation."""
DURATION_BOUNDS_NS: Final = tuple(
    step * 10**power for power in range(3, 10) for step in (1, 2, 5)
)  # 1 µs to 5 s, the range of round trips and of retransmissions
LENGTH_BOUNDS: Final = tuple(1 << power for power in range(3, 31, 3))
_EVENTS: Final = {
    PairCounter.RETRANSMISSIONS: RETRANSMISSION,
    PairCounter.RE_REQUESTS: RE_REQUEST,
    PairCounter.DUPLICATES: DUPLICATE,
}
"""Counters of frames with a mark, with the bit of each."""
_OF_FOLLOWED: Final = [(each, each.name.lower()) for each in PairCounter if each >= PairCounter.FOLLOWED]
"""Counters that are attributes of :class:`PairRates`, with their names."""
_FAILED: Final = frozenset({"truncated", "failed", "nacked", "abandoned"})
_HIDDEN: Final = "capture-frames-cut"
"""Finding that is not reported, because observers capture only the headers."""


def _rank(found: OpenFinding) -> tuple[int, str, str]:
    """The order of findings: by severity, and independent of the time at which each was collected."""
    return SEVERITIES.index(found.finding.severity), found.finding.id, found.finding.summary


class TrafficObserver:
    """Observer of the frames that pass an interface, batch by batch.

    ``decoder`` makes a decoder. ``clock`` and ``processor_time`` return nanoseconds, the second one those that this
    thread has used. ``share`` is the share of a processor for following; None follows every frame. ``pairs`` is the
    maximum number of pairs of hosts that are counted separately. ``names`` are known host names, to which others are
    added. With a ``selection`` only its frames, messages and findings are counted.
    """

    def __init__(
        self,
        decoder: Callable[[], Decoder],
        *,
        clock: Callable[[], int],
        processor_time: Callable[[], int],
        share: float | None = SHARE,
        pairs: int = PAIRS,
        names: HostNames | None = None,
        selection: Selection | None = None,
    ) -> None:
        self._make_decoder = decoder
        self._clock = clock
        self._names = HostNames() if names is None else names
        self._selection = selection if selection is not None and selection.is_limited else None
        self._selector = None if self._selection is None else FrameSelector(self._selection)
        self.decoder = decoder()
        self.counters = PairCounters(pairs)
        self.watched: Pair | None = None
        """The pair of hosts whose conversations are included in snapshots."""
        self.frames = self.bytes = self.skipped = self.dropped = 0
        self.first_ns: int | None = None
        self.now_ns = 0
        """Time of the latest frame, or later if the source has been quiet."""
        self.types = np.zeros((257, 2), np.int64)
        """Frames and bytes by packet type; the last row is for frames without a type."""
        self.faults: Counter[str] = Counter()
        """Malformed frames by reason."""
        self.nacks: Counter[tuple[str, str]] = Counter()
        """Nacks by packet type and reason."""
        self.durations: dict[str, MessageHistogram] = {}
        self.lengths: dict[str, MessageHistogram] = {}
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """Finished messages by kind and outcome, as known to the sender."""
        self._budget = FollowBudget(share, clock, processor_time)
        self._rates = RateWindow(WINDOW_NS)
        # Until the first frame, whose time is not known yet.
        self._rates.begin(0)
        self._findings: FirstKeys[tuple[str, tuple[Party, ...]], OpenFinding] = FirstKeys(FINDINGS)
        self._collected_ns = self._followed_ns = self._findings_due = 0
        self._recent: deque[CapturedMessage] = deque(maxlen=RECENT)
        self._starved: list[tuple[int, int]] = []
        self._begin_following()

    # Frames

    def observe(self, batch: FrameBatch) -> None:
        """Process a batch; its buffer is not needed afterwards."""
        decoded = self.decoder.decode(batch)
        if not len(decoded):
            return
        self._names.learn(decoded)
        times = decoded.batch.timestamp_ns
        if self.first_ns is None:
            self.first_ns = int(times[0])
            self._renewal_ns = self.first_ns + RENEWAL_NS
            self._rates.begin(self.first_ns)
        self.now_ns = max(self.now_ns, int(times[-1]))
        decoded, rows = self._select_and_count(decoded)
        if not len(decoded):
            return
        crowded = len(self.decoder.hosts) > HOSTS
        if self._budget.begins(restart=crowded):
            self._collect_findings()
            if crowded:
                self.skipped += self.decoder.skipped
                self.decoder = self._make_decoder()
            self._begin_following()
        elif self.now_ns > self._renewal_ns and (
            not self._follower.unfinished or self.now_ns > self._renewal_ns + RENEWAL_NS
        ):
            self._collect_findings()
            self._begin_following()
        self._follow(decoded, rows)

    def _select_and_count(self, decoded: DecodedBatch) -> tuple[DecodedBatch, NDArray[np.intp]]:
        """Count the selected frames; return those to follow, and the row of each.

        Frames of other hosts are left out, but not other frames of the same hosts, without which messages could not be
        followed.
        """
        selector, start_ns = self._selector, self.decoder.start_ns
        if selector is not None and selector.selection.is_of_hosts_only:
            decoded, selector = selector.select(decoded, start_ns), None
        if not len(decoded):
            return decoded, np.zeros(0, np.intp)
        rows = self.counters.rows_of(decoded)
        if selector is None:
            self._count(decoded, rows)
        else:
            places = selector.places(decoded, start_ns)
            if len(places):
                self._count(decoded.select(places), rows[places])
        return decoded, rows

    def wait_until(self, now_ns: int) -> None:
        """Advance the time: all earlier frames have been observed."""
        self.now_ns = max(self.now_ns, now_ns)
        if not self._budget.paused:
            self._take(self._examination.wait_until(now_ns))

    def lose(self, frames: int) -> None:
        """Note the number of frames that the source has lost so far."""
        if frames > self.dropped:
            self._budget.exceed()
        self.dropped = frames
        self._examination.lose(frames - self._dropped_before)

    def starve(self, periods: list[tuple[int, int]]) -> None:
        """Note the periods in which this process lacked the processor so far, as start and end."""
        self._starved = periods
        self._examination.starve(periods)

    def hurry(self, lag_ns: int) -> None:
        """Pause following if the latest frame was observed ``lag_ns`` after it passed, and more wait."""
        if lag_ns > LAG_NS and self._budget.is_used:
            self._budget.exceed()

    def settle(self) -> None:
        """Count the finished messages that wait for late duplicates, since no frame follows; unfinished ones stay."""
        if not self._budget.paused:
            self._take(self._examination.wait_until(self.now_ns + LINGER_NS + 1))
        self._collected_ns = self._findings_due = 0

    def _begin_following(self) -> None:
        self._examination = Examination(self.decoder, marks=True)
        self._examination.starve(self._starved)
        self._renewal_ns = self.now_ns + RENEWAL_NS
        self._dropped_before = self.dropped

    @property
    def _follower(self) -> Follower:
        return self._examination.facts.follower

    def _count(self, decoded: DecodedBatch, rows: NDArray[np.intp]) -> None:
        self.counters.count(decoded, rows)
        columns, length = decoded.columns, decoded.located.wire_length
        self.frames += len(decoded)
        self.bytes += int(length.sum())
        types = columns.packet_type
        # Frames without a type (-1) are counted first, and belong into the last row.
        self.types[:, 0] += np.roll(np.bincount(types + 1, minlength=257), -1)
        self.types[:, 1] += np.roll(np.bincount(types + 1, length, 257).astype(np.int64), -1)
        if columns.reason.any():
            for reason, count in enumerate(np.bincount(columns.reason).tolist()):
                if reason and count:
                    self.faults[Reason(reason).name.lower()] += count
        for block in columns.of("nack_lib", "nack_mcp"):
            for value, count in enumerate(np.bincount(block["nack_type"]).tolist()):
                if count:
                    self.nacks[block.layout.name, _nack_name(value)] += count

    def _follow(self, decoded: DecodedBatch, rows: NDArray[np.intp]) -> None:
        budget = self._budget
        if budget.paused:
            return
        started = budget.started()
        # Pairs without a row are left out: a flood of forged addresses must not use the time for the others.
        chosen = budget.selects(rows) & (rows != OTHERS)
        if not chosen.all():
            places = np.flatnonzero(chosen)
            if not len(places):
                return
            decoded, rows = decoded.select(places), rows[places]
        self._take(self._examination.observe(decoded))
        follower = self._follower
        flags = follower.take_marks(decoded).flags
        self.counters.add(PairCounter.FOLLOWED, rows)
        self._followed_ns = self.now_ns
        if flags.any():
            for counter, bit in _EVENTS.items():
                self.counters.add(counter, rows[flags & bit != 0])
        budget.spend(started, rows)

    def _take(self, messages: Iterable[CapturedMessage]) -> None:
        """Count finished messages."""
        values, selection = self.counters.values, self._selection
        for message in messages:
            if selection is not None and not selection.takes(message):
                continue
            flow = message.flow
            row = self.counters.row(flow.address, flow.back.address)
            kind, outcome = message.kind, message.sender
            length = message.length or 0
            values[row, PairCounter.MESSAGES] += 1
            values[row, PairCounter.MESSAGE_BYTES] += length
            if outcome in _FAILED:
                values[row, PairCounter.FAILED] += 1
            self.outcomes[kind, outcome] += 1
            if kind not in self.durations:
                self.durations[kind] = MessageHistogram(DURATION_BOUNDS_NS)
                self.lengths[kind] = MessageHistogram(LENGTH_BOUNDS)
            if outcome != "open":
                self.durations[kind].add(message.end_ns - message.first_ns)
            if message.length is not None:
                self.lengths[kind].add(length)
            self._recent.append(message)

    # Findings

    def _collect_findings(self) -> None:
        """Update the open findings, and close those that were not reported for a while.

        Does nothing if it would take more than a tenth of the time since it was done last.
        """
        started = self._budget.started()
        if self._clock() < self._findings_due:
            return
        self._collected_ns = self.now_ns
        for finding in self._examination.findings():
            if finding.id == _HIDDEN or not self._concerns_selected(finding):
                continue
            key = finding.id, finding.concerns
            known = self._findings.get(key)
            first = self.now_ns if known is None else known.first_ns
            self._findings[key] = OpenFinding(finding, first, self.now_ns)
        # If pairs are sampled, a pair is examined again only after all other parts.
        span_ns = OPEN_NS + self._budget.parts * SLOT_NS
        for key in [key for key, each in self._findings.items() if each.last_ns < self.now_ns - span_ns]:
            del self._findings[key]
        self._findings_due = self._clock() + 10 * (self._budget.started() - started)

    def _concerns_selected(self, found: Finding) -> bool:
        selection, parties = self._selection, found.concerns
        if selection is None or not parties:
            return True
        return any(selection.takes_host(each.address, each.endpoint) for each in parties)

    # Snapshots

    def snapshot(self, *, conversations: bool = True) -> TrafficSnapshot:
        """Return the present state, which does not change later; rates are those since about 3 s ago."""
        if self.now_ns - self._collected_ns >= FINDINGS_NS or not self._collected_ns:
            self._collect_findings()
        since, seconds = self._rates.difference(self.counters, self.now_ns)
        pairs = self._pairs(since, seconds)
        recent = since[:, :2].sum()
        return TrafficSnapshot(
            first_ns=self.first_ns or self.now_ns,
            time_ns=self.now_ns,
            window_s=0.0 if self.first_ns is None else seconds,
            frames=self.frames,
            bytes=self.bytes,
            skipped=self.skipped + self.decoder.skipped,
            dropped=self.dropped,
            starved_ns=sum(end - start for start, end in self._starved),
            followed=int(self.counters.values[:, PairCounter.FOLLOWED].sum()),
            followed_share=float(since[:, PairCounter.FOLLOWED].sum() / recent) if recent else 1.0,
            pairs=pairs,
            hosts=self._hosts(pairs),
            others=int(self.counters.values[OTHERS, :2].sum()),
            types=self._type_counts(),
            faults=dict(self.faults),
            nacks=dict(self.nacks),
            outcomes=dict(self.outcomes),
            durations={kind: each.copied() for kind, each in self.durations.items()},
            lengths={kind: each.copied() for kind, each in self.lengths.items()},
            names=dict(self._names),
            findings=tuple(sorted(self._findings.values(), key=_rank)),
            conversation=self._conversation() if conversations else None,
        )

    def _type_counts(self) -> dict[str, tuple[int, int]]:
        counts = {}
        for value in np.flatnonzero(self.types[:, 0]).tolist():
            frames, octets = self.types[value].tolist()
            counts["none" if value == 256 else packet_type_name(value)] = frames, octets
        return counts

    def _pairs(self, since: NDArray[np.int64], seconds: float) -> tuple[PairRates, ...]:
        waiting, oldest = _unfinished(self._follower.unfinished)
        counters = self.counters
        values, window = counters.values.tolist(), since.tolist()
        last, dialects = counters.last_ns.tolist(), counters.dialects.tolist()
        # While following is paused, no message can finish.
        now = self._followed_ns if self._budget.paused else self.now_ns
        per_second = 1 / seconds if seconds else 0.0
        pairs = []
        for pair, row in list(counters.rows.items()):
            total, recent = values[row], window[row]
            if self._selection is not None and not total[0] + total[1]:
                continue
            frames = recent[0] + recent[1]
            # Only followed frames yield messages.
            scale = per_second * frames / recent[PairCounter.FOLLOWED] if recent[PairCounter.FOLLOWED] else None
            known = scale if scale is not None else (0.0 if not frames else None)
            repeated = recent[PairCounter.RETRANSMISSIONS] + recent[PairCounter.RE_REQUESTS]
            totals = {name: total[counter] for counter, name in _OF_FOLLOWED}
            first = oldest.get(pair)
            pairs.append(
                PairRates(
                    hosts=pair,
                    forward=DirectionRates(total[0], total[2], recent[0] * per_second, recent[2] * per_second),
                    back=DirectionRates(total[1], total[3], recent[1] * per_second, recent[3] * per_second),
                    dialect=counters.dialect_names[dialects[row]],
                    last_ns=last[row],
                    **totals,
                    message_rate=None if known is None else recent[PairCounter.MESSAGES] * known,
                    retransmit_rate=None if known is None else repeated * known,
                    in_flight=waiting.get(pair, 0) if self._budget.selects(row) else None,
                    oldest_ns=None if first is None else max(0, now - first),
                )
            )
        return tuple(pairs)

    def _hosts(self, pairs: Iterable[PairRates]) -> tuple[HostRates, ...]:
        hosts: dict[int, HostRates] = {}
        for pair in pairs:
            for place, address in enumerate(pair.hosts):
                if is_group(address):
                    continue
                sent, received = (pair.forward, pair.back) if place == 0 else (pair.back, pair.forward)
                host = hosts.setdefault(address, HostRates(address))
                host.sent += sent
                host.received += received
                host.peers += 1
                host.in_flight += pair.in_flight or 0
                host.last_ns = max(host.last_ns, pair.last_ns)
                if pair.dialect is not None:
                    host.dialects = host.dialects | {pair.dialect}
        return tuple(hosts.values())

    def _conversation(self) -> ConversationSnapshot | None:
        """Return the endpoints and messages of the watched pair."""
        watched = self.watched
        if watched is None:
            return None
        both = frozenset(watched)
        follower = self._follower

        def between(message: CapturedMessage) -> bool:
            return {message.flow.address, message.flow.back.address} == both

        unfinished = [each for each in follower.unfinished if between(each)][-SHOWN:]
        shown = [
            each
            for each in follower.conversations
            if not each.is_stray and {flow.address for flow in each.flows} == both
        ]
        recent = [each for each in self._recent if between(each)][-SHOWN:]
        lines = [MessageLine.of(each, finished=True) for each in recent]
        lines += [MessageLine.of(each, finished=False) for each in unfinished]
        lines.sort(key=lambda each: each.first_ns)
        return ConversationSnapshot.of(watched, shown[-SHOWN:], tuple(lines[-SHOWN:]))


def _unfinished(messages: Collection[CapturedMessage]) -> tuple[dict[Pair, int], dict[Pair, int]]:
    """Return the number of unfinished messages per pair of hosts, and the time of the first frame of the oldest."""
    count: dict[Pair, int] = {}
    oldest: dict[Pair, int] = {}
    for message in messages:
        pair = pair_of(message.flow.address, message.flow.back.address)
        count[pair] = count.get(pair, 0) + 1
        if message.first_ns < oldest.get(pair, 1 << 63):
            oldest[pair] = message.first_ns
    return count, oldest


def _nack_name(value: int) -> str:
    try:
        return NackType(value).name
    except ValueError:
        return "other"
