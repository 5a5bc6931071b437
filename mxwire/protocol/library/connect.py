"""Connecting: two endpoints exchange their sessions and first sequence numbers (behaviour, section 5)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from mxwire.protocol.counters import Counter
from mxwire.protocol.library.partner import LibraryEndpoint, ListedRequest, Partner, RequestKind
from mxwire.protocol.library.reliability import same_session, session_bits
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import Defect
from mxwire.protocol.state_machine import TransitionTable
from mxwire.protocol.status import EventKind, Status
from mxwire.wire.enums import ConnectStatus, NackType
from mxwire.wire.numbers import FIRST_NUMBER
from mxwire.wire.packets import ConnectReply, ConnectRequest

NACKS: Final[dict[int, Status]] = {
    NackType.BAD_ENDPT: Status.REMOTE_ENDPOINT_BAD_ID,
    NackType.ENDPT_CLOSED: Status.REMOTE_ENDPOINT_CLOSED,
    NackType.BAD_SESSION: Status.REMOTE_ENDPOINT_BAD_SESSION,
}
"""The status of a request that is refused by a NACK_LIB, by its type."""
_INTRODUCED: Final = (Status.SUCCESS, Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY, *NACKS.values())
"""Results of a connect back after which waiting messages are transmitted.

A refused key is harmless, because the partner has stored this endpoint's session anyway (D-2). So is a nack, which may
be a late answer to another packet (R-NAK-06): if it is not, the messages will be nacked too.
"""


class ConnectState(StrEnum):
    """States of a connect."""

    WAITING = "waiting"
    ASKED = "asked"
    DONE = "done"


class ConnectEvent(StrEnum):
    """Events of a connect."""

    EMITTED = "emitted"
    LOCAL = "own node"
    PASSED = "passed to a neighbour"
    DUE = "resend delay over"
    ACCEPTED = "reply: success"
    BAD_KEY = "reply: bad key"
    REFUSED = "nacked or reset"
    CANCEL = "cancelled"


def _emit_first(connect: ConnectCall) -> None:
    _number(connect)
    _emit(connect)


def _pass(connect: ConnectCall, neighbour: Any) -> None:
    _number(connect)
    neighbour.connect(connect)


def _number(connect: ConnectCall) -> None:
    partner = connect.partner
    assert partner is not None
    connect.number = partner.connects
    partner.connects = (partner.connects + 1) & 0xFF
    # After 256 pending connects a number recurs. A reply then cannot be attributed, so the older request ends.
    older = partner.pending_connects.pop(connect.number, None)
    if older is not None:
        older.refuse(Status.NO_RESOURCES)
    partner.pending_connects[connect.number] = connect


def _emit(connect: ConnectCall) -> None:
    """Emit the request; a retransmission has the same number, and the current start number (R-CON-02)."""
    partner = connect.partner
    assert partner is not None
    connect.transmissions += 1
    connect.start = partner.rx_next
    partner.port.emit(
        Counter.SEND_CONNECT_REQUEST,
        ConnectRequest(
            **partner.head(),
            src_dst_peer_index=partner.peer.index,
            src_session_id=connect.endpoint.session,
            app_key=connect.key,
            target_recv_seqnum_start=connect.start,
            connect_seqnum=connect.number,
        ),
    )
    connect.resend_tick = connect.endpoint.resends.sent(connect)
    if connect.endpoint.transmitted is not None:
        connect.endpoint.transmitted.append(connect)


def _end(connect: ConnectCall, status: Status) -> None:
    partner, endpoint = connect.partner, connect.endpoint
    assert partner is not None
    # A newer request may have this number by now, and a reply removes its request before it ends it.
    if partner.pending_connects.get(connect.number) is connect:
        del partner.pending_connects[connect.number]
    if partner.local:
        endpoint.release_sends()
    if connect.own:
        connect.status = status
        endpoint.requests.pop(connect)
        if status in _INTRODUCED:
            partner.introduced = True
            partner.flush()
        return
    connect.finish(status)
    if partner.fwd is None and status is not Status.SUCCESS and not endpoint.connects_to(partner):
        # Without a session, the messages that waited for this answer cannot be transmitted.
        partner.abandon_waiting(Status.REMOTE_ENDPOINT_UNREACHABLE)
    elif partner.waiting or partner.notifies:
        partner.flush()


CONNECT: Final = TransitionTable(
    "connect",
    ConnectState.WAITING,
    (
        (ConnectState.WAITING, ConnectEvent.EMITTED, ConnectState.ASKED, _emit_first, ("R-CON-01",)),
        (ConnectState.WAITING, ConnectEvent.LOCAL, ConnectState.DONE, _end, ("R-CON-07", "R-LOC-02")),
        (ConnectState.WAITING, ConnectEvent.PASSED, ConnectState.ASKED, _pass, ("R-CON-07", "R-LOC-02")),
        (ConnectState.WAITING, ConnectEvent.CANCEL, ConnectState.DONE, _end, ("R-MSC-02",)),
        (ConnectState.WAITING, ConnectEvent.REFUSED, ConnectState.DONE, _end, ("R-CLS-02", "R-CLS-03")),
        (ConnectState.ASKED, ConnectEvent.DUE, ConnectState.ASKED, _emit, ("R-CON-02",)),
        (ConnectState.ASKED, ConnectEvent.ACCEPTED, ConnectState.DONE, _end, ("R-CON-05",)),
        (ConnectState.ASKED, ConnectEvent.BAD_KEY, ConnectState.DONE, _end, ("R-CON-04",)),
        (ConnectState.ASKED, ConnectEvent.REFUSED, ConnectState.DONE, _end, ("R-CON-15", "R-NAK-06", "R-RTX-05")),
        (ConnectState.ASKED, ConnectEvent.CANCEL, ConnectState.DONE, _end, ("R-MSC-02", "R-CON-02")),
    ),
)


class ConnectCall(ListedRequest):
    """A connect to a remote endpoint."""

    __slots__ = ("key", "maximum", "number", "own", "resend_tick", "start", "transmissions")

    kind = RequestKind.CONNECT
    table = CONNECT

    def __init__(self, partner: Partner, key: int, maximum: int, match_info: int = 0, *, own: bool = False) -> None:
        super().__init__(CONNECT, partner.endpoint, partner, match_info, 0)
        self.key = key
        self.maximum = maximum
        """Maximum number of retransmissions (R-RTX-03)."""
        self.own = own
        """True if it is a connect back of the engine (R-CON-12), whose end is not reported to the application."""
        self.number = 0
        """``connect_seqnum``."""
        self.start = FIRST_NUMBER
        """The start number in the last transmission (R-SEQ-05)."""
        self.transmissions = 0
        self.resend_tick = 0

    def emit(self) -> None:
        """Emit the first request; to an endpoint of the same host, connect at once."""
        assert self.partner is not None
        # It may have been cancelled, or its partner disconnected, since the call.
        if self.state is not ConnectState.WAITING:
            return
        if self.partner.local:
            neighbour = None
            if self.endpoint.neighbour(self.partner) is None:
                neighbour = self.endpoint.neighbourhood.towards(self.partner)
            if neighbour is None:
                self.fire(ConnectEvent.LOCAL, _connect_locally(self.endpoint, self.partner, self.key))
            else:
                self.fire(ConnectEvent.PASSED, neighbour)
        else:
            self.fire(ConnectEvent.EMITTED)

    @property
    def waits(self) -> bool:
        """True if it waits for an answer."""
        return self.state is ConnectState.ASKED

    @property
    def exhausted(self) -> bool:
        """True if the limit of retransmissions is reached (R-RTX-03)."""
        return self.transmissions > self.maximum

    def due(self) -> None:
        """Retransmit, since the resend delay is over."""
        self.fire(ConnectEvent.DUE)

    def replied(self, status: int) -> None:
        """End with the status in the reply (R-CON-04, R-CON-05)."""
        if status == ConnectStatus.SUCCESS:
            self.fire(ConnectEvent.ACCEPTED, Status.SUCCESS)
        else:
            self.fire(ConnectEvent.BAD_KEY, Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY)

    def answered(self, status: Status, session: int) -> None:
        """End with the answer of another node of this host (R-LOC-02)."""
        assert self.partner is not None
        # The connect may have been cancelled before its answer arrived.
        if self.state is not ConnectState.ASKED:
            return
        if status == Status.SUCCESS:
            self.partner.fwd = self.partner.rev = session
            self.fire(ConnectEvent.ACCEPTED, Status.SUCCESS)
        else:
            self.fire(ConnectEvent.REFUSED, status)

    def refuse(self, status: Status) -> None:
        """End without an answer."""
        if self.can(ConnectEvent.REFUSED):
            self.fire(ConnectEvent.REFUSED, status)

    def close(self) -> None:
        """End the connect, since its endpoint closes."""
        self.refuse(Status.CANCELLED)

    def cancel(self) -> bool:
        """Cancel the connect; return False if it has been answered (R-MSC-02)."""
        if not self.can(ConnectEvent.CANCEL):
            return False
        self.fire(ConnectEvent.CANCEL, Status.CANCELLED)
        return True


def _connect_locally(endpoint: LibraryEndpoint, partner: Partner, key: int) -> Status:
    """Connect to an endpoint of the same host, without any frame (R-CON-07, R-LOC-02)."""
    target = endpoint.neighbour(partner)
    if target is None:
        too_big = partner.number >= endpoint.profile.endpoint_maximum
        return Status.REMOTE_ENDPOINT_BAD_ID if too_big else Status.REMOTE_ENDPOINT_CLOSED
    if target.key != key:
        return Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY
    partner.fwd = partner.rev = target.session
    return Status.SUCCESS


def take_request(endpoint: LibraryEndpoint, peer: Peer, frame: ConnectRequest) -> None:
    """Take a connect request: change the partner's state, and reply (R-CON-08).

    With a wrong key nothing changes, except with D-2 (R-CON-09).
    """
    if peer.removed:
        # Another host has its index now.
        return
    status = ConnectStatus.SUCCESS if frame.app_key == endpoint.key else ConnectStatus.BAD_KEY
    if status == ConnectStatus.SUCCESS or endpoint.profile.has(Defect.WRONG_KEY_CHANGES_PARTNER):
        partner = endpoint.partner(peer, frame.src_endpoint)
        if partner is None:
            endpoint.card.port.counters[Counter.DROP_PARTNERS_FULL] += 1
            return
        if endpoint.neighbour(partner) is not None:
            # The frame pretends to come from an endpoint of this host (R-LOC-02).
            return
        _adopt(partner, frame)
    else:
        # A partner for the reply alone: connects with wrong keys must not fill the table of partners.
        partner = endpoint.partners.get((peer.index, frame.src_endpoint)) or Partner(endpoint, peer, frame.src_endpoint)
    if not partner.local:
        # A reply to the same host is never on the wire (R-MEA-02).
        _answer(partner, frame, status)


def _adopt(partner: Partner, frame: ConnectRequest) -> None:
    """Adopt session and numbers of a request (R-CON-10), even while a connect to it is pending (R-CON-14)."""
    endpoint = partner.endpoint
    new = partner.rev != frame.src_session_id
    if new:
        _first_request(partner, frame)
    elif (
        partner.fwd == frame.src_session_id
        and not same_session(frame.target_recv_seqnum_start, partner.tx_next)
        and not endpoint.profile.has(Defect.SESSION_NUMBERS_DISAGREE)
    ):
        # The partner had abandoned this endpoint and requests another session number, which is adopted except with D-4.
        partner.restart()
    if partner.fwd != frame.src_session_id:
        partner.adopt_start(frame.target_recv_seqnum_start)
    partner.fwd = partner.rev = frame.src_session_id
    if new:
        endpoint.report(EventKind.PARTNER_CONNECTED, partner=partner)


def _first_request(partner: Partner, frame: ConnectRequest) -> None:
    """Take the first request of a session; an earlier session means that the partner has restarted (R-CON-10 a,
    R-CLS-04)."""
    if partner.rev is not None:
        partner.restart()
    # The sequence numbers of incomplete MEDIUMs will recur. Only with D-1 can any be left here.
    partner.abandon_incomplete(Status.REMOTE_ENDPOINT_UNREACHABLE)
    partner.rx_next = partner.rx_done = session_bits(partner.rx_next) | FIRST_NUMBER


def _answer(partner: Partner, frame: ConnectRequest, status: int) -> None:
    """Emit the reply, which is never retransmitted by itself (R-CON-08)."""
    endpoint = partner.endpoint
    partner.port.emit(
        Counter.SEND_CONNECT_REPLY,
        ConnectReply(
            **partner.head(),
            src_dst_peer_index=partner.peer.index,
            src_session_id=frame.src_session_id,
            target_session_id=endpoint.session,
            target_recv_seqnum_start=partner.rx_next,
            connect_seqnum=frame.connect_seqnum,
            connect_status_code=status,
        ),
    )


def take_reply(partner: Partner, frame: ConnectReply) -> None:
    """Take a connect reply (R-CON-03 to R-CON-05); one that fits no pending connect is ignored."""
    endpoint = partner.endpoint
    connecting = partner.pending_connects.get(frame.connect_seqnum)
    known = frame.connect_status_code in (ConnectStatus.SUCCESS, ConnectStatus.BAD_KEY)
    if not isinstance(connecting, ConnectCall) or frame.src_session_id != endpoint.session or not known:
        return
    if frame.connect_status_code == ConnectStatus.SUCCESS:
        _accepted(partner, connecting, frame)
        # Between the two: a reset above clears it, and the end of the request below flushes the messages that need it.
        partner.introduced = True
    connecting.replied(frame.connect_status_code)


def _accepted(partner: Partner, connecting: ConnectCall, frame: ConnectReply) -> None:
    """Adopt session and numbers of a successful reply; a restarted partner is usable at once (R-CLS-07)."""
    profile = partner.endpoint.profile
    start = connecting.start
    # Removed before a reset, which refuses all connects that are pending.
    del partner.pending_connects[connecting.number]
    other_numbers = (
        partner.fwd == frame.target_session_id
        and not same_session(frame.target_recv_seqnum_start, partner.tx_next)
        and not profile.has(Defect.SESSION_NUMBERS_DISAGREE)
    )
    if partner.rev not in (None, frame.target_session_id) or other_numbers:
        partner.restart()
        if not profile.has(Defect.RESTART_HOLE):
            # The restarted endpoint starts at the number in this request (D-3).
            partner.rx_next = partner.rx_done = partner.rx_acked = start
    # Until a number has been used, the newest start number applies, because the partner may have reset itself after the
    # request that contained the first one (D-3).
    unused = profile.connects_back and not partner.introduced and not profile.has(Defect.RESTART_HOLE)
    if partner.fwd != frame.target_session_id or unused:
        partner.adopt_start(frame.target_recv_seqnum_start)
    partner.fwd = frame.target_session_id
    if not profile.has(Defect.REPLY_LEAVES_REVERSE_SESSION):
        partner.rev = frame.target_session_id
