"""Hosts and commands over AF_XDP (``--via xdp``), with each other and with hosts over packet sockets."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.host import Host
from mxwire.link import Link, LinkError, LinkKind, PacketLink, XdpLink, XdpSendLink, open_link
from tests.host.exchanges import SIZES, exchange

from .commands import CLI, LONGEST, mxwire, running
from .hosts import open_endpoint
from .namespaces import Port, as_nobody

pytestmark = pytest.mark.usefixtures("_programs_work")

LONG = 60.0
CAPTURES = Path(__file__).parents[2] / "captures"
PAIRS = [("xdp", "xdp"), ("xdp", "packet"), ("packet", "xdp"), ("xdp-send", "packet"), ("xdp-send", "xdp-send")]


@contextmanager
def host(port: Port, name: str, link: str) -> Iterator[Host]:
    with port.namespace.inside():
        opened = Host.open(port.interface, name=name, link=link)
    with opened:
        yield opened


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_messages_of_all_classes_arrive(ports: tuple[Port, Port], kinds: tuple[str, str]) -> None:
    with host(ports[0], "alpha", kinds[0]) as alpha, host(ports[1], "beta", kinds[1]) as beta:
        one, two = open_endpoint(ports[0], alpha, 0), open_endpoint(ports[1], beta, 0)
        ways = (one, one.connect("beta", 0, timeout=LONG), two), (two, two.connect("alpha", 0, timeout=LONG), one)
        for expected in (True, False):
            exchange(ways, False, expected, LONG, (*SIZES, 3_000_001))
        for each in (alpha, beta):
            assert each.core.links[0].statistics().refused == 0


@pytest.mark.parametrize("kind", ["xdp", "xdp-send"])
def test_large_messages_are_built_in_the_memory_of_the_link(ports: tuple[Port, Port], kind: str) -> None:
    with host(ports[0], "alpha", kind) as alpha, host(ports[1], "beta", "packet") as beta:
        in_place = []
        link: Any = alpha.core.links[0]
        sender = link._batches if kind == "xdp-send" else link
        memory = sender._xdp.memory

        def observe(batch: FrameBatch, sent: bool) -> None:
            if sent and batch.length.max() > 2000:
                start = batch.buffer.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
                in_place.append(0 <= start < len(memory))

        alpha.core.observers.append(observe)
        one, two = open_endpoint(ports[0], alpha, 0), open_endpoint(ports[1], beta, 0)
        receive = two.ireceive(maximum=1 << 20)
        data = os.urandom(1 << 20)
        one.send(one.connect("beta", 0, timeout=LONG), data, timeout=LONG)
        assert bytes(two.wait(receive, LONG)) == data
        assert in_place and all(in_place)
        if kind == "xdp-send":
            whole, batches = link.statistics().sent, sender.sent
            assert 256 <= batches < whole, "full frames through AF_XDP, all others through the packet socket"


def test_a_link_that_only_sends_by_af_xdp_shares_received_frames(ports: tuple[Port, Port]) -> None:
    with ports[0].namespace.inside():
        link, other = XdpSendLink.open("veth0"), PacketLink.open("veth0")
        with pytest.raises(LinkError, match="another AF_XDP socket has queue 0"):
            open_link("veth0", "xdp-send")
    with ports[1].namespace.inside():
        far = open_link("veth1", "packet")
    with link, other, far:
        assert link.mtu == 9000
        batch = FrameBatch.from_frames(
            [link.address + far.address + b"\x86\xdf" + bytes([each] * 60) for each in range(9)]
        )
        assert far.send(batch) == 9
        for each in (link, other):
            assert b"".join(received(each, 9)) == batch.buffer.tobytes()
        room = link.room(4 * 5000)
        assert room is not None
        frames = [far.address + link.address + b"\x86\xdf" + bytes([each] * 4986) for each in range(4)]
        built = FrameBatch.from_frames(frames)
        room[:] = built.buffer
        assert link.send(replace(built, buffer=room)) == 4
        assert link.send(built) == 4, "a batch with memory of its own"
        assert received(far, 8) == frames * 2
        assert (link.statistics().sent, link._batches.sent) == (8, 4)
    assert link.send(built) == 0


def received(link: Link, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count and len(batch := link.receive(LONG)):
        found += [bytes(batch.frame(each)) for each in range(len(batch))]
    return found


def test_links_are_opened_by_kind(ports: tuple[Port, Port]) -> None:
    with ports[0].namespace.inside():
        for kind, expected in (("packet", PacketLink), (LinkKind.XDP, XdpLink), ("xdp-send", XdpSendLink)):
            with open_link("veth0", kind) as link:
                assert type(link) is expected
        with pytest.raises(MxwireError, match="there is no kind of link 'raw': use packet, xdp or xdp-send"):
            open_link("veth0", "raw")


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_ping_is_answered_by_a_server(ports: tuple[Port, Port], kinds: tuple[str, str]) -> None:
    with running(ports[0], "serve", "--echo", "--name", "alpha:0", "--endpoint", "0", "--via", kinds[0]) as server:
        server.until("alpha:0")
        done = mxwire(ports[1], "ping", "alpha:0", "-c", "3", "--interval", "0", "--via", kinds[1])
        assert done.code == 0, done.err
        done = mxwire(ports[1], "ping", "alpha:0:0", "-c", "3", "--interval", "0", "--via", kinds[1])
        assert done.code == 0, done.err
        server.end()


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_perf_runs(ports: tuple[Port, Port], kinds: tuple[str, str]) -> None:
    with running(ports[0], "perf", "-B", "--name", "alpha:0", "--via", kinds[0]) as other:
        other.until("waiting for a sender")
        lengths = ("-N", "3", "-W", "1", "-P", "0", "-E", "5000000", "-M", "16")
        done = mxwire(ports[1], "perf", "-B", "-d", "alpha:0", "--via", kinds[1], *lengths)
        assert done.code == 0, done.err
        assert other.end(None) == 0
    assert len(done.lines) == 7


def test_send_receive_and_discover(ports: tuple[Port, Port]) -> None:
    with running(ports[0], "receive", "--name", "alpha:0", "-c", "1", "--via", "xdp") as receiver:
        receiver.until("alpha:0")
        found = mxwire(ports[1], "discover", "--via", "xdp", "--duration", "10", "-c", "1", "--json")
        assert [each["name"] for each in found.objects] == ["alpha:0"], found.err
        done = mxwire(ports[1], "send", "alpha:0", "--via", "xdp", input="over AF_XDP")
        assert done.code == 0, done.err
        assert receiver.end(None) == 0
    assert "over AF_XDP" in "".join(receiver.output)


def test_replays_and_scenarios(ports: tuple[Port, Port]) -> None:
    captured = str(CAPTURES / "mxoe-every-type.pcap")
    with ports[1].namespace.inside():
        link = XdpLink.open("veth1", promiscuous=True)
    with link:
        done = mxwire(ports[0], "replay", captured, "--top-speed", "--via", "xdp", "--json")
        assert done.code == 0, done.err
        sent = done.objects[-1]["frames"]
        received = 0
        while len(batch := link.receive(1.0)):
            received += len(batch)
        assert received == sent > 0
    with running(ports[0], "serve", "--sink", "--name", "alpha:0", "--via", "xdp") as server:
        server.until("alpha:0")
        scenario = ("scenario", "run", "connect")
        done = ports[1].namespace.run(
            *(sys.executable, CLI, *scenario, "-i", "veth1", "--target", "alpha:0", "--via", "xdp"), timeout=LONGEST
        )
        assert done.returncode == 0, done.stdout + done.stderr
        server.end()


def test_a_taken_queue_is_one_line(ports: tuple[Port, Port]) -> None:
    with ports[0].namespace.inside():
        link = XdpLink.open("veth0")
    with link:
        done = mxwire(ports[0], "serve", "--via", "xdp")
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "mxwire: veth0: another AF_XDP socket has queue 0 (ss --xdp shows it); end its program, or use AF_PACKET "
            "(--via packet)\n"
        )


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed (util-linux)")
def test_a_missing_capability_is_one_line(ports: tuple[Port, Port]) -> None:
    arguments = ["mxwire", "serve", "-i", "veth0", "--via", "xdp"]
    code = f"import runpy, sys; sys.argv = {arguments}; runpy.run_path({CLI!r}, run_name='__main__')"
    done = ports[0].namespace.run(*as_nobody(code, "net_raw"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "this needs CAP_BPF and CAP_NET_ADMIN" in done.stderr


def finding(port: Port) -> dict[str, str]:
    done = mxwire(port, "doctor", "--json", "--duration", "0.2")
    (found,) = [each for each in done.objects if each["check"] == "af-xdp"]
    return found  # type: ignore[no-any-return]


def test_doctor_reports_af_xdp(ports: tuple[Port, Port]) -> None:
    free = finding(ports[0])
    assert free["level"] == "ok" and "takes the frames from all other programs on veth0" in free["text"]
    with ports[0].namespace.inside():
        link = XdpLink.open("veth0")
    with link:
        taken = finding(ports[0])
        assert taken["level"] == "warning" and "a program sees the frames first: XDP in generic mode" in taken["text"]
