"""The library of scenarios against live hosts: hosts of this process, built as each requires, and ``mxwire serve``."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import local
from types import SimpleNamespace
from typing import Any

import pytest

from mxwire.errors import MxwireError
from mxwire.link import PacketLink
from mxwire.scenarios import ScenarioOutcome, ScenarioVerdict, Script, library, load, run_live
from mxwire.scenarios.live_run import meet, skip_reason
from mxwire.scenarios.local_host import hosted
from mxwire.wire.dialect import MXOE
from tests.forked import start

from .commands import running
from .namespaces import Laboratory, Port

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.realtime, pytest.mark.usefixtures("_namespaces_work")]

PAIRS = 20
"""Cables that scenarios are played over at the same time; they mostly wait."""
RING_BYTES = 4 << 20
"""Ring of a tester, which receives few frames at a time: that of a host is larger, and takes longer to make."""
LONGEST = 4_000_000_000
TRIES = 4
"""On a busy machine a frame may come so late that the host has gone on; then a scenario is played again."""
WELL = (ScenarioVerdict.PASS, ScenarioVerdict.NON_STRICT, ScenarioVerdict.INFO)


@pytest.fixture(scope="module")
def cables() -> Iterator[list[tuple[Port, Port]]]:
    with Laboratory() as laboratory:
        yield [laboratory.pair(mtu=9000) for _ in range(PAIRS)]


def link_of(port: Port, **options: Any) -> PacketLink:
    with port.namespace.inside():
        return PacketLink.open(port.interface, **options)


_here = local()
"""The namespace of this thread, for :func:`forked_processes`."""


@pytest.fixture
def forked_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the other processes of a host, which do little but import mxwire."""

    def started(words: list[str], **options: Any) -> subprocess.Popen[str]:
        process = start(words, _here.namespace, **options)
        assert process is not None
        return process

    monkeypatch.setattr("mxwire.scenarios.driver.subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": started}))


def once(script: Script, number: int, cable: tuple[Port, Port]) -> ScenarioOutcome:
    dialects = script.played_in()
    dialect = dialects[number % len(dialects)]
    tester = link_of(cable[0], promiscuous=True, ring_bytes=RING_BYTES)
    _here.namespace = cable[1].namespace.name
    try:
        # Other processes of the host are started in the network namespace of this thread.
        with (
            cable[1].namespace.inside(),
            hosted(script, PacketLink.open(cable[1].interface), tester.address, dialect) as (target, application),
        ):
            return run_live(script, tester, target, application=application, longest=LONGEST)
    finally:
        tester.close()


def played(script: Script, number: int, cable: tuple[Port, Port]) -> ScenarioOutcome:
    outcome = once(script, number, cable)
    for _ in range(TRIES - 1):
        if outcome.verdict in (*WELL, ScenarioVerdict.SKIPPED):
            break
        outcome = once(script, number, cable)
    return outcome


@pytest.mark.usefixtures("forked_processes")
def test_all_that_a_live_host_can_be_asked_passes(cables: list[tuple[Port, Port]]) -> None:
    unused: SimpleQueue[tuple[Port, Port]] = SimpleQueue()
    for cable in cables:
        unused.put(cable)

    def over_an_unused_one(numbered: tuple[int, Script]) -> ScenarioOutcome:
        cable = unused.get_nowait()
        try:
            return played(numbered[1], numbered[0], cable)
        finally:
            unused.put(cable)

    with ThreadPoolExecutor(PAIRS) as pool:
        outcomes = list(pool.map(over_an_unused_one, enumerate(library())))
    failed = {
        each.script.name: each.reason
        for each in outcomes
        if each.verdict in (ScenarioVerdict.FAIL, ScenarioVerdict.MISSING)
    }
    assert not failed
    counts = Counter(each.verdict for each in outcomes)
    skipped = [each for each in outcomes if each.verdict is ScenarioVerdict.SKIPPED]
    assert len(skipped) <= 20, {each.script.name: each.reason for each in skipped}
    assert all(each.reason for each in skipped)
    assert sum(counts[each] for each in WELL) >= 280


