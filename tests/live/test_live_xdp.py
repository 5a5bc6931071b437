"""XdpLink and XdpSender: what other links do not have. ``test_live_link.py`` tests them as links."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mxwire.frames import FrameBatch
from mxwire.link import LinkError, LinkStatistics, XdpLink, XdpSender, xdp
from mxwire.link import bpf as kernel
from mxwire.link.bpf import BpfProgram, XdpMode
from mxwire.link.bpf_code import XdpAction, give
from mxwire.link.umem import CHUNK, SHORT_CHUNK, BindFlag, XdpSocket
from mxwire.link.xdp_transmit import TRANSMIT_BYTES
from tests.link.link_frames import BROADCAST, batch, contents, frame, numbered, tagged
from tests.waiting import until

from .links import LONG, own_cable, raw_socket, receive
from .links import opened as open_link
from .links import shared_cable as cable
from .links import shared_jumbo_cable as jumbo_cable
from .namespaces import Laboratory, Port, as_nobody

pytestmark = pytest.mark.usefixtures("_programs_work")

__all__ = ["cable", "jumbo_cable", "own_cable"]

DETACH = 34
"""BPF_LINK_DETACH."""


opened = partial(open_link, kind=XdpLink)
sender = partial(open_link, kind=XdpSender)


@pytest.fixture
def jumbo(jumbo_cable: tuple[Port, Port]) -> Iterator[tuple[XdpLink, XdpLink]]:
    with opened(jumbo_cable[0]) as one, opened(jumbo_cable[1]) as other:
        yield one, other


def of_random_lengths(to: bytes, count: int, seed: int, longest: int = 9014) -> list[bytes]:
    random = np.random.default_rng(seed)
    return [frame(to, payload=random.bytes(length - 14)) for length in random.integers(14, longest + 1, count).tolist()]


# Modes.


@pytest.mark.parametrize("mode", XdpMode)
def test_the_mode_that_is_used_is_known(cable: tuple[Port, Port], mode: XdpMode) -> None:
    """On veth a native program gains nothing, so it is used on request only."""
    with opened(cable[0], mode=mode) as link:
        assert link.program_mode is (XdpMode.NATIVE if mode is XdpMode.NATIVE else XdpMode.GENERIC)
        assert not link.zero_copy and link.refusals == []
        shown = cable[0].namespace.ip("link", "show", "dev", "veth0")
        assert ("xdpgeneric" in shown) == (link.program_mode is XdpMode.GENERIC)


def test_a_refused_mode_falls_back_with_the_reason(own_cable: tuple[Port, Port]) -> None:
    here = own_cable[0].namespace
    here.ip("link", "add", "br0", "type", "bridge")
    with opened(Port(here, "br0")) as link:
        assert link.program_mode is XdpMode.GENERIC
        assert link.refusals == [
            "native mode, zero-copy: Operation not supported",
            "native mode, copying: br0: cannot attach a BPF program: its driver has no native XDP; use generic mode",
        ]
    with pytest.raises(LinkError, match=r"br0: .*its driver has no native XDP; use generic mode"):
        opened(Port(here, "br0"), mode=XdpMode.NATIVE)


@pytest.fixture
def separate_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout of memory for zero-copy drivers, on a driver that copies."""
    bind = XdpSocket.bind

    def copying(self: XdpSocket, queue: int, flags: BindFlag) -> None:
        bind(self, queue, flags & ~BindFlag.ZERO_COPY | BindFlag.COPY)

    monkeypatch.setattr(XdpSocket, "bind", copying)
    monkeypatch.setattr(xdp, "_mode_pairs", lambda *_: [xdp._ModePair(XdpMode.GENERIC, zero_copy=True)])


@pytest.mark.interpreted
@pytest.mark.usefixtures("separate_chunks")
@pytest.mark.parametrize("seed", [1, 2])
def test_frames_in_separate_chunks_are_joined(jumbo_cable: tuple[Port, Port], seed: int) -> None:
    with opened(jumbo_cable[0]) as one, opened(jumbo_cable[1], chunks=256) as other:
        assert other.room(100) is None
        for turn in range(10):
            sent = of_random_lengths(other.address, 60, 100 * seed + turn)
            for group in (sent[:3], sent[3:]):
                assert one.send(batch(group)) == len(group)
            assert receive(other, len(sent)) == sent
            assert one.send_few(sent[:5]) == 5
            assert receive(other, 5) == sent[:5]


