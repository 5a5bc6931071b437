"""Conduct of real hosts that the scenarios must not take for a failure, and conditions that a bridge determines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mxwire.frames import FrameBatch
from mxwire.link import MemoryLink, MemoryNetwork
from mxwire.protocol import Status
from mxwire.protocol.discovery import announcement
from mxwire.protocol.name_search import query
from mxwire.scenarios import LiveTarget, ScenarioVerdict, load, parse, run_live, run_simulated
from mxwire.scenarios.application import NodeApplication
from mxwire.wire.codec import build
from mxwire.wire.codec import parse as parse_frame
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import HostReply

OURS, HOST, NEIGHBOUR = (bytes([2, 0, 0, 0, 0, number]) for number in (1, 2, 3))
SUCCESS, TRUNCATED = int(Status.SUCCESS), int(Status.MESSAGE_TRUNCATED)


def truncated(values: dict[str, Any]) -> dict[str, Any]:
    """A long message that is truncated is a success for both."""
    return {"status": SUCCESS} if values["status"] == TRUNCATED and values["transferred"] == 5000 else {}


def refused(values: dict[str, Any]) -> dict[str, Any]:
    """A long message of an endpoint that never connected ends the receive as bad session."""
    return {"status": int(Status.REMOTE_ENDPOINT_BAD_SESSION), "data": b""} if values["length"] == 9000 else {}


@pytest.mark.parametrize(
    ("name", "conduct"), [("local/truncated", truncated), ("local/answer-without-connect", refused)]
)
def test_local_messages_of_open_mx_break_recommendations_only(
    monkeypatch: pytest.MonkeyPatch, name: str, conduct: Any
) -> None:
    """Its large messages between endpoints of one host (R-MEA-23, R-MEA-25)."""
    ask = NodeApplication.ask

    def changed(self: NodeApplication, action: Any) -> Mapping[str, Any] | None:
        values = ask(self, action)
        return values if not values or "status" not in values else {**values, **conduct(dict(values))}

    assert run_simulated(load(name)).verdict is ScenarioVerdict.PASS
    monkeypatch.setattr(NodeApplication, "ask", changed)
    outcome = run_simulated(load(name))
    assert (outcome.verdict, outcome.reason) == (ScenarioVerdict.NON_STRICT, "")


@pytest.mark.parametrize("name", ["local/killed-receiver", "local/reopened"])
def test_local_sends_of_open_mx_that_stay_pending_break_recommendations_only(name: str) -> None:
    """Each send that was announced before the receiver closed may stay pending (R-MEA-24)."""
    lines = load(name).text.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith(("! kill on $two", "! close on $two")))
    announced = {line.rsplit(" as ", 1)[1] for line in lines[:begin] if line.startswith("! send")}
    checks = [line for line in lines[begin:] if line.startswith("? $") and "remote_endpoint_closed" in line]
    assert announced and len(checks) > len(announced)
    assert all(line.endswith(" should") == (line.split()[1] in announced) for line in checks)


class NoCalls:
    """An application without calls; the host was opened for the run, so its frames from before that count."""

    def call(self, action: Any) -> None:
        raise AssertionError

    def ask(self, action: Any) -> None:
        raise AssertionError


@pytest.fixture
def links() -> Any:
    network = MemoryNetwork()
    with network.attach("wire0", OURS) as ours, network.attach("others", HOST) as others:
        yield ours, others


def test_announcements_are_not_answers(links: tuple[MemoryLink, MemoryLink]) -> None:
    """A host that only announces itself did not answer; nor did it if a neighbour announces itself."""
    ours, others = links
    script = parse("title: It answers\n> CONNECT_REQUEST\n< CONNECT_REPLY within 10ms\n")
    asked = parse("title: It announces itself\n> CONNECT_REQUEST\n< RAW_OMXOED within 10ms\n")
    own = build(announcement(HOST, 1), MXOE)
    neighbours = own[:18] + build(announcement(NEIGHBOUR, 1), MXOE)[18:]
    for frame, played, verdict in (
        (own, script, ScenarioVerdict.MISSING),
        (own, asked, ScenarioVerdict.PASS),
        (neighbours, asked, ScenarioVerdict.MISSING),
    ):
        others.send(FrameBatch.from_frames([frame]))
        outcome = run_live(played, ours, LiveTarget(HOST), application=NoCalls(), patience=0)
        assert outcome.verdict is verdict, outcome.reason


def test_a_forged_source_is_reported_with_its_effect_on_bridges(links: tuple[MemoryLink, MemoryLink]) -> None:
    script = parse("title: A forged source\n> CONNECT_REQUEST src_mac=host_mac\n< nothing for 1ms\n")
    (remark,) = run_live(script, links[0], LiveTarget(HOST), patience=0).remarks
    assert "a bridge or switch may not deliver such frames" in remark.text


def test_replies_have_the_magic_of_the_host(links: tuple[MemoryLink, MemoryLink]) -> None:
    """That learned when it was found, and later that of its last query."""
    ours, others = links
    script = parse("title: A reply and another one\n> HOST_REPLY\n< HOST_QUERY\n> HOST_REPLY\n")
    others.send(FrameBatch.from_frames([build(query(HOST, OURS, 1, 0x13052011), MXOE)]))
    target = LiveTarget(HOST, magic=0x13052010)
    outcome = run_live(script, ours, target, application=NoCalls(), patience=0)
    assert outcome.verdict is ScenarioVerdict.PASS, outcome.reason
    frames = [parse_frame(outcome.frames.frame(place), MXOE) for place in range(len(outcome.frames))]
    assert [each.magic for each in frames if isinstance(each, HostReply)] == [0x13052010, 0x13052011]
