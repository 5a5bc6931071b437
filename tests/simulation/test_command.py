"""``mxwire simulate`` as a person and a program use it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mxwire.capture import open_capture
from mxwire.cli import simulate
from mxwire.cli.main import main
from mxwire.cli.simulate import command
from mxwire.protocol.card.replies import RegionTable
from mxwire.rules import SENDERS, Judge
from mxwire.simulation import INVARIANTS, InvariantBreach, RunOutcome, Scenario
from mxwire.wire.codec import Malformed, parse
from mxwire.wire.dialect import dialect_by_name
from tests.cli.support import ROOT, mxwire

SMALL = ("--messages", 8, "--largest", 40_000)
KEYS = {"seed", "held", "duration_ns", "duration_s", "counts", "digest", "unchecked", "breaches", "scenario", "command"}
COUNTS = {"messages", "delivered", "excused", "frames", "frames lost", "incidents", "steps", "unchecked", "deviations"}
OPTIONS: dict[str, tuple[object, object]] = {
    "hosts": (4, 4),
    "messages": (9, 9),
    "workload": ("stream", "stream"),
    "dialect": ("omx:1500", "omx:1500"),
    "processes": (2, 2),
    "interfaces": (2, 2),
    "discovery": ("announce", "announce"),
    "largest": (100, 100),
    "resend-maximum": (20, 20),
    "loss": (0.05, 0.05),
    "duplicate": (0.05, 0.05),
    "reorder": (0.05, 0.05),
    "corrupt": (0.05, 0.05),
    "tamper": (0.05, 0.05),
    "delay": (20, 20_000),
    "jitter": (20, 20_000),
    "held": (20, 20_000),
    "coalescing": (20, 20_000),
    "gap": (20, 20_000),
    "kill": (1, 1),
    "crash": (1, 1),
    "pause": (1, 1),
    "stall": (1, 1),
    "partition": (1, 1),
    "filter": (1, 1),
    "mtu": (1, 1),
}
"""Options with a value, and the field of the scenario that they set."""


@pytest.fixture
def leaky(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine that never gives a region back."""
    monkeypatch.setattr(RegionTable, "release", lambda regions, region: None)
    yield


def invoke(*arguments: object) -> tuple[int, str]:
    """The command in this process, where an engine may have been changed."""
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def one(*arguments: object) -> dict[str, Any]:
    code, out = invoke(*SMALL, "--json", *arguments)
    assert code == 0, out
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_reaches_the_scenario(name: str) -> None:
    value, expected = OPTIONS[name]
    assert one(f"--{name}", value)["scenario"][name.replace("-", "_")] == expected


def test_profiles_are_hosts_in_turn_with_their_clocks() -> None:
    assert one("--profile", "native-mx,open-mx/100")["scenario"]["profiles"] == "native-mx/250,open-mx-1.5/100"


def test_seed_and_judge() -> None:
    assert one("--seed", 7)["seed"] == 7
    assert one("--no-judge")["scenario"]["judged"] is False
    assert "judged" not in one("--judge")["scenario"]


def test_a_run_as_an_object() -> None:
    run = mxwire("simulate", *SMALL, "--seed", 5, "--loss", 0.1, "--json")
    assert run.code == 0 and run.err == ""
    (found,) = run.objects
    assert set(found) == KEYS and set(found["counts"]) == COUNTS
    assert found["held"] is True and found["breaches"] == [] and found["unchecked"] == {}
    assert found["scenario"] == {"seed": 5, "messages": 8, "largest": 40_000, "loss": 0.1}
    assert found["command"] == "mxwire simulate --seed 5 --messages 8 --largest 40000 --loss 0.1"
    assert found["counts"]["messages"] == found["counts"]["delivered"] == 8
    assert found["counts"]["frames lost"] > 0
    again = mxwire(*found["command"].split()[1:], "--json")
    assert again.objects == [found]


