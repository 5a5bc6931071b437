"""One endpoint: takes the frames that are for it, refuses those that are not, and knows messages of every kind
(sections 3 to 5 and 9 of the examples)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .connecting import Connecting
from .frames import Dialect, Frame, successor
from .journal import Journal
from .large import Fetching, Serving
from .line import Line
from .neighbours import Neighbour, Neighbours, Send
from .partner import NONE, Message, Partner, Reassembly, Request, match_fields, match_of
from .transfers import MAGIC

ENDPOINTS = 32
TINY, SMALL, MEDIUM = 32, 128, 32768
"""Longest messages in bytes."""
ANY_LENGTH = 1 << 32
NACK_BAD_ENDPOINT, NACK_CLOSED, NACK_SESSION = 1, 2, 3


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
        receive_limit: int = ANY_LENGTH,
        connects_back: bool = True,
        provoked: bool = False,
        fresh: bool = True,
    ) -> None:
        self.inbox: list[Message] = []
        self.nacks: list[str] = []
        """Those received, as ``LIB type number`` or ``MCP type handle``."""
        self.line = line = Line(send, now, neighbours, journal, spoken, number, session)
        line.provoking = provoked
        self._journal = journal
        self._connecting = Connecting(line, key, self._forget, connects_back=connects_back)
        self._serving = Serving(line, region_offset, self._refuse)
        self._fetching = Fetching(line, self._deliver, receive_limit, fresh=fresh)
        self._reassembly: Reassembly | None = None
        self._handlers: dict[str, Callable[[Neighbour, Frame], None]] = {
            "CONNECT_REQUEST": self._connecting.on_request,
            "CONNECT_REPLY": self._connecting.on_reply,
            "TRUC": line.on_liback,
            "PULL": self._serving.on_pull,
            "NACK_LIB": self._on_nack_lib,
            **dict.fromkeys(("TINY", "SMALL", "MEDIUM", "RNDV", "NOTIFY"), self._on_numbered),
        }

    # --- what the script calls

    def connect(self, host: Neighbour, endpoint: int, key: int) -> Request:
        """Request a connection; the answer is stored in the returned request."""
        return self._connecting.connect(host, endpoint, key)

    def send(self, message: Message) -> None:
        """Send a message in packets of the type that its length requires (R-SND-01)."""
        length = len(message.data)
        body = {"length": length, **match_fields(message.match)}
        if message.synchronous or length > MEDIUM:
            self.line.when_connected(lambda: self._serving.send(message))
        elif length > SMALL:
            self.line.when_connected(lambda: self.line.number_packets(self._fragments(message.data, body)))
        else:
            kind = "TINY" if length <= TINY else "SMALL"
            self.line.when_connected(lambda: self.line.number_packets([(kind, body, message.data)]))

    def _fragments(self, data: bytes, body: dict[str, Any]) -> list[tuple[str, dict[str, Any], bytes]]:
        """Section 5."""
        size = self.line.dialect.medium_payload
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        return [
            ("MEDIUM", {**body, "frag_length": len(part), "frag_seqnum": at}, part) for at, part in enumerate(parts)
        ]

    def send_with_session(self, message: Message, session: int) -> int:
        """Send a TINY with a wrong session; returns its number, which is not counted."""
        body = {"length": len(message.data), **match_fields(message.match), "session": session}
        number = self.line.partner.tx_next
        self.line.numbered("TINY", {**body, "lib_seqnum": number}, message.data)
        return number

    def pull_from_nowhere(self, region: int, handle: int) -> None:
        """Send a PULL for a region that the partner does not have."""
        self._fetching.pull_from_nowhere(region, handle)

    @property
    def settled(self) -> bool:
        """Return whether nothing that was sent waits for anything, and nothing is being pulled."""
        return self.line.settled and not self._serving.regions and not self._fetching.busy

    def on_time(self, now: float) -> float:
        """Run expired timers; return the next deadline."""
        return min(self.line.on_time(now), self._connecting.on_time(now), self._fetching.on_time(now))

    def _forget(self) -> None:
        """Note a restart of the partner."""
        self._serving.regions.clear()
        self._fetching.forget()
        self._reassembly = None

    # --- whose frame it is

    def handle(self, frame: Frame) -> None:
        """Take one frame of those that are for endpoints."""
        if frame.kind == "PULL_REPLY":
            self._fetching.on_reply(frame)
            return
        host = self.line.neighbours.check_head(frame)
        if host is None:
            return
        if frame.kind == "NACK_MCP":
            self._on_nack_mcp(frame)
        elif self._is_for_us(host, frame):
            self._handlers[frame.kind](host, frame)

    def _is_for_us(self, host: Neighbour, frame: Frame) -> bool:
        """Return whether endpoint and session are right; refuse the frame if not (section 9)."""
        if frame.kind in ("CONNECT_REQUEST", "CONNECT_REPLY"):
            self.line.neighbours.learn(host, frame)
        endpoint = frame["dst_endpoint"]
        if endpoint != self.line.number:
            self.line.unprovoked(f"{frame.kind}.dst_endpoint", self.line.number, endpoint)
            self._refuse(frame, NACK_CLOSED if endpoint < ENDPOINTS else NACK_BAD_ENDPOINT)
            return False
        if "session" in frame.fields and frame["session"] != self.line.session:
            self.line.unprovoked(f"{frame.kind}.session", self.line.session, frame["session"])
            self._refuse(frame, NACK_SESSION)
            return False
        return True

    # --- nacks (section 9)

    def _refuse(self, frame: Frame, why: int) -> None:
        self._journal.note("refused", kind=frame.kind, why=why)
        host = self.line.neighbours.table[frame["src_mac"]]
        if frame.kind == "PULL":
            copied = {name: frame[name] for name in ("src_endpoint", "src_pull_handle", "src_magic")}
            self.line.send("NACK_MCP", host.mac, dst_src_peer_index=host.index, nack_type=why, **copied)
        elif frame.kind not in ("TRUC", "NACK_LIB"):
            self.line.send(
                "NACK_LIB",
                host.mac,
                dst_src_peer_index=host.index,
                src_endpoint=frame["dst_endpoint"],
                nack_type=why,
                dst_endpoint=frame["src_endpoint"],
                copied_peer_index=host.index,
                lib_seqnum=frame["lib_seqnum"],
            )

    def _on_nack_lib(self, host: Neighbour, frame: Frame) -> None:
        number, kind = frame["lib_seqnum"], frame["nack_type"]
        self.line.unprovoked("NACK_LIB", "none", f"type {kind} number {number}")
        self._journal.expect_fields(frame, copied_peer_index=frame["dst_src_peer_index"])
        self.nacks.append(f"LIB {kind} {number}")
        self._connecting.on_nack(frame)
        self.line.outstanding = [each for each in self.line.outstanding if each.number != number]

    def _on_nack_mcp(self, frame: Frame) -> None:
        kind, handle = frame["nack_type"], frame["src_pull_handle"]
        self.line.unprovoked("NACK_MCP", "none", f"type {kind} handle {handle:#x}")
        # A real host writes the puller's endpoint here, which is the local one.
        self._journal.expect_fields(frame, src_endpoint=self.line.number, src_magic=MAGIC ^ self.line.number)
        self.nacks.append(f"MCP {kind} {handle:#x}")

    # --- numbered packets

    def _deliver(self, match: int, data: bytes, *, synchronous: bool = False, unacked: int | None = None) -> None:
        left = len(self.line.outstanding) if unacked is None else unacked
        self.inbox.append(Message(match, data, synchronous, unacked=left))

    def _on_numbered(self, host: Neighbour, frame: Frame) -> None:
        partner = self.line.partner_of(host, frame)
        if partner is None:
            return
        if partner.rev == NONE:
            self._journal.deviation(f"first {frame.kind}", "a CONNECT request of the sender before it (R-CON-12)", None)
        number = frame["lib_seqnum"]
        if number & 0xC000 != partner.rx_next & 0xC000:
            self._journal.deviation(f"{frame.kind}.lib_seqnum", f"{partner.rx_next:#06x}", f"{number:#06x}")
            return
        self.line.acked(partner, frame["lib_piggyack"], frame.kind)
        if frame.kind == "MEDIUM" and self._reassembly and self._reassembly.number == number:
            self._on_fragment(partner, self._reassembly, frame)
        elif number == partner.rx_next and not self._is_busy(frame):
            partner.rx_next = successor(number)
            self._accept(partner, frame)
        else:
            self._on_other_number(partner, frame)

    def _is_busy(self, frame: Frame) -> bool:
        """Return whether this one has to wait: then it is dropped, and retransmitted."""
        if frame.kind == "MEDIUM":
            return self._reassembly is not None
        return frame.kind == "RNDV" and self._fetching.busy

    def _on_other_number(self, partner: Partner, frame: Frame) -> None:
        """Handle an early or late message; only a duplicate of the last message causes an ack (R-ORD-03)."""
        self.line.resent += 1
        number = frame["lib_seqnum"]
        self._journal.note("not in order", kind=frame.kind, number=number, expected=partner.rx_next)
        if successor(number) == partner.rx_done:
            self.line.schedule_ack(at_once=True)

    def _accept(self, partner: Partner, frame: Frame) -> None:
        if frame.kind == "MEDIUM":
            self._reassembly = Reassembly(frame["lib_seqnum"], match_of(frame), frame["length"])
            self._on_fragment(partner, self._reassembly, frame)
            return
        if self._reassembly is None:
            partner.rx_done = partner.rx_next
        if frame.kind == "NOTIFY":
            self._serving.on_notify(frame)
            self.line.schedule_ack(at_once=not self.line.dialect.native)
        elif frame.kind == "RNDV":
            self.line.schedule_ack()
            self._fetching.start(frame)
        else:
            shortest, longest = (0, TINY) if frame.kind == "TINY" else (TINY + 1, SMALL)
            fits = shortest <= frame["length"] <= longest
            self._journal.expect(f"{frame.kind}.length is {shortest}..{longest}", True, fits)
            self._deliver(match_of(frame), frame.data)
            self.line.schedule_ack()

    def _on_fragment(self, partner: Partner, message: Reassembly, frame: Frame) -> None:
        """Section 5."""
        at, size = frame["frag_seqnum"], self.line.dialect.medium_payload
        self._journal.expect("MEDIUM.length is 129..32768", True, SMALL < message.length <= MEDIUM)
        self._journal.expect_fields(frame, length=message.length, frag_length=min(size, message.length - at * size))
        self._journal.expect("match information of the fragment", message.match, match_of(frame))
        if at in message.found:
            self.line.resent += 1
        else:
            self._journal.expect_fields(frame, frag_seqnum=message.next_fragment)
        message.next_fragment = at + 1
        message.found[at] = frame.data
        if message.complete:
            self._deliver(message.match, message.data)
            self._reassembly = None
            partner.rx_done = partner.rx_next
            self.line.schedule_ack()
