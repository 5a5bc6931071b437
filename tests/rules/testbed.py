"""Two hosts on a testbed: they send the frames of a script, correct by default, and the judge observes."""

from __future__ import annotations

from typing import Any

from mxwire.ethernet import BROADCAST
from mxwire.rules import SENDERS, Judge, Vantage, Violation
from mxwire.rules.registry import Breach, WireRule
from mxwire.wire.codec import build, parse
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.packets import (
    Announcement,
    ConnectReply,
    ConnectRequest,
    Frame,
    HostQuery,
    HostReply,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
    Truc,
)
from tests.frames import PULL_MAGIC, FrameT, make_frame

MILLISECOND = 1_000_000
KEY = 0x12345678


class Side:
    """One host with one endpoint, and the state from which a correct implementation would build its next packet."""

    def __init__(self, testbed: Testbed, mac: bytes, endpoint: int, session: int, index: int) -> None:
        self.testbed = testbed
        self.mac = mac
        self.endpoint = endpoint
        self.session = session
        self.index_of_peer = index
        self.peer: Side = self
        self.index_there = 0xFFFF
        self.next = 1
        self.expected = 1
        self.connects = 0
        self.libacks = 0
        self.rdma_counter = 23
        self.handle = 0x23

    def reopen(self) -> None:
        """Close the endpoint, and open it again with another session; the script must show this on the wire."""
        self.session ^= 0x55555555
        self.next = self.expected = self.peer.next = self.peer.expected = 1
        self.connects = self.libacks = self.peer.libacks = 0

    def frame(self, kind: type[FrameT], changes: dict[str, Any], **fields: Any) -> FrameT:
        """A frame to the endpoint of the peer, with ``changes`` to ``fields``."""
        common = {
            "dst_mac": self.peer.mac,
            "src_mac": self.mac,
            "dst_src_peer_index": self.index_there,
            "src_dst_peer_index": self.index_of_peer,
            "dst_endpoint": self.peer.endpoint,
            "src_endpoint": self.endpoint,
            "session": self.peer.session,
            "lib_piggyack": self.expected,
            "match_b": 7,
        }
        return make_frame(kind, common, **fields | changes)

    def numbered(self, kind: type[FrameT], changes: dict[str, Any], **fields: Any) -> FrameT:
        """The same with a new number, unless ``changes`` say which."""
        made = self.frame(kind, changes, **{"lib_seqnum": self.next} | fields)
        if "lib_seqnum" not in changes:
            self.next += 1
            self.peer.expected = self.next
        return made

    def request(self, **changes: Any) -> ConnectRequest:
        number = self.connects
        if "connect_seqnum" not in changes:
            self.connects += 1
        self.peer.index_there = self.index_of_peer
        fields = {"src_session_id": self.session, "app_key": KEY, "connect_seqnum": number}
        return self.frame(ConnectRequest, changes, target_recv_seqnum_start=self.expected, **fields)

    def reply(self, **changes: Any) -> ConnectReply:
        self.peer.index_there = self.index_of_peer
        fields = {"src_session_id": self.peer.session, "target_session_id": self.session}
        numbers = {"target_recv_seqnum_start": self.expected, "connect_seqnum": self.peer.connects - 1}
        return self.frame(ConnectReply, changes, **fields, **numbers)

    def tiny(self, data: bytes = b"hello", **changes: Any) -> Tiny:
        return self.numbered(Tiny, changes, data=data)

    def small(self, data: bytes = bytes(40), **changes: Any) -> Small:
        return self.numbered(Small, changes, data=data)

    def medium(self, length: int, fragment: int, **changes: Any) -> Medium:
        """One fragment; only the first takes a new number."""
        size = self.testbed.dialect.fragment_payload
        carried = min(size, length - fragment * size)
        fields = {
            "length": length,
            "frag_length": carried,
            "frag_seqnum": fragment,
            "frag_pipeline": 12 if self.testbed.dialect is MXOE else None,
            "data": bytes([fragment]) * carried,
        }
        if fragment:
            return self.frame(Medium, changes, lib_seqnum=self.next - 1, **fields)
        return self.numbered(Medium, changes, **fields)

    def rndv(self, total: int, **changes: Any) -> Rndv:
        counter = self.rdma_counter
        if "pulled_rdma_seqnum" not in changes and "lib_seqnum" not in changes:
            self.rdma_counter += 1
        return self.numbered(Rndv, changes, msg_length=total, pulled_rdma_seqnum=counter)

    def pull(self, total: int, block: int = 0, **changes: Any) -> Pull:
        """The PULL of a block of the peer's last large message."""
        dialect = self.testbed.dialect
        return self.frame(
            *(Pull, changes),
            total_length=total,
            pulled_rdma_seqnum=self.peer.rdma_counter - 1,
            src_pull_handle=self.handle,
            src_magic=PULL_MAGIC ^ self.endpoint,
            block_length=min(dialect.block_length, total - block * dialect.block_length),
            frame_index=block * dialect.frames_per_block,
        )

    def data(self, total: int, place: int, **changes: Any) -> PullReply:
        """A frame of the own large message, as the peer pulls it."""
        size = self.testbed.dialect.reply_payload
        length = changes.get("frame_length", min(size, total - place * size))
        return self.frame(
            *(PullReply, changes),
            frame_seqnum=place & 0xFF,
            frame_length=length,
            msg_offset=place * size,
            dst_pull_handle=self.peer.handle,
            dst_magic=PULL_MAGIC ^ self.peer.endpoint,
            data=bytes([place & 0xFF]) * length,
        )

    def notify(self, total: int, **changes: Any) -> Notify:
        counter = self.peer.rdma_counter - 1
        return self.numbered(Notify, changes, total_length=total, pulled_rdma_seqnum=counter)

    def liback(self, **changes: Any) -> Truc:
        self.libacks += 1
        fields = {"liback_session_id": self.peer.session, "liback_acknum": self.libacks}
        return self.frame(Truc, changes, liback_lib_seqnum=self.expected, liback_send_seq=self.expected, **fields)

    def nack(self, kind: int, number: int, **changes: Any) -> NackLib:
        index = changes.get("dst_src_peer_index", self.index_there)
        return self.frame(NackLib, changes, nack_type=kind, lib_seqnum=number, dst_src_peer_index_copy=index)

    def nack_pull(self, kind: int, **changes: Any) -> NackMcp:
        pull = {"src_pull_handle": self.peer.handle, "src_magic": PULL_MAGIC ^ self.peer.endpoint}
        return self.frame(NackMcp, changes, src_endpoint=self.peer.endpoint, nack_type=kind, **pull)

    def query(self, **changes: Any) -> HostQuery:
        self.peer.index_there = changes.get("src_dst_peer_index", self.index_of_peer)
        return self.frame(HostQuery, changes)

    def name(self, **changes: Any) -> HostReply:
        self.peer.index_there = self.index_of_peer
        return self.frame(HostReply, changes)

    def announcement(self, **changes: Any) -> Announcement:
        high, low = divmod(int.from_bytes(self.mac, "big"), 1 << 32)
        fields = {"dst_mac": BROADCAST, "src_mac": self.mac, "nic_id_hi": high, "nic_id_lo": low, "serial": 99}
        return make_frame(Announcement, fields | changes)