def test_a_run_for_a_person() -> None:
    run = mxwire("simulate", *SMALL)
    assert run.code == 0 and run.err == ""
    assert run.lines[0].split() == ["property", "value"]
    digest = one()["digest"]
    assert f"digest {digest}" in run.out
    assert "all 13 invariants held: delivery, once, order" in run.out


def test_a_capture_on_one_host_has_its_sent_and_received_frames(tmp_path: Path) -> None:
    """Lost frames are in the capture on their sender only, those that arrive twice are twice in that on their receiver;
    nothing in it is taken for wrong."""
    many = ("--hosts", 3, "--seed", 5, "--loss", 0.1, "--duplicate", 0.1, "--reorder", 0.2)
    one(*many, "--pcap", tmp_path / "all.pcapng")
    sent = Counter(each["source"] for each in mxwire("decode", "--json=full", tmp_path / "all.pcapng").objects)
    for host, address in enumerate(sorted(sent)):
        file = tmp_path / f"host{host}.pcapng"
        one(*many, "--pcap", file, "--at", host)
        seen = mxwire("decode", "--json=full", file).objects
        assert sum(each["source"] == address for each in seen) == sent[address]
        assert all(address in (each["source"], each["destination"]) for each in seen)
        there = Counter(each["source"] for each in seen if each["destination"] == address)
        assert there and all(0 < number != sent[each] for each, number in there.items())
        assert mxwire("verify", "--from-start", file).code == 0


def test_waived_invariants_are_reported() -> None:
    _, out = invoke(*SMALL, "--tamper", 0.01)
    assert "not checked against the engine, because bytes were changed and no checksum detected it:" in out
    assert "all 2 invariants held: memory, exception" in out
    _, out = invoke(*SMALL, "--discovery", "nameless", "--profile", "open-mx,open-mx-0.6")
    assert "teaches a wrong index: delivery, status," in " ".join(out.split())


def test_the_capture_decodes_and_verifies(tmp_path: Path) -> None:
    for dialect in ("mxoe", "omx:9000"):
        file = tmp_path / f"{dialect[:3]}.pcapng"
        found = one("--dialect", dialect, "--seed", 3, "--pcap", file)
        judge = Judge(dialect_by_name(dialect), SENDERS)
        frames = 0
        with open_capture(str(file)) as capture:
            for batch in capture:
                for index in range(len(batch)):
                    raw, frames = batch.frame(index), frames + 1
                    frame = parse(raw, dialect_by_name(dialect))
                    assert not isinstance(frame, Malformed)
                    found_wrong = judge.observe(int(batch.timestamp_ns[index]), frame, raw, frames)
                    assert not [each for each in found_wrong if each.severity == "violation"]
        assert frames == found["counts"]["frames"] > 0
        assert mxwire("verify", file).code == 0
        decoded = mxwire("decode", "--json=full", file)
        assert decoded.code == 0 and len(decoded.lines) == frames
        assert all(each["malformed"] is None and dialect.startswith(each["dialect"]) for each in decoded.objects)


def test_a_campaign() -> None:
    run = mxwire("simulate", "--seeds", "20-29", "--jobs", 2, "--json")
    assert run.code == 0 and run.err == ""
    assert [each["seed"] for each in run.objects] == list(range(20, 30))
    assert all(set(each) == KEYS for each in run.objects)
    assert [each["scenario"] for each in run.objects] != [{"seed": seed} for seed in range(20, 30)]
    alone = mxwire(*run.objects[3]["command"].split()[1:], "--json")
    assert alone.objects[0]["digest"] == run.objects[3]["digest"]


def test_a_campaign_does_not_depend_on_the_number_of_workers() -> None:
    alone, together = (mxwire("simulate", "--seeds", "0-9", "--jobs", jobs).out for jobs in (1, 3))
    assert alone == together
    words = " ".join(alone.split())
    assert "seeds 10 failed 0 virtual time " in words and "digest of all runs " in words


