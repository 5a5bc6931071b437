"""The doctor's conclusions from the kernel, the driver and other hosts."""

from __future__ import annotations

import pytest

from mxwire.host import doctor
from mxwire.host.doctor import DoctorFinding, DoctorLevel
from mxwire.host.mtu import needed_mtu
from mxwire.host.survey import SurveyedHost
from mxwire.link.ethtool import Coalescing, Hardware
from mxwire.link.interface import NetworkInterface
from mxwire.link.listeners import AttachedProgram, KernelHandler, SocketListener, _handler
from mxwire.wire.dialect import dialect_by_name

MXOE = dialect_by_name("mxoe")
ADDRESS = bytes.fromhex("020000000001")


def interface(mtu: int = 9000, *, up: bool = True, carrier: bool = True, address: bytes = ADDRESS) -> NetworkInterface:
    return NetworkInterface("eth0", 2, address, mtu, up, carrier)


def worst(findings: list[DoctorFinding]) -> DoctorLevel:
    return max((each.level for each in findings), key=list(DoctorLevel).index, default=DoctorLevel.OK)


def sighting(**what: object) -> SurveyedHost:
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
    return SurveyedHost(**known | what)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"up": False, "carrier": False}, "eth0 is down"),
        ({"carrier": False}, "no carrier"),
        ({"address": bytes(6)}, "not a valid host address"),
        ({"address": b"\1" + bytes(5)}, "not a valid host address"),
    ],
)
def test_a_link_that_cannot_work(what, words):
    findings = list(doctor.check_state(interface(**what)))
    assert worst(findings) is DoctorLevel.PROBLEM and any(words in each.text for each in findings)


def test_a_link_that_works():
    assert worst(list(doctor.check_state(interface()))) is DoctorLevel.OK


@pytest.mark.parametrize(
    ("dialect", "mtu", "level"),
    [
        ("mxoe", 4130, DoctorLevel.OK),
        ("mxoe", 4129, DoctorLevel.PROBLEM),
        ("omx:1500", 1486, DoctorLevel.OK),
        ("omx:1500", 1485, DoctorLevel.PROBLEM),
        ("omx:9000", 1500, DoctorLevel.PROBLEM),
    ],
)
def test_the_mtu_must_hold_the_longest_frames(dialect, mtu, level):
    findings = list(doctor.check_mtu(interface(mtu), dialect_by_name(dialect)))
    assert findings[0].level is level and str(mtu) in findings[0].text
    assert worst(findings[1:]) is DoctorLevel.OK, "the other dialect is a remark"
    if level is DoctorLevel.PROBLEM:
        assert f"omx:{mtu}" in str(findings[0].advice)
        assert needed_mtu(dialect_by_name(f"omx:{mtu}")) <= mtu


@pytest.mark.parametrize(
    ("reported", "check", "level"),
    [
        (Hardware(), "coalescing", DoctorLevel.OK),
        (Hardware(coalescing=Coalescing(3, 0, adaptive=False)), "coalescing", DoctorLevel.OK),
        (Hardware(coalescing=Coalescing(100, 0, adaptive=False)), "coalescing", DoctorLevel.WARNING),
        (Hardware(coalescing=Coalescing(3, 0, adaptive=True)), "coalescing", DoctorLevel.WARNING),
        (Hardware(receive_ring=(256, 4096)), "ring", DoctorLevel.WARNING),
        (Hardware(receive_ring=(4096, 4096)), "ring", DoctorLevel.OK),
        (Hardware(flow_control=False), "flow-control", DoctorLevel.WARNING),
        (Hardware(offloads={"gro": True, "tso": False}), "offloads", DoctorLevel.OK),
    ],
)
def test_properties_of_the_driver(reported, check, level):
    [found] = [each for each in doctor.check_hardware("eth0", reported) if each.check == check]
    assert found.level is level


def test_speed_and_driver_are_reported():
    assert "driver ixgbe, at 10 Gb/s" in [
        each.text for each in doctor.check_hardware("eth0", Hardware("ixgbe", 10_000))
    ]


def test_other_receivers_of_frames():
    assert "no other program" in next(doctor.check_listeners("eth0", [], [])).text
    others = [SocketListener(False, 12, "python", 0), SocketListener(True, None, None, 0)]
    programs, capture = doctor.check_listeners("eth0", others, [])
    assert "python (12)" in programs.text and "a process of another user" in capture.text
    [driver] = doctor.check_listeners("eth0", [], [KernelHandler("omx_recv [open_mx]")])
    assert driver.level is DoctorLevel.PROBLEM and "omx_recv [open_mx]" in driver.text


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
    assert doctor.check_sending("eth0", 5, 0, doctor.TapCounts(left=5)).level is DoctorLevel.OK
    assert "egress" in str(doctor.check_sending("eth0", 5, 0, doctor.TapCounts()).advice)
    assert "were refused" in doctor.check_sending("eth0", 0, 5, doctor.TapCounts()).text
    assert doctor.check_sending("eth0", 0, 0, doctor.TapCounts()).level is DoctorLevel.WARNING


