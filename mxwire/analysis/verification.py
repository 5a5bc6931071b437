"""Check the frames of a capture against the rules of the specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.plain_frames import SHORTEST, plain_connects, plain_runs
from mxwire.analysis.reply_runs import BatchFrames, frames_of, reply_runs
from mxwire.analysis.selection import FindingSelector
from mxwire.ethernet import ADDRESS_SIZE
from mxwire.frames import LINKTYPE_ETHERNET
from mxwire.rules import CAPTURE, Judge, Severity, Vantage, Verdict, Violation
from mxwire.rules.handshakes import PlainConnects
from mxwire.rules.plain_run import FlowTable, PlainFrames
from mxwire.rules.registry import applied_to
from mxwire.rules.replies import ReplyRun
from mxwire.wire.codes import CodeTable
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.enums import PacketType
from mxwire.wire.packets import ConnectReply, ConnectRequest, PullReply, Small, Tiny, Truc


@dataclass(slots=True)
class HostRecord:
    """The record of one host."""

    address: bytes
    frames: Counter[type] = field(default_factory=Counter)
    """Number of frames sent, by type."""
    findings: Counter[tuple[str, Severity]] = field(default_factory=Counter)
    """Number of findings, by rule and severity."""
    complete: bool = True
    as_sent: bool = False
    """The vantage of its frames (:class:`~mxwire.rules.vantage.Vantage`)."""

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(number for (_, each), number in self.findings.items() if each == severity)

    @property
    def rules(self) -> list[str]:
        """The rules against which at least one frame of the host was checked, sorted."""
        applied = _applied_to(frozenset(self.frames), self.complete, self.as_sent)
        return sorted({*applied, *(rule for rule, _ in self.findings)}) if self.findings else applied

    @property
    def verdict(self) -> Verdict:
        """The verdict on the host as a whole."""
        found = {severity for _, severity in self.findings}
        for severity, verdict in _VERDICTS:
            if severity in found:
                return verdict
        return "pass" if self.rules else "missing"


@cache
def _applied_to(frames: frozenset[type], complete: bool, as_sent: bool) -> list[str]:
    """Return the rules that frames of these classes are checked against, sorted."""
    return sorted({rule for each in frames for rule in applied_to(each, complete, as_sent)})


_VERDICTS: Final[tuple[tuple[Severity, Verdict], ...]] = (
    ("violation", "fail"),
    ("deviation", "non-strict"),
    ("note", "info"),
)
_PLAIN: Final = Tiny, Small, Truc
"""Classes of frames by :attr:`~mxwire.rules.plain_run.PlainFrames.kind`."""
LEAST_PLAIN: Final = 1 << 9
MOST_PLAIN: Final = 1 << 17
"""Number of frames that are examined at a time: the least, and the most. After a frame that is not plain it is twice
the number of frames that were, as the next one is probably as far away; then it grows while all are."""
SKIPPED: Final = 6
"""Frames per conversation that are judged one by one after one that is not plain, since faults come in groups; they
double, up to ``MOST_SKIPPED``, while none is plain."""
MOST_SKIPPED: Final = 2048


class Verification:
    """Check of decoded batches against the rules, in the order of the capture.

    ``vantage`` states how the frames were observed. A ``selector``, to which the caller passes the batches as well, and
    ``rules`` (numbers, or prefixes of them such as ``R-ACK``) limit the findings that are reported, not the frames that
    are checked.
    """

    def __init__(
        self,
        vantage: Vantage = CAPTURE,
        *,
        selector: FindingSelector | None = None,
        rules: Collection[str] | None = None,
    ) -> None:
        self.hosts: dict[bytes, HostRecord] = {}
        """By address, in order of appearance."""
        self.frames = 0
        """Number of frames checked."""
        self.cooked = False
        """True if frames lack the address of their destination: then frames can only be judged individually."""
        self.lossy = not vantage.complete
        """True if the capture itself lost frames, in which case frames can also only be judged individually."""
        self.selector = selector
        self._rules = tuple(rules) if rules is not None else None
        self._vantage = vantage
        self._speak: dict[tuple[bytes, bytes], Dialect] = {}
        self._learned: tuple[Sequence[Dialect], list[NDArray[Any]]] = (), []
        """Dialects of the latest batch; source, destination and dialect of its pairs of hosts."""
        self._judge = Judge(self._dialect, vantage)
        self._table = FlowTable(self._judge)
        self._codes: CodeTable | None = None
        """The codes of hosts in the table."""
        self._window, self._skipped = MOST_PLAIN, SKIPPED

    def observe(self, decoded: DecodedBatch) -> Iterator[Violation]:
        """Yield the findings of the next batch."""
        located = decoded.located
        if located.batch.link_type != LINKTYPE_ETHERNET and not self.cooked:
            self.cooked = True
            self._judge_single_frames()
        if decoded.hosts is not self._codes:
            self._table.release_all()
            self._table, self._codes = FlowTable(self._judge), decoded.hosts
        self._learn(decoded)
        frames = frames_of(decoded)
        connects = plain_connects(decoded)
        spans: list[tuple[int, ReplyRun | PlainFrames]] = [*reply_runs(decoded, frames)]
        spans += [(int(each.place[0]), each) for each in plain_runs(decoded)]
        place = 0
        for first, run in sorted(spans, key=itemgetter(0)):
            yield from self._between(frames, connects, range(place, first))
            if isinstance(run, PlainFrames):
                yield from self._plain(frames, run)
                place = first + len(run)
                continue
            judged = self._judge.observe_replies(run)
            if judged:
                self._count(run.source, PullReply, judged)
            place = first + judged
        yield from self._between(frames, connects, range(place, len(decoded)))

    def _between(self, frames: BatchFrames, connects: PlainConnects | None, places: range) -> Iterator[Violation]:
        """Yield the findings of the frames between two runs."""
        left: Sequence[int] = places
        if connects is not None and len(places) >= SHORTEST:
            left = self._without_handshakes(frames, connects, places)
        yield from self._one_by_one(frames, left)

    def _without_handshakes(self, frames: BatchFrames, connects: PlainConnects, places: range) -> Sequence[int]:
        """Record the ordinary handshakes of new hosts among the frames between two runs; return the other places."""
        low, high = np.searchsorted(connects.place, (places.start, places.stop)).tolist()
        if low == high:
            return places
        source, destination = frames.hosts(slice(places.start, places.stop))
        counts = np.bincount(np.concatenate([source, destination]))
        found = connects.part(slice(low, high)).handshakes(counts)
        found = self._table.new_ones(found, len(places) - found.place.size)
        if not len(found):
            return places
        # Hosts are listed in order of appearance.
        for address in frames.addresses(places.start + np.sort(np.unique(source, return_index=True)[1])):
            self._record(address)
        taken = found.place.reshape(-1).tolist()
        found.raw, found.codecs = [*map(frames.raw, taken)], [frames.codecs[each] for each in taken]
        self._table.add(found)
        for each in found.addresses.reshape(-1).tolist():
            sent = self.hosts[each.to_bytes(ADDRESS_SIZE, "big")].frames
            sent[ConnectRequest] += 1
            sent[ConnectReply] += 1
        self.frames += len(taken)
        left = np.ones(len(places), np.bool_)
        left[found.place - places.start] = False
        others: list[int] = (places.start + np.flatnonzero(left)).tolist()
        return others

    def _plain(self, frames: BatchFrames, run: PlainFrames) -> Iterator[Violation]:
        """Yield the findings of a run of plain frames."""
        left = np.arange(len(run))
        while len(left):
            tried, later = left[: self._window], left[self._window :]
            part = run.part(tried)
            if len(tried) < SHORTEST:
                yield from self._one_by_one(frames, part.place.tolist())
                left = later
                continue
            taken = self._table.take(part, frames)
            senders, kinds = part.source[taken], part.kind[taken]
            keys, counts = np.unique(senders << np.uint64(8) | kinds, return_counts=True)
            for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
                self._count((key >> 8).to_bytes(ADDRESS_SIZE, "big"), _PLAIN[key & 0xFF], count)
            others = part.part(~taken)
            if len(others) < len(part):
                self._skipped = SKIPPED
            found = len(part) - len(others)
            window = (2 * found or self._window // 4) if len(others) else 4 * self._window
            self._window = min(max(window, LEAST_PLAIN), MOST_PLAIN)
            skipped = self._skipped * others.conversations
            yield from self._one_by_one(frames, others.place[:skipped].tolist())
            if len(others) == len(part):
                self._skipped = min(2 * self._skipped, MOST_SKIPPED)
            left = np.concatenate([tried[~taken][skipped:], later])

    def _one_by_one(self, frames: BatchFrames, places: Sequence[int]) -> Iterator[Violation]:
        """Yield the findings of the frames at ``places``."""
        if not places:
            return
        self._table.release(*frames.hosts(places))
        judge, codecs = self._judge.observe, frames.codecs
        for place in places:
            raw, length = frames.raw(place), frames.length[place]
            frame = codecs[place].parse(raw, length)
            self._count(raw[ADDRESS_SIZE : 2 * ADDRESS_SIZE], type(frame), 1)
            found = judge(frames.time_ns[place], frame, raw, frames.number[place], wire_length=length)
            if found:
                yield from self._counted(found)

    def lose(self) -> None:
        """Note that frames are missing from the batches: from now on frames can only be judged individually."""
        if not self.lossy:
            self.lossy = True
            self._judge_single_frames()

    def finish(self) -> Iterator[Violation]:
        """Yield findings that depend on the end of the capture."""
        yield from self._counted(self._judge.finish())

    def shown(self) -> list[HostRecord]:
        """Return the hosts that are reported; requested ones that sent nothing are last."""
        hosts = [*self.hosts.values()]
        wanted = None if self.selector is None else self.selector.selection.addresses
        if wanted is None:
            return hosts
        addresses = {each.to_bytes(ADDRESS_SIZE, "big") for each in wanted}
        absent = sorted(addresses - self.hosts.keys())
        return [*(each for each in hosts if each.address in addresses), *map(HostRecord, absent)]

    @property
    def violations(self) -> int:
        """Number of violations, of the hosts and rules that are reported."""
        return sum(each.count("violation") for each in self.shown())

    def _judge_single_frames(self) -> None:
        self._vantage = replace(self._vantage, complete=False)
        self._judge = Judge(self._dialect, self._vantage)
        self._table = FlowTable(self._judge)

    def _learn(self, decoded: DecodedBatch) -> None:
        """Update the dialects of the hosts of a batch."""
        assignment, located = decoded.assignment, decoded.located
        pairs = assignment.source.astype(np.int64) << 32 | assignment.destination
        first = np.unique(pairs, return_index=True)[1]
        columns = [each[first] for each in (located.source, located.destination, assignment.which)]
        # Most batches have the pairs of the one before; with many hosts, noting them takes longer than judging frames.
        if assignment.dialects == self._learned[0] and all(map(np.array_equal, columns, self._learned[1])):
            return
        self._learned = assignment.dialects, columns
        for *ends, which in zip(*(each.tolist() for each in columns), strict=True):
            source, destination = (each.to_bytes(ADDRESS_SIZE, "big") for each in ends)
            dialect = assignment.dialects[which]
            if self._speak.get((source, destination)) not in (None, dialect):
                self._table.release_all()
            self._speak[source, destination] = dialect
            self._judge.speaks(source, destination, dialect)

    def _dialect(self, source: bytes, destination: bytes) -> Dialect:
        return self._speak.get((source, destination), MXOE)

    def _count(self, address: bytes, frame_class: type, frames: int) -> None:
        """Count the frames that a host sent."""
        self.frames += frames
        self._record(address).frames[frame_class] += frames

    def _record(self, address: bytes) -> HostRecord:
        """Return the record of a host; create it if it is new."""
        record = self.hosts.get(address)
        if record is None:
            record = self.hosts[address] = HostRecord(
                address, complete=self._vantage.complete, as_sent=self._vantage.as_sent
            )
        return record

    def _counted(self, found: Collection[Violation]) -> Iterator[Violation]:
        for each in found:
            if self._rules is not None and not any(_is_of(each.rule, rule) for rule in self._rules):
                continue
            host = int.from_bytes(each.host, "big")
            if self.selector is not None and not self.selector.takes([(host, None)], each.frames):
                continue
            record = self.hosts.get(each.host)
            if record is not None:
                record.findings[each.rule, each.severity] += 1
            yield each


def _is_of(number: str, wanted: str) -> bool:
    return number == wanted or number.startswith(wanted.rstrip("-") + "-")


WITHIN_NS: Final = 1_000_000
"""Largest displacement of a frame in a capture, in nanoseconds."""
PROVEN: Final = 2
"""Number of misplaced frames that prove that a capture's order cannot be trusted."""
HELD: Final = 1024
"""Maximum number of findings held back at a time; further ones are reported unchanged."""
_NUMBERS: Final = 256
"""Number of distinct reply numbers, after which they wrap."""

