"""The matrix of live hosts: mxwire in two namespaces, and mxwire with another program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.result import InteropReport
from mxwire.lab.namespaces import NamespaceError, inside, joined, run_ip
from tests.cli.support import ROOT

pytestmark = pytest.mark.usefixtures("_namespaces_work")

EXAMPLE = ROOT / "examples" / "two-namespaces.toml"
LONGEST = 120


@pytest.fixture
def hosts(tmp_path) -> Path:
    """The example with namespaces of this test's own."""
    path = tmp_path / "hosts.toml"
    path.write_text(EXAMPLE.read_text().replace("mxwire-left", name("left")).replace("mxwire-right", name("right")))
    return path


def name(side: str) -> str:
    return f"mxi-{os.getpid()}-{side}"


def left_over() -> list[str]:
    return [each.name for each in Path("/run/netns").glob(f"mxi-{os.getpid()}-*")]


def play(*arguments: object) -> tuple[int, list[str], str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), "interop", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.realtime
def test_live_hosts_play_the_same_cases_as_simulated_ones(hosts, tmp_path):
    cases = ("connect", "connect-bad-key", "restart-host", "size-tiny", "size-medium", "lost-last-reply", "perf")
    chosen = [word for case in cases for word in ("--case", case)]
    report = tmp_path / "report"
    two = ("--implementation", "open-mx-1.5", "--implementation", "open-mx-1.5-omx-9000")
    code, lines, errors = play(*two, *chosen, "--report", report, hosts)
    found = {each.name: each for each in InteropReport.read(report).cells}
    bad = [f"{each.name}: {each.reason}" for each in found.values() if each.verdict == "fail"]
    assert (code, bad) == (0, []), "\n".join([*lines, errors])
    assert len(found) == 4 * len(cases)
    apart = found["open-mx-1.5/open-mx-1.5-omx-9000/size-medium/none"]
    assert apart.reason.startswith("fails as expected: ")
    assert any("uses mxoe" in line for line in apart.diagnosis)
    alike = found["open-mx-1.5/open-mx-1.5/lost-last-reply/none"]
    assert alike.reason.startswith("works") and alike.frames > 20
    assert (report / "captures" / alike.capture).is_file()
    assert not left_over()


@pytest.mark.realtime
def test_a_live_link_is_impaired(hosts):
    code, lines, errors = play("--cell", "open-mx-1.5/native-mx/size-medium/mixed", "--json", hosts)
    (cell,) = InteropReport.from_json_lines(lines).cells
    assert (code, cell.verdict in ("pass", "non-strict")) == (0, True), (cell.reason, errors)
    assert cell.command.endswith(str(hosts))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_takes_the_namespaces_away(hosts, tmp_path, how):
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "cli.py"), "interop", "--report", str(tmp_path / "report"), str(hosts)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    captures = tmp_path / "report" / "captures"
    end = time.monotonic() + LONGEST
    while time.monotonic() < end and not (captures.is_dir() and list(captures.iterdir())):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(how)
    _, errors = process.communicate(timeout=LONGEST)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not left_over()
    assert not InteropReport.read(tmp_path / "report").complete


def test_namespaces_of_others_are_left_alone(hosts):
    ends = ((name("left"), "veth0"), (name("right"), "veth1"))
    with joined(ends, 1500):
        code, _, errors = play(hosts)
        assert code == 2
        assert f"network namespace {name('left')} exists already: remove it" in errors
        as_they_are = hosts.read_text().replace("make = true", "make = false")
        hosts.write_text(as_they_are)
        code, lines, _ = play("--cell", "open-mx-1.5/open-mx-1.5/connect/none", "--json", hosts)
        (cell,) = InteropReport.from_json_lines(lines).cells
        assert cell.verdict == "missing"
        assert cell.reason == "not played: the MTU of veth0 is 1500, but mxoe needs 4130"
    assert not left_over()
    with pytest.raises(NamespaceError, match="No such file"), inside(name("left")):
        raise AssertionError("nobody is there")


EXTERNAL = """\
implementations = ["open-mx-1.5", "native-mx"]
patience = 30
[left]
interface = "veth0"
namespace = "{left}"
[[external]]
name = "served"
host = "node7:0"
implementation = "open-mx-1.5"
[[external.program]]
role = "echo"
start = "ip netns exec {right} {python} -u {cli} serve {serve} -i veth1"
ready = "echo on"
patience = 60
"""


def external(folder: Path, serve: str = "--echo --name node7:0") -> Path:
    path = folder / "external.toml"
    names = {"left": name("left"), "right": name("right")}
    path.write_text(EXTERNAL.format(**names, python=sys.executable, cli=ROOT / "cli.py", serve=serve))
    return path


