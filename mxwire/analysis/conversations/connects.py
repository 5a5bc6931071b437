"""Tracker of connects, which open conversations (chapter 5 of the rules)."""

from __future__ import annotations

from mxwire.analysis.conversations.partners import Connect, Conversation, EndpointDirection, Flow, note_start
from mxwire.analysis.conversations.rows import Row
from mxwire.analysis.conversations.state import REORDER_NS, FollowerState


class ConnectTracker:
    """Handlers of CONNECT requests and replies."""

    def __init__(self, state: FollowerState) -> None:
        self.state = state

    def request(self, row: Row) -> None:
        """Process a CONNECT request, which announces the session of its sender (R-CON-01)."""
        _, _, time_ns, number, wire_length, key, session, app_key, start, connect_number = row
        direction = self.state.directions.get(key) or self.state.meet(key, time_ns)
        flow = self._opened(direction, session, time_ns)
        flow.count(time_ns, wire_length)
        note_start(flow.back, start)
        conversation = flow.conversation
        known = conversation.connect(flow.side, connect_number)
        if known is None or _is_over(known, app_key, time_ns) or _restarts_numbering(conversation, known):
            conversation.add(Connect(flow.side, connect_number, app_key, number, time_ns))
        else:
            known.requests += 1

    def reply(self, row: Row) -> None:
        """Process a CONNECT reply, which holds the sessions of the responder and of the initiator (R-CON-08)."""
        _, _, time_ns, number, wire_length, key, initiator, responder, start, connect_number, status = row
        direction = self.state.directions.get(key) or self.state.meet(key, time_ns)
        flow = self._answered(direction, initiator, responder, time_ns)
        flow.count(time_ns, wire_length)
        if status == 0:
            note_start(flow.back, start)
        conversation = flow.conversation
        known = conversation.connect(flow.back.side, connect_number)
        if known is None:
            # Its request passed before the capture, or was lost by it.
            known = Connect(flow.back.side, connect_number, None, number, time_ns, requests=0)
            conversation.add(known)
        stream = flow.back.stream
        if stream is not None and status == 0 and not any(each.replies for each in conversation.connects_of(flow.back)):
            # The first connect of an endpoint resets the receive sequence numbers of its partner (R-CON-12).
            stream.rewind(start)
        known.replies += 1
        if known.answered_ns is None:
            known.answered_ns, known.status = time_ns, status

    def _opened(self, direction: EndpointDirection, session: int, time_ns: int) -> Flow:
        """Return the flow from an endpoint that was opened with ``session``; begin a conversation if there is none."""
        for each in reversed(direction.partners.conversations):
            back = each.flows[1 - direction.side]
            # The conversation began with a frame that does not contain this session; it is taken for the same opening.
            if back.session is None:
                back.session = session
            if back.session == session:
                return back.back
        return self._begin(direction, session, None, time_ns)

    def _answered(self, direction: EndpointDirection, initiator: int, responder: int, time_ns: int) -> Flow:
        """Return the flow from the session ``responder`` to the session ``initiator``; begin a conversation if there is
        none.
        """
        for each in reversed(direction.partners.conversations):
            flow = each.flows[direction.side]
            if flow.session not in (None, initiator) or flow.back.session not in (None, responder):
                continue
            flow.session, flow.back.session = initiator, responder
            return flow
        return self._begin(direction, responder, initiator, time_ns)

    def _begin(self, direction: EndpointDirection, own: int, towards: int | None, time_ns: int) -> Flow:
        sessions = (towards, own) if direction.side == 0 else (own, towards)
        self.state.begin(direction.partners, time_ns, sessions)
        return direction.flow


def _is_over(known: Connect, key: int, time_ns: int) -> bool:
    """Return whether a request belongs to a new connect although its number was used before."""
    answered = known.answered_ns
    return (known.key is not None and known.key != key) or (answered is not None and time_ns - answered > REORDER_NS)


def _restarts_numbering(conversation: Conversation, known: Connect) -> bool:
    """Return whether numbering restarted at 0, which shows that the sender forgot its partner (R-CLS-03)."""
    latest = next(each for each in reversed(conversation.connects) if each.side == known.side)
    return known is not latest and known.number == 0 and known.answered_ns is not None
