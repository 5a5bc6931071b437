"""``mxwire discover``, ``ping``, ``capture`` and ``doctor`` between namespaces; the other side is ``mxwire serve``."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mxwire.capture import open_capture
from mxwire.frames import FrameBatch
from mxwire.host import Endpoint
from mxwire.link import PacketLink
from tests.cli.support import Run
from tests.cli.support import mxwire as run_here
from tests.forked import ROOT
from tests.waiting import until

from .commands import PROGRAM, Running, mxwire, running, start
from .hosts import open_endpoint, open_host
from .namespaces import Laboratory, Port
from .recorder import Recorder

PATIENCE = "60"
"""Timeout in seconds of a command that should be done at once: a slow machine must not fail a test."""
NOBODY = 65534
BROADCAST_FRAME = b"\xff" * 6 + bytes.fromhex("02000000000186df") + bytes(1486)


@contextmanager
def serving(port: Port, name: str = "alpha", *options: str) -> Iterator[None]:
    """A host with endpoint 0 open."""
    with running(port, "serve", "--name", name, "--endpoint", "0", "--json", *options) as host:
        host.until("serving")
        yield
        host.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def served(shared_laboratory: Laboratory) -> Iterator[tuple[Port, Port]]:
    """alpha serves at the first port, with frames of 9000 bytes."""
    ports = shared_laboratory.pair(9000)
    with serving(ports[0]):
        yield ports


@pytest.fixture(scope="module")
def silent(shared_laboratory: Laboratory) -> Port:
    """A port without a host at the other end."""
    return shared_laboratory.pair(9000)[1]


def text(address: bytes) -> str:
    return address.hex(":")


# discover


def test_discover_lists_the_hosts(served):
    here = served[1]
    done = mxwire(here, "discover", "-c", 1, "--duration", PATIENCE, "--json")
    [found] = done.objects
    assert done.code == 0
    assert list(found) == [
        "address",
        "name",
        "index",
        "our_index",
        "dialect",
        "answer_ns",
        "answer_s",
        "queries",
        "answers",
        "announced",
        "heard",
        "remark",
    ]
    assert (found["address"], found["name"], found["dialect"]) == (text(served[0].address), "alpha:0", "mxoe")
    assert found["answer_ns"] > 0 and found["index"] >= 1 and found["remark"] is None


def test_discover_finds_several_hosts_and_their_dialects(laboratory):
    ports = laboratory.bridged(3, 9000)
    with serving(ports[0], "alpha"), serving(ports[1], "beta", "--dialect", "omx:9000"):
        done = mxwire(ports[2], "discover", "-c", 2, "--duration", PATIENCE, "--json")
    assert {each["name"]: each["dialect"] for each in done.objects} == {"alpha:0": "mxoe", "beta:0": "omx"}


def test_discover_shows_the_frame_limits_of_hosts_that_exchange_messages(laboratory):
    dialects = ["mxoe", "omx:1500", "omx:9000"]
    *ports, watcher = laboratory.bridged(2 * len(dialects) + 1, 9000, hub=True)
    stop = threading.Event()
    with ExitStack() as stack:
        stack.callback(stop.set)
        for place, dialect in enumerate(dialects):
            ends = []
            for number in (2 * place, 2 * place + 1):
                host = stack.enter_context(open_host(ports[number], f"host{number}", dialect=dialect))
                ends.append(open_endpoint(ports[number], host, 0))
            stack.enter_context(_talking(*ends, stop))
        wanted = {f"host{number}:0": dialects[number // 2] for number in range(len(ports))}
        deadline = time.monotonic() + float(PATIENCE)
        while True:
            done = mxwire(watcher, "discover", "--duration", 2, "--json")
            found = {each["name"]: each["dialect"] for each in done.objects}
            # Receivers of large messages send PULLs, and senders replies: both show the frame limit.
            if found == wanted:
                break
            assert time.monotonic() < deadline, found


@contextmanager
def _talking(sender: Endpoint, receiver: Endpoint, stop: threading.Event) -> Iterator[None]:
    """Send large messages to an endpoint from another, one after the other, in a thread of their own."""

    def talk() -> None:
        partner = sender.connect(receiver.host.name, 0, timeout=float(PATIENCE))
        while not stop.is_set():
            receiving = receiver.ireceive(maximum=300_000)
            sender.send(partner, bytes(300_000), timeout=float(PATIENCE))
            receiver.wait(receiving, float(PATIENCE))
            time.sleep(0.05)

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_discover_reports_an_empty_network(silent):
    done = mxwire(silent, "discover", "--duration", 0.3)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("mxwire: no host was found on veth1: no frame arrived")


def test_discover_finds_no_host_where_only_a_file_names_hosts(silent, tmp_path):
    (tmp_path / "peers").write_text("02:00:00:00:00:99 gamma\n")
    options = ["--duration", 0.3, "--peers", tmp_path / "peers", "--json"]
    done = mxwire(silent, "discover", *options)
    assert done.code == 1 and "no host was found on veth1: no frame arrived" in done.err
    assert [(each["name"], each["heard"]) for each in done.objects] == [("gamma:0", False)]
    assert done.objects[0]["remark"].startswith("none of its frames arrived")


def test_an_interrupted_discover_lists_the_hosts_so_far(silent):
    with Recorder(silent) as recorder:
        process = start(silent, "discover", "--duration", PATIENCE)
        until(lambda: recorder.frames)
    done = process.finish(signal.SIGINT)
    assert done.code == 130 and "no host was found" in done.err


def test_discover_works_where_the_mtu_is_too_small_unless_a_dialect_is_wanted(cable):
    with serving(cable[0], "alpha", "--dialect", "omx:1500"):
        done = mxwire(cable[1], "discover", "-c", 1, "--duration", PATIENCE, "--json")
        assert [each["dialect"] for each in done.objects] == ["omx"]
    for command in (["discover", "--dialect", "mxoe"], ["serve"]):
        done = mxwire(cable[1], *command)
        assert done.code == 2 and "MTU of 1500 is too small for dialect mxoe, which needs 4130" in done.err


# ping


@pytest.mark.parametrize("host", ["alpha", "alpha:0:0", "address", "address:0"])
def test_ping_measures_round_trips(served, host):
    host = host.replace("address", text(served[0].address))
    options = ["-c", 3, "--interval", 0, "--answer-timeout", PATIENCE, "--timeout", PATIENCE, "--json"]
    done = mxwire(served[1], "ping", host, *options)
    *answers, summary = done.objects
    assert done.code == 0, done.err
    assert [list(each) for each in answers] == [
        ["type", "host", "seq", "time_ns", "time_s", "refusal", "duplicate"]
    ] * 3
    assert [(each["type"], each["seq"]) for each in answers] == [("answer", 1), ("answer", 2), ("answer", 3)]
    assert (summary["transmitted"], summary["received"], summary["loss"]) == (3, 3, 0)
    assert summary["min_ns"] == min(each["time_ns"] for each in answers)
    assert summary["max_ns"] == max(each["time_ns"] for each in answers)
    assert summary["min_ns"] <= summary["p99_ns"] <= summary["max_ns"]


@pytest.mark.parametrize(
    ("host", "options", "why"),
    [("alpha:0:7", [], "closed"), ("alpha:0:0", ["--key", "0x99"], "key"), ("alpha:0:200", [], "bad id")],
)
def test_ping_reports_refusals(served, host, options, why):
    options = [*options, "-c", 1, "--answer-timeout", PATIENCE, "--timeout", PATIENCE]
    done = mxwire(served[1], "ping", host, *options)
    assert done.code == 1 and why in done.out and "1 transmitted, 0 received, 1 refused, 0% loss" in done.out


@pytest.mark.parametrize("host", ["gamma", "02:00:00:00:00:98"])
def test_ping_reports_its_attempts_and_the_hosts(served, host):
    done = mxwire(served[1], "ping", host, "--timeout", 2)
    assert (done.code, done.out) == (2, "") and done.err.count("\n") == 1
    assert "was not found within 2 s" in done.err and "host quer" in done.err
    assert f"hosts seen on veth1: alpha:0 ({text(served[0].address)}); sent" in done.err


def test_ping_of_ourselves_is_refused(served):
    done = mxwire(served[1], "ping", "alpha", "--name", "alpha", "--no-announce")
    assert done.code == 2 and "is the local host" in done.err


def test_ping_of_a_known_host_that_is_silent_is_loss(silent, tmp_path):
    (tmp_path / "peers").write_text("02:00:00:00:00:99 gamma\n")
    options = ["--peers", tmp_path / "peers", "-c", 2, "--interval", 0, "--answer-timeout", 0.05]
    done = mxwire(silent, "ping", "gamma", *options)
    assert done.code == 1
    assert done.out.splitlines()[1:3] == ["gamma:0: seq=1 no answer", "gamma:0: seq=2 no answer"]
    assert "2 transmitted, 0 received, 100% loss" in done.out


def test_ping_into_a_closed_pipe_prints_nothing(served):
    ours, theirs = os.pipe()
    process = start(served[1], "ping", "alpha", "--timeout", PATIENCE, "--interval", 0, stdout=theirs)
    os.close(theirs)
    assert os.read(ours, 100)
    os.close(ours)
    done = process.finish()
    assert (done.code, done.err) == (0, "")


# capture


@contextmanager
def capturing(port: Port, *words: object) -> Iterator[Running]:
    """A capture that listens already."""
    with running(port, "capture", *words) as process:
        process.until("listening on")
        yield process


def talk(port: Port, count: int = 5) -> None:
    options = ["-c", count, "--interval", 0, "--answer-timeout", PATIENCE, "--timeout", PATIENCE]
    assert mxwire(port, "ping", "alpha", "--name", "beta", *options).code == 0


def decoded(path: Path) -> list[dict[str, Any]]:
    done = run_here("decode", "--json=full", path)
    assert done.code == 0 or done.err == f"mxwire: {path}: no frames; record some with mxwire capture\n"
    return done.objects


def test_capture_writes_frames_with_names_and_statistics(served, tmp_path):
    file = tmp_path / "trace.pcapng"
    with capturing(served[1], "-w", file, "--comment", "a test", "--json") as process:
        talk(served[1])
        until(lambda: len(decoded(file)) >= 12)
        done = process.finish(signal.SIGINT)
    assert done.code == 130
    [summary] = done.objects
    assert list(summary) == ["type", "interface", "frames", "bytes", "dropped", "seconds", "files", "names"]
    # The other host may request the name of this one, too, if no program here had it before.
    assert summary["names"].items() >= {text(served[0].address): "alpha:0"}.items()
    assert (summary["files"], summary["dropped"]) == ([str(file)], 0)
    frames = decoded(file)
    assert len(frames) == summary["frames"]
    assert {"RAW", "HOST_QUERY", "HOST_REPLY"} <= {each["type"] for each in frames}
    with open_capture(file) as capture:
        assert sum(map(len, capture)) == len(frames)
        [section] = capture.sections
        assert section.comment is not None and section.comment.startswith("a test; mxwire ")
        assert capture.interfaces[0].name == "veth1"


def test_capture_puts_known_names_into_the_comment(silent, tmp_path):
    (tmp_path / "peers").write_text("02:00:00:00:00:99 gamma\n")
    options = ["--peers", tmp_path / "peers", "--duration", 0.1]
    assert mxwire(silent, "capture", "-w", tmp_path / "a.pcapng", *options).code == 0
    with open_capture(tmp_path / "a.pcapng") as capture:
        assert list(capture) == []
        assert str(capture.sections[0].comment).endswith("; hosts: 02:00:00:00:00:99 gamma:0")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_capture_ends_well_after_a_signal(silent, tmp_path, ending):
    with capturing(silent, "-w", tmp_path / "empty.pcapng") as process:
        done = process.finish(ending)
    assert done.code == 128 + ending
    assert "\n0 frames (0 bytes) captured" in done.err and "0 frames dropped" in done.err
    assert decoded(tmp_path / "empty.pcapng") == []


def test_capture_into_a_pipe_is_decoded(served):
    """As one line of a shell: the capture ends after its count, and then its reader."""
    captured, decoded = (shlex.join([*PROGRAM, *each.split()]) for each in ("capture -i veth1 -c 4 -w -", "decode -"))
    process = Running(served[1].namespace.start("bash", "-o", "pipefail", "-c", f"{captured} | {decoded}"))
    process.until("listening on")
    talk(served[1])
    done = process.finish()
    assert done.code == 0 and [line.split()[0] for line in done.lines] == ["1", "2", "3", "4"]
    assert all(" → " in line for line in done.lines) and "\n4 frames (" in done.err


def test_capture_prints_objects(served):
    with capturing(served[1], "-l", "-c", 3, "--json") as process:
        talk(served[1])
        *frames, summary = process.finish().objects
    assert [each["frame"] for each in frames] == [1, 2, 3] and summary["frames"] == 3


def test_capture_begins_new_files_by_size_and_keeps_the_newest(served, tmp_path):
    with capturing(served[1], "-w", tmp_path / "t.pcapng", "-C", 0.0003, "-W", 2, "-c", 12, "--json") as process:
        talk(served[1], 12)
        [summary] = process.finish().objects
    names = sorted(each.name for each in tmp_path.iterdir())
    assert len(names) == 2 and [Path(each).name for each in summary["files"]] == names
    assert names[0] == f"t-{int(names[1][2:7]) - 1:05}.pcapng" and int(names[1][2:7]) >= 3
    assert all(1 <= len(decoded(tmp_path / each)) <= 3 for each in names)


def test_capture_begins_new_files_by_time(served, tmp_path):
    with capturing(served[1], "-w", tmp_path / "t.pcapng.zst", "-G", 1e-9, "-c", 3) as process:
        talk(served[1])
        assert process.finish().code == 0
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == [f"t-{number:05}.pcapng.zst" for number in (1, 2, 3)]
    assert [len(decoded(tmp_path / each)) for each in names] == [1, 1, 1]


def test_capture_cuts_frames(served, tmp_path):
    with capturing(served[1], "-w", tmp_path / "t.pcapng", "-s", 40, "-c", 4) as process:
        talk(served[1])
        assert process.finish().code == 0
    assert {(each["captured"], each["wire_length"] > 40) for each in decoded(tmp_path / "t.pcapng")} == {(40, True)}


def test_capture_ends_well_when_its_interface_goes(laboratory, tmp_path):
    _, here = laboratory.pair()
    with capturing(here, "-w", tmp_path / "t.pcapng") as process:
        here.delete()
        done = process.finish()
    assert done.code == 2 and "veth1: the interface is gone" in done.err
    assert decoded(tmp_path / "t.pcapng") == []


def test_capture_counts_frames_without_room(jumbo_cable, tmp_path):
    """A capture that is stopped while more comes than its buffer holds."""
    count, file = 3000, tmp_path / "t.pcapng"
    here, there = jumbo_cable
    with here.namespace.inside():
        link = PacketLink.open(here.interface)
    with link, capturing(there, "-w", file, "--buffer", 1, "--json") as process:
        process.process.send_signal(signal.SIGSTOP)
        assert link.send(FrameBatch.from_frames([BROADCAST_FRAME] * count)) == count
        process.process.send_signal(signal.SIGCONT)
        done = process.finish(signal.SIGINT)
    [summary] = done.objects
    assert summary["dropped"] > 0 and summary["frames"] + summary["dropped"] == count
    assert len(decoded(file)) == summary["frames"]
    kind, end = statistics_block(file.read_bytes())
    assert (kind, end) == (count, summary["dropped"])


def statistics_block(data: bytes) -> tuple[int, int]:
    """Frames received and dropped, by the last block of a file."""
    [length] = struct.unpack_from("<I", data, len(data) - 4)
    block = data[-length:]
    assert struct.unpack_from("<I", block) == (5,)
    # Interface and time, then the options: end time, received, dropped, each of 8 bytes.
    return struct.unpack_from("<Q", block, 36)[0], struct.unpack_from("<Q", block, 48)[0]


def test_capture_needs_the_directory_of_its_file(silent):
    done = mxwire(silent, "capture", "-w", "/nowhere/a.pcapng")
    assert done.code == 2 and "create its directory first" in done.err and done.err.count("\n") == 1


# doctor


def findings(port: Port, *words: object, seconds: object = 2) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    done = mxwire(port, "doctor", "--json", "--duration", seconds, *words)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in done.objects:
        assert list(each) == ["check", "level", "text", "advice", "host"]
        assert each["level"] != "problem" or each["advice"]
        found.setdefault(each["check"], []).append(each)
    return done.code, found


def level(found: dict[str, list[dict[str, Any]]], check: str) -> str:
    """The worst of a check."""
    return max((each["level"] for each in found[check]), key=["ok", "warning", "problem"].index)


@pytest.mark.realtime
def test_doctor_finds_nothing_wrong(served):
    code, found = findings(served[1])
    problems = [each for some in found.values() for each in some if each["level"] == "problem"]
    assert (code, problems) == (0, [])
    assert {"link", "mtu", "hardware", "coalescing", "offloads", "ethertype", "permission", "sending"} <= set(found)
    assert found["peers"][0]["host"] == text(served[0].address)
    assert found["hardware"][0]["text"].startswith("driver veth")


def test_doctor_prints_lines_with_advice(silent):
    done = mxwire(silent, "doctor", "--duration", 0.3)
    assert done.code == 0 and "\x1b" not in done.out
    assert "warning  peers" in done.out and "→ start one on another computer" in done.out
    assert done.out.splitlines()[-1] == "veth1: no problems, 1 warning"


def test_doctor_sees_a_small_mtu(cable):
    code, found = findings(cable[1], seconds=0.3)
    assert code == 1 and level(found, "mtu") == "problem" and "omx:1500" in found["mtu"][0]["advice"]
    code, found = findings(cable[1], "--dialect", "omx:1500", seconds=0.3)
    assert code == 0 and level(found, "mtu") == "ok"


@pytest.mark.realtime
def test_doctor_sees_another_dialect(served):
    code, found = findings(served[1], "--dialect", "omx:9000")
    assert code == 1 and level(found, "dialect") == "problem" and "--dialect mxoe" in found["dialect"][0]["advice"]


@pytest.mark.realtime
def test_doctor_sees_an_mtu_that_is_smaller_elsewhere(jumbo_cable):
    with serving(jumbo_cable[0]):
        jumbo_cable[0].link("mtu", "2000")
        code, found = findings(jumbo_cable[1])
    assert code == 1 and level(found, "long-frames") == "problem" and level(found, "peers") == "ok"


@pytest.mark.realtime
def test_doctor_sees_another_with_our_name(served):
    code, found = findings(served[1], "--name", "alpha")
    assert code == 1 and level(found, "name") == "problem"


@pytest.mark.realtime
def test_doctor_sees_another_with_our_address(jumbo_cable):
    jumbo_cable[1].link("address", text(jumbo_cable[0].address))
    with serving(jumbo_cable[0]):
        code, found = findings(jumbo_cable[1])
    assert code == 1 and any("uses the same address" in each["text"] for each in found["address"])


def test_doctor_sees_a_bridge_that_takes_the_frames(laboratory):
    port = laboratory.pair(9000)[1]
    port.namespace.ip("link", "add", "br0", "type", "bridge")
    port.link("master", "br0")
    code, found = findings(port, seconds=0.3)
    assert code == 1 and "-i br0" in found["bridge"][0]["advice"]


def test_doctor_sees_an_interface_without_a_carrier_and_one_that_is_down(jumbo_cable):
    jumbo_cable[0].down()
    jumbo_cable[1].wait_for_carrier(False)
    code, found = findings(jumbo_cable[1])
    assert code == 1 and "no carrier" in found["link"][0]["text"]
    jumbo_cable[1].down()
    code, found = findings(jumbo_cable[1])
    assert code == 1 and "ip link set veth1 up" in found["link"][0]["advice"]


@pytest.mark.parametrize(
    ("how", "check", "advice"),
    [
        (["qdisc add dev veth1 root blackhole"], "sending", "egress"),
        (
            ["qdisc add dev veth1 clsact", "filter add dev veth1 ingress protocol all bpf da bytecode '1,6 0 0 2'"],
            "receiving",
            "ingress",
        ),
    ],
)
def test_doctor_finds_the_cause_of_dropped_frames(jumbo_cable, how, check, advice):
    if shutil.which("tc") is None:
        pytest.skip("the program tc is not installed (package iproute2)")
    here = jumbo_cable[1]
    for each in how:
        done = here.namespace.run("tc", *shlex.split(each))
        if done.returncode:
            pytest.skip(f"this kernel cannot do that: tc {each}: {done.stderr.strip().splitlines()[0]}")
    with serving(jumbo_cable[0]):
        code, found = findings(here)
    assert code == 1 and level(found, check) == "problem" and advice in found[check][0]["advice"]


def test_a_second_process_on_an_interface_knows_whom_the_first_has_met(served):
    """The knowledge of one program of a host helps the others, and no host is announced twice."""
    here = served[1]
    with serving(here, "beta", "--endpoint", "3"):
        for _ in range(2):
            done = mxwire(here, "discover", "-c", 1, "--duration", PATIENCE, "--json")
            [found] = done.objects
            assert (found["name"], found["dialect"]) == ("alpha:0", "mxoe") and found["index"] >= 1
        talk(here, 2)
        _, found = findings(here)
    assert "peers" in found and level(found, "peers") == "ok" and "1 other program" in found["ethertype"][0]["text"]


def test_a_host_that_has_gone_and_that_another_process_remembers_is_not_found(jumbo_cable):
    there, here = jumbo_cable
    with serving(here, "beta"):
        with serving(there):
            assert mxwire(here, "discover", "-c", 1, "--duration", PATIENCE).code == 0
        done = mxwire(here, "discover", "--duration", 0.3, "--json")
        assert done.code == 1 and "no host was found on veth1" in done.err
        [found] = done.objects
        assert (found["address"], found["heard"]) == (text(there.address), False)
        assert found["remark"].startswith("none of its frames arrived")
        _, about = findings(here, seconds=0.3)
        assert about["peers"][0]["text"].startswith("no other host was heard")
        done = mxwire(here, "ping", "gamma", "--timeout", 0.5)
    assert done.code == 2 and "no other host was seen on veth1 (0 frames heard); sent" in done.err


@pytest.mark.realtime
def test_doctor_names_the_others_on_the_interface(served, tmp_path):
    with capturing(served[1], "-w", tmp_path / "t.pcapng") as process:
        _, found = findings(served[1], seconds=0.3)
        assert f"({process.process.pid})" in found["ethertype"][0]["text"]


# what no live command can use


COMMANDS = [["discover"], ["ping", "alpha"], ["capture", "-l"], ["doctor"], ["serve"], ["receive"], ["perf"]]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("interface", "words"), [("nothere", "there is no interface 'nothere' here; there are veth1"), ("lo", "loopback")]
)
def test_invalid_interfaces(silent, command, interface, words):
    done = mxwire(Port(silent.namespace, interface), *command)
    assert (done.code, done.out) == (2, "") and words in done.err and done.err.count("\n") == 1


def test_an_interface_that_is_down(laboratory):
    port = laboratory.pair()[1]
    port.down()
    for command in (["discover"], ["ping", "alpha"], ["serve"]):
        done = mxwire(port, *command)
        assert done.code == 2 and done.err == "mxwire: veth1: is down; set it up: ip link set veth1 up\n"


@pytest.mark.parametrize("command", [["discover"], ["ping", "alpha"], ["capture", "-l"]])
def test_without_permission(silent, command):
    done = as_nobody(silent, *command)
    assert done.code == 2 and "need CAP_NET_RAW: use sudo" in done.err


def test_doctor_explains_how_to_get_permission(silent):
    done = as_nobody(silent, "doctor")
    assert done.code == 1 and "problem  permission" in done.out
    assert done.out.count("CAP_NET_RAW") == 1 and "→ use sudo, or a shell with it" in done.out


def as_nobody(port: Port, *words: str) -> Run:
    """Run a command as a user without privileges.

    Its modules are imported as root: this user may be unable to read the installation. difflib is among them, as click
    imports it while it parses an option with one dash.
    """
    names = ["doctor", "peer_names", "ping", "survey"]
    script = "import difflib, os\nfrom mxwire.cli import main\nimport mxwire.link, mxwire.host\n"
    script += "import mxwire.capture.rotation, mxwire.link.live_source, mxwire.report.frame_text, mxwire.wire.packets\n"
    script += "".join(f"import mxwire.host.{each}\n" for each in names)
    script += "import mxwire.cli.discover, mxwire.cli.ping, mxwire.cli.capture, mxwire.cli.doctor\n"
    script += f"os.setgroups([])\nos.setgid({NOBODY})\nos.setuid({NOBODY})\nmain({[*words, '-i', port.interface]!r})"
    done = port.namespace.run(sys.executable, "-c", script, cwd=ROOT)
    return Run(done.returncode, done.stdout, done.stderr)
