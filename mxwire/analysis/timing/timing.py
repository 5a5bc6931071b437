"""Measure durations while a capture is followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from mxwire.analysis.conversations import CapturedMessage, Conversation, Follower
from mxwire.analysis.conversations.frame_marks import FrameMarks
from mxwire.analysis.conversations.message_rows import GroupSorter, MessageGroup
from mxwire.analysis.selection import MessageSelector, Selection
from mxwire.analysis.time_sequence import FrameTrace
from mxwire.analysis.timing.line import TimeLine
from mxwire.analysis.timing.measured_messages import KINDS, NO_ROWS, UNKNOWN, MeasuredMessages, in_order
from mxwire.analysis.timing.pairs import PairTable
from mxwire.analysis.timing.round_trips import Lengths, RoundTrips
from mxwire.analysis.timing.samples import GapHistogram, Samples
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import Dialect


class Timing:
    """Measurement of a capture, batch by batch, in bounded memory; results are reproducible for the same ``seed``.

    ``trace`` records the frames for time-sequence graphs. With a ``selection`` all frames are followed, but only
    selected frames are counted, and selected messages measured.
    """

    def __init__(self, seed: int = 0, trace: FrameTrace | None = None, selection: Selection | None = None) -> None:
        self.trace = trace
        limited = selection is not None and selection.is_limited
        self._selector = MessageSelector(selection) if selection is not None and limited else None
        self._flights: dict[int, list[tuple[int, int, int, int]]] = {}
        """Blocks in flight of messages that may still be selected, by message."""
        facts = selection is not None and selection.uses_facts
        # Selections and graphs need messages as objects.
        self._rows = trace is None and not limited
        self.follower = Follower(flights=True, marks=True, facts=facts, rows=self._rows)
        self.pairs = PairTable()
        self.gaps = GapHistogram()
        self.line = TimeLine()
        self.iterations = Lengths(seed)
        """Half the time from a ping to the next one, by length."""
        self.answers = Lengths(seed)
        """Half the time from a ping to the end of its pong, by length."""
        self.transfers = Lengths(seed)
        """Time from the first frame of a message to its last byte, for messages of several frames."""
        self.ack_delays = {"piggyback": Samples(seed), "liback": Samples(seed)}
        """Time from the last byte of a message to its acknowledgement."""
        self.notify_delay = Samples(seed)
        """Time from the last byte of a large message to its NOTIFY."""
        self.resend_delay = Samples(seed)
        """Time from one transmission of a message to the next."""
        self.re_request_delays = {cause: Samples(seed) for cause in ("early", "timer", "unknown")}
        """Time from one request for a block to the next, by its cause (R-PUL-07, R-PUL-08)."""
        self.frames = 0
        """Number of MXoE frames."""
        self.messages = 0
        self.kinds: Counter[str] = Counter()
        self.message_bytes = 0
        """Bytes of the messages that were received."""
        self.dialects: dict[Dialect, int] = {}
        """Number of frames by dialect, of hosts whose dialect is known."""
        self.first_ns: int | None = None
        self.last_ns = 0
        self._order = GroupSorter(NO_ROWS)
        self._trips = RoundTrips()

    def observe(self, decoded: DecodedBatch, start_ns: int | None = None) -> None:
        """Process the next batch; ``start_ns`` is the time of the capture's first frame."""
        if not len(decoded):
            return
        messages = self.follower.observe(decoded)
        marks = self.follower.take_marks(decoded)
        if self.trace is not None:
            self.trace.observe(decoded, marks)
        if self._selector is not None:
            self._selector.observe(decoded, lambda _: marks, start_ns)
            places = self._selector.selection.places(decoded, marks, start_ns)
            self._measure(decoded.select(places), marks.select(places))
        else:
            self._measure(decoded, marks)
        self._take(messages)

    def _measure(self, decoded: DecodedBatch, marks: FrameMarks) -> None:
        """Measure the selected frames of a batch."""
        if not len(decoded):
            return
        self.frames += len(decoded)
        times = decoded.batch.timestamp_ns
        if self.first_ns is None:
            self.first_ns = int(times[0])
            self.line.begin(self.first_ns)
        self.last_ns = max(self.last_ns, int(times.max()))
        self.gaps.observe(decoded.assignment.source, times)
        self._count_dialects(decoded)
        self.pairs.observe(decoded, marks)

    def finish(self) -> None:
        """End the capture."""
        self._take(self.follower.finish(), all_left=True)

    @property
    def conversations(self) -> list[Conversation]:
        """The conversations between the selected endpoints."""
        found = self.follower.conversations
        if self._selector is None:
            return [*found]
        return [each for each in found if self._selector.selection.takes_flow(each.flows[0])]

    @property
    def repeated_frames(self) -> int:
        """Number of repeated frames: retransmitted messages, re-requested data, and re-requests."""
        if self._selector is not None:
            totals = [*chain.from_iterable(each.totals for each in self.pairs.by_hosts())]
            return sum(each.retransmissions + each.re_requests for each in totals)
        return self.follower.repetitions[0]

    @property
    def duplicate_frames(self) -> int:
        """Number of duplicates made by the network or by the capture."""
        if self._selector is not None:
            return sum(each.total("duplicates") for each in self.pairs.by_hosts())
        return self.follower.repetitions[1]

    @property
    def most_outstanding(self) -> int:
        """Maximum number of unacknowledged numbered packets in one direction at a time."""
        if self._selector is None:
            return self.follower.most_outstanding
        flows = (flow for each in self.conversations for flow in each.flows)
        return max((flow.most_outstanding for flow in flows), default=0)

    @property
    def dialect(self) -> Dialect | None:
        """The dialect of most frames; None if none is known."""
        return max(self.dialects, key=lambda each: self.dialects[each], default=None)

    def _count_dialects(self, decoded: DecodedBatch) -> None:
        assignment = decoded.assignment
        counts = np.bincount(assignment.which[assignment.decided], minlength=len(assignment.dialects))
        for dialect, count in zip(assignment.dialects, counts.tolist(), strict=False):
            if count:
                self.dialects[dialect] = self.dialects.get(dialect, 0) + count

    def _take(self, completed: list[CapturedMessage], *, all_left: bool = False) -> None:
        rows = self.follower.take_rows() if self._rows else []
        found = self._order.put([*rows, MessageGroup(NO_ROWS, messages=completed)], all_left=all_left)
        for start, end, size, frames, number in self.follower.take_flights():
            self._flights.setdefault(number, []).append((start, end, size, frames))
        if self._selector is not None:
            found.messages = self._selected(found.messages)
        if self.trace is not None:
            self.trace.take(found.messages)
        measured = MeasuredMessages.of(found)
        self.pairs.take(measured)
        self._measure_messages(measured)
        repeats: list[int] = []
        for message in found.messages:
            repeats += self._remarkable(message)
        acked = ~measured["pulled"] & (measured["ack_ns"] != UNKNOWN) & (measured["length"] != UNKNOWN)
        flights = np.stack([measured[name][acked] for name in ("first_ns", "ack_ns", "length", "frames")], axis=1)
        if self._selector is None:
            # With a selection, blocks wait until their message is known to be selected.
            blocks = np.array([*chain.from_iterable(self._flights.values())], np.int64).reshape(-1, 4)
            flights = np.concatenate([flights, blocks])
            self._flights.clear()
        self.line.add(flights)
        self.line.repeat(np.array(repeats, np.int64))

    def _selected(self, messages: Iterable[CapturedMessage]) -> list[CapturedMessage]:
        """The selected ones of some messages; notes their blocks in flight."""
        assert self._selector is not None
        selected = []
        for message in messages:
            flights = self._flights.pop(message.number, [])
            if self._selector.takes(message):
                selected.append(message)
                self.line.add(np.array(flights, np.int64).reshape(-1, 4))
        return selected

    def _measure_messages(self, messages: MeasuredMessages) -> None:
        """Count messages, and take the durations that any message may have."""
        length, complete_ns, ack_ns = (messages[name] for name in ("length", "complete_ns", "ack_ns"))
        self.messages += len(length)
        for kind, members in in_order(messages["kind"]):
            self.kinds[KINDS[kind]] += len(members)
        known = length != UNKNOWN
        self.message_bytes += int(length[known & messages["received"]].sum())
        complete = known & (complete_ns != UNKNOWN)
        acked = complete & (ack_ns >= complete_ns) & ~messages["pulled"] & ~messages["repeated"]
        for how, chosen in (("liback", messages["liback"]), ("piggyback", ~messages["liback"])):
            self.ack_delays[how].extend((ack_ns - complete_ns)[acked & chosen])
        took = complete_ns - messages["first_ns"]
        transferred = complete & (length > 0) & (took > 0) & ~messages["half_seen"]
        self.transfers.extend(length[transferred], took[transferred])
        self._trips.take(messages, self.iterations, self.answers)

    def _remarkable(self, message: CapturedMessage) -> Iterator[int]:
        """Take the durations that only large and retransmitted messages have; yield the times of repetitions."""
        pull, complete_ns = message.pull, message.complete_ns
        for resend in message.resends:
            self.resend_delay.add(resend.after_ns)
            yield resend.time_ns
        if pull is None:
            return
        for request in pull.requests:
            self.re_request_delays[request.cause].add(request.after_ns)
            yield request.time_ns
        notice = pull.notice
        if notice is not None and complete_ns is not None and message.length and notice.first_ns >= complete_ns:
            self.notify_delay.add(notice.first_ns - complete_ns)
