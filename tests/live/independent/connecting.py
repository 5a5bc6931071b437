"""CONNECT requests and replies, both ways (sections 2 and 10 of the examples)."""

from __future__ import annotations

from collections.abc import Callable

from .frames import Frame, successor
from .line import FOREVER, RESEND_DELAY, Line
from .neighbours import Neighbour
from .partner import NONE, Partner, Request

BAD_KEY = 11


class Connecting:
    """The connection to a partner. ``restarted`` is called when the partner has returned with another session."""

    def __init__(self, line: Line, key: int, restarted: Callable[[], None], *, connects_back: bool) -> None:
        self._line = line
        self._journal = line.journal
        self._key = key
        self._restarted = restarted
        self._connects_back = connects_back
        self._partners: dict[tuple[bytes, int], Partner] = {}
        self.request: Request | None = None

    def connect(self, host: Neighbour, endpoint: int, key: int) -> Request:
        """Request a connection; the answer is stored in the returned request."""
        partner = self._known(host, endpoint)
        self._line.choose(partner)
        self.request = Request(key, partner.connects, endpoint)
        partner.connects = (partner.connects + 1) % 256
        self._transmit(self.request)
        return self.request

    def on_time(self, now: float) -> float:
        """Repeat the request if it is due; return the time at which it is due next."""
        request = self.request
        if request is None or request.answer is not None:
            return FOREVER
        if now >= request.sent_at + RESEND_DELAY:
            self._line.resent += 1
            self._transmit(request)
        return request.sent_at + RESEND_DELAY

    def _known(self, host: Neighbour, endpoint: int) -> Partner:
        """The partner of this name, created if it is new."""
        return self._partners.setdefault((host.mac, endpoint), Partner(host, endpoint))

    def _transmit(self, request: Request) -> None:
        line, partner = self._line, self._line.partner
        request.times += 1
        request.sent_at = line.now()
        line.addressed(
            "CONNECT_REQUEST",
            src_dst_peer_index=line.neighbours.teaching(partner.host),
            src_session_id=line.session,
            app_key=request.key,
            target_recv_seqnum_start=partner.rx_next,
            connect_seqnum=request.connect_seqnum,
        )

    # --- as the target

    def on_request(self, host: Neighbour, frame: Frame) -> None:
        """Apply R-CON-08 to R-CON-10, then connect back (R-CON-12)."""
        partner = self._known(host, frame["src_endpoint"])
        self._line.choose(partner)
        self._check_request(partner, frame)
        session = frame["src_session_id"]
        self._check_restart(partner, session)
        if partner.rev != session:
            partner.rx_next = partner.rx_done = partner.rx_next & 0xC000 | 1
        if partner.fwd != session:
            partner.tx_next = partner.tx_una = frame["target_recv_seqnum_start"]
        partner.fwd = partner.rev = session
        partner.connect_seqnum_in = frame["connect_seqnum"]
        partner.session_told = session
        good = frame["app_key"] == self._key
        if not good:
            self._line.unprovoked("CONNECT_REQUEST.app_key", self._key, frame["app_key"])
        self._reply(partner, frame, 0 if good else BAD_KEY)
        if good and self._connects_back and not partner.connected and self.request is None:
            self.connect(host, partner.endpoint, self._key)

    def _reply(self, partner: Partner, frame: Frame, status: int) -> None:
        line = self._line
        line.addressed(
            "CONNECT_REPLY",
            src_dst_peer_index=line.neighbours.teaching(partner.host),
            src_session_id=frame["src_session_id"],
            target_session_id=line.session,
            target_recv_seqnum_start=partner.rx_next,
            connect_seqnum=frame["connect_seqnum"],
            connect_status_code=status,
        )

    def _check_request(self, partner: Partner, frame: Frame) -> None:
        expect, session = self._journal, frame["src_session_id"]
        expect.expect("CONNECT_REQUEST.src_session_id is set", True, session != NONE)
        before = partner.connect_seqnum_in if partner.rev in (NONE, session) else None
        allowed = [0] if before is None else [before, (before + 1) % 256]
        expect.expect_one_of("CONNECT_REQUEST.connect_seqnum", allowed, frame["connect_seqnum"])
        if before == frame["connect_seqnum"]:
            self._line.resent += 1
        start = frame["target_recv_seqnum_start"]
        possible = [1] if partner.fwd != session else _numbers(partner.tx_una, partner.tx_next)
        expect.expect_one_of("CONNECT_REQUEST.target_recv_seqnum_start", possible, start)

    # --- as the requester

    def on_reply(self, host: Neighbour, frame: Frame) -> None:
        """R-CON-03 to R-CON-05."""
        expect, request = self._journal, self.request
        if request is None:
            expect.deviation("CONNECT_REPLY", "an answer to a request", "nobody asked")
            return
        partner = self._known(host, request.to_endpoint)
        right = expect.expect_fields(
            frame,
            src_endpoint=request.to_endpoint,
            src_session_id=self._line.session,
            connect_seqnum=request.connect_seqnum,
        )
        status = frame["connect_status_code"]
        expect.expect_one_of("CONNECT_REPLY.connect_status_code", (0, BAD_KEY), status)
        if not right or request.answer is not None:
            return
        self._check_reply(partner, frame)
        request.answer = f"status {status}"
        if status == 0:
            self._adopt(partner, frame)
            self._line.connected()

    def _adopt(self, partner: Partner, frame: Frame) -> None:
        session = frame["target_session_id"]
        self._check_restart(partner, session)
        if partner.fwd != session:
            partner.tx_next = partner.tx_una = frame["target_recv_seqnum_start"]
        partner.fwd = session

    def _check_reply(self, partner: Partner, frame: Frame) -> None:
        expect, session = self._journal, frame["target_session_id"]
        expect.expect("CONNECT_REPLY.target_session_id is set", True, session != NONE)
        if partner.session_told != NONE:
            expect.expect_fields(frame, target_session_id=partner.session_told)
        partner.session_told = session
        possible = [1] if partner.fwd != session else _numbers(partner.tx_una, partner.tx_next)
        start = frame["target_recv_seqnum_start"]
        expect.expect_one_of("CONNECT_REPLY.target_recv_seqnum_start", possible, start)

    def on_nack(self, frame: Frame) -> None:
        """A refusal of a request (R-CON-15)."""
        if self.request and self.request.answer is None and frame["lib_seqnum"] == 0:
            self._journal.expect_fields(frame, src_endpoint=self.request.to_endpoint)
            self.request.answer = f"nack {frame['nack_type']}"

    def _check_restart(self, partner: Partner, session: int) -> None:
        if partner.rev not in (NONE, session):
            self._journal.note("restarted", session=session)
            self._line.forget()
            self._restarted()
            self.request = None


def _numbers(first: int, last: int) -> list[int]:
    found = [first]
    while found[-1] != last:
        found.append(successor(found[-1]))
    return found
