"""Follow all conversations of a capture, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.acks import LibackTracker, NackTracker
from mxwire.analysis.conversations.connects import ConnectTracker
from mxwire.analysis.conversations.frame_marks import FrameMarks
from mxwire.analysis.conversations.message import CapturedMessage
from mxwire.analysis.conversations.message_rows import MessageGroup
from mxwire.analysis.conversations.numbered_packets import NumberedTracker
from mxwire.analysis.conversations.partners import Conversation
from mxwire.analysis.conversations.plain_run import PlainTracker
from mxwire.analysis.conversations.pulls import PullTracker
from mxwire.analysis.conversations.rows import FIRST_REPLY, BatchRows, Handler, Row, replies_of
from mxwire.analysis.conversations.state import LINGERING, FollowerState, MessageWatch
from mxwire.wire.checks import Reason
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.encapsulation import Located
from mxwire.wire.enums import hostname_text

NAMES: Final = 1 << 14
"""Maximum number of host names that are remembered."""


class Follower:
    """Tracker of all conversations, and of every message from its first frame to its last.

    A message is returned once it is complete and no duplicates of its frames are expected, or at the end of the
    capture. Memory grows with the conversations and the messages in flight, not with the length of the capture, and
    both are bounded. The result does not depend on how the capture is cut into batches. With ``marks``, or a ``watch``
    for one message, the follower marks every frame (:meth:`take_marks`); without ``messages`` it may omit messages from
    its result; with ``flights`` it records when the blocks of large messages were in flight; with ``facts`` it stores
    the properties by which marked frames are selected; with ``rows`` most plain messages are results of
    :meth:`take_rows` instead. ``own`` returns the mask of the frames that belong to this part of a divided capture.
    """

    def __init__(
        self,
        watch: MessageWatch | None = None,
        *,
        flights: bool = False,
        marks: bool = False,
        facts: bool = False,
        messages: bool = True,
        rows: bool = False,
        own: Callable[[Located], NDArray[np.bool_]] | None = None,
    ) -> None:
        self._own = own
        self._state = FollowerState(watch, flights=flights, marks=marks, facts=facts)
        self._plain = PlainTracker(
            self._state, messages=(messages and not rows) or facts or watch is not None, rows=rows
        )
        self._pulls = PullTracker(self._state)
        self._decoded: DecodedBatch | None = None
        """The batch that is being followed."""
        self.frames = 0
        """Number of MXoE frames examined."""
        self.malformed = 0
        """Number of malformed frames, which are not followed."""
        self.cooked = False
        """True if frames lack the address of their destination, so that conversations cannot be followed."""
        numbered, connecting = NumberedTracker(self._state), ConnectTracker(self._state)
        self._handlers: dict[str, Handler] = {
            "tiny": numbered.tiny,
            "small": numbered.small,
            "medium": numbered.medium,
            "rndv": numbered.rndv,
            "notify": numbered.notify,
            "truc": LibackTracker(self._state).truc,
            "pull": self._pulls.pull,
            "connect_request": connecting.request,
            "connect_reply": connecting.reply,
            "nack_lib": NackTracker(self._state).nack_lib,
            "nack_mcp": self._pulls.nack_mcp,
            "host_reply": self._host_reply,
            FIRST_REPLY: self._pulls.first_reply,
        }

    def observe(self, decoded: DecodedBatch) -> list[CapturedMessage]:
        """Process a batch; return the completed messages in order of completion."""
        self.frames += len(decoded)
        if self._state.marks is not None:
            self._state.marks.begin(len(decoded))
        if not len(decoded):
            return []
        malformed = decoded.columns.reason != Reason.NONE
        self.malformed += int((malformed if self._own is None else malformed & self._own(decoded.located)).sum())
        self.cooked = self.cooked or not decoded.located.has_destination
        self._decoded = decoded
        unknown = self._pulls.begin(replies_of(decoded), decoded.assignment.dialects)
        state = self._state
        lingering = state.lingering
        rows = BatchRows(decoded, self._handlers, unknown)
        for start, end in self._plain.others(rows, len(decoded)):
            for row in rows.rows(start, end):
                state.place = row[0]
                # Time does not go back, although the frames of a capture may be out of order.
                if row[2] > state.now_ns:
                    state.now_ns = row[2]
                if state.now_ns > state.due_ns or len(lingering) > LINGERING:
                    state.tick()
                row[1](row)
        self._pulls.end()
        self._decoded = None
        return self._take_out()

    def wait_until(self, now_ns: int) -> list[CapturedMessage]:
        """Advance the time to ``now_ns``, past all earlier frames; return the messages that waited long enough."""
        state = self._state
        self._plain.create_messages()
        if now_ns > state.due_ns:
            state.now_ns = max(state.now_ns, now_ns)
            self._pulls.begin({}, ())
            state.tick()
        return self._take_out()

    def finish(self) -> list[CapturedMessage]:
        """End the capture; return the remaining messages."""
        self._plain.finish()
        self._pulls.begin({}, ())
        self._state.report_all()
        return self._take_out()

    def take_marks(self, decoded: DecodedBatch) -> FrameMarks:
        """Return the marks of ``decoded``, the batch observed last; requires a follower with ``marks``."""
        assert self._state.marks is not None
        return self._state.marks.take(decoded)

    def take_rows(self) -> list[MessageGroup]:
        """Return the messages that were reported as rows since the previous call; requires a follower with ``rows``."""
        return self._plain.take_rows()

    def take_flights(self) -> list[tuple[int, int, int, int, int]]:
        """Return the blocks of large messages that were completed since the previous call: the times of the request and
        of the last reply in nanoseconds, bytes and frames per block, and the number of the message."""
        taken = self._state.flights or []
        if taken:
            self._state.flights = []
        return taken

    @property
    def conversations(self) -> Iterable[Conversation]:
        """The conversations in order of appearance; if there are too many, the oldest are forgotten."""
        self._plain.create_messages()
        return self._state.conversations.values()

    @property
    def repetitions(self) -> tuple[int, int]:
        """Number of repeated frames (retransmitted messages, re-requested data, and re-requests), and of duplicates."""
        # Runs count them in the objects, which therefore need not be written.
        flows = [flow for each in self._state.conversations.values() for flow in each.flows]
        return sum(flow.retransmissions + flow.re_requests for flow in flows), sum(flow.duplicates for flow in flows)

    @property
    def most_outstanding(self) -> int:
        """Highest number of sequence numbers that were unacknowledged at a time in a direction of a conversation."""
        # The table also has the directions of conversations that were forgotten.
        conversations = self.conversations if self.forgotten_conversations else self._state.conversations.values()
        flows = (flow for each in conversations for flow in each.flows)
        return max([self._plain.most_outstanding, *(flow.most_outstanding for flow in flows)])

    @property
    def has_strays(self) -> bool:
        """True if the requests for some large messages were not captured."""
        return any(each.is_stray for each in self._state.conversations.values())

    @property
    def forgotten_conversations(self) -> int:
        """Number of conversations forgotten to bound memory."""
        return self._state.conversation_count - len(self._state.conversations)

    @property
    def evicted(self) -> int:
        """Number of messages reported unfinished to bound memory."""
        return self._state.evicted

    @property
    def unfinished(self) -> Collection[CapturedMessage]:
        """Unfinished messages, the oldest first."""
        self._plain.create_messages()
        return self._state.in_flight.values()

    @property
    def messages(self) -> int:
        """Number of messages that have appeared."""
        return self._state.message_count

    @property
    def names(self) -> dict[int, str]:
        """Host names by Ethernet address, from HOST_REPLYs."""
        return self._state.names

    def _take_out(self) -> list[CapturedMessage]:
        taken, self._state.out = self._state.out, []
        return taken

    def _host_reply(self, row: Row) -> None:
        from mxwire.wire.packets import HostReply

        assert self._decoded is not None
        # Texts are in no column, and names are rare enough to decode their frames one by one.
        frame = self._decoded.frame(row[0])
        names = self._state.names
        source = row[5][0]
        if isinstance(frame, HostReply) and (source in names or len(names) < NAMES):
            names[source] = hostname_text(frame.hostname)
