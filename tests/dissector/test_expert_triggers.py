"""Every expert info is added to the frame that triggers it, and not to those before; captures have only the known ones.

Each name has a short talk between two hosts of its own, made by the codec. The last frame is the one that must have it.
All talks stand in one capture, which tshark reads once for each set of preferences.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from mxwire.capture import create_capture
from mxwire.dissector import expert_rows
from mxwire.ethernet import BROADCAST
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.enums import NackType
from mxwire.wire.packets import (
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
    Raw,
    Rndv,
    Tiny,
    Truc,
)
from tests.analysis.diagnosis.scene import Scene
from tests.frames import QUERY_MAGIC

from .conftest import Once
from .support import CAPTURES, columns_text, needs_tshark, rows_of

pytestmark = needs_tshark

EXPERT_INFOS: Final = tomllib.loads(Path(__file__).with_name("expert_infos.toml").read_text(encoding="utf-8"))
NAMES: Final = tuple(each.name.removeprefix("mxoe.") for each in expert_rows())
UNKNOWN: Final = 0xFFFFFFFF
NUMBERS: Final = 1 << 14
BLOCK: Final = 8 * 4096
GENERATION_AT, LONGEST_TINY_AT = 19, 20


class Talk(Scene):
    """Frames between endpoint 1 of a host A and endpoint 2 of a host B; methods without a preposition send from A."""

    def __init__(self, place: int = 0, dialect: Dialect = MXOE) -> None:
        super().__init__(dialect)
        # All talks are in one capture: each has hosts and a time of its own.
        self.wait(place * 1_000_000)
        for number, (side, session) in enumerate(((self.a, 0xA), (self.b, 0xB)), 1):
            side.mac = bytes([2, 0, 0, 0, number, place])
            side.endpoint, side.session, side.index_of_peer, side.index_there = number, session, 1, 1

    def put(self, data: bytes, length: int | None = None) -> None:
        self.send_bytes(data, wire_length=length)

    def frame(self, kind: type[Frame], back: bool, put: bool = True, **fields: Any) -> bytes:
        """Builds a frame; `put` it too, unless it is to be changed before."""
        side = self.b if back else self.a
        session = {"liback_session_id": side.peer.session} if kind is Truc else {}
        built = codec_of(self.dialect).build(side.frame(kind, session | fields))
        if put:
            self.put(built)
        return built

    def query(self, back: bool = False, put: bool = True, **fields: Any) -> bytes:
        return self.frame(HostQuery, back, put, **fields)

    def name(self, back: bool = True, put: bool = True, **fields: Any) -> bytes:
        return self.frame(HostReply, back, put, **{"hostname": b"vm:0\0"} | fields)

    def request(self, back: bool = False, number: int = 0, start: int = 1, put: bool = True, **fields: Any) -> bytes:
        request = {"src_session_id": 0xB if back else 0xA, "dst_src_peer_index": 0xFFFF}
        numbers = {"target_recv_seqnum_start": start, "connect_seqnum": number}
        return self.frame(ConnectRequest, back, put, **request | numbers | fields)

    def accept(self, back: bool = True, number: int = 0, start: int = 1, status: int = 0, **fields: Any) -> None:
        sessions = {"src_session_id": 0xA if back else 0xB, "target_session_id": 0xB if back else 0xA}
        numbers = {"target_recv_seqnum_start": start, "connect_seqnum": number, "connect_status_code": status}
        self.frame(ConnectReply, back, **{"dst_src_peer_index": 0xFFFF} | sessions | numbers | fields)

    def join(self) -> None:
        """Both ends know each other."""
        for back in (False, True):
            self.request(back)
            self.accept(not back)

    def tiny(self, number: int = 1, ack: int = 1, back: bool = False, put: bool = True, **fields: Any) -> bytes:
        numbers = {"lib_seqnum": number, "lib_piggyack": ack, "data": b"12345678"}
        return self.frame(Tiny, back, put, **numbers | fields)

    def fragment(self, part: int, size: int, total: int, number: int = 1, **fields: Any) -> bytes:
        place = {"frag_seqnum": part, "length": total, "data": bytes(size), "lib_seqnum": number}
        pipeline = {"frag_pipeline": 12 if self.dialect is MXOE else None}
        return self.frame(Medium, False, **place | pipeline | fields)

    def ack(self, value: int, number: int = 1, **fields: Any) -> None:
        """From B: the message of A was received."""
        numbers = {"liback_lib_seqnum": value, "liback_acknum": number, "liback_send_seq": value}
        self.frame(Truc, True, **numbers | fields)

    def announce(self, length: int = BLOCK, region: int = 3, number: int = 1) -> None:
        """From B to A, which then pulls."""
        what = {"msg_length": length, "pulled_rdma_id": region, "pulled_rdma_seqnum": 0}
        self.frame(Rndv, True, lib_seqnum=number, **what)

    def pull(self, frame: int = 0, length: int = BLOCK, total: int = BLOCK, region: int = 3, **fields: Any) -> None:
        what = {"total_length": total, "pulled_rdma_id": region, "pulled_rdma_seqnum": 0}
        block = {"block_length": length, "frame_index": frame, "src_pull_handle": 9}
        self.frame(Pull, False, **what | block | fields)

    def data(self, frame: int, size: int = 4096, **fields: Any) -> None:
        """From B: a frame of what A pulls."""
        place = {"frame_seqnum": frame % 256, "msg_offset": 4096 * frame, "data": bytes(size)}
        self.frame(PullReply, True, **place | {"dst_pull_handle": 9} | fields)

    def transfer(self, total: int = BLOCK) -> None:
        """RNDV, PULL and all data of one block, without the NOTIFY."""
        self.announce(total)
        self.pull(length=total, total=total)
        for frame in range(total // 4096):
            self.data(frame)

    def notify(self, length: int = BLOCK, region: int = 3, number: int = 1) -> None:
        numbers = {"lib_seqnum": number, "lib_piggyack": 2}
        self.frame(Notify, False, total_length=length, pulled_rdma_id=region, pulled_rdma_seqnum=0, **numbers)

    def nack(self, kind: int, number: int = 0, back: bool = True) -> None:
        self.frame(NackLib, back, nack_type=kind, lib_seqnum=number, dst_src_peer_index_copy=1)

    def refuse(self, kind: int, handle: int = 9) -> None:
        """From B: it does not answer the PULL."""
        self.frame(NackMcp, True, src_endpoint=1, nack_type=kind, src_pull_handle=handle)


@dataclass(frozen=True)
class Case:
    """Exchanges that trigger an expert info."""

    name: str
    act: Callable[[Talk], object]
    dialect: Dialect = MXOE
    preferences: tuple[str, ...] = ()


CASES: list[Case] = []


def case(
    name: str, dialect: Dialect = MXOE, preferences: tuple[str, ...] = ()
) -> Callable[[Callable[[Talk], object]], Callable[[Talk], object]]:
    def add(act: Callable[[Talk], object]) -> Callable[[Talk], object]:
        CASES.append(Case(name, act, dialect, preferences))
        return act

    return add


def simple(name: str, act: Callable[[Talk], object]) -> None:
    CASES.append(Case(name, act))


# Exchanges in which a single frame is the trigger.

simple("malformed.bad_header_length", lambda t: t.put(t.tiny(put=False)[:30]))
simple("malformed.invalid_type", lambda t: t.put(changed(t.tiny(put=False), 16, b"\x20")))
simple("malformed.unknown_type", lambda t: t.put(changed(t.tiny(put=False), 16, b"\x60")))
simple("malformed.bad_data_length", lambda t: t.put(changed(t.tiny(put=False), LONGEST_TINY_AT, b"\0\x21")))
simple("malformed.bad_frame_length", lambda t: t.put(t.fragment(0, 1000, 1000, put=False)[:900]))
simple("malformed.raw_too_large", lambda t: t.frame(Raw, False, opaque=bytes(1100)))
simple("malformed.cut_by_capture", lambda t: t.put(t.tiny(put=False)[:30], 60))
simple("frame.short", lambda t: t.put(t.tiny(put=False)[:50]))
simple("frame.data_cut", lambda t: t.put(t.fragment(0, 1000, 1000, put=False)[:900], 1048))
simple("frame.broadcast", lambda t: t.put(BROADCAST + t.tiny(put=False)[6:]))
simple("undefined.leaked", lambda t: t.put(changed(t.tiny(put=False), GENERATION_AT, b"\x01")))
simple("truc.subtype", lambda t: t.ack(2, liback_type=1))
simple("truc.length", lambda t: t.ack(2, length=15))
simple("truc.sessions_differ", lambda t: t.ack(2, liback_session_id=5))
simple("host_query.not_unicast", lambda t: t.query(dst_mac=BROADCAST))
simple("host_query.padded", lambda t: t.put(t.query(put=False, magic=1).ljust(600, b"\0")))
simple("host_reply.name_length", lambda t: t.name(hostname=b"x" * 81, length=81))
simple("host_reply.name_cut", lambda t: t.put(changed(t.name(put=False), 17, b"\x50")))
simple("medium.fragment_too_long", lambda t: t.fragment(0, 1000, 900))
simple("medium.fragment_number", lambda t: t.fragment(32, 4096, 60000))
simple("pull.too_many_replies", lambda t: t.pull(length=BLOCK + 1, total=2 * BLOCK))
simple("pull.first_frame_offset", lambda t: t.pull(length=4096, first_frame_offset=4096))
simple("connect.bad_status", lambda t: (t.request(), t.accept(status=5)))
simple("connect.session_number", lambda t: t.request(start=NUMBERS + 1))
simple("nack_lib.unknown_type", lambda t: (t.tiny(), t.nack(9, 1)))
simple("nack_mcp.unknown_type", lambda t: (t.pull(), t.refuse(9)))
simple("analysis.refused", lambda t: t.ack(2, session=UNKNOWN, liback_session_id=UNKNOWN))
simple("analysis.unknown_index", lambda t: t.tiny(dst_src_peer_index=0xFFFF))


@case("pull.no_such_region", omx())
def _(t: Talk) -> None:
    t.pull(region=256)


@case("dialect.mismatch")
def _(t: Talk) -> None:
    for number in range(1, 5):
        t.fragment(0, 1000, 1000, number)
    t.dialect = omx()
    t.fragment(0, 1000, 1000, 5)


@case("checksum.bad", preferences=("-o", "mxoe.checksum:TRUE"))
def _(t: Talk) -> None:
    t.tiny(checksum=0x1234)


# Host names and connections.

simple("host_query.repeated", lambda t: (t.query(), t.query()))
simple("host_reply.bad_magic", lambda t: (t.query(), t.name(magic=QUERY_MAGIC + 1)))
simple("host_reply.own_address", lambda t: t.name(src_mac=t.a.mac, dst_mac=t.a.mac))
simple("connect.bad_key", lambda t: (t.request(), t.accept(status=11)))
simple("connect.refused", lambda t: (t.request(), t.nack(NackType.ENDPT_CLOSED)))
simple("connect.unmatched_reply", lambda t: t.accept())
simple("connect.repeated", lambda t: (t.request(), t.wait(500), t.request()))
simple("connect.repeated_reply", lambda t: (t.request(), t.accept(), t.accept()))
simple("connect.restart", lambda t: (t.request(), t.accept(), t.request(number=1, src_session_id=0xAA)))
simple("connect.no_reverse", lambda t: (t.request(), t.accept(), t.tiny(back=True)))
simple("nack_lib.bad_endpt", lambda t: (t.tiny(), t.nack(NackType.BAD_ENDPT, 1)))
simple("nack_lib.endpt_closed", lambda t: (t.tiny(), t.nack(NackType.ENDPT_CLOSED, 1)))
simple("nack_lib.bad_session", lambda t: (t.tiny(), t.nack(NackType.BAD_SESSION, 1)))
simple("nack_lib.unmatched", lambda t: t.nack(NackType.BAD_SESSION, 1))
simple("analysis.closed_endpoint", lambda t: (t.tiny(), t.nack(NackType.ENDPT_CLOSED, 1), t.tiny(2)))
simple("analysis.session_mismatch", lambda t: (t.join(), t.tiny(session=0xC)))
simple("analysis.stale_index", lambda t: (t.join(), t.tiny(dst_src_peer_index=2)))


# Messages and acknowledgements.

simple("analysis.retransmission", lambda t: (t.tiny(), t.wait(500), t.tiny()))
simple("analysis.duplicate", lambda t: (t.tiny(), t.tiny()))
simple("analysis.out_of_order", lambda t: (t.tiny(1), t.tiny(3), t.tiny(2)))
simple("analysis.early", lambda t: (t.tiny(1), t.tiny(3)))
simple("analysis.gap", lambda t: (t.tiny(1), t.tiny(3)))
simple("analysis.obsolete", lambda t: (t.tiny(1), t.ack(2), t.wait(500), t.tiny(1)))
simple("analysis.ack_gap", lambda t: (t.tiny(1), t.ack(3)))
simple("analysis.duplicate_ack", lambda t: (t.tiny(1), t.ack(2, 1), t.ack(2, 2)))
simple("analysis.obsolete_ack", lambda t: (t.tiny(1), t.ack(1, 1), t.ack(2, 2), t.ack(2, 1)))
simple("analysis.session_number", lambda t: (t.tiny(1), t.tiny(NUMBERS + 2)))
simple("medium.contradiction", lambda t: (t.fragment(0, 4096, 6000), t.fragment(1, 1904, 6000, match_b=1)))
simple("reassembly.overlap", lambda t: (t.fragment(0, 3000, 6000), t.fragment(1, 3000, 6000)))
simple("reassembly.incomplete", lambda t: (t.fragment(0, 4096, 6000), t.ack(2)))


@case("analysis.throttled")
def _(t: Talk) -> None:
    """As many numbers as may be, most of which are not in the capture; the receiver takes none 255 ahead."""
    for number in (*range(1, 8191, 255), 8191):
        t.tiny(number)


@case("reassembly.memory", preferences=("-o", "mxoe.memory:0"))
def _(t: Talk) -> None:
    t.fragment(0, 4096, 6000)
    t.fragment(1, 1904, 6000)


@case("reassembly.cut")
def _(t: Talk) -> None:
    t.fragment(0, 4096, 6000)
    last = t.fragment(1, 1904, 6000, put=False)
    t.put(last[:100], len(last))


# Transfers by pull.

simple("pull.out_of_range", lambda t: (t.announce(4096), t.pull(length=4097, total=4096)))
simple("pull.handle_reused", lambda t: (t.pull(), t.pull(region=4)))
simple("pull.without_rndv", lambda t: t.pull())
simple("pull_reply.unknown_handle", lambda t: t.data(0))
simple("pull_reply.wrap_around", lambda t: (t.pull(), t.data(1, frame_seqnum=2)))
simple("pull_reply.not_requested", lambda t: (t.pull(total=2 * BLOCK), t.data(8)))
simple("pull_reply.short", lambda t: (t.pull(), t.data(0, 4000)))
simple("pull_reply.out_of_range", lambda t: (t.pull(length=6000, total=6000), t.data(1)))
simple("pull_reply.late", lambda t: (t.transfer(), t.notify(), t.data(7)))
simple("notify.failed", lambda t: (t.announce(), t.pull(), t.notify(0)))
simple("notify.truncated", lambda t: (t.transfer(4096), t.notify(4095)))
simple("notify.unmatched", lambda t: t.notify())
simple("nack_mcp.bad_endpt", lambda t: (t.pull(), t.refuse(NackType.BAD_ENDPT)))
simple("nack_mcp.endpt_closed", lambda t: (t.pull(), t.refuse(NackType.ENDPT_CLOSED)))
simple("nack_mcp.bad_session", lambda t: (t.pull(), t.refuse(NackType.BAD_SESSION)))
simple("nack_mcp.bad_rdmawin", lambda t: (t.pull(), t.refuse(NackType.BAD_RDMAWIN)))
simple("nack_mcp.unmatched", lambda t: t.refuse(NackType.BAD_SESSION))
simple("analysis.nacked", lambda t: (t.tiny(), t.nack(NackType.BAD_SESSION, 1), t.wait(500), t.tiny()))
simple("analysis.probe", lambda t: t.pull(src_endpoint=255, dst_endpoint=255))
simple("analysis.re_request", lambda t: (t.pull(), t.wait(1000), t.pull()))
simple("analysis.zombie_pull", lambda t: (t.transfer(), t.notify(), t.wait(1000), t.pull()))


@case("pull_reply.closed_endpoint")
def _(t: Talk) -> None:
    t.announce()
    t.pull()
    t.nack(NackType.ENDPT_CLOSED, 1, back=False)
    t.data(0)


@case("analysis.early_re_request")
def _(t: Talk) -> None:
    """The second block is complete, the first is not."""
    t.announce(2 * BLOCK)
    t.pull(total=2 * BLOCK)
    t.pull(8, total=2 * BLOCK)
    for frame in range(8, 16):
        t.data(frame)
    t.pull(total=2 * BLOCK)


def changed(frame: bytes, place: int, data: bytes) -> bytes:
    return frame[:place] + data + frame[place + len(data) :]


def write(path: Path, talks: Iterable[Talk]) -> None:
    """One capture, in which the talks come one after the other."""
    with create_capture(path, format="pcap") as writer:
        for talk in talks:
            writer.write(talk.batch())


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, once: Once) -> dict[str, list[set[str]]]:
    """For each case, the expert infos of its frames."""
    by_preferences: dict[tuple[str, ...], list[tuple[Case, Talk]]] = {}
    for place, each in enumerate(CASES):
        talk = Talk(place, each.dialect)
        each.act(talk)
        by_preferences.setdefault(each.preferences, []).append((each, talk))
    result: dict[str, list[set[str]]] = {}
    for preferences, cases in by_preferences.items():
        path = tmp_path_factory.mktemp("experts") / "talks.pcap"
        write(path, [talk for _, talk in cases])
        frames = iter(experts_of(once(" ".join(("experts", *preferences)), partial(experts_text, path, *preferences))))
        for each, talk in cases:
            result[each.name] = [next(frames) for _ in talk.frames]
        assert next(frames, None) is None
    return result


def experts_text(path: Path, *preferences: str) -> str:
    return columns_text(path, ["frame.number", *(f"mxoe.{each}" for each in NAMES)], *preferences)


def experts_of(text: str) -> list[set[str]]:
    return [{name for name, value in zip(NAMES, row[1:], strict=False) if value} for row in rows_of(text)]


def test_every_expert_has_a_case() -> None:
    assert sorted(each.name for each in CASES) == sorted(NAMES)


@pytest.mark.parametrize("name", [each.name for each in CASES])
def test_the_last_frame_and_none_before(name: str, found: dict[str, list[set[str]]]) -> None:
    *before, last = found[name]
    assert name in last, last
    assert not [place for place, each in enumerate(before, 1) if name in each]


def test_a_healthy_conversation_has_none(tmp_path: Path) -> None:
    talk = Talk()
    for back in (False, True):
        talk.query(back)
        talk.name(not back)
    talk.join()
    talk.tiny(1)
    talk.fragment(0, 4096, 6000, 2)
    talk.fragment(1, 1904, 6000, 2)
    talk.ack(3)
    talk.transfer()
    talk.notify(number=3)
    talk.ack(4, 2)
    path = tmp_path / "healthy.pcap"
    write(path, [talk])
    assert experts_of(experts_text(path)) == [set()] * len(talk.frames)


def test_every_capture_is_listed() -> None:
    assert sorted(EXPERT_INFOS) == sorted(CAPTURES)