def test_frames_that_arrive_but_are_not_received():
    [found] = doctor.check_receiving("eth0", 0, doctor.TapCounts(arrived=3))
    assert found.level is DoctorLevel.PROBLEM and "ingress" in str(found.advice)
    assert worst(list(doctor.check_receiving("eth0", 3, doctor.TapCounts(arrived=3)))) is DoctorLevel.OK
    assert list(doctor.check_receiving("eth0", 0, doctor.TapCounts())) == []


@pytest.mark.parametrize(
    ("what", "check", "level"),
    [
        ({}, "peers", DoctorLevel.OK),
        ({"answers": 0, "answer_ns": None}, "peers", DoctorLevel.WARNING),
        ({"dialect": "omx"}, "dialect", DoctorLevel.PROBLEM),
        ({"long_frames": False}, "long-frames", DoctorLevel.PROBLEM),
    ],
)
def test_answers_of_peers(what, check, level):
    findings = list(doctor.check_peers([sighting(**what)], MXOE, 4144))
    assert [each.level for each in findings if each.check == check] == [level]
    assert worst([each for each in findings if each.check != check]) is DoctorLevel.OK


def test_no_host_is_a_warning():
    assert [each.level for each in doctor.check_peers([], MXOE, None)] == [DoctorLevel.WARNING]


def test_hosts_known_only_beforehand_were_not_heard():
    silent = sighting(answers=0, answer_ns=None, announced=False, heard=False)
    nobody, about = doctor.check_peers([silent], MXOE, None)
    assert nobody.text.startswith("no other host was heard") and nobody.host is None
    assert (
        about.text.startswith("no frame arrived from beta:0 (02:00:00:00:00:02),")
        and about.level is DoctorLevel.WARNING
    )
    reported = [
        each.text for each in doctor.check_peers([silent, sighting()], MXOE, None) if each.level is DoctorLevel.WARNING
    ]
    assert reported == [about.text]


def test_findings_that_many_hosts_share_are_one_line():
    """As after 1,000 forged announcements."""
    addresses = [f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(1000)]
    silent = [sighting(address=each, name=None, answers=0, answer_ns=None, dialect=None) for each in addresses]
    findings = list(doctor.check_peers([sighting(), *silent], MXOE, None))
    first, *about = doctor.summary(findings)
    assert len(findings) == 1002 and [first, about[0]] == findings[:2]
    assert [each.text for each in about[1:]] == [
        f"1,000 hosts ({', '.join(addresses[:3])} and 997 more) announce themselves, but do not answer host queries"
    ]
    assert about[1].level is DoctorLevel.WARNING and about[1].advice == findings[2].advice
    few = findings[:5]
    assert doctor.summary(few) == few
    kinds = [{}, {"heard": False}, {"announced": False, "answers": 0}, {"dialect": "omx"}, {"long_frames": False}]
    every = [sighting(**kind, address=each) for kind in kinds for each in addresses[:4]]
    for each in doctor.summary(list(doctor.check_peers(every, MXOE, 4144))):
        assert "hosts (02:" in each.text and "{" not in each.text


def test_copies_between_processes_are_reported():
    """One copy unless the kernel refuses it, which is slower, but works."""
    once, twice = doctor.check_local(None), doctor.check_local("Yama forbids it (kernel.yama.ptrace_scope is 1)")
    assert once.level is twice.level is DoctorLevel.OK
    assert "copied once" in once.text and "copied twice: Yama" in twice.text


@pytest.mark.parametrize(
    ("program", "queues", "refusal", "text"),
    [
        (AttachedProgram("native", 42), 1, None, "XDP in native mode (bpftool prog show id 42); those"),
        (AttachedProgram("generic", None), 1, None, "XDP in generic mode; those"),
        (None, 1, "no permission", "not available, and not needed: no permission"),
        (None, None, None, "from all other programs on eth0"),
        (None, 1, None, "from all other programs on eth0"),
        (None, 4, None, "from all other programs on eth0; it receives on queue 0 only, and eth0 has 4"),
    ],
)
def test_af_xdp_is_reported(program, queues, refusal, text):
    found = doctor.check_xdp("eth0", program, queues, refusal)
    assert found.level is (DoctorLevel.OK if program is None else DoctorLevel.WARNING)
    assert found.text.endswith(text) if program is None else text in found.text


@pytest.mark.parametrize(("count", "text"), [(1, "h0"), (3, "h0, h1, h2"), (4, "h0, h1, h2 and 1 more")])
def test_only_the_first_hosts_are_named(count, text):
    assert doctor._some([f"h{number}" for number in range(count)]) == text