_MESSAGES: Final = (PacketType.TINY, PacketType.SMALL, PacketType.MEDIUM, PacketType.RNDV, PacketType.NOTIFY)
ORDERED: Final[dict[str, tuple[int, ...]]] = {
    "R-ACK-01": (),
    "R-ACK-06": (),
    "R-CON-01": (),
    "R-CON-08": (PacketType.CONNECT,),
    "R-EP-02": (),
    "R-HOST-03": (),
    "R-HOST-04": (),
    "R-HOST-06": (),
    "R-NAK-02": (*_MESSAGES, PacketType.CONNECT),
    "R-NOT-01": (),
    "R-PUL-02": (),
    "R-PUL-03": (),
    "R-PUL-04": (PacketType.RNDV,),
    "R-PUL-08": (),
    "R-RDV-01": (),
    "R-RTX-01": (),
    "R-RTX-02": (),
    "R-RTX-04": (),
    "R-SEQ-03": (),
    "R-SEQ-05": (),
    "R-SEQ-06": (),
    "W-5": (),
    "R-PUL-13": (PacketType.PULL,),
}
"""Rules that are broken by an effect captured before its cause. Where packet types are given, the cause requests the
early frame and contains values that the sender of that frame could not guess: if it follows, the order is wrong."""
_UNSURE: Final = "but this capture has frames in the wrong order, so that it cannot be judged"


