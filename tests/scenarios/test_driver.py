"""Drivers: programs that make the calls of scenarios, and the errors for those that do not."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.link import MemoryLink, memory_pair
from mxwire.protocol import LocalProtocolError
from mxwire.scenarios import ScenarioVerdict, load, parse, run_live
from mxwire.scenarios import driver as driver_module
from mxwire.scenarios.actions import Invocation, Query
from mxwire.scenarios.cast import Cast
from mxwire.scenarios.driver import CallResult, Driver, DriverError, LateDriverError, run_driven
from mxwire.scenarios.local_host import DrivenHost
from mxwire.scenarios.script import Script
from mxwire.scenarios.tester import TestedEndpoint
from mxwire.wire.dialect import MXOE, omx

SCRIPT = load("eager/truncated")
US = bytes.fromhex("020000000001")


def a_tester(script: Script = SCRIPT) -> Any:
    return Cast(script, MXOE, TestedEndpoint(bytes(6), 1, 2, 3), {1: US}, Random(0)).tester("")


def says(folder: Path, *answers: object) -> str:
    """A driver that answers so, and notes what it was asked."""
    path = folder / "driver.py"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in answers]
    path.write_text(
        f"import sys\nasked = open({str(folder / 'asked')!r}, 'w')\n"
        f"for line, answer in zip(sys.stdin, {lines!r}):\n"
        "    print(line, end='', file=asked, flush=True)\n    print(answer, flush=True)\n"
    )
    return shlex.join([sys.executable, str(path)])


def test_requests_to_a_driver_and_its_answers(tmp_path: Path) -> None:
    command = says(
        tmp_path,
        {"address": "02:00:00:00:00:09", "endpoint": 3, "key": 7},
        {"made": 4},
        {"known": {"status": 0, "data": {"hex": "00ff"}}},
        {"refused": 13, "text": "not so"},
        {"made": None},
        {"known": None},
        {"cannot": "there is one interface only"},
    )
    tester = a_tester()
    with Driver(command) as driver:
        target = driver.host(SCRIPT, omx(1500), US)
        assert not isinstance(target, str)
        assert (target.mac[-1], target.endpoint, target.key, target.closed) == (9, 3, 7, 30)
        made = driver.call(Invocation("send", {"data": b"\0", "match": 5}, frozenset({"synchronous"}), None, tester))
        assert made == CallResult(4)
        assert driver.ask(Query("result", made, tester)) == {"status": 0, "data": b"\x00\xff"}
        with pytest.raises(LocalProtocolError, match="not so"):
            driver.call(Invocation("cancel", {}, frozenset(), made, tester))
        assert driver.call(Invocation("stop", {}, frozenset(), None, tester)) is None
        assert driver.ask(Query("counters", None, tester)) is None
        assert driver.host(SCRIPT, MXOE, US) == "there is one interface only"
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    whom = {"address": mac_text(US), "endpoint": 5}
    assert asked[0] == {
        "do": "host",
        "scenario": "eager/truncated",
        "text": SCRIPT.text,
        "dialect": "omx:1500",
        "tester": mac_text(US),
    }
    assert asked[1] == {
        "do": "call",
        "verb": "send",
        "arguments": {"data": {"hex": "00"}, "match": 5},
        "flags": ["synchronous"],
        "on": None,
        "tester": whom,
    }
    assert asked[2] == {"do": "ask", "subject": "result", "on": 4, "tester": whom}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("hello", "answered 'hello', which is not an answer to the question"),
        ([1], "answered '[1]', which is not an answer"),
        ({"address": "nowhere"}, "answered {'address': 'nowhere'}, which is not an answer"),
        ({"endpoint": 3}, "which is not an answer"),
        ({"address": "02:00:00:00:00:09", "key": "x"}, "which is not an answer"),
        ("x" * 5000, "…, which is not an answer"),
    ],
)
def test_an_invalid_answer(tmp_path: Path, answer: object, why: str) -> None:
    with Driver(says(tmp_path, answer)) as driver, pytest.raises(DriverError) as error:
        driver.host(SCRIPT, MXOE, US)
    assert why in str(error.value) and len(str(error.value)) < 500


@pytest.mark.parametrize("answer", [{}, {"made": "x"}, {"refused": 4711}, {"known": 3}, {"known": {"a": {"hex": "x"}}}])
def test_an_answer_to_another_question(tmp_path: Path, answer: object) -> None:
    with Driver(says(tmp_path, answer, answer)) as driver:
        with pytest.raises(DriverError, match="not an answer"):
            driver.call(Invocation("send", {}, frozenset(), None, a_tester()))
        with pytest.raises(DriverError, match="not an answer"):
            driver.ask(Query("counters", None, a_tester()))


def test_a_driver_that_does_not_come_or_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for command, why in (("/no/such", "No such file"), ("'", "No closing quotation"), ("", "cannot be started")):
        with pytest.raises(DriverError, match=why):
            Driver(command)
    with Driver("sh -c 'exit 3'") as driver, pytest.raises(DriverError, match="ended with status 3"):
        driver.host(SCRIPT, MXOE, US)
    monkeypatch.setattr(driver_module, "PATIENCE", 0.2)
    monkeypatch.setattr(driver_module, "_END_SECONDS", 0.1)
    with Driver("sleep 1000") as driver, pytest.raises(DriverError, match=r"did not answer within 0\.2 s"):
        driver.host(SCRIPT, MXOE, US)
    assert driver._child.process.poll() is not None, "it is left running"


SLOW = """
import json, sys, time
for number, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if number == int(sys.argv[1]):
        time.sleep(float(sys.argv[2]))
    if asked["do"] == "host":
        answer = {"address": "02:00:00:00:00:09"} if "send" in asked["text"] else {"cannot": asked["scenario"]}
    else:
        answer = {"made": number} if asked["do"] == "call" else {"known": None}
    print(json.dumps(answer), flush=True)