@pytest.mark.realtime
def test_another_host_is_played_against(tmp_path):
    with joined(((name("left"), "veth0"), (name("right"), "veth1")), 9000):
        names = ("discovery", "connecting", "size-tiny", "size-medium", "wildcards", "lost-message", "receiver-killed")
        cases = [word for case in (*names, "perf") for word in ("--case", case)]
        code, lines, errors = play(*cases, "--json", external(tmp_path))
        assert subprocess.run(["ip", "netns", "pids", name("right")], capture_output=True, text=True).stdout == ""
    found = {each.name: each for each in InteropReport.from_json_lines(lines).cells}
    bad = [f"{each.name}: {each.reason}" for each in found.values() if each.verdict == "fail"]
    assert (code, bad) == (0, []), errors
    for ours in ("open-mx-1.5", "native-mx"):
        for case in ("announcements", "names", "connect-bad-key", "restart-endpoint", "restart-host", *names[2:]):
            assert found[f"{ours}/served/{case}/none"].reason.startswith("works")
        assert found[f"{ours}/served/connect-crossing/none"].reason == (
            "not played: the case must control both hosts, and the one on the right is external"
        )
        assert found[f"{ours}/served/perf/none"].reason == ("not played: no program of served is configured for 'perf'")


OMX_PERF = """\
implementations = ["open-mx-1.5"]
patience = 30
[left]
interface = "veth0"
namespace = "{left}"
[[external]]
name = "real"
host = "node7:0"
dialect = "{dialect}"
implementation = "open-mx-1.5-as-found"
[[external.program]]
role = "perf"
start = "ip netns exec {right} env PYTHONPATH={root} {python} -u -m tests.interop.omx_perf -i veth1 --name node7:0 -s"
ready = "listening"
patience = 60
{more}
"""


def omx_perf(folder: Path, more: str = "", dialect: str = "mxoe") -> Path:
    path = folder / "external.toml"
    names = {"left": name("left"), "right": name("right"), "root": ROOT, "python": sys.executable}
    path.write_text(OMX_PERF.format(**names, more=more, dialect=dialect))
    return path


@pytest.mark.realtime
def test_a_real_omx_perf_is_measured_although_it_answers_from_a_buffer_of_its_own(tmp_path):
    with joined(((name("left"), "veth0"), (name("right"), "veth1")), 9000):
        names = ("measuring", "lost-message", "lost-notify")
        code, lines, errors = play(*(word for each in names for word in ("--case", each)), "--json", omx_perf(tmp_path))
    cells = InteropReport.from_json_lines(lines).cells
    assert (code, [each.reason for each in cells if not each.works]) == (0, []), errors
    assert [each.case for each in cells] == ["lost-notify", "lost-message", "perf", "perf-one-way"]
    assert not any("was restarted" in line for each in cells for line in each.events)


@pytest.mark.realtime
def test_a_program_that_a_failed_case_leaves_in_mid_run_is_restarted(tmp_path):
    """A case fails since the file claims, wrongly, that the content is returned: the slave waits for the rest of it."""
    with joined(((name("left"), "veth0"), (name("right"), "veth1")), 9000):
        code, lines, errors = play("--case", "measuring", "--json", omx_perf(tmp_path, 'answer = "content"'))
        assert subprocess.run(["ip", "netns", "pids", name("right")], capture_output=True, text=True).stdout == ""
    perf, one_way = InteropReport.from_json_lines(lines).cells
    assert (code, perf.verdict) == (1, "fail")
    assert perf.reason == "left: received 1 byte, but not the ones sent"
    assert one_way.works, (one_way.reason, errors)
    assert one_way.events[0].endswith("' was restarted: open-mx-1.5/real/perf/none did not succeed")


@pytest.mark.parametrize(
    ("serve", "why"),
    [
        ("--nonsense", "ended at once with status 2: mxwire: No such option '--nonsense'"),
        ("--echo --name other:0", "served: no frame received from node7:0 on veth0 within 12 s"),
    ],
)
def test_a_missing_host_is_reported_in_one_line(tmp_path, serve, why):
    with joined(((name("left"), "veth0"), (name("right"), "veth1")), 9000):
        path = external(tmp_path, serve)
        code, lines, errors = play("--case", "size-tiny", path)
        assert subprocess.run(["ip", "netns", "pids", name("right")], capture_output=True, text=True).stdout == ""
    assert (code, lines) == (2, [])
    assert errors.startswith("mxwire: ") and why in errors and errors.count("\n") == 1


@pytest.mark.realtime
def test_a_host_that_answers_nonsense_fails_and_is_diagnosed(tmp_path):
    """It speaks another dialect than the file names."""
    with joined(((name("left"), "veth0"), (name("right"), "veth1")), 9000):
        path = external(tmp_path, "--echo --name node7:0 --dialect omx:9000")
        path.write_text(path.read_text().replace("patience = 30", "patience = 3"))
        words = ("--cell", "open-mx-1.5/served/size-tiny/none", "--cell", "open-mx-1.5/served/size-medium/none")
        code, lines, _ = play(*words, "--json", path)
    tiny, medium = InteropReport.from_json_lines(lines).cells
    assert code == 1
    assert tiny.reason.startswith("works")
    assert medium.verdict == "fail"
    assert medium.diagnosis


def test_making_namespaces_reports_the_error(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MxwireError, match="needs root"), joined((("a", "b"), ("c", "d")), 1500):
        raise AssertionError("they were made")


def test_a_missing_capability_is_reported_with_advice(monkeypatch, tmp_path):
    (tmp_path / "ip").write_text("#!/bin/sh\necho 'mount failed: Operation not permitted' >&2; exit 1\n")
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(MxwireError, match=r"ip netns add a: mount failed: .*; run as root with CAP_SYS_ADMIN"):
        run_ip("netns", "add", "a")
