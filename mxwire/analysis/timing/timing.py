"""Measure durations while a capture is followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Final

import numpy as np

from mxwire.analysis.conversations import CapturedMessage, Conversation, Follower
from mxwire.analysis.conversations.frame_marks import FrameMarks
from mxwire.analysis.conversations.message import MessageSorter
from mxwire.analysis.selection import MessageSelector, Selection
from mxwire.analysis.time_sequence import FrameTrace
from mxwire.analysis.timing.line import TimeLine
from mxwire.analysis.timing.pairs import PairTable
from mxwire.analysis.timing.round_trips import Lengths, RoundTrips
from mxwire.analysis.timing.samples import GapHistogram, Samples
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import Dialect

CONVERSATIONS: Final = 4096
"""Maximum number of conversations that are examined for ping-pong."""


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
        self.follower = Follower(flights=True, marks=True, facts=facts)
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
        self._order = MessageSorter()
        self._trips: dict[int, RoundTrips] = {}

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
        self._take(self._order.put(messages))

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
        self._take(self._order.put(self.follower.finish()))
        self._take(self._order.rest())

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
        flows = (flow for each in self.follower.conversations for flow in each.flows)
        return sum(flow.retransmissions + flow.re_requests for flow in flows)

    @property
    def duplicate_frames(self) -> int:
        """Number of duplicates made by the network or by the capture."""
        if self._selector is not None:
            return sum(each.total("duplicates") for each in self.pairs.by_hosts())
        return sum(flow.duplicates for each in self.follower.conversations for flow in each.flows)

    @property
    def most_outstanding(self) -> int:
        """Maximum number of unacknowledged numbered packets in one direction at a time."""
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

    def _take(self, found: Iterable[CapturedMessage]) -> None:
        repeats: list[int] = []
        flights = []
        for start, end, size, frames, number in self.follower.take_flights():
            self._flights.setdefault(number, []).append((start, end, size, frames))
        messages = list(found) if self._selector is None else self._selected(found)
        self.pairs.take(messages)
        if self.trace is not None:
            self.trace.take(messages)
        for message in messages:
            self._message(message)
            repeats += (each.time_ns for each in message.resends)
            if message.pull is not None:
                repeats += (each.time_ns for each in message.pull.requests)
            elif message.ack is not None and message.length is not None:
                frames = message.fragments.bit_count() or 1
                flights.append((message.first_ns, message.ack.time_ns, message.length, frames))
        if self._selector is None:
            flights += chain.from_iterable(self._flights.values())
            self._flights.clear()
        self.line.add(np.array(flights, np.int64).reshape(-1, 4))
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

    def _message(self, message: CapturedMessage) -> None:
        self.messages += 1
        self.kinds[message.kind] += 1
        if message.receiver == "received":
            self.message_bytes += message.length or 0
        for resend in message.resends:
            self.resend_delay.add(resend.after_ns)
        complete, length = message.complete_ns, message.length
        if complete is not None and length is not None:
            self._complete(message, complete, length)
        if message.pull is not None:
            for each in message.pull.requests:
                self.re_request_delays[each.cause].add(each.after_ns)
        conversation = message.flow.conversation.number
        trips = self._trips.get(conversation)
        if trips is None:
            if len(self._trips) >= CONVERSATIONS:
                del self._trips[next(iter(self._trips))]
            trips = self._trips[conversation] = RoundTrips()
        trips.take(message, self.iterations, self.answers)

    def _complete(self, message: CapturedMessage, complete_ns: int, length: int) -> None:
        notice = message.pull.notice if message.pull is not None else None
        if notice is not None and length and notice.first_ns >= complete_ns:
            self.notify_delay.add(notice.first_ns - complete_ns)
        ack = message.ack
        if message.pull is None and ack is not None and ack.time_ns >= complete_ns and not message.retransmissions:
            self.ack_delays[ack.how].add(ack.time_ns - complete_ns)
        if length and complete_ns > message.first_ns and not message.half_seen:
            self.transfers.add(length, complete_ns - message.first_ns)
