"""Studies between two namespaces: shapes and counts. Times decide nothing here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mxwire.bench.path import RUNGS, Budget
from mxwire.bench.record import read_recordings
from mxwire.bench.stage import NamespaceStage, SideLostError, StageOptions
from mxwire.interop.namespaces import inside
from mxwire.link.ethtool import read_hardware

from . import bpf

COMMAND = [sys.executable, "-m", "mxwire", "bench"]


@pytest.fixture
def stage(_namespaces_work):
    with NamespaceStage(StageOptions(mtu=9000, offloads=False)) as made:
        yield made


def test_a_stage_has_the_conditions_of_its_options(stage):
    assert stage.conditions.stage == "namespaces" and stage.conditions.mtu == 9000 and stage.conditions.steered
    assert not {"tso", "gso", "gro"} & set(stage.conditions.offloads)
    with inside(stage.ends[0][0]):
        assert not read_hardware("veth0").offloads["tso"]
    stage.steer(False)
    assert not stage.conditions.steered


@pytest.mark.parametrize("carrier", ["frames", "ring", "udp", "tcp", "mxoe", "shared memory"])
def test_every_carrier_plays_every_role(stage, carrier):
    shared = {"carrier": carrier, "spin": False}
    active, _ = stage.run("trips", sizes=[0, 10_000], counts=[5, 5], **shared)
    assert all(each["median"] > 0 for each in active["points"].values())
    if carrier == "shared memory":
        return
    assert stage.run("flood", size=100, count=20, window=4, depth=4, **shared)[0]["interval"] > 0
    assert stage.run("simultaneous", size=1 << 20, count=2, **shared)[0]["interval"] > 0


@pytest.mark.parametrize(("carrier", "calls", "copied"), [("frames", 2, 1014), ("udp", 2, 1000), ("tcp", 2, 1000)])
def test_system_calls_and_copies_are_counted_exactly(stage, carrier, calls, copied):
    """One send and one receive per round trip; both copy the message between process and kernel."""
    for active in (True, False):
        parameters = {"size": 1000, "count": 10, "traced_active": active}
        found = stage.run("traced trips", carrier=carrier, spin=False, **parameters)[not active]
        assert sum(value for name, value in found.items() if name in _MOVING) == calls
        assert found["bytes to the kernel"] == found["bytes from the kernel"] == copied
        assert found["bytes in place"] == 1000


_MOVING = {f"calls, {each}" for each in ("sendto", "sendmsg", "recvfrom", "recvmsg")}


def test_a_ring_receives_without_a_call_that_copies(stage):
    found, _ = stage.run("traced trips", carrier="ring", spin=False, size=1000, count=10, traced_active=True)
    assert found["calls, sendto"] == 1 and not found["bytes from the kernel"]


def test_a_side_that_dies_ends_the_study_in_one_line(stage):
    os.kill(stage.sides[1].pid, signal.SIGKILL)
    with pytest.raises(SideLostError) as error:
        stage.run("trips", carrier="frames", sizes=[0], counts=[1])
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
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    (recording,) = read_recordings(tmp_path / "path.jsonl")
    assert recording.complete and recording.conditions.quick
    trips = recording.named("half round trip")
    rungs = {each for each in RUNGS if each != "xdp" or not bpf.missing()}
    for mode in ("spinning", "blocking"):
        found = {each.parameters["over"] for each in trips.measurements if each.parameters["mode"] == mode}
        if mode == "blocking" or len(os.sched_getaffinity(0)) > 1:
            assert found == rungs - ({"shared memory"} if mode == "blocking" else set())
    assert all(len(each.samples) == 1 for each in trips.measurements)
    tcp = trips.point("tcp, blocking", 4096)
    assert tcp is not None and tcp.counts["bytes to the kernel"] == 4096
    assert {each.name for each in recording.named("alone").measurements} >= {"memory copy, cold", "engine", "hosts"}
    budgets = recording.facts["budgets"]
    if len(os.sched_getaffinity(0)) > 1:
        assert {each["name"] for each in budgets} == {"mxoe, spinning", "mxoe, blocking"}
    assert all(abs(sum(value for _, value in each["parts"]) - each["sum"]) < 1e-9 for each in budgets)
    page = (tmp_path / "pages" / "path.html").read_text()
    assert "Where the time goes" in page and page.count("<svg") == 2 and "Budget" in page
    assert "half round trip" in (tmp_path / "p.svg").read_text()


def test_a_budget_closes_within_15_percent():
    assert Budget("x", 0, (("a", 4.0), ("b", 4.6)), 10.0).closes
    assert not Budget("x", 0, (("a", 4.0), ("b", 4.4)), 10.0).closes


def test_ctrl_c_writes_the_measurements_so_far(_namespaces_work, tmp_path):
    command = [*COMMAND, "path", "--interpreted", "-w", "path.jsonl", "--json", "--rounds", "50"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 30
        # Its namespaces exist: the study is under way.
        while not list(Path("/run/netns").glob(f"mxbench-{process.pid}-*")) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err, err
    last = json.loads(out.splitlines()[-1])
    assert last["record"] == "end" and not last["complete"] and "Ctrl-C" in last["remarks"][-1]
    assert not read_recordings(tmp_path / "path.jsonl")[0].complete
    assert not list(Path("/run/netns").glob(f"mxbench-{process.pid}-*"))


def test_a_quick_logp_has_every_parameter_of_every_carrier(_namespaces_work, tmp_path):
    command = [*COMMAND, "logp", "--quick", "--rounds", "1", "--sizes", "4,2000", "-w", "logp.parquet", "--html", "p"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    (recording,) = read_recordings(tmp_path / "logp.parquet")
    carriers = {"mxoe", "omx:9000", "tcp", "udp", "frames"}
    for name in ("RTT/2", "L", "g", "o_s", "o_r"):
        series = recording.named(name)
        assert carriers <= set(series.contestants()) and series.point("tcp", 2000) is not None
    assert set(recording.facts["agreement"]) == carriers
    assert "LogP" in (tmp_path / "p" / "logp.html").read_text()


def test_two_machines_measure_over_their_interface(laboratory, tmp_path):
    left, right = laboratory.pair(9000)
    left.namespace.ip("addr", "add", "10.9.9.1/24", "dev", "veth0")
    right.namespace.ip("addr", "add", "10.9.9.2/24", "dev", "veth1")
    words = ["-m", "mxwire", "bench"]
    study = [sys.executable, *words, "logp", "-i", "veth0", "--quick", "--rounds", "1", "--sizes", "64", "--json"]
    with right.namespace.start(sys.executable, *words, "serve", "-i", "veth1", "--json") as server:
        assert server.stdout is not None and json.loads(server.stdout.readline())["event"] == "serving"
        done = left.namespace.run(*study, "--over", "mxoe,tcp,frames", timeout=100)
        assert done.returncode == 0, done.stderr
        role = json.loads(server.stdout.readline())
        assert role["event"] == "role" and "spin error over mxoe" in role["text"]
        refused = left.namespace.run(*study, "--over", "mxoe", "-d", "02:00:00:00:00:99", timeout=60)
        assert refused.returncode == 2 and "does not answer" in refused.stderr
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)
        assert server.returncode == 130
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["conditions"]["stage"] == "machines"
    names = {row["name"] for row in rows if row.get("series") == "RTT/2"}
    assert names == {"mxoe", "tcp", "frames"} and rows[-1]["complete"]
    alone = left.namespace.run(*study, timeout=60)
    assert alone.returncode == 2 and "mxwire bench serve" in alone.stderr
