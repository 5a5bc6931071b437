"""Conversations as JSON and as tables: pairs of endpoints with their sessions, connects and totals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mxwire.analysis.conversations import Connect, Conversation, Follower
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Heading, Paragraph, columns_of, tabulate
from mxwire.report.messages import COOKED
from mxwire.report.result import Result, result
from mxwire.report.times import seconds_text
from mxwire.wire.enums import ConnectStatus
from mxwire.words import count_of

_KINDS: Final = ("TINY", "SMALL", "MEDIUM", "RNDV")
_SIDES: Final = columns_of(
    "##, `host, #endpoint|ep, `session, #frames, #bytes, #TINY, #SMALL, #MEDIUM|MED, #RNDV, #retransmits|rtx, "
    "#duplicates|dup, #acks alone|acks, #nacks"
)
_CONNECTS: Final = columns_of("##, #seconds, `initiator, #endpoint, #number, `key, #requests, answer, #ms")


# Results


@result()
class ConversationSide(Result):
    """One endpoint of a conversation, and what it sent."""

    host: str | None
    name: str | None
    endpoint: int | None
    session: int | None
    frames: int
    bytes: int
    """Bytes on the wire."""
    messages: dict[str, int]
    message_bytes: int
    retransmissions: int
    re_requests: int
    duplicates: int
    libacks: int
    """Frames that only acknowledge."""
    nacks: int
    late: int
    """Late duplicates of completed messages."""
    missing: int
    """Numbered packets that were not captured."""

    @classmethod
    def of(cls, conversation: Conversation, side: int, follower: Follower) -> ConversationSide:
        """Describe a side, 0 or 1."""
        flow = conversation.flows[side]
        return cls.copied(
            flow,
            host=mac_text(flow.address) if flow.address else None,
            name=follower.names.get(flow.address),
            session=conversation.session(side),
            messages={kind: flow.messages[kind] for kind in _KINDS},
        )


@result()
class ConnectSummary(Result):
    """A connect: its request and the answer."""

    side: int
    number: int
    key: int | None
    """The key that the request presents."""
    frame: int
    time_ns: int
    requests: int
    replies: int
    answer: str | None
    """The status, or the reason of a nack; null without an answer."""
    answered_ns: int | None

    @classmethod
    def of(cls, connect: Connect) -> ConnectSummary:
        """Describe a connect."""
        answer, at = connect_answer(connect)
        return cls.copied(connect, answer=None if at is None else answer, answered_ns=at)


@result()
class ConversationSummary(Result):
    """A conversation: its endpoints and connects."""

    conversation: int
    start_ns: int
    end_ns: int
    endpoints: list[ConversationSide]
    connects: list[ConnectSummary]
    connect_count: int
    restarted: bool
    half_seen: list[str]
    """The parts that the capture lacks."""

    @classmethod
    def of(cls, conversation: Conversation, follower: Follower) -> ConversationSummary:
        """Describe a conversation."""
        return cls.copied(
            conversation,
            conversation=conversation.number,
            start_ns=conversation.first_ns,
            end_ns=conversation.last_ns,
            endpoints=[ConversationSide.of(conversation, side, follower) for side in (0, 1)],
            connects=[ConnectSummary.of(each) for each in conversation.connects],
        )


@result()
class ListedConversations(Result):
    """The conversations of a capture."""

    file: str
    start_ns: int
    conversations: list[ConversationSummary]
    messages: int
    forgotten: int
    """Number of earlier conversations that are not listed, to limit memory."""
    cooked: bool


def connect_answer(connect: Connect) -> tuple[str, int | None]:
    """The outcome of a connect (status, nack reason or ``none``), and its time in nanoseconds."""
    if connect.answered_ns is not None:
        known = connect.status in tuple(ConnectStatus)
        status = ConnectStatus(connect.status or 0).name if known else f"status {connect.status}"
        return status, connect.answered_ns
    if connect.nack is not None:
        return f"nack {connect.nack.reason}", connect.nack.time_ns
    return "none", None


# Blocks


def conversation_blocks(listed: ListedConversations) -> list[Block]:
    """Conversations as blocks: one table row per side (what it sent), their connects, and remarks."""
    shown: list[Block] = [Heading(listed.file)]
    chosen = listed.conversations
    if not chosen:
        return [*shown, Paragraph("No conversation.")]
    rows = (_side_row(each, side) for each in chosen for side in (0, 1))
    connects = (_connect_row(each, connect, listed.start_ns) for each in chosen for connect in each.connects)
    shown += [tabulate(_SIDES, rows), Heading("Connects", 3), tabulate(_CONNECTS, connects)]
    remarks = [(each.conversation, text) for each in chosen for text in _remarks(each)]
    if remarks:
        shown += [Heading("Remarks", 3), tabulate("##, ~remark", remarks)]
    if listed.forgotten:
        forgotten = count_of(listed.forgotten, "earlier conversation")
        shown.append(Paragraph(f"Not shown, to limit memory: {forgotten}."))
    if listed.cooked:
        shown.append(Paragraph(COOKED))
    return shown


def _known(value: Any) -> str:
    return "?" if value is None else str(value)


def _hexadecimal(value: int | None) -> str:
    return "?" if value is None else f"0x{value:08x}"


def _side_row(conversation: ConversationSummary, place: int) -> tuple[object, ...]:
    side = conversation.endpoints[place]
    return (
        "" if place else conversation.conversation,
        _known(side.host),
        _known(side.endpoint),
        _hexadecimal(side.session),
        side.frames,
        side.bytes,
        *side.messages.values(),
        side.retransmissions + side.re_requests,
        side.duplicates,
        side.libacks,
        side.nacks,
    )


def _connect_row(conversation: ConversationSummary, connect: ConnectSummary, start_ns: int) -> tuple[object, ...]:
    initiator, at = conversation.endpoints[connect.side], connect.answered_ns
    return (
        conversation.conversation,
        seconds_text(connect.time_ns - start_ns).strip(),
        _known(initiator.host),
        _known(initiator.endpoint),
        connect.number,
        _hexadecimal(connect.key),
        connect.requests,
        connect.answer or "none",
        "-" if at is None or not connect.requests else f"{(at - connect.time_ns) / 1e6:.3f}",
    )


def _remarks(conversation: ConversationSummary) -> Iterator[str]:
    yield from conversation.half_seen
    if conversation.restarted:
        yield "ended when one of its endpoints was reopened"
    late = sum(side.late for side in conversation.endpoints)
    if late:
        yield f"{count_of(late, 'late duplicate')} of completed messages"
    if conversation.connect_count > len(conversation.connects):
        yield f"{count_of(conversation.connect_count - len(conversation.connects), 'more connect')}"
