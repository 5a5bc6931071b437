"""State of the follower: conversations, messages, and the queue from which finished messages are reported."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

import numpy as np

from mxwire.analysis.conversations.frame_marks import ROLES, FrameMarks, MarkRecorder, MessageFacts, Role
from mxwire.analysis.conversations.message import (
    FLYING,
    REPORTED,
    SETTLED,
    CapturedMessage,
    Kind,
    MessagePull,
    Notice,
    NumberedEntry,
)
from mxwire.analysis.conversations.message_rows import CAPTURE_ENDS
from mxwire.analysis.conversations.partners import OPENINGS_KEPT, Conversation, EndpointDirection, Flow, PartnerPair
from mxwire.analysis.conversations.rows import DirectionKey
from mxwire.analysis.conversations.streams import KEPT_BEHIND, KEPT_IN_ALL, KEPT_LEAST
from mxwire.rules import CAPTURE
from mxwire.rules.vantage import pull_timer_least, resend_delay_least, slack
from mxwire.words import count_of

RESEND_NS: Final = resend_delay_least(CAPTURE)
"""Frames repeated sooner than this are duplicates, not retransmissions (R-RTX-01)."""
PULL_TIMER_NS: Final = pull_timer_least(CAPTURE)
REORDER_NS: Final = slack(CAPTURE)
"""Time within which the frames of a capture may be out of order."""
LINGER_NS: Final = 1_200_000_000
"""Time for which a finished message waits for late duplicates of its frames: two resend delays."""
LINGERING: Final = 8192
"""Maximum number of messages that wait for late duplicates, of all conversations."""
ROOM: Final = 512
"""Number of messages reported at once when too many wait."""
NEVER: Final = 1 << 63
IN_FLIGHT: Final = 1 << 16
"""Maximum number of unfinished messages of all conversations; beyond it the oldest are reported unfinished."""
REMEMBERED: Final = 1 << 17
"""Maximum number of settled messages whose facts are remembered for their late frames."""
CONVERSATIONS: Final = 1 << 14
"""Maximum number of conversations that are remembered."""
ANNOUNCED: Final = 256
"""Maximum number of large messages per direction that can be found by their regions."""


class MessageWatch:
    """Selector of the frames of one message, by message number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.message: CapturedMessage | None = None
        """The message; None until it appears."""

    def frames(self, marks: FrameMarks) -> list[tuple[int, Role]]:
        """Return the frames of the message in a batch, in order, as places and roles.

        A NOTIFY that acknowledges its own message is a NOTIFY.
        """
        roles = dict.fromkeys(marks.acks[marks.acks[:, 1] == self.number, 0].tolist(), Role.ACK)
        for place in np.flatnonzero(marks.message == self.number).tolist():
            role = ROLES[marks.role[place]]
            if role is not None and place not in marks.late:
                roles[place] = role
        return sorted(roles.items())


