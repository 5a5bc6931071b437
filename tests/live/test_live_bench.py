"""Studies between two namespaces: shapes and counts. Times decide nothing here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from mxwire.bench.cost.progress import PROGRESS
from mxwire.bench.imb.rank_testbed import LiveRanks, RankOptions
from mxwire.bench.overlap import BOUNDS, EXPERIMENTS, PARTIES, RAN, WAITED, OverlapStudy, run_overlap
from mxwire.bench.overlap_live import LiveOverlap
from mxwire.bench.overlap_report import overlap_blocks
from mxwire.bench.path import RUNGS, Budget
from mxwire.bench.record import read_recordings
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import NamespaceTestbed, SideLostError, TestbedOptions
from mxwire.lab.child import ChildProcess
from mxwire.link.ethtool import read_hardware
from tests.cli.streams import Stream
from tests.forked import start

from . import bpf

COMMAND = [sys.executable, "-m", "mxwire", "bench"]


def forked(command, folder):
    """Run a command in a folder, where it must succeed."""
    with start(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        _, errors = process.communicate(timeout=150)
    assert process.returncode == 0, errors


@pytest.fixture
def testbed(_namespaces_work, forked_sides):
    with NamespaceTestbed(TestbedOptions(mtu=9000, offloads=False)) as made:
        yield made


def test_a_testbed_has_the_conditions_of_its_options(testbed):
    assert testbed.conditions.testbed == "namespaces" and testbed.conditions.mtu == 9000 and testbed.conditions.steered
    assert not {"tso", "gso", "gro"} & set(testbed.conditions.offloads)
    with testbed.ports[0].namespace.inside():
        assert not read_hardware("veth0").offloads["tso"]
    testbed.steer(False)
    assert not testbed.conditions.steered


@pytest.mark.parametrize("carrier", ["frames", "ring", "udp", "tcp", "mxoe", "shared memory"])
def test_every_carrier_plays_every_role(testbed, carrier):
    shared = {"carrier": carrier, "spin": False}
    active, _ = testbed.run("trips", sizes=[0, 10_000], counts=[5, 5], **shared)
    assert all(each["median"] > 0 for each in active["points"].values())
    if carrier == "shared memory":
        return
    assert testbed.run("flood", size=100, count=20, window=4, depth=4, **shared)[0]["interval"] > 0
    assert testbed.run("simultaneous", size=1 << 20, count=2, **shared)[0]["interval"] > 0


@pytest.mark.parametrize(("carrier", "calls", "copied"), [("frames", 2, 1014), ("udp", 2, 1000), ("tcp", 2, 1000)])
def test_system_calls_and_copies_are_counted_exactly(testbed, carrier, calls, copied):
    """One send and one receive per round trip; both copy the message between process and kernel."""
    for active in (True, False):
        parameters = {"size": 1000, "count": 10, "traced_active": active}
        found = testbed.run("traced trips", carrier=carrier, spin=False, **parameters)[not active]
        assert sum(value for name, value in found.items() if name in _MOVING) == calls
        assert found["bytes to the kernel"] == found["bytes from the kernel"] == copied
        assert found["bytes in place"] == 1000


_MOVING = {f"calls, {each}" for each in ("sendto", "sendmsg", "recvfrom", "recvmsg")}


def test_a_ring_receives_without_a_call_that_copies(testbed):
    found, _ = testbed.run("traced trips", carrier="ring", spin=False, size=1000, count=10, traced_active=True)
    assert found["calls, sendto"] == 1 and not found["bytes from the kernel"]


def test_a_side_that_dies_ends_the_study_in_one_line(testbed):
    os.kill(testbed.sides[1].pid, signal.SIGKILL)
    with pytest.raises(SideLostError) as error:
        testbed.run("trips", carrier="frames", sizes=[0], counts=[1])
    assert "passive side has ended" in str(error.value)


def test_a_quick_ladder_has_all_rungs_counts_and_budgets(_namespaces_work, tmp_path):
    command = [
        *COMMAND,
        "path",
        "--quick",
        "--rounds",
        "1",
        "--interpreted",
        "-w",
        "path.jsonl",
        "--html",
        "pages",
        "--plot",
        "p.svg",
    ]
    forked(command, tmp_path)
    (recording,) = read_recordings(tmp_path / "path.jsonl")
    assert recording.complete and recording.conditions.quick
    trips = recording.named("half round trip")
    rungs = {each for each in RUNGS if "xdp" not in each or not bpf.missing()}
    spinning = {each.name.removesuffix(", spinning") for each in trips.measurements if "spinning" in each.name}
    if len(os.sched_getaffinity(0)) > 1:
        kernel = {"xdp", "frames in C", "frames", "udp", "tcp", "mxoe"} - ({"xdp"} if bpf.missing() else set())
        plain = {f"{each}, spinning, not steered" for each in kernel}
        local = {f"mxoe over local{each}" for each in ("", " (1 copy)", " (copied)")}
        assert spinning == rungs | plain | local | {"frames in C"}
    blocking = {each.parameters["over"] for each in trips.measurements if each.parameters["mode"] == "blocking"}
    assert blocking == rungs - {"shared memory"}
    assert all(len(each.samples) == 1 for each in trips.measurements)
    tcp = trips.point("tcp, blocking", 4096)
    assert tcp is not None and tcp.counts["bytes to the kernel"] == 4096
    if len(os.sched_getaffinity(0)) > 1:
        copied = trips.point("mxoe over local (1 copy), spinning", 1 << 20).counts
        # Beside the data, single bytes wake a side that sleeps.
        assert 0 <= copied["bytes from the kernel"] - (1 << 20) < 16 and copied["bytes copied, sent"] <= 1 << 15
    if not bpf.missing():
        xdp = trips.point("mxoe over xdp, blocking", 64)
        assert xdp.counts["calls, sendto"] == 1 and xdp.counts["bytes to the kernel"] == 0
    assert {each.name for each in recording.named("alone").measurements} >= {"memory copy, cold", "engine", "hosts"}
    budgets = recording.facts["budgets"]
    if len(os.sched_getaffinity(0)) > 1:
        assert {each["name"] for each in budgets} == {"mxoe, spinning", "mxoe, blocking"}
    assert all(abs(sum(value for _, value in each["parts"]) - each["sum"]) < 1e-9 for each in budgets)
    page = (tmp_path / "pages" / "path.html").read_text()
    assert "Where the time goes" in page and page.count("<figure") == 2 and "Budget" in page
    assert "half round trip" in (tmp_path / "p.svg").read_text()


def test_a_budget_closes_within_15_percent():
    assert Budget("x", 0, (("a", 4.0), ("b", 4.6)), 10.0).closes
    assert not Budget("x", 0, (("a", 4.0), ("b", 4.4)), 10.0).closes


def test_ctrl_c_writes_the_measurements_so_far(_namespaces_work, tmp_path):
    command = [*COMMAND, "path", "--quick", "--interpreted", "-w", "path.jsonl", "--json", "--rounds", "50"]
    terminal = Stream(True)
    with start(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal.theirs, text=True) as process:
        terminal.wait_for(b"round 1 of 50: frames")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    err = terminal.end()
    assert process.returncode == 130 and b"Traceback" not in err, err
    records = [json.loads(line) for line in out.splitlines()]
    assert {each["name"] for each in records if each["record"] == "measurement"} >= {"ring, blocking"}
    last = records[-1]
    assert last["record"] == "end" and not last["complete"] and "Ctrl-C" in last["remarks"][-1]
    assert not read_recordings(tmp_path / "path.jsonl")[0].complete
    assert not list(Path("/run/netns").glob(f"mxwire-bench-{process.pid}-*"))


def test_a_quick_logp_has_every_parameter_of_every_carrier(_namespaces_work, tmp_path):
    command = [*COMMAND, "logp", "--quick", "--rounds", "1", "--sizes", "4,2000", "-w", "logp.parquet", "--html", "p"]
    forked(command, tmp_path)
    (recording,) = read_recordings(tmp_path / "logp.parquet")
    carriers = {"mxoe", "omx:9000", "tcp", "udp", "frames"}
    for name in ("RTT/2", "L", "g", "o_s", "o_r"):
        series = recording.named(name)
        assert carriers <= set(series.contestants()) and series.point("tcp", 2000) is not None
    assert set(recording.facts["agreement"]) == carriers
    assert "LogP" in (tmp_path / "p" / "logp.html").read_text()


@pytest.fixture
def machines(laboratory):
    """Two machines with IP addresses on their interfaces."""
    left, right = laboratory.pair(9000)
    left.namespace.ip("addr", "add", "10.9.9.1/24", "dev", "veth0")
    right.namespace.ip("addr", "add", "10.9.9.2/24", "dev", "veth1")
    return left.namespace, right.namespace


@contextmanager
def served(machine):
    """``mxwire bench serve`` on a machine, once it serves."""
    with machine.start(*COMMAND, "serve", "-i", "veth1", "--json") as server:
        assert server.stdout is not None and json.loads(server.stdout.readline())["event"] == "serving"
        try:
            yield server
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)


def test_path_between_two_machines_has_the_rungs_of_a_network(machines):
    here, there = machines
    with served(there):
        done = here.run(*COMMAND, "path", "-i", "veth0", "--quick", "--rounds", "1", "--json", timeout=150)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["conditions"]["testbed"] == "machines" and rows[-1]["complete"]
    rungs = {row["parameters"]["over"] for row in rows if row.get("series") == "half round trip"}
    assert rungs >= {"ring", "frames", "udp", "tcp", "mxoe", "omx:9000"} and "shared memory" not in rungs
    assert "shared memory: not applicable: two machines share no memory" in rows[-1]["remarks"]
    if len(os.sched_getaffinity(0)) > 1:
        # The interpreted mxwire is measured too if there is a compiled one (make compiled).
        budgets = {each["name"] for each in rows[-1]["facts"]["budgets"]} - {"mxoe interpreted, spinning"}
        assert budgets == {"mxoe, spinning", "mxoe, blocking"}
    tcp = next(row for row in rows if row.get("name") == "tcp, blocking" and row["parameters"]["size"] == 4096)
    assert tcp["counts"]["bytes to the kernel"] == 4096


@pytest.mark.parametrize(("ranks", "over"), [(3, "mx,tcp"), (2, "mx")])
def test_imb_between_two_machines_has_every_rank(machines, ranks, over):
    here, there = machines
    study = [*COMMAND, "imb", "PingPong", "Allreduce", "--ranks", str(ranks), "--over", over, "--largest", "4096"]
    with served(there) as server:
        done = here.run(*study, "-i", "veth0", "--quick", "--rounds", "1", "--json", timeout=150)
        assert done.returncode == 0, done.stderr
        roles = [json.loads(server.stdout.readline())["text"] for _ in range(2)]
    assert roles[0].endswith("connect")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["conditions"]["testbed"] == "machines" and rows[-1]["complete"]
    found = {(row["series"], row["name"], row["parameters"]["size"]) for row in rows if row["record"] == "measurement"}
    names = {"mxoe"} | ({"tcp"} if "tcp" in over else set())
    assert {(series, name) for series, name, _ in found} == {(s, n) for s in ("PingPong", "Allreduce") for n in names}
    assert {size for series, _, size in found if series == "PingPong"} >= {0, 1, 4096}


def test_libraries_with_cards_are_compared_between_two_machines(machines):
    here, there = machines
    options = ["--quick", "--rounds", "1", "--model", "vmmc2", "--card", "process", "--sizes", "4", "--json"]
    with served(there):
        done = here.run(*COMMAND, "models", "--compare", "-i", "veth0", *options, timeout=150)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[-1]["complete"] and rows[-1]["facts"]["processors"] == {"sides": [], "cards": []}
    assert {row["name"] for row in rows if row.get("series") == "L"} == {"vmmc2 with card", "null with card"}


def test_mtu_between_two_machines_stays_below_that_of_the_interface(machines):
    here, there = machines
    axes = ["--mtu", "1500,16000", "--blocks", "8", "--delay", "0us"]
    with served(there):
        done = here.run(*COMMAND, "mtu", "-i", "veth0", *axes, "--quick", "--rounds", "1", "--json", timeout=150)
        refused = here.run(*COMMAND, "mtu", "-i", "veth0", "--mtu", "16000", "--quick", timeout=60)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert "MTUs above 9000, that of veth0: not applicable" in rows[-1]["remarks"]
    limits = {row["name"]: row["parameters"]["mtu"] for row in rows if row.get("series") == "rate by frame limit"}
    assert limits == {"omx": 1500}
    delays = {row["parameters"]["delay"] for row in rows if row.get("series") == "rate by delay"}
    assert delays == {0.0}
    assert refused.returncode == 2 and "no MTU of the study is possible" in refused.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_ends_in_one_line(machines, number):
    with machines[1].start(*COMMAND, "serve", "-i", "veth1", stderr=subprocess.PIPE) as server:
        assert server.stderr is not None and "serving studies" in server.stderr.readline()
        server.send_signal(number)
        out, err = server.communicate(timeout=60)
    assert server.returncode == 130 and not out
    assert err == "mxwire: ended: 0 studies served, 0 roles\n"


def test_a_study_that_dies_leaves_no_process_behind(machines):
    """The server ends the processes of a partner that has gone as soon as another study begins, or at its own end."""
    here, there = machines
    study = [*COMMAND, "logp", "-i", "veth0", "--over", "mxoe", "--rounds", "50", "--json"]
    with served(there) as server:
        with here.start(*study) as first:
            assert server.stdout is not None and "spin error" in server.stdout.readline()
            # A role is printed before its process is started, so wait for the second one.
            assert server.stdout.readline()
            first.kill()
        (abandoned,) = _children(server.pid)
        done = here.run(*study[:-3], "--rounds", "1", "--quick", "--sizes", "4", timeout=100)
        assert done.returncode == 0, done.stderr
        assert abandoned not in _children(server.pid)
        left = _children(server.pid)
    assert all(not Path(f"/proc/{each}").exists() for each in left)


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_two_machines_measure_over_their_interface(machines, tmp_path):
    left, right = machines
    words = ["-m", "mxwire", "bench"]
    study = [sys.executable, *words, "logp", "-i", "veth0", "--quick", "--rounds", "1", "--sizes", "64", "--json"]
    with right.start(sys.executable, *words, "serve", "-i", "veth1", "--json") as server:
        assert server.stdout is not None and json.loads(server.stdout.readline())["event"] == "serving"
        done = left.run(*study, "--over", "mxoe,tcp,frames", timeout=100)
        assert done.returncode == 0, done.stderr
        role = json.loads(server.stdout.readline())
        assert role["event"] == "role" and "spin error over mxoe" in role["text"]
        refused = left.run(*study, "--over", "mxoe", "-d", "02:00:00:00:00:99", timeout=60)
        assert refused.returncode == 2 and "does not answer" in refused.stderr
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
        assert server.returncode == 130
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["conditions"]["testbed"] == "machines"
    names = {row["name"] for row in rows if row.get("series") == "RTT/2"}
    assert names == {"mxoe", "tcp", "frames"} and rows[-1]["complete"]
    alone = left.run(*study, timeout=60)
    assert alone.returncode == 2 and "mxwire bench serve" in alone.stderr


def test_a_quick_overlap_has_every_way_of_progress(_namespaces_work):
    """Also with agents, which the ranks start and end; the processors of all parties are in the recording, and frames
    of both sides in a timeline."""
    with LiveRanks(RankOptions(dialect="omx:9000", polling=False)) as ranks:
        live, once = LiveOverlap(ranks, quick=True), StudyOptions.of(1, True)
        buffered = run_overlap(OverlapStudy(("push",), EXPERIMENTS[:1]), live, once)
        recording = run_overlap(OverlapStudy(experiments=EXPERIMENTS[1:], sides=("receiver",)), live, once)
    assert buffered.complete and recording.complete, buffered.remarks + recording.remarks
    bounds = [f"{bound}, {kind}" for bound in BOUNDS for kind in live.works]
    assert {each.partition(", ")[2] for each in buffered.named("rate").contestants()} == {
        *("network", "random and sum", *bounds)
    }
    for each in buffered.named("rate").measurements:
        assert all(each.details[party + RAN] > 0 and each.details[party + WAITED] >= 0 for party in PARTIES)
    assert any("each party ran + waited" in str(each) for each in overlap_blocks(buffered))
    [timeline] = buffered.facts["timelines"].values()
    assert {each["kind"] for each in timeline["phases"]} >= {"fill", "wait"}
    assert {each["rank"] for each in timeline["frames"]} == {0, 1}
    for name, cases in {
        "overlap": ("receiver sleeps", "receiver burns"),
        "availability": live.works,
        "rate while polling": live.works,
    }.items():
        expected = {f"{way}, {case}" for way in PROGRESS for case in cases}
        assert set(recording.named(name).contestants()) == expected
    for each in recording.named("overlap").measurements:
        assert set(each.details) == {"idle", "alone", "post", "work", "wait", "total"}
    # The kernel counts more than the data, and rounds up: the step is near both buffers, and never at none or all.
    [step] = recording.named("handed over while the receiver works").measurements
    assert step.name == "kernel" and 0 < step.median < 8 * step.parameters["buffer"] - 1024
    parties = recording.facts["processors"]
    assert set(parties["push"]) == {"sender", "receiver", "agent of the sender", "agent of the receiver"}
    assert set(parties["card"]) == {"sender", "receiver", "agent of the receiver"}
    assert set(parties["kernel"]) == {"sender", "receiver"}


def test_an_agent_that_cannot_start_leaves_its_way_out(_namespaces_work):
    """Its reason is in the remarks, and the other ways are measured."""
    study = OverlapStudy(("match", "library"), ("post-work-wait",), sides=("sender",))
    with LiveRanks(RankOptions(dialect="omx:9000", polling=False)) as ranks:
        words = [sys.executable, "-m", "mxwire", "agent", "-i", ranks.ports[0].interface]
        other = ChildProcess(ranks.ports[0].namespace.command(*words))
        try:
            assert other.read_line(60) is not None
            recording = run_overlap(study, LiveOverlap(ranks, quick=True), StudyOptions.of(1, True))
        finally:
            other.end()
    assert not recording.complete
    [remark] = [each for each in recording.remarks if each.startswith("match: left out")]
    assert "no agent" in remark
    assert {each.name.partition(",")[0] for each in recording.named("overlap").measurements} == {"library"}
