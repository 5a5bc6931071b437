"""Scenarios with several processes of the host under test: what is refused, and where it cannot be played."""

from __future__ import annotations

import pytest

from mxwire.errors import MxwireError
from mxwire.link import memory_pair
from mxwire.scenarios import ScenarioVerdict, ScriptError, load, parse, run_simulated
from mxwire.scenarios.local_host import hosted

OPEN = "! open endpoint=2 process=1 as $two\n"


def play(body: str) -> tuple[str, str]:
    outcome = run_simulated(parse(f"title: A test\n{OPEN}{body}"))
    return outcome.verdict.value, outcome.reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("! kill\n", "the process under test cannot be killed, only others"),
        ("! kill on $two\n! send on $two local=1\n", "process 1 was killed"),
        ("! send on $two local=1\n", "has no partner to send to"),
        ("! open endpoint=2 process=1\n", "endpoint 2 of host:0 is open already"),
    ],
)
def test_a_refused_call_fails_the_scenario(body: str, reason: str) -> None:
    verdict, found = play(body)
    assert verdict == "fail" and reason in found


def test_the_result_of_a_killed_process_has_no_values() -> None:
    with pytest.raises(ScriptError, match="no value of status in receive"):
        play("! receive on $two length=1 as $receive\n! kill on $two\n? $receive status=success\n")


def test_processes_of_one_host_have_one_peer_table_and_their_own_endpoints() -> None:
    """R-LOC-03: a process that is started later connects to one that the tester has connected to."""
    body = """> CONNECT_REQUEST
< CONNECT_REPLY connect_status_code=0
! connect on $two local=1 as $connect
! open endpoint=3 process=2 as $three
! connect on $three local=2 as $other
wait 100ms
? $connect status=success
? $other status=success
"""
    assert play(body) == ("pass", "")


def test_a_link_without_an_interface_has_one_process() -> None:
    tester, link = memory_pair()
    script = load("local/truncated")
    with (
        pytest.raises(MxwireError, match="several processes need an interface of this machine"),
        hosted(script, link, tester.address),
    ):
        pass
    assert script.several_processes and not load("eager/tiny").several_processes
    assert ScenarioVerdict.PASS is run_simulated(script).verdict
    tester.close()
    link.close()