def test_options_of_a_campaign_are_fixed_for_all() -> None:
    run = mxwire("simulate", "--seeds", "0-3", "--hosts", 4, "--kill", 1, "--json")
    assert {(each["scenario"]["hosts"], each["scenario"]["kill"]) for each in run.objects} == {(4, 1)}


def test_one_seed_is_a_campaign_too() -> None:
    assert [each["seed"] for each in mxwire("simulate", "--seeds", 12, "--json").objects] == [12]


def test_a_failing_run_is_made_smaller_and_shown(leaky: None) -> None:
    code, out = invoke("--seed", 7, "--hosts", 3, "--loss", 0.05, "--messages", 60)
    words = " ".join(out.split())
    assert code == 1
    assert "Seed 7: leftovers does not hold" in words
    assert "at the end no request, buffer, region, handle or timer is left (R-PUL-03" in words
    assert "leftovers at " in words and " still has 1 regions" in words
    shown = words.partition("repeat it, reduced, with: - mxwire simulate ")[2].split()
    assert shown[:2] == ["--seed", "7"] and "--loss" not in shown
    assert int(shown[shown.index("--messages") + 1]) < 10
    assert invoke(*shown)[0] == 1


def test_a_failing_run_as_an_object(leaky: None) -> None:
    code, out = invoke("--messages", 60, "--json")
    found = json.loads(out)
    assert code == 1 and found["held"] is False
    assert {tuple(each) for each in found["breaches"]} == {("invariant", "time_ns", "time_s", "text")}
    assert found["breaches"][0]["invariant"] == "leftovers"


def test_a_failing_campaign_shows_the_first_and_names_the_others(leaky: None) -> None:
    code, out = invoke("--seeds", "0-9", "--jobs", 1, "--largest", 100_000)
    assert code == 1
    assert "Seed 0: leftovers does not hold" in out and "- seed 1: leftovers" in out
    code, out = invoke("--seeds", "0-3", "--jobs", 1, "--largest", 100_000, "--json")
    assert code == 1 and len(out.splitlines()) == 4


def test_the_process_ends_with_1_where_an_invariant_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind ``mxwire``, which is more than the command alone."""

    def broken(scenario: Scenario, pcap: str | None, at: int | None) -> RunOutcome:
        return RunOutcome(scenario, "0", 0, breaches=(InvariantBreach("once", 0, "planted"),))

    monkeypatch.setattr(simulate, "_run", broken)
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "--json"])
    assert ended.value.code == 1


def test_help_has_examples_and_every_invariant_has_its_text() -> None:
    run = mxwire("simulate", "--help")
    assert run.code == 0
    assert "mxwire simulate --seed 7 --hosts 3 --loss 0.05 --duplicate 0.02 --reorder 0.05 --kill 1" in run.out
    assert len(INVARIANTS) == 13 and all(each.text for each in INVARIANTS.values())


def test_the_example_of_the_help_holds() -> None:
    faults = ("--loss", 0.05, "--duplicate", 0.02, "--reorder", 0.05, "--kill", 1)
    found = mxwire("simulate", "--seed", 7, "--hosts", 3, *faults, "--json").objects[0]
    assert found["held"] and found["counts"]["incidents"] == 1 and found["counts"]["excused"] > 0


@pytest.mark.parametrize("what", [("--messages", 8), ("--seeds", "0-7", "--jobs", 1)], ids=["messages", "seeds"])
def test_a_terminal_shows_progress_and_the_same_result(what: tuple[object, ...]) -> None:
    arguments = [sys.executable, str(ROOT / "cli.py"), "simulate", *map(str, what)]
    theirs, ours = pty.openpty()
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=ours, timeout=60, check=True)
    os.close(ours)
    # A terminal delivers up to 4096 bytes at a time, which may end within a character.
    shown = os.read(theirs, 1 << 16).decode(errors="replace")
    os.close(theirs)
    assert "messages" in shown or "seeds" in shown
    assert done.stdout.decode() == mxwire("simulate", *what).out