# Rings.


@pytest.mark.parametrize("mode", [XdpMode.GENERIC, XdpMode.NATIVE])
def test_small_rings_go_round_with_frames_of_all_lengths(jumbo_cable: tuple[Port, Port], mode: XdpMode) -> None:
    with opened(jumbo_cable[0], mode=mode) as one, opened(jumbo_cable[1], mode=mode, chunks=256, chunk=4096) as other:
        for turn in range(40):
            sent = of_random_lengths(other.address, 40, turn)
            assert one.send(batch(sent)) == len(sent)
            assert receive(other, len(sent)) == sent
        for turn in range(20):
            # The chunks of the last batch are returned by the next receive only.
            sent = numbered(other.address, 35, 9014, first=turn)
            assert one.send(batch(sent)) == len(sent)
            assert receive(other, len(sent)) == sent
        assert other.statistics() == LinkStatistics(received=40 * 40 + 20 * 35)


def test_chunks_are_short_if_all_frames_fit_into_them(laboratory: Laboratory) -> None:
    for mtu, chunk in ((1500, SHORT_CHUNK), (1778, SHORT_CHUNK), (1779, CHUNK)):
        with opened(laboratory.pair(mtu)[0]) as link:
            assert link._xdp.chunk == chunk


@pytest.mark.parametrize("mode", [XdpMode.GENERIC, XdpMode.NATIVE])
def test_frames_of_all_lengths_pass_through_short_chunks(jumbo_cable: tuple[Port, Port], mode: XdpMode) -> None:
    with (
        opened(jumbo_cable[0], mode=mode, chunk=SHORT_CHUNK) as one,
        opened(jumbo_cable[1], mode=mode, chunk=SHORT_CHUNK, chunks=512) as other,
    ):
        edges = [14, 1792, 1793, 2048, 2049, 2112, 3500, 3584, 3585, 4096, 9014]
        sent = [frame(other.address, payload=bytes(length - 14)) for length in edges]
        for turn in range(20):
            assert one.send(batch(sent)) == one.send_few(sent[:4]) + len(sent) - 4
            assert one.send(in_place(one, sent)) == len(sent)
            assert receive(other, 2 * len(sent) + 4) == [*sent, *sent[:4], *sent]
            sent = of_random_lengths(other.address, 30, turn)
        assert other.statistics().dropped == 0


def test_frames_without_a_chunk_are_counted_and_the_rest_arrive(cable: tuple[Port, Port]) -> None:
    with opened(cable[0]) as one, opened(cable[1], chunks=256) as other:
        sent = numbered(other.address, 1000, 300)
        assert one.send(batch(sent)) == 1000
        assert receive(other, 1000, wait=0.1) == sent[:256]
        assert other.statistics() == LinkStatistics(received=256, dropped=744)
        one.send(batch(sent[:10]))
        assert receive(other, 10) == sent[:10]


def test_a_batch_that_is_kept_outlives_the_link(cable: tuple[Port, Port]) -> None:
    with opened(cable[0]) as one:
        other = opened(cable[1])
        sent = numbered(other.address, 40)
        one.send(batch(sent))
        kept = other.receive(LONG)
        other.close()
        one.send(batch(numbered(other.address, 40, first=100)))
        assert contents(kept) == sent


# Frames built in place.


def in_place(link: XdpLink | XdpSender, frames: list[bytes]) -> FrameBatch:
    plain = batch(frames)
    room = link.room(len(plain.buffer))
    assert room is not None and len(room) == len(plain.buffer)
    room[:] = plain.buffer
    return FrameBatch(room, plain.offset, plain.length, plain.wire_length, plain.timestamp_ns, plain.number)


