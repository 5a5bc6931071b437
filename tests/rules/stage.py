"""Two hosts on a stage: they send the frames of a script, correct by default, and the judge observes."""

from __future__ import annotations

from typing import Any

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

MILLISECOND = 1_000_000
KEY = 0x12345678
MAGIC = 0x13052008


class Side:
    """One host with one endpoint, and the state from which a correct implementation would build its next packet."""

    def __init__(self, stage: Stage, mac: bytes, endpoint: int, session: int, index: int) -> None:
        self.stage = stage
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

    def head(self, changes: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {"dst_mac": self.peer.mac, "src_mac": self.mac} | fields | changes

    def addressed(self, changes: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return self.head(
            changes,
            dst_src_peer_index=self.index_there,
            dst_endpoint=self.peer.endpoint,
            src_endpoint=self.endpoint,
            **fields,
        )

    def numbered(self, changes: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """A new number, unless ``changes`` say which."""
        made = self.addressed(
            changes, session=self.peer.session, lib_seqnum=self.next, lib_piggyack=self.expected, **fields
        )
        if "lib_seqnum" not in changes:
            self.next += 1
            self.peer.expected = self.next
        return made

    def request(self, **changes: Any) -> ConnectRequest:
        number = self.connects
        if "connect_seqnum" not in changes:
            self.connects += 1
        self.peer.index_there = self.index_of_peer
        return ConnectRequest(
            **self.addressed(
                changes,
                src_dst_peer_index=self.index_of_peer,
                src_session_id=self.session,
                app_key=KEY,
                target_recv_seqnum_start=self.expected,
                connect_seqnum=number,
            )
        )

    def reply(self, **changes: Any) -> ConnectReply:
        self.peer.index_there = self.index_of_peer
        return ConnectReply(
            **self.addressed(
                changes,
                src_dst_peer_index=self.index_of_peer,
                src_session_id=self.peer.session,
                target_session_id=self.session,
                target_recv_seqnum_start=self.expected,
                connect_seqnum=self.peer.connects - 1,
                connect_status_code=0,
            )
        )

    def tiny(self, data: bytes = b"hello", **changes: Any) -> Tiny:
        return Tiny(**self.numbered(changes, length=len(data), data=data, match_a=0, match_b=7))

    def small(self, data: bytes = bytes(40), **changes: Any) -> Small:
        return Small(**self.numbered(changes, length=len(data), data=data, match_a=0, match_b=7))

    def medium(self, length: int, fragment: int, **changes: Any) -> Medium:
        """One fragment; only the first takes a new number."""
        size = self.stage.dialect.fragment_payload
        carried = min(size, length - fragment * size)
        fields = self.addressed(
            changes,
            session=self.peer.session,
            lib_seqnum=self.next if fragment == 0 else self.next - 1,
            lib_piggyack=self.expected,
            length=length,
            frag_length=carried,
            frag_seqnum=fragment,
            frag_pipeline=12 if self.stage.dialect is MXOE else None,
            match_a=0,
            match_b=7,
            data=bytes([fragment]) * carried,
        )
        if fragment == 0 and "lib_seqnum" not in changes:
            self.next += 1
            self.peer.expected = self.next
        return Medium(**fields)

    def rndv(self, total: int, **changes: Any) -> Rndv:
        counter = self.rdma_counter
        if "pulled_rdma_seqnum" not in changes and "lib_seqnum" not in changes:
            self.rdma_counter += 1
        return Rndv(
            **self.numbered(
                changes,
                msg_length=total,
                pulled_rdma_id=0,
                pulled_rdma_seqnum=counter,
                pulled_rdma_offset=0,
                match_a=0,
                match_b=7,
            )
        )

    def pull(self, total: int, block: int = 0, **changes: Any) -> Pull:
        """The PULL of a block of the peer's last large message."""
        dialect = self.stage.dialect
        return Pull(
            **self.addressed(
                changes,
                session=self.peer.session,
                total_length=total,
                pulled_rdma_id=0,
                pulled_rdma_seqnum=self.peer.rdma_counter - 1,
                pulled_rdma_offset=0,
                src_pull_handle=self.handle,
                src_magic=0x21071980 ^ self.endpoint,
                first_frame_offset=0,
                block_length=min(dialect.block_length, total - block * dialect.block_length),
                frame_index=block * dialect.frames_per_block,
            )
        )

    def data(self, total: int, place: int, **changes: Any) -> PullReply:
        """A frame of the own large message, as the peer pulls it."""
        size = self.stage.dialect.reply_payload
        length = min(size, total - place * size)
        fields = self.head(
            changes,
            frame_seqnum=place & 0xFF,
            frame_length=length,
            msg_offset=place * size,
            dst_pull_handle=self.peer.handle,
            dst_magic=0x21071980 ^ self.peer.endpoint,
        )
        return PullReply(**({"data": bytes([place & 0xFF]) * fields["frame_length"]} | fields))

    def notify(self, total: int, **changes: Any) -> Notify:
        return Notify(
            **self.numbered(
                changes, total_length=total, pulled_rdma_id=0, pulled_rdma_seqnum=self.peer.rdma_counter - 1
            )
        )

    def liback(self, **changes: Any) -> Truc:
        self.libacks += 1
        return Truc(
            **self.addressed(
                changes,
                session=self.peer.session,
                liback_lib_seqnum=self.expected,
                liback_session_id=self.peer.session,
                liback_acknum=self.libacks,
                liback_send_seq=self.expected,
            )
        )

    def nack(self, kind: int, number: int, **changes: Any) -> NackLib:
        return NackLib(
            **self.addressed(
                changes,
                nack_type=kind,
                lib_seqnum=number,
                dst_src_peer_index_copy=changes.get("dst_src_peer_index", self.index_there),
            )
        )

    def nack_pull(self, kind: int, **changes: Any) -> NackMcp:
        return NackMcp(
            **self.head(
                changes,
                dst_src_peer_index=self.index_there,
                src_endpoint=self.peer.endpoint,
                nack_type=kind,
                src_pull_handle=self.peer.handle,
                src_magic=0x21071980 ^ self.peer.endpoint,
            )
        )

    def query(self, **changes: Any) -> HostQuery:
        self.peer.index_there = changes.get("src_dst_peer_index", self.index_of_peer)
        return HostQuery(**self.head(changes, src_dst_peer_index=self.index_of_peer, magic=MAGIC))

    def name(self, **changes: Any) -> HostReply:
        self.peer.index_there = self.index_of_peer
        fields = self.head(changes, src_dst_peer_index=self.index_of_peer, magic=MAGIC, hostname=b"node:0\0")
        return HostReply(**({"length": len(fields["hostname"])} | fields))

    def announcement(self, **changes: Any) -> Announcement:
        number = int.from_bytes(self.mac, "big")
        return Announcement(
            **self.head(
                {"dst_mac": b"\xff" * 6} | changes, nic_id_hi=number >> 32, nic_id_lo=number & 0xFFFFFFFF, serial=99
            )
        )


class Listening(Judge):
    """A judge that remembers which functions found a breach."""

    def __init__(self, dialect: Dialect, vantage: Vantage) -> None:
        super().__init__(dialect, vantage)
        self.fired: set[str] = set()

    def _violation(self, rule: WireRule, breach: Breach, host: bytes) -> Violation:
        self.fired.add(rule.symbol)
        return super()._violation(rule, breach, host)


class Stage:
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

    def connect(self) -> Stage:
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
