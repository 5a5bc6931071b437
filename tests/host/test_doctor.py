"""What the doctor makes of what the kernel, the driver and other hosts tell."""

from __future__ import annotations

import pytest

from mxwire.host.asking import Sighting
from mxwire.host.doctor import Finding, Level, standing, trying
from mxwire.link.ethtool import Coalescing, Hardware
from mxwire.link.interface import Interface
from mxwire.link.listeners import KernelHandler, Listener, _handler
from mxwire.wire.dialect import dialect_by_name

MXOE = dialect_by_name("mxoe")
ADDRESS = bytes.fromhex("020000000001")


def interface(mtu: int = 9000, *, up: bool = True, carrier: bool = True, address: bytes = ADDRESS) -> Interface:
    return Interface("eth0", 2, address, mtu, up, carrier)


def worst(findings: list[Finding]) -> Level:
    return max((each.level for each in findings), key=list(Level).index, default=Level.OK)


def sighting(**what: object) -> Sighting:
    known: dict[str, object] = {
        "address": "02:00:00:00:00:02",
        "name": "beta:0",
        "index": 1,
        "our_index": 1,
        "dialect": "mxoe",
        "answer_ns": 1000,
        "queries": 3,
        "answers": 3,
        "announced": True,
        "heard": True,
        "long_frames": True,
    }
    return Sighting(**known | what)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"up": False, "carrier": False}, "eth0 is down"),
        ({"carrier": False}, "no carrier"),
        ({"address": bytes(6)}, "no address of a host"),
        ({"address": b"\1" + bytes(5)}, "no address of a host"),
    ],
)
def test_a_link_that_cannot_work(what, words):
    findings = list(standing.state(interface(**what)))
    assert worst(findings) is Level.PROBLEM and any(words in each.text for each in findings)


def test_a_link_that_works():
    assert worst(list(standing.state(interface()))) is Level.OK


@pytest.mark.parametrize(
    ("dialect", "mtu", "level"),
    [
        ("mxoe", 4130, Level.OK),
        ("mxoe", 4129, Level.PROBLEM),
        ("omx:1500", 1486, Level.OK),
        ("omx:1500", 1485, Level.PROBLEM),
        ("omx:9000", 1500, Level.PROBLEM),
    ],
)
def test_the_mtu_must_hold_the_longest_frames(dialect, mtu, level):
    findings = list(standing.mtu(interface(mtu), dialect_by_name(dialect)))
    assert findings[0].level is level and str(mtu) in findings[0].text
    assert worst(findings[1:]) is Level.OK, "the other dialect is a remark"
    if level is Level.PROBLEM:
        assert f"omx:{mtu}" in str(findings[0].advice)
        assert standing.needed_mtu(dialect_by_name(f"omx:{mtu}")) <= mtu


@pytest.mark.parametrize(
    ("told", "check", "level"),
    [
        (Hardware(), "coalescing", Level.OK),
        (Hardware(coalescing=Coalescing(3, 0, adaptive=False)), "coalescing", Level.OK),
        (Hardware(coalescing=Coalescing(100, 0, adaptive=False)), "coalescing", Level.WARNING),
        (Hardware(coalescing=Coalescing(3, 0, adaptive=True)), "coalescing", Level.WARNING),
        (Hardware(receive_ring=(256, 4096)), "ring", Level.WARNING),
        (Hardware(receive_ring=(4096, 4096)), "ring", Level.OK),
        (Hardware(flow_control=False), "flow-control", Level.WARNING),
        (Hardware(offloads={"gro": True, "tso": False}), "offloads", Level.OK),
    ],
)
def test_what_the_driver_tells(told, check, level):
    [found] = [each for each in standing.hardware("eth0", told) if each.check == check]
    assert found.level is level


def test_speed_and_driver_are_told():
    assert "driver ixgbe, at 10 Gb/s" in [each.text for each in standing.hardware("eth0", Hardware("ixgbe", 10_000))]


def test_who_else_takes_frames():
    assert "nobody else" in next(standing.listeners("eth0", [], [])).text
    others = [Listener(False, 12, "python"), Listener(True, None, None)]
    programs, capture = standing.listeners("eth0", others, [])
    assert "python (12)" in programs.text and "a process of another user" in capture.text
    [driver] = standing.listeners("eth0", [], [KernelHandler("omx_recv [open_mx]")])
    assert driver.level is Level.PROBLEM and "omx_recv [open_mx]" in driver.text


@pytest.mark.parametrize(
    ("line", "function"),
    [
        ("86df          omx_recv [open_mx]", "omx_recv [open_mx]"),
        ("86df eth0     omx_recv [open_mx]", "omx_recv [open_mx]"),
        ("86df eth0123456 omx_recv", None),
        ("86df eth1     omx_recv", None),
        ("86df eth0     tpacket_rcv", None),
        ("86df          packet_rcv", None),
    ],
)
def test_lines_of_the_kernel_are_understood(line, function):
    found = _handler(line, "eth0")
    assert (found and found.function) == function


def test_frames_that_do_not_leave():
    assert trying.sending("eth0", 5, 0, trying.Passed(left=5)).level is Level.OK
    assert "egress" in str(trying.sending("eth0", 5, 0, trying.Passed()).advice)
    assert "were refused" in trying.sending("eth0", 0, 5, trying.Passed()).text
    assert trying.sending("eth0", 0, 0, trying.Passed()).level is Level.WARNING


def test_frames_that_arrive_and_are_not_ours():
    [found] = trying.receiving("eth0", 0, trying.Passed(arrived=3))
    assert found.level is Level.PROBLEM and "ingress" in str(found.advice)
    assert worst(list(trying.receiving("eth0", 3, trying.Passed(arrived=3)))) is Level.OK
    assert list(trying.receiving("eth0", 0, trying.Passed())) == []


@pytest.mark.parametrize(
    ("what", "check", "level"),
    [
        ({}, "peers", Level.OK),
        ({"answers": 0, "answer_ns": None}, "peers", Level.WARNING),
        ({"dialect": "omx"}, "dialect", Level.PROBLEM),
        ({"long_frames": False}, "long-frames", Level.PROBLEM),
    ],
)
def test_what_peers_tell(what, check, level):
    findings = list(trying.peers([sighting(**what)], MXOE, 4144))
    assert [each.level for each in findings if each.check == check] == [level]
    assert worst([each for each in findings if each.check != check]) is Level.OK


def test_nobody_is_a_warning():
    assert [each.level for each in trying.peers([], MXOE, None)] == [Level.WARNING]


def test_who_is_only_known_beforehand_was_not_heard():
    silent = sighting(answers=0, answer_ns=None, announced=False, heard=False)
    nobody, about = trying.peers([silent], MXOE, None)
    assert nobody.text.startswith("no other host was heard") and nobody.host is None
    assert about.text.startswith("nothing was heard of beta:0 (02:00:00:00:00:02)") and about.level is Level.WARNING
    told = [each.text for each in trying.peers([silent, sighting()], MXOE, None) if each.level is Level.WARNING]
    assert told == [about.text]