@pytest.mark.parametrize("length", [60, 1514, 4136, 9014, 0])
@pytest.mark.parametrize("count", [1, 2, 30, 64])
def test_frames_built_in_place_arrive(jumbo: tuple[XdpLink, XdpLink], length: int, count: int) -> None:
    one, other = jumbo
    for turn in range(5):
        if length:
            sent = numbered(other.address, min(count, TRANSMIT_BYTES // length), length, first=turn)
        else:
            sent = of_random_lengths(other.address, count, turn)
        built = in_place(one, sent)
        assert np.shares_memory(built.buffer, one._xdp.memory)
        assert one.send(built) == len(sent)
        assert receive(other, len(sent)) == sent


def test_more_frames_than_one_call_sends_are_built_in_place(jumbo: tuple[XdpLink, XdpLink]) -> None:
    one, other = jumbo
    sent = numbered(other.address, 1000, 500)
    assert one.send(in_place(one, sent)) == 1000
    assert receive(other, 1000) == sent


@pytest.mark.parametrize("length", [60, 4136, 0])
def test_frames_built_in_place_are_sent_in_any_order(jumbo: tuple[XdpLink, XdpLink], length: int) -> None:
    one, other = jumbo
    sent = numbered(other.address, 20, length) if length else of_random_lengths(other.address, 20, 1)
    for order in (slice(None, None, -1), slice(3, 9), np.array([5, 2, 7])):
        assert one.send(in_place(one, sent).select(order)) == len(np.arange(20)[order])
        assert receive(other, len(np.arange(20)[order])) == [sent[place] for place in np.arange(20)[order]]
    odd = [*sent[:2], b"short", *sent[2:], bytes(9015)]
    assert one.send(in_place(one, odd)) == 20
    assert receive(other, 20) == sent


def test_frames_longer_than_the_mtu_are_refused_as_by_a_packet_link(own_cable: tuple[Port, Port]) -> None:
    """The kernel refuses them, too, if the MTU was lowered after the link was opened."""
    with opened(own_cable[0]) as one, open_link(own_cable[0]) as plain, open_link(own_cable[1]) as other:
        frames = [frame(other.address, payload=bytes(length - 14)) for length in (60, 1514, 1515, 1514, 9000, 61)]
        for longest in (1514, 1014):
            wanted = [each for each in frames if len(each) <= longest]
            before, before_plain = one.statistics(), plain.statistics()
            assert one.send(in_place(one, frames)) == len(wanted)
            assert receive(other, len(wanted)) == wanted
            assert plain.send(batch(frames)) == len(wanted)
            assert receive(other, len(wanted)) == wanted
            for now, then in ((one.statistics(), before), (plain.statistics(), before_plain)):
                assert (now.sent - then.sent, now.refused - then.refused) == (len(wanted), 6 - len(wanted))
            for port in own_cable:
                port.link("mtu", "1000")
        assert one.send_few([bytes(TRANSMIT_BYTES + 1), frames[0]]) == 1
        assert receive(other, 1) == frames[:1]


def test_room_has_its_limits(jumbo: tuple[XdpLink, XdpLink]) -> None:
    one, other = jumbo
    assert one.room(TRANSMIT_BYTES + 1) is None
    sent = numbered(other.address, 3)
    unused = in_place(one, numbered(other.address, 3, first=100))
    assert one.send(batch(sent)) == 3
    # Another batch was sent in between: the room is not the caller's any more.
    assert receive(other, 3) == sent
    del unused
    large = numbered(other.address, 400, 4136)
    assert one.send(batch(large)) == 400
    assert receive(other, 400) == large
    one.close()
    assert one.room(60) is None


def test_frames_built_for_an_interface_that_is_down_never_leave(own_cable: tuple[Port, Port]) -> None:
    """The kernel keeps descriptors until the interface is up, but not their frames."""
    with opened(own_cable[0]) as one, opened(own_cable[1]) as other:
        own_cable[0].down()
        for first in range(0, 3000, 20):
            assert one.send(in_place(one, numbered(other.address, 20, first=first))) == 0
            assert one.send_few([frame(other.address)]) == 0
        own_cable[0].up()
        sent = numbered(other.address, 20, first=9000)
        until(lambda: one.send(batch(sent)) == 20)
        assert receive(other, 20) == sent
        assert receive(other, 1, wait=0.05) == []


# Senders.


def test_a_sender_takes_no_frames_away(jumbo_cable: tuple[Port, Port]) -> None:
    with open_link(jumbo_cable[0]) as here, sender(jumbo_cable[0]) as sending, open_link(jumbo_cable[1]) as other:
        assert (sending.name, sending.address, sending.mtu) == ("veth0", here.address, 9000)
        sent = of_random_lengths(other.address, 200, 1)
        assert sending.send(batch(sent)) == 200
        assert receive(other, 200) == sent
        assert sending.send(in_place(sending, sent[:20])) == 20
        assert receive(other, 20) == sent[:20]
        assert sending.send_few([b"short", *sent[:3], bytes(9015)]) == 3
        assert receive(other, 3) == sent[:3]
        assert (sending.sent, sending.refused) == (223, 2)
        other.send(batch(numbered(here.address, 5)))
        assert receive(here, 5) == numbered(here.address, 5)
    assert sending.send(batch(sent)) == 0


# Frames of others.


@pytest.mark.parametrize("mode", [XdpMode.GENERIC, XdpMode.NATIVE])
def test_other_frames_reach_the_kernel(cable: tuple[Port, Port], mode: XdpMode) -> None:
    with opened(cable[0], mode=mode), opened(cable[1], mode=mode) as other:
        with cable[1].namespace.inside():
            sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            sniffer.bind((other.name, 3))
        passing = [
            *(frame(b"\x02" * 6), frame(other.address, ethertype=0x0800), frame(BROADCAST, ethertype=0x88B5)),
            *(frame(b"\x01\x00\x5e\x00\x00\x01"), frame(other.address, ethertype=0x88B5)[:14]),
        ]
        mine = [frame(other.address), frame(BROADCAST)]
        with sniffer, raw_socket(cable[0]) as raw:
            for each in [*passing, *mine, tagged(other.address)]:
                raw.send(each)
            assert receive(other, 2) == mine
            sniffer.settimeout(LONG)
            seen: list[bytes] = []
            while len(seen) < len(passing) + 1:
                each = sniffer.recv(2000)
                # The kernel of the namespace sends frames of its own.
                if each in passing or each == frame(other.address):
                    seen.append(each)
            # The kernel has removed the tag of the last one.
            assert seen == [*passing, frame(other.address)]
        assert other.statistics() == LinkStatistics(received=2, foreign=3)


@pytest.mark.parametrize("mode", [XdpMode.GENERIC, XdpMode.NATIVE])
def test_a_tag_for_the_priority_only_fits_the_longest_frame(jumbo_cable: tuple[Port, Port], mode: XdpMode) -> None:
    with opened(jumbo_cable[1], mode=mode) as other:
        plain = frame(other.address, payload=bytes(range(250)) * 36)
        assert len(plain) == 9014
        with raw_socket(jumbo_cable[0]) as raw:
            raw.send(plain[:12] + b"\x81\0\xe0\0" + plain[12:])
        assert receive(other, 1) == [plain]


def test_a_promiscuous_link_receives_for_all_destinations(cable: tuple[Port, Port]) -> None:
    with opened(cable[0]) as one, opened(cable[1], promiscuous=True) as other:
        sent = [frame(b"\x02" * 6), frame(other.address), frame(BROADCAST)]
        one.send(batch(sent))
        assert receive(other, 3) == sent


# Refusals and failures.


def test_a_queue_and_an_interface_have_one_link(cable: tuple[Port, Port]) -> None:
    with opened(cable[0]):
        with pytest.raises(LinkError, match=r"veth0: another AF_XDP socket has queue 0 .*--via packet"):
            opened(cable[0])
        with open_link(cable[0]):
            pass
    opened(cable[0]).close()


def test_another_program_is_named(cable: tuple[Port, Port]) -> None:
    with cable[0].namespace.inside(), BpfProgram.load(give(XdpAction.PASS)) as program:
        with (
            program.attach("veth0", socket.if_nametoindex("veth0")),
            pytest.raises(LinkError, match="veth0: cannot attach a BPF program: there is another one already"),
        ):
            opened(cable[0])
        opened(cable[0]).close()


def test_a_queue_that_does_not_exist(cable: tuple[Port, Port]) -> None:
    with pytest.raises(LinkError, match="veth0: there is no queue 7, it has 1, counted from 0"):
        opened(cable[0], queue=7)


@pytest.mark.parametrize("timeout", [LONG, 0.0])
def test_a_program_that_was_detached_is_reported(cable: tuple[Port, Port], timeout: float) -> None:
    with opened(cable[0]) as link:
        assert link._attachment is not None
        kernel._bpf(DETACH, kernel._attributes("I", link._attachment.descriptor))  # type: ignore[arg-type]
        with pytest.raises(LinkError, match="veth0: another program has detached the BPF program"):
            until(lambda: len(link.receive(timeout)))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.interpreted
def test_nothing_stays_when_opening_fails(cable: tuple[Port, Port], monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors()

    def fail(*_: object) -> None:
        raise LinkError("not today")

    monkeypatch.setattr(BpfProgram, "attach", fail)
    with pytest.raises(LinkError, match="not today"):
        opened(cable[0])
    assert descriptors() == before
    monkeypatch.undo()
    opened(cable[0]).close()
    assert descriptors() == before


OPEN = "import sys, time; from mxwire.link import XdpLink, XdpSender; "


def test_a_killed_process_leaves_queue_and_interface_free(cable: tuple[Port, Port]) -> None:
    code = OPEN + "link = XdpLink.open('veth0'); print('opened', flush=True); time.sleep(60)"
    process = cable[0].namespace.start(sys.executable, "-c", code)
    assert process.stdout is not None and process.stdout.readline() == "opened\n"
    with pytest.raises(LinkError, match="another AF_XDP socket has queue 0"):
        opened(cable[0])
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with opened(cable[0]) as one, opened(cable[1]) as other:
        other.send(batch([frame(BROADCAST)]))
        assert receive(one, 1) == [frame(BROADCAST)]


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed (util-linux)")
@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ((), "veth0: raw Ethernet frames need CAP_NET_RAW"),
        (("net_raw",), "this needs CAP_BPF and CAP_NET_ADMIN"),
        (("net_raw", "bpf"), "this needs CAP_NET_ADMIN"),
        (("net_raw", "net_admin"), "this needs CAP_BPF"),
        (("net_raw", "net_admin", "bpf"), None),
    ],
)
def test_missing_capabilities_are_named(cable: tuple[Port, Port], held: tuple[str, ...], expected: str | None) -> None:
    ended = cable[0].namespace.run(*as_nobody(OPEN + "XdpLink.open('veth0').close(); print('opened')", *held))
    if expected is None:
        assert ended.stdout == "opened\n", ended.stderr
    else:
        reported = ended.stderr.splitlines()[-1]
        assert reported.startswith("mxwire.link.errors.LinkError: ") and expected in reported


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed (util-linux)")
def test_a_sender_needs_one_capability(cable: tuple[Port, Port]) -> None:
    code = OPEN + "print(XdpSender.open('veth0').send_few([b'\\xff' * 60]))"
    assert cable[0].namespace.run(*as_nobody(code, "net_raw")).stdout == "1\n"


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed (util-linux)")
def test_memory_that_may_not_be_locked(cable: tuple[Port, Port]) -> None:
    def limit(kib: int) -> None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (kib << 10, kib << 10))

    here = cable[0].namespace
    code = OPEN + "link = XdpLink.open('veth0'); print(link._xdp.receive.count)"
    smaller = here.run(*as_nobody(code, "net_raw", "net_admin", "bpf"), preexec_fn=lambda: limit(8192))
    assert smaller.stdout == "2048\n", smaller.stderr
    refused = here.run(*as_nobody(OPEN + "XdpSender.open('veth0')", "net_raw"), preexec_fn=lambda: limit(64))
    assert "veth0: AF_XDP needs 1024 KiB of locked memory, more than the limit permits" in refused.stderr
