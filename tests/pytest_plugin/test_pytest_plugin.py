"""The pytest plugin in a pytest of its own: fixtures, scenarios as tests, and its cost for runs that do not use it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

import pytest

from mxwire.lab.namespaces import joined
from tests.forked import ROOT, start

pytest_plugins = "pytester"

INSTALLED = any(each.value == "mxwire.pytest_plugin" for each in entry_points(group="pytest11"))
WITH_PLUGIN = () if INSTALLED else ("-p", "mxwire.pytest_plugin")
WITHOUT_OTHERS = tuple(f"-pno:{each}" for each in ("cacheprovider", "hypothesispytest", "xdist", "pytest_cov"))
"""Importing these takes four fifths of the time of a small run."""


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest in a process of its own, forked from one that has imported it, on what pytester has made."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setattr("_pytest.pytester.subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": start}))
    words = (sys.executable, "-m", "pytest", *WITHOUT_OTHERS, *WITH_PLUGIN)

    def runs(*arguments: str) -> pytest.RunResult:
        return pytester.run(*words, *arguments, timeout=120)

    return runs


def test_hosts_of_a_simulated_network_talk(pytester, run):
    pytester.makepyfile(
        """
        def test_hello(mxwire_network):
            testbed = mxwire_network("open-mx-1.5", "native-mx", impairment="loss", seed=5)
            joined = testbed.join()
            taken = joined.two.receive(5)
            joined.one.send(joined.to_two, b"hello")
            joined.two.took(taken, b"hello")
            assert testbed.clock() > 0 and testbed.frames

        def test_that_fails(mxwire_network):
            testbed = mxwire_network()
            joined = testbed.join()
            joined.two.took(joined.two.receive(5), b"hello")
        """
    )
    result = run()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*WaitTimeout: right: receive of up to 5 bytes did not complete within 60 s*"])


def test_a_broken_rule_fails_the_test(pytester, run):
    pytester.makepyfile(
        """
        from mxwire.protocol.library.reliability import OwedAck

        def test_acks(mxwire_network, monkeypatch):
            monkeypatch.setattr(OwedAck, "piggyback", lambda self: 0)
            joined = mxwire_network().join()
            joined.one.send(joined.to_two, b"hello")
            joined.one.side.testbed.sleep(0.1)
        """
    )
    result = run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["rules were broken:", "violation of R-ACK-01*"])


def scenario_of_the_library() -> str:
    return (ROOT / "replay" / "connect" / "bad-key.mxs").read_text()


def test_scenarios_are_tests_on_request(pytester, run):
    Path("good.mxs").write_text(scenario_of_the_library())
    Path("wrong.mxs").write_text(scenario_of_the_library().replace("code=BAD_KEY", "code=12"))
    Path("broken.mxs").write_text("what is this\n")
    assert "status_code=12" in Path("wrong.mxs").read_text()
    run().assert_outcomes()
    result = run("--mxwire-scenarios", "--continue-on-collection-errors")
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["*wrong.mxs:*: fail: *", "*expected: *", "*rules: *"])
    result.stdout.fnmatch_lines(["*broken.mxs:1:*"])
    result = run("--mxwire-scenarios", "--mxwire-profile", "nobody", "good.mxs")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no profile 'nobody'*"])


def test_tests_that_need_hosts_are_skipped_without_them(pytester, run):
    pytester.makepyfile("def test_external(mxwire_external): raise AssertionError")
    result = run("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*an external host is described by --mxwire-config FILE*"])


@pytest.mark.usefixtures("_namespaces_work")
def test_a_mistake_in_the_file_is_reported_in_one_line(pytester, run):
    pytester.makepyfile("def test_external(mxwire_external): raise AssertionError")
    pytester.makefile(".toml", hosts="x = 1\n")
    result = run("--mxwire-config", "hosts.toml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["hosts.toml: left: is missing: give a table: [[]left]"])
    result.stdout.no_fnmatch_line("*configuration.py*")


def test_live_hosts_talk_in_namespaces(pytester, run):
    pytester.makepyfile(
        """
        def test_hello(mxwire_live_pair):
            joined = mxwire_live_pair.join()
            taken = joined.two.receive(50_000)
            joined.one.send(joined.to_two, bytes(50_000))
            joined.two.took(taken, bytes(50_000))
        """
    )
    run().assert_outcomes(passed=1)
    assert not list(Path("/run/netns").glob(f"mxwire-{os.getpid()}-*"))


CONFIG = """\
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
start = "ip netns exec {right} {python} -u {cli} serve --echo --name node7:0 -i veth1"
ready = "echo on"
patience = 60
"""


@pytest.mark.usefixtures("_namespaces_work")
def test_an_external_host_is_tested(pytester, run):
    left, right = f"mxp-{os.getpid()}-left", f"mxp-{os.getpid()}-right"
    Path("hosts.toml").write_text(CONFIG.format(left=left, right=right, python=sys.executable, cli=ROOT / "cli.py"))
    Path("key.mxs").write_text(scenario_of_the_library())
    pytester.makepyfile(
        """
        def test_echo(mxwire_external):
            end = mxwire_external.left.open(4)
            partner = end.connect(mxwire_external.program("echo"))
            taken = end.receive(5)
            end.send(partner, b"hello")
            end.took(taken, b"hello")
        """
    )
    with joined(((left, "veth0"), (right, "veth1")), 9000):
        result = run("--mxwire-config", "hosts.toml")
        left_over = subprocess.run(["ip", "netns", "pids", right], capture_output=True, text=True).stdout
    result.assert_outcomes(passed=2)
    assert left_over == ""


@pytest.mark.usefixtures("_namespaces_work")
def test_a_program_that_a_failed_test_has_used_is_restarted(pytester, run):
    """Here it is omx_perf, which the first test leaves in the middle of a measurement."""
    left, right = f"mxp-{os.getpid()}-left", f"mxp-{os.getpid()}-right"
    text = CONFIG.format(left=left, right=right, python=sys.executable, cli=ROOT / "cli.py")
    start = f"env PYTHONPATH={ROOT} {sys.executable} -u -m tests.interop.omx_perf -i veth1 --name node7:0 -s"
    before = f"{sys.executable} -u {ROOT / 'cli.py'} serve --echo --name node7:0 -i veth1"
    assert before in text
    text = text.replace(before, start).replace('"echo"', '"perf"').replace('"echo on"', '"listening"')
    Path("hosts.toml").write_text(text)
    pytester.makepyfile(
        """
        import pytest
        from mxwire.host.perf import MATCH, PerfParameters
        from mxwire.interop.roles import UnexpectedResult

        def begin(testbed):
            end = testbed.left.open(7)
            partner = end.connect(testbed.program("perf"))
            answer = end.receive(64, 0, 0)
            end.wait(end.send(partner, PerfParameters(3, 0, 1, 2).pack(), MATCH, synchronous=True))
            end.took(answer, b"", match_info=0)

        def test_one(mxwire_external):
            begin(mxwire_external)
            raise AssertionError

        def test_two(mxwire_external):
            begin(mxwire_external)
            assert any("was restarted: test_one has failed" in line for line in mxwire_external.events.lines)

        def test_three(mxwire_external):
            with pytest.raises(UnexpectedResult, match="message truncated"):
                begin(mxwire_external)
        """
    )
    with joined(((left, "veth0"), (right, "veth1")), 9000):
        result = run("--mxwire-config", "hosts.toml")
    result.assert_outcomes(passed=2, failed=1)


@pytest.mark.usefixtures("_namespaces_work")
def test_a_scenario_that_fails_has_the_program_restarted(pytester, run):
    """The next one is played to a host that has forgotten everything, and is met again."""
    left, right = f"mxp-{os.getpid()}-left", f"mxp-{os.getpid()}-right"
    text = CONFIG.format(left=left, right=right, python=sys.executable, cli=ROOT / "cli.py")
    starts = Path("starts").resolve()
    Path("hosts.toml").write_text(text.replace(f"{right} ", f'{right} sh -c \'echo >>{starts}; exec "$0" "$@"\' ', 1))
    text = Path("hosts.toml").read_text()
    line = next(each for each in text.splitlines() if each.startswith("start = "))
    Path("hosts.toml").write_text(text.replace(line, f"start = '''{line[9:-1]}'''"))
    Path("a.mxs").write_text(scenario_of_the_library())
    Path("b.mxs").write_text(scenario_of_the_library().replace("code=BAD_KEY", "code=12"))
    for name in ("c.mxs", "d.mxs"):
        Path(name).write_text(scenario_of_the_library())
    with joined(((left, "veth0"), (right, "veth1")), 9000):
        result = run("--mxwire-config", "hosts.toml")
    result.assert_outcomes(passed=3, failed=1)
    assert starts.read_text() == "\n\n"


@pytest.mark.usefixtures("_namespaces_work")
def test_scenarios_with_calls_are_played_by_a_driver(pytester, run):
    left, right = f"mxp-{os.getpid()}-left", f"mxp-{os.getpid()}-right"
    driver = f"ip netns exec {right} {sys.executable} {ROOT / 'cli.py'} scenario host -i veth1"
    Path("hosts.toml").write_text(
        f'[left]\ninterface = "veth0"\nnamespace = "{left}"\n'
        f'[[external]]\nname = "driven"\nhost = "node7:0"\ndriver = "{driver}"\n'
    )
    for name in ("eager/truncated", "matching/mask"):
        Path(f"{Path(name).name}.mxs").write_text((ROOT / "replay" / f"{name}.mxs").read_text())
    with joined(((left, "veth0"), (right, "veth1")), 9000):
        result = run("--mxwire-config", "hosts.toml")
        left_over = subprocess.run(["ip", "netns", "pids", right], capture_output=True, text=True).stdout
    result.assert_outcomes(passed=2)
    assert left_over == ""


def test_it_costs_nothing_that_is_not_used():
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import mxwire.pytest_plugin\n"
        "print(sorted(each for each in set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "['mxwire', 'mxwire.first_use', 'mxwire.pytest_plugin']"
