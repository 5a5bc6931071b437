"""One endpoint and the one partner it has: connecting, sequence numbers, acks, messages of every kind, nacks (sections
2 to 6, 9, 10 and 12 of the examples)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .frames import Dialect, Frame, distance, successor
from .journal import Journal
from .neighbours import Neighbour, Neighbours, Send
from .transfers import FIRST_COUNTER, FIRST_GENERATION, MAGIC, WINDOW, Block, Pulling, Region, blocks, pieces

NONE = 0xFFFFFFFF
RESEND_DELAY = 0.501
ACK_DELAY = 0.016
PULL_TIMER = 1.0
RESENDS = 20
"""Then the test has failed; a real host is more patient."""
ACK_AT_ONCE = 4
ENDPOINTS = 32
TINY, SMALL, MEDIUM = 32, 128, 32768
BAD_KEY = 11
NACK_BAD_ENDPOINT, NACK_CLOSED, NACK_SESSION, NACK_REGION = 1, 2, 3, 4
FOREVER = float("inf")


@dataclass
class Message:
    """What was received, or is to be sent."""

    match: int
    data: bytes
    synchronous: bool = False
    """Sent as RNDV although it is short enough for another packet."""


@dataclass
class Outstanding:
    """A numbered packet, or all fragments of a medium message, until it is acked."""

    number: int
    packets: list[tuple[str, dict[str, Any], bytes]]
    sent_at: float = 0.0
    times: int = 0


@dataclass
class Request:
    """A connect request until it is answered."""

    key: int
    connect_seqnum: int
    to_endpoint: int
    sent_at: float = 0.0
    times: int = 0
    answer: str | None = None
    """``status N`` or ``nack N``."""


@dataclass
class Partner:
    """What we remember of the other endpoint (chapter 1 of the behaviour)."""

    host: Neighbour
    endpoint: int
    fwd: int = NONE
    rev: int = NONE
    tx_next: int = 0xFFFF
    tx_una: int = 0xFFFF
    rx_next: int = 1
    rx_done: int = 1
    rx_acked: int = 1
    connects: int = 0
    liback_out: int = 0
    liback_in: int = 0
    connect_seqnum_in: int | None = None
    connected: bool = False
    """Whether it has answered our own request: before, we send it nothing numbered (R-CON-12)."""


@dataclass
class Reassembly:
    """A medium message some fragments of which are missing."""

    number: int
    match: int
    length: int
    next_fragment: int = 0
    found: dict[int, bytes] = field(default_factory=dict)


class Endpoint:
    """Frames come in by :meth:`handle`, what is due is done by :meth:`on_time`; messages that have arrived wait in
    ``inbox``."""

    def __init__(
        self,
        send: Send,
        now: Callable[[], float],
        neighbours: Neighbours,
        journal: Journal,
        spoken: Dialect,
        *,
        number: int,
        key: int,
        session: int,
        region_offset: int = 0,
        receive_limit: int = 1 << 32,
        connects_back: bool = True,
    ) -> None:
        self._send = send
        self._now = now
        self._neighbours = neighbours
        self._journal = journal
        self._dialect = spoken
        self.number = number
        self.key = key
        self.session = session
        self._region_offset = region_offset
        self._receive_limit = receive_limit
        self._connects_back = connects_back
        self.partner: Partner | None = None
        """The one that we speak with now."""
        self._partners: dict[tuple[bytes, int], Partner] = {}
        self.request: Request | None = None
        self.inbox: list[Message] = []
        self.outstanding: list[Outstanding] = []
        self.regions: dict[int, Region] = {}
        self.nacks: list[str] = []
        """Those that were provoked and have come, as ``LIB type number`` or ``MCP type``."""
        self.provoking = False
        """Whether nacks are wanted now; otherwise they are deviations."""
        self.resent = 0
        """How often the partner or we have sent something again."""
        self._counters: dict[int, int] = {}
        self._waiting: list[Callable[[], None]] = []
        self._ack_at = FOREVER
        self._reassembly: Reassembly | None = None
        self._pulling: Pulling | None = None
        self._pulled: Frame | None = None
        """The RNDV that is being pulled."""
        self._pull_at = FOREVER
        self._pulls = 0

    # --- what the script calls

    def connect(self, host: Neighbour, endpoint: int, key: int) -> Request:
        """Ask for a connection; the answer is found in the request."""
        self.partner = self._known(host, endpoint)
        self.request = Request(key, self.partner.connects, endpoint)
        self.partner.connects = (self.partner.connects + 1) % 256
        self._transmit_request()
        return self.request

    def send(self, message: Message) -> None:
        """Send a message by the packet that its length calls for (R-SND-01)."""
        if message.synchronous or len(message.data) > MEDIUM:
            self._when_connected(lambda: self._send_large(message))
        elif len(message.data) > SMALL:
            self._when_connected(lambda: self._send_medium(message))
        else:
            kind = "TINY" if len(message.data) <= TINY else "SMALL"
            body = {"length": len(message.data), **_match(message.match)}
            self._when_connected(lambda: self._number([(kind, body, message.data)]))

    def send_with_session(self, message: Message, session: int) -> int:
        """Send a TINY with a wrong session; returns its number, which is not counted."""
        partner = self._require_partner()
        body = {"length": len(message.data), **_match(message.match)}
        self._packet("TINY", {**body, "lib_seqnum": partner.tx_next, "session": session}, message.data)
        return partner.tx_next

    def pull_from_nowhere(self, region: int) -> None:
        """Send a PULL for a region that the partner does not have."""
        self._send_pull(Block(0, 0, 100), 100, region, FIRST_COUNTER, 0, 0x3FC00023)

    @property
    def settled(self) -> bool:
        """Whether nothing that was sent waits for anything."""
        return not self.outstanding and not self.regions and not self._waiting and self._pulling is None

    def acknowledge_now(self) -> None:
        """Send the ack that is due, now (R-ACK-09)."""
        if self._ack_at != FOREVER:
            self._send_liback()

    # --- time

    def on_time(self, now: float) -> float:
        """Does what is due; returns when something will be."""
        if now >= self._ack_at:
            self._send_liback()
        for each in [each for each in self.outstanding if now >= each.sent_at + RESEND_DELAY]:
            self._resend(each)
        if self.request and self.request.answer is None and now >= self.request.sent_at + RESEND_DELAY:
            self.resent += 1
            self._transmit_request()
        if now >= self._pull_at:
            self._repeat_pulls()
        waiting = [each.sent_at + RESEND_DELAY for each in self.outstanding]
        if self.request and self.request.answer is None:
            waiting.append(self.request.sent_at + RESEND_DELAY)
        return min([*waiting, self._ack_at, self._pull_at])

    # --- frames

    def handle(self, frame: Frame) -> None:
        """Take one frame of those that are for endpoints."""
        if frame.kind == "PULL_REPLY":
            self._on_pull_reply(frame)
            return
        host = self._neighbours.check_head(frame)
        if host is None:
            return
        if frame.kind == "NACK_MCP":
            self._on_nack_mcp(frame)
        elif self._is_for_us(frame):
            self._HANDLERS[frame.kind](self, host, frame)

    def _is_for_us(self, frame: Frame) -> bool:
        """Whether endpoint and session are right; refuses the frame if not (section 9 of the examples)."""
        if frame.kind in ("CONNECT_REQUEST", "CONNECT_REPLY"):
            self._neighbours.learn(self._neighbours.table[frame["src_mac"]], frame)
        if frame["dst_endpoint"] != self.number:
            self._refuse(frame, NACK_CLOSED if frame["dst_endpoint"] < ENDPOINTS else NACK_BAD_ENDPOINT)
            return False
        if "session" in frame.fields and not self._journal.expect_fields(frame, session=self.session):
            self._refuse(frame, NACK_SESSION)
            return False
        return True

    def _refuse(self, frame: Frame, why: int) -> None:
        self._journal.note("refused", kind=frame.kind, why=why)
        host = self._neighbours.table[frame["src_mac"]]
        if frame.kind == "PULL":
            self._send(
                "NACK_MCP",
                host.mac,
                dst_src_peer_index=host.index,
                src_endpoint=frame["src_endpoint"],
                nack_type=why,
                src_pull_handle=frame["src_pull_handle"],
                src_magic=frame["src_magic"],
            )
        elif frame.kind not in ("TRUC", "NACK_LIB"):
            self._send(
                "NACK_LIB",
                host.mac,
                dst_src_peer_index=host.index,
                src_endpoint=frame["dst_endpoint"],
                nack_type=why,
                dst_endpoint=frame["src_endpoint"],
                copied_peer_index=host.index,
                lib_seqnum=frame["lib_seqnum"],
            )

    # --- connecting (section 2)

    def _transmit_request(self) -> None:
        partner, request = self._require_partner(), self.request
        assert request is not None
        request.times += 1
        request.sent_at = self._now()
        self._send(
            "CONNECT_REQUEST",
            partner.host.mac,
            dst_src_peer_index=partner.host.index,
            src_dst_peer_index=self._neighbours.teaching(partner.host),
            dst_endpoint=partner.endpoint,
            src_endpoint=self.number,
            src_session_id=self.session,
            app_key=request.key,
            target_recv_seqnum_start=partner.rx_next,
            connect_seqnum=request.connect_seqnum,
        )

    def _on_connect_request(self, host: Neighbour, frame: Frame) -> None:
        partner = self.partner = self._known(host, frame["src_endpoint"])
        self._check_request(partner, frame)
        session = frame["src_session_id"]
        if partner.rev not in (NONE, session):
            self._journal.note("restarted", session=session)
            self._forget(partner)
        if partner.rev != session:
            partner.rx_next = partner.rx_done = partner.rx_next & 0xC000 | 1
        if partner.fwd != session:
            partner.tx_next = partner.tx_una = frame["target_recv_seqnum_start"]
        partner.fwd = partner.rev = session
        good = frame["app_key"] == self.key
        self._send(
            "CONNECT_REPLY",
            host.mac,
            dst_src_peer_index=host.index,
            src_dst_peer_index=self._neighbours.teaching(host),
            dst_endpoint=partner.endpoint,
            src_endpoint=self.number,
            src_session_id=session,
            target_session_id=self.session,
            target_recv_seqnum_start=partner.rx_next,
            connect_seqnum=frame["connect_seqnum"],
            connect_status_code=0 if good else BAD_KEY,
        )
        if good and self._connects_back and not partner.connected and self.request is None:
            self.connect(host, partner.endpoint, self.key)

    def _check_request(self, partner: Partner, frame: Frame) -> None:
        expect = self._journal
        expect.expect("CONNECT_REQUEST.src_session_id is set", True, frame["src_session_id"] != NONE)
        before = partner.connect_seqnum_in
        if partner.rev not in (NONE, frame["src_session_id"]):
            before = None
        allowed = [0] if before is None else [before, (before + 1) % 256]
        expect.expect_one_of("CONNECT_REQUEST.connect_seqnum", allowed, frame["connect_seqnum"])
        if before == frame["connect_seqnum"]:
            self.resent += 1
        partner.connect_seqnum_in = frame["connect_seqnum"]
        start = frame["target_recv_seqnum_start"]
        if partner.fwd != frame["src_session_id"]:
            expect.expect("CONNECT_REQUEST.target_recv_seqnum_start", 1, start)
        else:
            possible = [partner.tx_una]
            while possible[-1] != partner.tx_next:
                possible.append(successor(possible[-1]))
            expect.expect_one_of("CONNECT_REQUEST.target_recv_seqnum_start", possible, start)

    def _on_connect_reply(self, host: Neighbour, frame: Frame) -> None:
        partner, request = self.partner, self.request
        if partner is None or request is None:
            self._journal.deviation("CONNECT_REPLY", "an answer to a request", "nobody asked")
            return
        right = self._journal.expect_fields(
            frame,
            src_endpoint=request.to_endpoint,
            src_session_id=self.session,
            connect_seqnum=request.connect_seqnum,
        )
        self._journal.expect_one_of("CONNECT_REPLY.connect_status_code", (0, BAD_KEY), frame["connect_status_code"])
        if not right or request.answer is not None:
            return
        request.answer = f"status {frame['connect_status_code']}"
        if frame["connect_status_code"] != 0:
            return
        session = frame["target_session_id"]
        self._journal.expect("CONNECT_REPLY.target_session_id is set", True, session != NONE)
        if partner.rev not in (NONE, session):
            self._forget(partner)
        start = frame["target_recv_seqnum_start"]
        if partner.fwd != session:
            self._journal.expect("CONNECT_REPLY.target_recv_seqnum_start", 1, start)
            partner.tx_next = partner.tx_una = start
        partner.fwd = session
        partner.connected = True
        for each in self._waiting:
            each()
        self._waiting.clear()

    def _forget(self, partner: Partner) -> None:
        """R-CLS-05."""
        fresh = Partner(partner.host, partner.endpoint)
        fresh.rx_next = fresh.rx_done = fresh.rx_acked = partner.rx_next & 0xC000 | 1
        self.partner = fresh
        partner.__dict__.update(fresh.__dict__)
        self.partner = partner
        self.outstanding.clear()
        self.regions.clear()
        self._waiting.clear()
        self._reassembly = self._pulling = None
        self._ack_at = self._pull_at = FOREVER
        self.request = None

    def _known(self, host: Neighbour, endpoint: int) -> Partner:
        """The partner of this name, a new one if we never heard of it."""
        return self._partners.setdefault((host.mac, endpoint), Partner(host, endpoint))

    # --- sending

    def _when_connected(self, action: Callable[[], None]) -> None:
        if self._require_partner().connected:
            action()
        else:
            self._waiting.append(action)

    def _number(self, packets: list[tuple[str, dict[str, Any], bytes]]) -> int:
        partner = self._require_partner()
        number = partner.tx_next
        partner.tx_next = successor(number)
        for kind, body, _ in packets:
            body["lib_seqnum"] = number
            body["session"] = partner.rev if kind == "NOTIFY" else partner.fwd
        self.outstanding.append(Outstanding(number, packets))
        self._transmit(self.outstanding[-1])
        return number

    def _transmit(self, sent: Outstanding) -> None:
        for kind, body, data in sent.packets:
            self._packet(kind, body, data)
        sent.sent_at = self._now()
        sent.times += 1

    def _packet(self, kind: str, body: dict[str, Any], data: bytes = b"") -> None:
        """Send a numbered packet; its piggyback is the ack that was due (R-ACK-03)."""
        partner = self._require_partner()
        self._addressed(kind, data, lib_piggyack=partner.rx_done, **body)
        partner.rx_acked = partner.rx_done
        self._ack_at = FOREVER

    def _addressed(self, kind: str, data: bytes = b"", **body: Any) -> None:
        partner = self._require_partner()
        self._send(
            kind,
            partner.host.mac,
            data,
            dst_src_peer_index=partner.host.index,
            dst_endpoint=partner.endpoint,
            src_endpoint=self.number,
            **body,
        )

    def _resend(self, sent: Outstanding) -> None:
        if sent.times > RESENDS:
            self._journal.deviation("ack", f"an ack of number {sent.number}", f"none after {sent.times} transmissions")
            self.outstanding.remove(sent)
            return
        self._journal.note("resent", kind=sent.packets[0][0], number=sent.number)
        self.resent += 1
        self._transmit(sent)

    def _send_medium(self, message: Message) -> None:
        size = self._dialect.medium_payload
        parts = [message.data[at : at + size] for at in range(0, len(message.data), size)]
        body = {"length": len(message.data), **_match(message.match)}
        self._number(
            [("MEDIUM", {**body, "frag_length": len(part), "frag_seqnum": at}, part) for at, part in enumerate(parts)]
        )

    def _send_large(self, message: Message) -> None:
        """Sections 6 and 12."""
        place = next(each for each in range(256) if each not in self.regions)
        counter = self._counters.get(place, FIRST_COUNTER)
        self._counters[place] = (counter + 1) % 256
        offset = self._region_offset
        plan = blocks(self._dialect, len(message.data), offset)
        region = self.regions[place] = Region(counter, offset, message.data, 0, plan)
        body = {
            **_match(message.match),
            "msg_length": len(message.data),
            "pulled_rdma_id": place,
            "pulled_rdma_seqnum": counter,
            "pulled_rdma_offset": offset,
        }
        region.number = self._number([("RNDV", body, b"")])

    # --- acks

    def _send_liback(self) -> None:
        partner = self._require_partner()
        partner.liback_out += 1
        partner.rx_acked = partner.rx_done
        self._ack_at = FOREVER
        self._addressed(
            "TRUC",
            session=partner.rev,
            session_id=partner.rev,
            lib_seqnum=partner.rx_done,
            send_seq=partner.rx_done,
            acknum=partner.liback_out,
        )

    def _schedule_ack(self, *, at_once: bool = False) -> None:
        partner = self._require_partner()
        if at_once or distance(partner.rx_done, partner.rx_acked) >= ACK_AT_ONCE:
            self._send_liback()
        elif self._ack_at == FOREVER:
            self._ack_at = self._now() + ACK_DELAY

    def _on_liback(self, host: Neighbour, frame: Frame) -> None:
        partner = self._partner_of(host, frame)
        if partner is None:
            return
        self._journal.expect_fields(
            frame, session_id=self.session, send_seq=frame["lib_seqnum"], acknum=partner.liback_in + 1
        )
        if frame["acknum"] > partner.liback_in:
            partner.liback_in = frame["acknum"]
            self._acked(partner, frame["lib_seqnum"], frame.kind)

    def _acked(self, partner: Partner, value: int, by: str) -> None:
        count = distance(value, partner.tx_una)
        if value & 0xC000 != partner.tx_next & 0xC000 or count > distance(partner.tx_next, partner.tx_una):
            # An older value than one already seen is what an early or late packet may carry, on a lossless link nobody.
            found = f"{value:#06x}"
            self._journal.deviation(f"ack by {by}", f"{partner.tx_una:#06x}..{partner.tx_next:#06x}", found)
            return
        now = self._now()
        for each in self.outstanding[:]:
            if distance(each.number, partner.tx_una) < count:
                self.outstanding.remove(each)
                after = round((now - each.sent_at) * 1000, 3)
                self._journal.note("acked", kind=each.packets[0][0], number=each.number, by=by, after_ms=after)
        partner.tx_una = value

    # --- receiving numbered packets

    def _partner_of(self, host: Neighbour, frame: Frame) -> Partner | None:
        partner = self.partner
        if partner is None or (partner.host, partner.endpoint) != (host, frame["src_endpoint"]):
            self._journal.deviation(f"{frame.kind} from", "a partner", "an endpoint that never connected")
            return None
        return partner

    def _on_numbered(self, host: Neighbour, frame: Frame) -> None:
        partner = self._partner_of(host, frame)
        if partner is None:
            return
        if partner.rev == NONE:
            self._journal.deviation(f"first {frame.kind}", "a CONNECT request of the sender before it (R-CON-12)", None)
        number = frame["lib_seqnum"]
        if number & 0xC000 != partner.rx_next & 0xC000:
            self._journal.deviation(f"{frame.kind}.lib_seqnum", f"{partner.rx_next:#06x}", f"{number:#06x}")
            return
        self._acked(partner, frame["lib_piggyack"], frame.kind)
        if frame.kind == "MEDIUM" and self._reassembly and self._reassembly.number == number:
            self._on_fragment(partner, self._reassembly, frame)
        elif number == partner.rx_next and not self._is_busy(frame):
            partner.rx_next = successor(number)
            self._accept(partner, frame)
        else:
            self._on_known_number(partner, frame)

    def _is_busy(self, frame: Frame) -> bool:
        """Whether this one has to wait: then it is dropped, and comes again."""
        if frame.kind == "MEDIUM" and self._reassembly:
            return True
        return frame.kind == "RNDV" and self._pulling is not None

    def _on_known_number(self, partner: Partner, frame: Frame) -> None:
        self.resent += 1
        number = frame["lib_seqnum"]
        self._journal.note("not in order", kind=frame.kind, number=number, expected=partner.rx_next)
        if successor(number) == partner.rx_done:
            self._schedule_ack(at_once=True)

    def _accept(self, partner: Partner, frame: Frame) -> None:
        if frame.kind == "MEDIUM":
            self._reassembly = Reassembly(frame["lib_seqnum"], _match_of(frame), frame["length"])
            self._on_fragment(partner, self._reassembly, frame)
            return
        if self._reassembly is None:
            partner.rx_done = partner.rx_next
        if frame.kind == "NOTIFY":
            self._on_notify(frame)
            self._schedule_ack(at_once=not self._dialect.native)
        elif frame.kind == "RNDV":
            self._schedule_ack()
            self._start_pulling(frame)
        else:
            limits = (0, TINY) if frame.kind == "TINY" else (TINY + 1, SMALL)
            self._journal.expect(f"{frame.kind}.length in {limits}", True, limits[0] <= frame["length"] <= limits[1])
            self.inbox.append(Message(_match_of(frame), frame.data))
            self._schedule_ack()

    def _on_fragment(self, partner: Partner, message: Reassembly, frame: Frame) -> None:
        """Section 5."""
        size = self._dialect.medium_payload
        at = frame["frag_seqnum"]
        rest = message.length - at * size
        self._journal.expect("MEDIUM.length is 129..32768", True, SMALL < message.length <= MEDIUM)
        self._journal.expect_fields(frame, length=message.length, frag_length=min(size, rest))
        self._journal.expect("match information of the fragment", message.match, _match_of(frame))
        if at in message.found:
            self.resent += 1
        else:
            self._journal.expect_fields(frame, frag_seqnum=message.next_fragment)
        message.next_fragment = at + 1
        message.found[at] = frame.data
        if sum(map(len, message.found.values())) < message.length:
            return
        self.inbox.append(Message(message.match, b"".join(message.found[each] for each in sorted(message.found))))
        self._reassembly = None
        partner.rx_done = partner.rx_next
        self._schedule_ack()

    # --- fetching a large message (sections 6 and 12)

    def _start_pulling(self, rndv: Frame) -> None:
        self._pulled = rndv
        wanted = min(rndv["msg_length"], self._receive_limit)
        handle = (self._pulls % 1024) << 22 | FIRST_GENERATION + self._pulls // 1024
        self._pulls += 1 if wanted else 0
        self._pulling = Pulling(self._dialect, wanted, rndv["pulled_rdma_offset"], handle, MAGIC ^ self.number)
        self._go_on_pulling()

    def _go_on_pulling(self) -> None:
        pulling, rndv = self._pulling, self._pulled
        assert pulling is not None and rndv is not None
        for block in pulling.next_requests():
            self._ask_for(block)
        self._pull_at = self._now() + PULL_TIMER
        if pulling.complete:
            self._pulling = None
            self._pull_at = FOREVER
            short = rndv["msg_length"] <= MEDIUM
            self._journal.note("pulled", bytes=pulling.total, blocks=len(pulling.blocks), again=pulling.repeated)
            self.inbox.append(Message(_match_of(rndv), bytes(pulling.message), synchronous=short))
            self._when_connected(lambda: self._notify(rndv, pulling.total))

    def _repeat_pulls(self) -> None:
        assert self._pulling is not None
        self.resent += 1
        self._journal.note("pulling again")
        for block in self._pulling.repeat_requests():
            self._ask_for(block)
        self._pull_at = self._now() + PULL_TIMER

    def _ask_for(self, block: Block) -> None:
        pulling, rndv = self._pulling, self._pulled
        assert pulling is not None and rndv is not None
        region, counter = rndv["pulled_rdma_id"], rndv["pulled_rdma_seqnum"]
        self._send_pull(block, pulling.total, region, counter, rndv["pulled_rdma_offset"], pulling.handle)

    def _send_pull(self, block: Block, total: int, region: int, counter: int, offset: int, handle: int) -> None:
        self._addressed(
            "PULL",
            session=self._require_partner().rev,
            total_length=total,
            pulled_rdma_id=region,
            pulled_rdma_seqnum=counter,
            pulled_rdma_offset=offset,
            src_pull_handle=handle,
            src_magic=MAGIC ^ self.number,
            first_frame_offset=block.first_frame_offset,
            block_length=block.block_length,
            frame_index=block.frame_index,
        )

    def _on_pull_reply(self, frame: Frame) -> None:
        pulling, expect = self._pulling, self._journal
        if pulling is None or frame["dst_pull_handle"] != pulling.handle:
            if not self.resent:
                expect.deviation("PULL_REPLY", "an answer to a running PULL", f"handle {frame['dst_pull_handle']:#x}")
            return
        expect.expect_fields(frame, dst_magic=pulling.magic)
        piece = next((each for each in pulling.awaited if each.msg_offset == frame["msg_offset"]), None)
        if piece is None:
            expect.deviation("PULL_REPLY.msg_offset", "that of a requested frame", frame["msg_offset"])
            return
        if not pulling.repeated and piece is not pulling.awaited[0]:
            expect.deviation("order of PULL_REPLYs", f"frame {pulling.awaited[0].number}", f"frame {piece.number}")
        good = expect.expect_fields(frame, frame_seqnum=piece.number % 256, frame_length=piece.length)
        if good and pulling.store(piece, frame.data):
            pulling.awaited.remove(piece)
            self._go_on_pulling()

    def _notify(self, rndv: Frame, total: int) -> None:
        body = {
            "total_length": total,
            "pulled_rdma_id": rndv["pulled_rdma_id"],
            "pulled_rdma_seqnum": rndv["pulled_rdma_seqnum"],
        }
        self._number([("NOTIFY", body, b"")])

    # --- serving a large message

    def _on_pull(self, host: Neighbour, frame: Frame) -> None:
        partner = self._partner_of(host, frame)
        region = self.regions.get(frame["pulled_rdma_id"])
        if region is None:
            if not self.provoking:
                self._journal.deviation("PULL.pulled_rdma_id", f"one of {list(self.regions)}", frame["pulled_rdma_id"])
            self._refuse(frame, NACK_REGION)
        elif partner is not None and self._check_pull(region, frame):
            self._answer_pull(region, frame)

    def _check_pull(self, region: Region, frame: Frame) -> bool:
        expect = self._journal
        expect.expect_fields(
            frame,
            total_length=len(region.message),
            pulled_rdma_seqnum=region.counter,
            pulled_rdma_offset=region.offset,
            src_magic=MAGIC ^ frame["src_endpoint"],
        )
        expect.expect(
            "generation in PULL.src_pull_handle is at least 0x23", True, frame["src_pull_handle"] & 0x3FFFFF >= 0x23
        )
        block = Block(frame["frame_index"], frame["first_frame_offset"], frame["block_length"])
        if not expect.expect_one_of("block of the PULL", region.plan, block):
            return False
        if block in region.asked:
            self.resent += 1
            return True
        region.asked.append(block)
        at = region.plan.index(block)
        if at >= WINDOW:
            expect.expect("blocks asked for at a time are at most 4", True, region.plan[at - WINDOW] in region.asked)
        return True

    def _answer_pull(self, region: Region, frame: Frame) -> None:
        block = Block(frame["frame_index"], frame["first_frame_offset"], frame["block_length"])
        for piece in pieces(self._dialect, block, region.offset):
            self._send(
                "PULL_REPLY",
                frame["src_mac"],
                region.message[piece.msg_offset : piece.msg_offset + piece.length],
                frame_seqnum=piece.number % 256,
                frame_length=piece.length,
                msg_offset=piece.msg_offset,
                dst_pull_handle=frame["src_pull_handle"],
                dst_magic=frame["src_magic"],
            )

    def _on_notify(self, frame: Frame) -> None:
        """Section 6.3."""
        region = self.regions.get(frame["pulled_rdma_id"])
        if region is None:
            self._journal.deviation("NOTIFY.pulled_rdma_id", f"one of {list(self.regions)}", frame["pulled_rdma_id"])
            return
        self._journal.expect_fields(frame, pulled_rdma_seqnum=region.counter, total_length=len(region.message))
        self._journal.expect("blocks asked for before the NOTIFY", len(region.plan), len(region.asked))
        covered = all(each.number != region.number for each in self.outstanding)
        self._journal.expect("the RNDV is acked by the piggyback of its NOTIFY at the latest", True, covered)
        self._journal.note("notified", bytes=frame["total_length"], blocks=len(region.asked))
        del self.regions[frame["pulled_rdma_id"]]

    # --- nacks (section 9)

    def _on_nack_lib(self, host: Neighbour, frame: Frame) -> None:
        number, kind = frame["lib_seqnum"], frame["nack_type"]
        if not self.provoking:
            self._journal.deviation("NACK_LIB", "none", f"type {kind} number {number}")
        self.nacks.append(f"LIB {kind} {number}")
        if self.request and self.request.answer is None and number == 0:
            self._journal.expect_fields(frame, src_endpoint=self.request.to_endpoint)
            self.request.answer = f"nack {kind}"
        self.outstanding = [each for each in self.outstanding if each.number != number]

    def _on_nack_mcp(self, frame: Frame) -> None:
        if not self.provoking:
            self._journal.deviation("NACK_MCP", "none", f"type {frame['nack_type']}")
        # A real host writes the puller's endpoint here, which is ours.
        self._journal.expect_fields(frame, src_endpoint=self.number, src_magic=MAGIC ^ self.number)
        self.nacks.append(f"MCP {frame['nack_type']} {frame['src_pull_handle']:#x}")

    def _require_partner(self) -> Partner:
        assert self.partner is not None, "not connected"
        return self.partner

    _HANDLERS: ClassVar[dict[str, Callable[[Endpoint, Neighbour, Frame], None]]] = {
        "CONNECT_REQUEST": _on_connect_request,
        "CONNECT_REPLY": _on_connect_reply,
        "TRUC": _on_liback,
        "TINY": _on_numbered,
        "SMALL": _on_numbered,
        "MEDIUM": _on_numbered,
        "RNDV": _on_numbered,
        "NOTIFY": _on_numbered,
        "PULL": _on_pull,
        "NACK_LIB": _on_nack_lib,
    }


def _match(value: int) -> dict[str, int]:
    return {"match_a": value >> 32, "match_b": value & 0xFFFFFFFF}


def _match_of(frame: Frame) -> int:
    return int(frame["match_a"] << 32 | frame["match_b"])