@pytest.fixture(scope="module")
def served(cables: list[tuple[Port, Port]]) -> Iterator[tuple[Port, str]]:
    """A port, and the name of a host behind it that ``mxwire serve`` plays."""
    near, far = cables[0]
    with running(far, "serve", "--sink", "--name", "alpha") as server:
        server.until("Ctrl-C")
        yield near, "alpha:0"


def test_the_scenario_of_a_wrong_key_is_played_to_a_host_by_name(served: tuple[Port, str]) -> None:
    port, name = served
    done = port.namespace.run(
        *(sys.executable, str(ROOT / "cli.py"), "scenario", "run", str(ROOT / "replay/connect/bad-key.mxs")),
        *("-i", port.interface, "--target", name, "--ladder"),
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "connect/bad-key (mxoe): A wrong key is refused with status 11" in done.stdout
    assert ("BAD_KEY" in done.stdout and done.stdout.endswith("1 pass\n")) or "1 non-strict" in done.stdout


def test_a_scenario_played_to_a_closed_endpoint_explains_how_to_name_another_one(served: tuple[Port, str]) -> None:
    port, name = served
    done = port.namespace.run(
        *(sys.executable, str(ROOT / "cli.py"), "scenario", "run", "connect/bad-key"),
        *("-i", port.interface, "--target", f"{name}:9"),
        timeout=60,
    )
    assert done.returncode == 1
    assert "its endpoint 9 is not open: name an open one, like --target " in done.stdout


def test_scenarios_are_played_to_a_program_that_knows_nothing_of_them(served: tuple[Port, str]) -> None:
    port, name = served
    subjects = ("connect", "nacks", "malformed", "acks/delayed", "acks/immediate-from-four")
    done = port.namespace.run(
        *(sys.executable, str(ROOT / "cli.py"), "scenario", "run", *subjects),
        *("-i", port.interface, "--target", name, "--json"),
        timeout=120,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    failed = {each["name"]: each["reason"] for each in outcomes if each["verdict"] in ("fail", "missing")}
    # A host that is too busy to send its ack in time is distinguished from one that sends none.
    assert {name for name in failed if not failed[name].startswith("TRUC")} == set(), failed
    counts = Counter(each["verdict"] for each in outcomes)
    assert counts["pass"] + counts["non-strict"] >= 40, counts
    reasons = {each["reason"] for each in outcomes if each["verdict"] == "skipped"}
    assert "it needs calls of an application on the host" in reasons


def test_a_driver_makes_the_calls_on_another_host(cables: list[tuple[Port, Port]]) -> None:
    """All scenarios can be played to a process of its own, with a program that is asked to make the calls."""

    def played_over(cable: tuple[Port, Port], subjects: str) -> list[dict[str, Any]]:
        near, far = cable
        host = f"ip netns exec {far.namespace.name} {sys.executable} {ROOT / 'cli.py'} scenario host -i {far.interface}"
        done = near.namespace.run(
            *(sys.executable, str(ROOT / "cli.py"), "scenario", "run", *subjects.split(), "--json"),
            *("-i", near.interface, "--driver", host),
            timeout=120,
        )
        pids = subprocess.run(["ip", "netns", "pids", far.namespace.name], capture_output=True, text=True).stdout
        assert not pids, "the driver is left running"
        return [json.loads(line) for line in done.stdout.splitlines()]

    # Most of the time is spent waiting.
    subjects = ("matching local/killed-receiver", "rendezvous", "malformed")
    with ThreadPoolExecutor() as pool:
        outcomes = [each for some in pool.map(played_over, cables[1:], subjects) for each in some]
    failed = {each["name"]: each["reason"] for each in outcomes if each["verdict"] in ("fail", "missing")}
    # A host that is too busy to answer in time is distinguished from one that does not answer.
    assert {name for name in failed if not failed[name].startswith("TRUC")} == set(), failed
    counts = Counter(each["verdict"] for each in outcomes)
    assert counts["skipped"] <= 2 and counts["pass"] + counts["non-strict"] >= 40, counts


def test_a_stand_in_for_a_real_host_passes(cables: list[tuple[Port, Port]]) -> None:
    """As ``mxwire scenario run --driver --judge`` finds a real host: see :mod:`tests.scenarios.stand_in`."""
    near, far = cables[2]
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.scenarios.stand_in import main; main('veth1')"
    assert far.interface == "veth1"
    driver = f"ip netns exec {far.namespace.name} {shlex.join([sys.executable, '-c', program])}"
    provoking = ("discovery/query-padded-long", "malformed/to-broadcast", "nacks/index-not-of-source", "serving")
    done = near.namespace.run(
        *(sys.executable, str(ROOT / "cli.py"), "scenario", "run", "discovery/reply-from-own-address"),
        *("acks/piggyback-of-every-type", "acks/liback-stops-resending", "acks/order-of-tests", "acks/at-close"),
        *("discovery/raw-longest", "discovery/asked-for-name", "connect/own-address", *provoking),
        *("-i", near.interface, "--driver", driver, "--judge", "--json", "--seed", "4000000000"),
        timeout=180,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    failed = {each["name"]: each["reason"] for each in outcomes if each["verdict"] in ("fail", "missing")}
    # A host that is too busy to answer in time is distinguished from one that does not answer.
    assert {name for name in failed if not failed[name].startswith("TRUC")} == set(), failed
    assert len(outcomes) >= 30 and [each["seed"] for each in outcomes[:2]] == [4000000000, 4000000001]
    forged = {"connect/own-address", "discovery/reply-from-own-address"}
    assert {each["name"] for each in outcomes[-2:]} == forged
    assert all(each["remarks"][-1]["text"].startswith("it sends with a source address ") for each in outcomes[-2:])
    noted = [remark["text"] for each in outcomes for remark in each["remarks"]]
    assert any(each.startswith("not checked, unknown to the driver: ") for each in noted)
    assert any(each.startswith("ignored, ") for each in noted)


def test_the_seed_and_the_order_are_reported(cables: list[tuple[Port, Port]]) -> None:
    near, far = cables[3]
    driver = f"ip netns exec {far.namespace.name} {sys.executable} {ROOT / 'cli.py'} scenario host -i {far.interface}"
    done = near.namespace.run(
        *(sys.executable, str(ROOT / "cli.py"), "scenario", "run", "connect/own-address", "nacks/unknown-type"),
        *("connect/bad-key", "-i", near.interface, "--driver", driver),
        timeout=60,
    )
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"seed (\d+) \(the same command with --seed \1 repeats this run\)", lines[0]), done.stdout
    assert [line.split()[1] for line in lines[1:] if not line.startswith(" ")][:3] == [
        "nacks/unknown-type",
        "connect/bad-key",
        "connect/own-address",
    ]
    assert "it is harmful: " in done.stdout and "it sends with a source address " in done.stdout


def test_a_host_that_is_not_there(cables: list[tuple[Port, Port]]) -> None:
    link = link_of(cables[1][0])
    try:
        with pytest.raises(MxwireError, match=r"veth0: nobody:0 was not found within 1 s; nothing was heard"):
            meet(link, "nobody:0", timeout=1)
    finally:
        link.close()


def test_why_a_scenario_is_not_played() -> None:
    def reason(name: str, ours: bool) -> str | None:
        script = load(name)
        return skip_reason(script, script.played_in()[0], ours)

    assert reason("connect/bad-key", False) is None
    assert reason("eager/tiny", False) == "it needs calls of an application on the host"
    assert reason("eager/tiny", True) is None
    assert (reason("malformed/cut-headers", False) or "").startswith("it is harmful: frames that end within")
    assert reason("malformed/cut-headers", True) is None
    assert skip_reason(load("malformed/cut-headers"), MXOE, False, harmful=True) is None
    assert reason("acks/threshold", False) == "it needs a host configured with: ack_threshold=1"
    assert reason("discovery/reply-renames-self", False) == "it needs a host configured with: defects=D-14"
    assert reason("connect/another-interface", True) == "it needs a host with 2 interfaces"
    assert reason("pull/time-limit", True) == "it waits for 520 s"