class Listening(Judge):
    """A judge that remembers which functions found a breach."""

    def __init__(self, dialect: Dialect, vantage: Vantage) -> None:
        super().__init__(dialect, vantage)
        self.fired: set[str] = set()

    def _violation(self, rule: WireRule, breach: Breach, host: bytes) -> Violation:
        self.fired.add(rule.symbol)
        return super()._violation(rule, breach, host)


class Testbed:
    """Time, the two hosts, and the judge."""

    def __init__(self, dialect: Dialect = MXOE, vantage: Vantage = SENDERS) -> None:
        self.dialect = dialect
        self.judge = Listening(dialect, vantage)
        self.time_ns = 1_000_000_000
        self.number = 0
        self.sent: list[tuple[int, bytes]] = []
        self.found: list[Violation] = []
        self.a = Side(self, b"\x02\0\0\0\0\x0a", 0, 0x11112222, 1)
        self.b = Side(self, b"\x02\0\0\0\0\x0b", 5, 0x33334444, 3)
        self.a.peer, self.b.peer = self.b, self.a

    def send(self, *frames: Frame, after_ms: float = 1, **knowledge: Any) -> None:
        """Transmit the frames, each ``after_ms`` ms after the one before."""
        for frame in frames:
            self.send_bytes(build(frame, self.dialect), after_ms, **knowledge)

    def send_bytes(self, raw: bytes, after_ms: float = 1, **knowledge: Any) -> None:
        """Bytes as they are."""
        self.time_ns += int(after_ms * MILLISECOND)
        self.number += 1
        self.sent.append((self.time_ns, raw))
        frame = parse(raw, self.dialect)
        self.found += self.judge.observe(self.time_ns, frame, raw, self.number, **knowledge)

    def connect(self) -> Testbed:
        """Both directions, as the specification wants it."""
        self.send(self.a.request())
        self.send(self.b.reply())
        self.send(self.b.request())
        self.send(self.a.reply())
        return self

    def large(self, total: int) -> None:
        """A large message from a to b, pulled in one window, with its NOTIFY."""
        blocks = -(-total // self.dialect.block_length)
        frames = -(-total // self.dialect.reply_payload)
        self.send(self.a.rndv(total))
        self.send(*(self.b.pull(total, block) for block in range(blocks)))
        self.send(*(self.a.data(total, place) for place in range(frames)))
        self.send(self.b.notify(total))
        self.b.handle += 1

    @property
    def rules(self) -> set[tuple[str, str]]:
        """Return the findings except notes."""
        return {(each.rule, each.severity) for each in self.found if each.severity != "note"}