class OrderedVerification(Verification):
    """Verification that does not attribute the disorder of a capture to the hosts.

    Findings that depend on the order are reported at the end, or when they are older than ``patience_ns``, or when the
    order proves wrong; with ``disordered`` it is known to be wrong from the beginning. Nothing is held back if every
    frame is observed as it is sent.
    """

    def __init__(
        self, *arguments: Any, disordered: bool = False, patience_ns: int | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.misplaced = PROVEN if disordered else 0
        """Number of frames detected before one that passed earlier."""
        self._patience_ns = patience_ns
        self._held: list[Violation] = []
        self._unexplained: list[Violation] = []
        """Findings held back whose cause may still follow."""

    @property
    def disordered(self) -> bool:
        """True if the order of the capture cannot be trusted."""
        return self.misplaced >= PROVEN

    def observe(self, decoded: DecodedBatch) -> Iterator[Violation]:
        """Yield findings on the next batch, and findings held back that are due."""
        yield from super().observe(decoded)
        if self._vantage.as_sent:
            return
        if not self.disordered:
            self.misplaced += _swapped_replies(decoded)
            self._look_for_causes(decoded)
        yield from super()._counted(self._due(decoded))

    def finish(self) -> Iterator[Violation]:
        """Yield findings that depend on the end of the capture, and those still held back."""
        yield from super().finish()
        yield from super()._counted(self._with_certainty(self._held))
        self._held = []

    def _counted(self, found: Collection[Violation]) -> Iterator[Violation]:
        certain = []
        for each in found:
            if each.rule not in ORDERED or each.severity == "note" or self._vantage.as_sent:
                certain.append(each)
            elif len(self._held) < HELD or self.disordered:
                self._held.append(each)
                if ORDERED[each.rule] and not self.disordered:
                    self._unexplained.append(each)
            else:
                certain.append(each)
        yield from super()._counted(certain)

    def _due(self, decoded: DecodedBatch) -> list[Violation]:
        """Return findings that need not be held back any longer."""
        times = decoded.batch.timestamp_ns
        if self.disordered:
            due, self._held = self._held, []
        elif self._patience_ns is not None and len(times):
            until = int(times.max()) - self._patience_ns
            due = [each for each in self._held if each.time_ns <= until]
            self._held = [each for each in self._held if each.time_ns > until]
        else:
            due = []
        return self._with_certainty(due)

    def _with_certainty(self, found: list[Violation]) -> list[Violation]:
        if not self.disordered:
            return found
        return [replace(each, severity="note", found=f"{each.found}; {_UNSURE}") for each in found]

    def _look_for_causes(self, decoded: DecodedBatch) -> None:
        """Count the findings whose cause follows within a moment."""
        times = decoded.batch.timestamp_ns
        latest = int(times.max()) if len(times) else 0
        waiting = []
        for each in self._unexplained:
            if _is_explained(each, decoded):
                self.misplaced += 1
            elif len(times) and latest - each.time_ns <= WITHIN_NS:
                waiting.append(each)
        self._unexplained = waiting


def _swapped_replies(decoded: DecodedBatch) -> int:
    """Count replies directly behind one that was sent later: n + 1, n, n + 2 or n + 3."""
    source, count = decoded.assignment.source, 0
    for block in decoded.columns.blocks:
        if block.layout.name != "pull_reply" or len(block) < 3:
            continue
        numbers: NDArray[np.int64] = block["frame_seqnum"].astype(np.int64)
        handles = block["dst_pull_handle"]
        steps = (numbers[1:] - numbers[:-1]) % _NUMBERS
        same = (handles[1:] == handles[:-1]) & (source[block.place][1:] == source[block.place][:-1])
        on = ((steps == 2) | (steps == 3)) & same
        back = (steps == _NUMBERS - 1) & same
        count += int((back[:-1] & on[1:]).sum() + (back[1:] & on[:-1]).sum())
    return count


def _is_explained(finding: Violation, decoded: DecodedBatch) -> bool:
    """Return whether a packet that should precede the frame of a finding follows it within ``WITHIN_NS``."""
    times, numbers = decoded.batch.timestamp_ns, decoded.batch.number
    near = (times >= finding.time_ns) & (times <= finding.time_ns + WITHIN_NS) & (numbers > finding.frames[-1])
    if not near.any():
        return False
    near &= decoded.located.destination == int.from_bytes(finding.host, "big")
    return bool((near & np.isin(decoded.columns.packet_type, ORDERED[finding.rule])).any())
