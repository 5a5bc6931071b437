"""Connecting: two endpoints tell each other their sessions and where to start (behaviour, section 5)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mxwire.protocol.counters import Counter
from mxwire.protocol.event import Event, EventKind
from mxwire.protocol.library.partner import Partner
from mxwire.protocol.library.request import ListedRequest, RequestKind
from mxwire.protocol.machine import Row, Table
from mxwire.protocol.profile import Defect
from mxwire.protocol.sequence import same_session, session_bits
from mxwire.protocol.status import Status
from mxwire.wire.enums import ConnectStatus
from mxwire.wire.numbers import FIRST_NUMBER
from mxwire.wire.packets import ConnectReply, ConnectRequest

if TYPE_CHECKING:
    from mxwire.protocol.library.endpoint import Endpoint
    from mxwire.protocol.peers import Peer


class ConnectState(StrEnum):
    """How far a connect is."""

    WAITING = "waiting"
    ASKED = "asked"
    DONE = "done"


class ConnectEvent(StrEnum):
    """What can happen to it."""

    SUBMIT = "submitted"
    LOCAL = "own host"
    DUE = "resend delay over"
    ACCEPTED = "reply: success"
    BAD_KEY = "reply: bad key"
    REFUSED = "nacked or reset"
    CANCEL = "cancelled"


CONNECT: Final = Table(
    "connect",
    ConnectState.WAITING,
    (
        Row(ConnectState.WAITING, ConnectEvent.SUBMIT, ConnectState.ASKED, "_ask", ("R-CON-01",)),
        Row(ConnectState.WAITING, ConnectEvent.LOCAL, ConnectState.DONE, "_end", ("R-CON-07", "R-LOC-02")),
        Row(ConnectState.WAITING, ConnectEvent.CANCEL, ConnectState.DONE, "_end", ("R-MSC-02",)),
        Row(ConnectState.WAITING, ConnectEvent.REFUSED, ConnectState.DONE, "_end", ("R-CLS-02", "R-CLS-03")),
        Row(ConnectState.ASKED, ConnectEvent.DUE, ConnectState.ASKED, "_repeat", ("R-CON-02",)),
        Row(ConnectState.ASKED, ConnectEvent.ACCEPTED, ConnectState.DONE, "_end", ("R-CON-05",)),
        Row(ConnectState.ASKED, ConnectEvent.BAD_KEY, ConnectState.DONE, "_end", ("R-CON-04",)),
        Row(ConnectState.ASKED, ConnectEvent.REFUSED, ConnectState.DONE, "_end", ("R-CON-15", "R-NAK-06", "R-RTX-05")),
        Row(ConnectState.ASKED, ConnectEvent.CANCEL, ConnectState.DONE, "_end", ("R-MSC-02", "R-CON-02")),
    ),
)


class Connecting(ListedRequest):
    """A connect to a remote endpoint."""

    __slots__ = ("key", "maximum", "number", "own", "resend_tick", "start", "transmissions")

    kind = RequestKind.CONNECT
    table = CONNECT

    def __init__(self, partner: Partner, key: int, maximum: int, *, own: bool = False) -> None:
        super().__init__(partner.endpoint, partner, 0, 0)
        self.key = key
        self.maximum = maximum
        """Most retransmissions (R-RTX-03)."""
        self.own = own
        """Whether the engine itself wants it, to connect back (R-CON-12); then the application is not told."""
        self.number = 0
        """``connect_seqnum``."""
        self.start = FIRST_NUMBER
        """The number that the last transmission asked the target to start at (R-SEQ-05)."""
        self.transmissions = 0
        self.resend_tick = 0

    def submit(self) -> None:
        """Send the first request, or answer at once where the other endpoint is on our own host."""
        assert self.partner is not None
        if self.state is not ConnectState.WAITING:
            return
        if self.partner.local:
            self.fire(ConnectEvent.LOCAL, self.endpoint.local_connect(self.partner, self.key))
        else:
            self.fire(ConnectEvent.SUBMIT)

    def _ask(self) -> None:
        partner = self.partner
        assert partner is not None
        self.number = partner.connects
        partner.connects = (partner.connects + 1) & 0xFF
        # After 256 pending connects a number comes again; the reply then is the older one's end as well.
        older = partner.pending_connects.pop(self.number, None)
        if older is not None:
            older.refuse(Status.NO_RESOURCES)
        partner.pending_connects[self.number] = self
        self._repeat()

    def _repeat(self) -> None:
        """The same number again, the start number refreshed (R-CON-02)."""
        partner = self.partner
        assert partner is not None
        self.transmissions += 1
        self.start = partner.rx_next
        partner.send(
            Counter.SEND_CONNECT_REQUEST,
            ConnectRequest(
                **partner.head(),
                src_dst_peer_index=partner.peer.index,
                src_session_id=self.endpoint.session,
                app_key=self.key,
                target_recv_seqnum_start=self.start,
                connect_seqnum=self.number,
            ),
        )
        self.endpoint.resends.sent(self)

    @property
    def waits(self) -> bool:
        """Whether an answer is still waited for."""
        return self.state is ConnectState.ASKED

    @property
    def exhausted(self) -> bool:
        """Whether it must not be sent once more (R-RTX-03)."""
        return self.transmissions > self.maximum

    def due(self) -> None:
        """The resend delay is over."""
        self.fire(ConnectEvent.DUE)

    def replied(self, status: int) -> None:
        """The target has answered (R-CON-04, R-CON-05)."""
        if status == ConnectStatus.SUCCESS:
            self.fire(ConnectEvent.ACCEPTED, Status.SUCCESS)
        else:
            self.fire(ConnectEvent.BAD_KEY, Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY)

    def refuse(self, status: Status) -> None:
        """It will not be answered."""
        if self.can(ConnectEvent.REFUSED):
            self.fire(ConnectEvent.REFUSED, status)

    def close(self) -> None:
        """The endpoint is closed."""
        self.refuse(Status.CANCELLED)

    def cancel(self) -> bool:
        """Forget it; False where it has been answered (R-MSC-02)."""
        if not self.can(ConnectEvent.CANCEL):
            return False
        self.fire(ConnectEvent.CANCEL, Status.CANCELLED)
        return True

    def _end(self, status: Status) -> None:
        partner = self.partner
        assert partner is not None
        if partner.pending_connects.get(self.number) is self:
            del partner.pending_connects[self.number]
        if self.own:
            self.status = status
            self.strike()
            self.endpoint.introduced(partner, status)
            return
        self.finish(status)
        if partner.fwd is None and status is not Status.SUCCESS and not self.endpoint.connects_to(partner):
            # What has waited for this answer has no session to go to.
            partner.abandon(Status.REMOTE_ENDPOINT_UNREACHABLE)
        elif partner.waiting or partner.notifies:
            self.endpoint.flushing[partner] = None


def requested(endpoint: Endpoint, peer: Peer, frame: ConnectRequest) -> None:
    """A request has come: change the partner's state, and answer it (R-CON-08).

    With a wrong key nothing changes, but for D-2 (R-CON-09).
    """
    status = ConnectStatus.SUCCESS if frame.app_key == endpoint.key else ConnectStatus.BAD_KEY
    if status == ConnectStatus.SUCCESS or endpoint.profile.has(Defect.WRONG_KEY_CHANGES_PARTNER):
        partner = endpoint.partner(peer, frame.src_endpoint)
        if partner is None or endpoint.neighbour(partner) is not None:
            # There is no room for more, or somebody uses the name of an endpoint that lives here (R-LOC-02).
            return
        _adopt(partner, frame)
    else:
        partner = endpoint.partners.get((peer.index, frame.src_endpoint)) or Partner(endpoint, peer, frame.src_endpoint)
    if not partner.local:
        # An answer to ourselves never is on the wire (R-MEA-02).
        _answer(partner, frame, status)


def _adopt(partner: Partner, frame: ConnectRequest) -> None:
    """What a request changes (R-CON-10); a request of our own may be on its way (R-CON-14)."""
    endpoint = partner.endpoint
    news = partner.rev != frame.src_session_id
    if news:
        _first_request(partner, frame)
    elif (
        partner.fwd == frame.src_session_id
        and not same_session(frame.target_recv_seqnum_start, partner.tx_next)
        and not endpoint.profile.has(Defect.SESSION_NUMBERS_DISAGREE)
    ):
        # The other side had given us up and asks for another session number: without D-4 we follow.
        partner.restart()
    if partner.fwd != frame.src_session_id:
        partner.adopt_start(frame.target_recv_seqnum_start)
    partner.fwd = partner.rev = frame.src_session_id
    if news:
        endpoint.tell(Event(EventKind.PARTNER_CONNECTED, partner=partner))


def _first_request(partner: Partner, frame: ConnectRequest) -> None:
    """The first request of a session; another one than before is a restart (R-CON-10 a, R-CLS-04)."""
    if partner.rev is not None:
        partner.restart()
    # Their numbers come again: only with D-1 there can be any.
    partner.abandon_incomplete(Status.REMOTE_ENDPOINT_UNREACHABLE)
    partner.rx_next = partner.rx_done = session_bits(partner.rx_next) | FIRST_NUMBER


def _answer(partner: Partner, frame: ConnectRequest, status: int) -> None:
    """Send the reply; it is never repeated by itself (R-CON-08)."""
    endpoint = partner.endpoint
    partner.send(
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


def replied(partner: Partner, frame: ConnectReply) -> None:
    """A reply has come (R-CON-03 to R-CON-05); what does not fit a pending connect is ignored."""
    endpoint = partner.endpoint
    connecting = partner.pending_connects.get(frame.connect_seqnum)
    known = frame.connect_status_code in (ConnectStatus.SUCCESS, ConnectStatus.BAD_KEY)
    if connecting is None or frame.src_session_id != endpoint.session or not known:
        return
    if frame.connect_status_code == ConnectStatus.SUCCESS:
        _accepted(partner, connecting, frame)
        partner.introduced = True
    connecting.replied(frame.connect_status_code)


def _accepted(partner: Partner, connecting: Connecting, frame: ConnectReply) -> None:
    """Take over what a successful reply says; with a restarted partner the survivor need not wait (R-CLS-07)."""
    profile = partner.endpoint.profile
    start = connecting.start
    del partner.pending_connects[connecting.number]
    other_numbers = (
        partner.fwd == frame.target_session_id
        and not same_session(frame.target_recv_seqnum_start, partner.tx_next)
        and not profile.has(Defect.SESSION_NUMBERS_DISAGREE)
    )
    if partner.rev not in (None, frame.target_session_id) or other_numbers:
        partner.restart()
        if not profile.has(Defect.RESTART_HOLE):
            # The restarted side starts where this request asked it to (D-3).
            partner.rx_next = partner.rx_done = partner.rx_acked = start
    # With numbers of our own not yet used, the newest word of the partner counts: it may have reset itself after the
    # request that we had our start number from (D-3).
    unused = profile.connects_back and not partner.introduced and not profile.has(Defect.RESTART_HOLE)
    if partner.fwd != frame.target_session_id or unused:
        partner.adopt_start(frame.target_recv_seqnum_start)
    partner.fwd = frame.target_session_id
    if not profile.has(Defect.REPLY_LEAVES_REVERSE_SESSION):
        partner.rev = frame.target_session_id