class FollowerState:
    """All state that is kept while a capture is followed."""

    def __init__(
        self, watch: MessageWatch | None, *, flights: bool = False, marks: bool = False, facts: bool = False
    ) -> None:
        self.watch = watch
        self.marks = MarkRecorder(self.facts) if marks or watch is not None else None
        """The recorder of marks; None if frames are not marked."""
        # Removing the first item of a dict takes time in proportion to those removed before it.
        self._settled: OrderedDict[int, tuple[str, int | None, Flow]] | None = OrderedDict() if facts else None
        """Kind, match information and flow of the latest settled messages; None if not kept."""
        self.flights: list[tuple[int, int, int, int, int]] | None = [] if flights else None
        """Pulled blocks: times of the request and of the last reply in nanoseconds, bytes and frames per block, and the
        number of the message; None if not recorded."""
        self.directions: dict[DirectionKey, EndpointDirection] = {}
        self.partners: OrderedDict[DirectionKey, PartnerPair] = OrderedDict()
        self.conversations: OrderedDict[int, Conversation] = OrderedDict()
        """The conversations by number."""
        self.conversation_count = 0
        self.names: dict[int, str] = {}
        """Host names by Ethernet address."""
        self.in_flight: dict[int, CapturedMessage] = {}
        self.lingering: deque[CapturedMessage] = deque()
        """Settled messages in order of settlement, waiting for late duplicates."""
        self.out: list[CapturedMessage] = []
        """Messages that are ready to be reported."""
        self.message_count = 0
        self.evicted = 0
        """Number of messages that were reported unfinished to bound memory."""
        self.place = 0
        """The place of the current frame in the batch."""
        self.now_ns = 0
        """The latest time seen."""
        self.due_ns = NEVER
        """Time at which :meth:`tick` is due."""
        self.take_replies: Callable[[CapturedMessage], None] = lambda message: None
        """Callback that processes the replies to a message's pulls that precede the current frame."""

    @property
    def kept_behind(self) -> int:
        """Number of messages of a stream that are remembered after they were reported."""
        # Two streams per conversation, and at least one.
        share = KEPT_IN_ALL // (2 * len(self.conversations) + 1)
        return KEPT_BEHIND if share >= KEPT_BEHIND else max(share, min(KEPT_LEAST, KEPT_BEHIND))

    # Conversations

    def meet(self, key: DirectionKey, time_ns: int) -> EndpointDirection:
        """Begin the first conversation between two endpoint numbers; return the direction of ``key``."""
        left, destination = key
        source, source_endpoint, destination_endpoint = left >> 16, left >> 8 & 0xFF, left & 0xFF
        partners = PartnerPair(((source, source_endpoint), (destination, destination_endpoint)))
        direction, back = EndpointDirection(partners, 0), EndpointDirection(partners, 1)
        self.directions[destination << 16 | destination_endpoint << 8 | source_endpoint, source] = back
        self.directions[key] = direction
        self.partners[key] = partners
        self.begin(partners, time_ns)
        if len(self.partners) > CONVERSATIONS:
            self._forget_partners()
        return direction

    def _forget_partners(self) -> None:
        _, partners = self.partners.popitem(last=False)
        for key in self._keys(partners):
            self.directions.pop(key, None)
        for each in partners.conversations:
            self._close(each)

    def begin(
        self, partners: PartnerPair, time_ns: int, sessions: tuple[int | None, int | None] = (None, None)
    ) -> None:
        """Begin a conversation; ``sessions`` are those of the destinations of flow 0 and flow 1."""
        if partners.conversations:
            former = partners.conversations[-1]
            former.restarted = True
            self._close(former, abandoned=True)
        conversation = self.open(partners.ends, time_ns)
        for flow, session in zip(conversation.flows, sessions, strict=True):
            flow.session = session
        partners.conversations.append(conversation)
        del partners.conversations[:-OPENINGS_KEPT]
        for key in self._keys(partners):
            direction = self.directions.get(key)
            if direction is not None:
                direction.flow = conversation.flows[direction.side]

    def _keys(self, partners: PartnerPair) -> tuple[DirectionKey, DirectionKey]:
        (source, one), (destination, other) = partners.ends
        one, other = one or 0, other or 0
        return (source << 16 | one << 8 | other, destination), (destination << 16 | other << 8 | one, source)

    def open(self, ends: tuple[tuple[int, int | None], tuple[int, int | None]], time_ns: int) -> Conversation:
        """Create a conversation between two endpoints and register it by its number."""
        self.conversation_count += 1
        conversation = Conversation(self.conversation_count, time_ns, time_ns)
        one, other = Flow(conversation, 0, *ends[0]), Flow(conversation, 1, *ends[1])
        one.back, other.back = other, one
        conversation.flows = one, other
        self.conversations[conversation.number] = conversation
        if len(self.conversations) > CONVERSATIONS:
            self._close(self.conversations.popitem(last=False)[1])
        return conversation

    def flow_to(self, direction: EndpointDirection, session: int, time_ns: int) -> Flow:
        """Return the flow to the receiver with ``session``; begin a conversation if there is none."""
        flow = direction.find(session)
        if flow is None:
            latest = direction.flow
            towards = (session, latest.back.session) if direction.side == 0 else (latest.back.session, session)
            self.begin(direction.partners, time_ns, towards)
            flow = direction.flow
        return flow

    def flow(self, key: DirectionKey, session: int, time_ns: int, wire_length: int) -> Flow:
        """Count a frame that names its destination's session; return its flow."""
        direction = self.directions.get(key) or self.meet(key, time_ns)
        flow = direction.flow
        # Nearly all frames belong to the latest opening.
        if flow.session != session:
            flow = self.flow_to(direction, session, time_ns)
        flow.count(time_ns, wire_length)
        return flow

    def _close(self, conversation: Conversation, *, abandoned: bool = False) -> None:
        """End the streams of a conversation."""
        for flow in conversation.flows:
            if flow.stream is not None:
                self.end_stream(flow, abandoned=abandoned)

    def end_stream(self, flow: Flow, *, abandoned: bool) -> None:
        """End the stream of a flow, and settle its unfinished messages."""
        assert flow.stream is not None
        for entry in flow.stream.entries.values():
            message = entry.message if isinstance(entry, Notice) else entry
            assert isinstance(message, CapturedMessage)
            # The message that a NOTIFY ends is one of the other direction, whose sender has abandoned nothing.
            if message.state == FLYING and (isinstance(entry, CapturedMessage) or not abandoned):
                if abandoned and message.abandoned_ns is None:
                    message.abandoned_ns = self.now_ns
                self.settle(message)

    # Messages

    def create(self, flow: Flow, kind: Kind, position: int, length: int | None, match: int | None) -> CapturedMessage:
        """Create a message at its first appearance."""
        self.message_count += 1
        message = CapturedMessage(position, self.now_ns, 0, self.message_count, flow, kind, length, match)
        self.in_flight[message.number] = message
        flow.messages[kind] += 1
        if length is not None:
            flow.message_bytes += length
        watch = self.watch
        if watch is not None and watch.number == message.number:
            watch.message = message
        if len(self.in_flight) > IN_FLIGHT:
            # Messages are entered in the order of their numbers.
            oldest = self.in_flight[next(iter(self.in_flight))]
            oldest.lacks("too many messages at a time: no longer followed")
            self.evicted += 1
            self.settle(oldest)
        return message

    def adopt(self, flow: Flow, pull: MessagePull) -> CapturedMessage:
        """Create a large message whose announcement was not seen."""
        message = self.create(flow, "RNDV", -1, None, None)
        message.transmissions = 0
        message.pull = pull
        return message

    def withdraw(self, message: CapturedMessage) -> None:
        """Remove a message that turned out to be part of another one."""
        self.in_flight.pop(message.number, None)
        message.state = REPORTED
        message.flow.messages[message.kind] -= 1

    def note_late(self, flow: Flow, message: CapturedMessage, role: int, flags: int = 0) -> None:
        """Count and mark the current frame, which belongs to a message that has already been reported."""
        flow.late += 1
        if self.marks is not None:
            self.marks.mark_late(self.place, message.number, role, flags)

    def settle(self, message: CapturedMessage) -> None:
        """Settle a message that is complete, or never will be; wait for late duplicates of its frames."""
        if message.state == FLYING:
            message.state = SETTLED
            self.in_flight.pop(message.number, None)
            message.settled_ns = self.now_ns
            self.lingering.append(message)
            if self._settled is not None:
                self._settled[message.number] = message.kind, message.match, message.flow
                if len(self._settled) > REMEMBERED:
                    self._settled.popitem(last=False)
            if self.due_ns == NEVER:
                self.due_ns = self.now_ns + LINGER_NS

    def facts(self, number: int) -> MessageFacts | None:
        """Return the facts of a message; None if there is none with this number, or it ended long ago."""
        message = self.in_flight.get(number)
        if message is not None:
            found: tuple[str, int | None, Flow] = message.kind, message.match, message.flow
        elif self._settled is not None and number in self._settled:
            found = self._settled[number]
        else:
            return None
        kind, match, flow = found
        return MessageFacts(kind, match, flow.address, flow.endpoint, flow.back.endpoint)

    def tick(self) -> None:
        """Report the messages that have waited long enough; if too many are waiting, also report the oldest."""
        lingering = self.lingering
        # Several at a time, or a queue that stays full would cost a call per frame.
        room = LINGERING - ROOM if len(lingering) > LINGERING else LINGERING
        while lingering and (lingering[0].settled_ns + LINGER_NS < self.now_ns or len(lingering) > room):
            self.report(lingering.popleft())
        self.due_ns = lingering[0].settled_ns + LINGER_NS if lingering else NEVER

    def report(self, message: CapturedMessage, *, forget: bool = True, taken: bool = False) -> None:
        """Report a message that waited for late duplicates, unless it was ``taken`` before; ``forget`` schedules its
        entries for removal."""
        if message.pull is not None:
            # From now on its replies are late.
            self.take_replies(message)
        message.state = REPORTED
        note_missing(message)
        if forget:
            self._forget(message.flow, message)
        if message.pull is not None and message.pull.notice is not None:
            # The NOTIFY is a numbered packet of the other direction.
            self._forget(message.flow.back, message.pull.notice)
        if not taken:
            self.out.append(message)

    def _forget(self, flow: Flow, entry: NumberedEntry) -> None:
        for stream in (flow.stream, flow.former):
            if stream is not None and stream.entries.get(entry.position) is entry:
                stream.forget_one(entry.position, self.kept_behind)
                return

    def report_all(self) -> None:
        """Report all messages at the end of the capture."""
        for message in [*self.in_flight.values()]:
            # A large message is acked, and still unfinished, if only its announcement was acknowledged.
            if message.sender in ("open", "acked"):
                message.lacks(CAPTURE_ENDS)
            self.settle(message)
        while self.lingering:
            self.report(self.lingering.popleft())


def note_missing(message: CapturedMessage) -> None:
    """Record the parts of a message that the capture lacks, before it is reported."""
    if not (message.flow.frames and message.flow.back.frames):
        message.lacks("the other direction was not seen")
    if message.pull is None:
        # A sender transmits whole messages, so a refused one had more frames as well.
        if message.complete_ns is None and (message.receiver == "received" or message.nack is not None):
            message.lacks(f"{count_of((message.length or 0) - message.bytes_seen, 'byte')} not seen")
    else:
        _note_missing_of_pull(message, message.pull)
    if message.ack is not None and message.ack.time_ns < message.first_ns:
        message.lacks("acknowledged before it was seen")


def _note_missing_of_pull(message: CapturedMessage, pull: MessagePull) -> None:
    if message.position < 0:
        message.lacks("its announcement was not seen")
    if pull.replies and not pull.pulls:
        message.lacks("requests for it were not seen")
    notice = pull.notice
    if notice is not None and pull.ranges.total < notice.total_length:
        message.lacks(f"{count_of(notice.total_length - pull.ranges.total, 'byte')} not seen")