"""


def slow(number: int, seconds: float) -> Driver:
    """A driver that answers one question late."""
    return Driver(shlex.join([sys.executable, "-c", SLOW, str(number), str(seconds)]))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "title: Nothing is sent\n! send length=1 as $sent\n"),
        (1, "title: A message is sent\n! send length=1 as $sent\n"),
        (2, "title: A message is sent\n! send length=1 as $sent\n? $sent status=success\n"),
    ],
)
def test_a_late_answer_fails_its_scenario_only(monkeypatch: pytest.MonkeyPatch, number: int, text: str) -> None:
    """The next question is not answered by it."""
    monkeypatch.setattr(driver_module, "PATIENCE", 3.0)
    link, other = memory_pair()
    with slow(number, 3.5) as driver:
        late = run_driven(parse(text, name="late"), link, driver, MXOE)
        after = run_driven(parse("title: None\nwait 1ms\n", name="next"), link, driver, MXOE)
    assert late.verdict is ScenarioVerdict.FAIL and "did not answer within 3 s" in late.reason
    assert (after.verdict, after.reason) == (ScenarioVerdict.SKIPPED, "next")
    link.close()
    other.close()


def test_a_driver_that_answers_no_more_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "PATIENCE", 0.2)
    monkeypatch.setattr(driver_module, "_END_SECONDS", 0.1)
    with Driver("sleep 1000") as driver:
        with pytest.raises(LateDriverError):
            driver.host(SCRIPT, MXOE, US)
        with pytest.raises(DriverError) as second:
            driver.host(SCRIPT, MXOE, US)
    assert not isinstance(second.value, LateDriverError)


class InThisProcess(Driver):
    """A driver without a process: what is asked goes to one of our own hosts, through JSON all the same."""

    def __init__(self, driven: DrivenHost) -> None:
        self.driven = driven

    def _ask(self, question: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(self.driven.answer(json.loads(json.dumps(question)))))
        return found


@pytest.fixture
def driven() -> Iterator[tuple[DrivenHost, MemoryLink]]:
    tester, other = memory_pair()
    found = DrivenHost(lambda: other)
    yield found, tester
    found.close()
    tester.close()


@pytest.mark.parametrize("name", ["eager/truncated", "matching/cancel", "connect/given-up", "discovery/index-echoed"])
def test_our_own_host_makes_all_calls(driven: tuple[DrivenHost, MemoryLink], name: str) -> None:
    ours, link = driven
    script, driver = load(name), InThisProcess(ours)
    target = driver.host(script, MXOE, link.address)
    assert not isinstance(target, str)
    outcome = run_live(script, link, target, application=driver)
    assert outcome.verdict in (ScenarioVerdict.PASS, ScenarioVerdict.NON_STRICT), outcome.reason


def test_our_own_host_is_asked_nonsense(driven: tuple[DrivenHost, MemoryLink]) -> None:
    ours, link = driven
    host = {
        "do": "host",
        "scenario": "x",
        "text": "title: x\n> TINY\n",
        "dialect": "mxoe",
        "tester": mac_text(link.address),
    }
    for question in ({}, {"do": "sing"}, "hello", {**host, "tester": 3}, {"do": "call"}, {"do": "ask"}):
        with pytest.raises(MxwireError, match="not a question of a tester"):
            ours.answer(question)  # type: ignore[arg-type]
