"""Each invariant can fail: an engine with a planted fault breaks it, and the simulation reports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mxwire.protocol import EngineEndpoint, Event, EventKind, Node, RequestKind
from mxwire.protocol.arguments import Segments
from mxwire.protocol.card.replies import RegionTable
from mxwire.protocol.corridor import EagerArrival
from mxwire.protocol.library import inbound
from mxwire.protocol.library.inbound import Window
from mxwire.protocol.library.matching import Matching
from mxwire.protocol.library.outbound import LargeSend
from mxwire.protocol.library.reliability import Delivery, OwedAck
from mxwire.simulation import INVARIANTS, RunOutcome, Scenario, Simulation, simulation

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTS: dict[str, tuple[Plant, dict[str, Any]]] = {}


def breaks(invariant: str, **scenario: Any) -> Callable[[Plant], Plant]:
    """A plant that breaks an invariant in a scenario."""

    def register(plant: Plant) -> Plant:
        PLANTS[invariant] = plant, scenario
        return plant

    return register


def wrap(patch: pytest.MonkeyPatch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Let ``change`` be called in the place of a method, with the method before its arguments."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *arguments: change(original, *arguments))


def change_events(patch: pytest.MonkeyPatch, change: Callable[[Event], list[Event]]) -> None:
    """Make every node report something else than it would."""

    def reported(events: Callable[[Node], list[Event]], node: Node) -> list[Event]:
        return [other for event in events(node) for other in change(event)]

    wrap(patch, Node, "events", reported)


def is_end_of(event: Event, kind: RequestKind) -> bool:
    return event.kind is EventKind.COMPLETED and event.request is not None and event.request.kind is kind


@breaks("delivery", largest=128)
def short_messages_are_acknowledged_and_thrown_away(patch):
    def handle(original: Any, partner: Any, arrival: Any) -> bool:
        return isinstance(arrival, EagerArrival) or original(partner, arrival)

    wrap(patch, inbound, "_handle", handle)


@breaks("once")
def receives_complete_twice(patch):
    change_events(patch, lambda event: [event] * (2 if is_end_of(event, RequestKind.RECEIVE) else 1))


@breaks("order", seed=1, messages=60, gap=30_000_000)
def receives_take_the_newest_message(patch):
    def newest(_probe: object, matching: Matching, value: int, mask: int) -> Any:
        found = [each for each in matching._unexpected.live.values() if each.match_info & mask == value]
        return found[-1] if found else None

    wrap(patch, Matching, "probe", newest)


@breaks("content")
def the_first_byte_is_lost(patch):
    def put(original: Any, memory: Segments, offset: int, data: Any, start: int = 0, size: int | None = None) -> int:
        changed = bytearray(data[start:][:size])
        changed[:1] = bytes(each ^ 1 for each in changed[:1])
        return original(memory, offset, changed)

    wrap(patch, Segments, "put", put)


@breaks("memory")
def one_byte_too_many_is_written(patch):
    def put(original: Any, memory: Segments, offset: int, data: Any, start: int = 0, size: int | None = None) -> int:
        return original(memory, offset, bytes(data[start:][:size]) + b"!")

    wrap(patch, Segments, "put", put)


@breaks("address", processes=2, largest=128, judged=False)
def the_endpoints_of_a_host_share_their_receives(patch):
    shared: dict[int, Matching] = {}

    def opened(original: Any, node: Node, *arguments: Any) -> EngineEndpoint:
        endpoint: EngineEndpoint = original(node, *arguments)
        endpoint.matching = shared.setdefault(id(node), endpoint.matching)
        return endpoint

    original = Node.open_endpoint
    patch.setattr(
        Node,
        "open_endpoint",
        lambda node, *arguments, **options: opened(lambda *_: original(node, *arguments, **options), node),
    )


@breaks("status")
def senders_are_notified_of_one_byte_less(patch):
    wrap(patch, LargeSend, "notified", lambda original, send, size: original(send, max(0, size - 1)))


@breaks("partner", loss=0.3)
def nothing_is_ever_resent(patch):
    patch.setattr(Delivery, "exhausted", True)


@breaks("liveness")
def completions_of_sends_are_dropped(patch):
    change_events(patch, lambda event: [] if is_end_of(event, RequestKind.SEND) else [event])


@breaks("leftovers")
def regions_are_never_released(patch):
    patch.setattr(RegionTable, "release", lambda regions, region: None)


@breaks("numbers")
def one_number_is_skipped_at_the_end(patch):
    def look(original: Any, simulation: Simulation) -> None:
        for application in simulation.world.applications:
            assert application.endpoint is not None
            for partner in application.endpoint.partners.values():
                partner.rx_next += 1
        original(simulation)

    wrap(patch, Simulation, "_check_end", look)


@breaks("rules")
def acknowledgements_are_one_too_high(patch):
    wrap(patch, OwedAck, "piggyback", lambda original, acks: original(acks) + 1)


@breaks("exception")
def a_packet_upsets_the_window(patch):
    def arrive(window: Window, arrival: Any) -> None:
        raise RuntimeError("planted")

    patch.setattr(Window, "arrive", arrive)


def run(**changes: Any) -> RunOutcome:
    return Simulation(Scenario(**changes)).run()


def test_every_invariant_has_a_plant() -> None:
    assert set(PLANTS) == set(INVARIANTS)


@pytest.mark.parametrize("name", INVARIANTS)
def test_a_planted_fault_breaks_the_invariant_and_nothing_before_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, scenario = PLANTS[name]
    clean = run(**scenario)
    assert clean.held, clean.breaches
    plant(monkeypatch)
    broken = run(**scenario)
    assert [each.invariant for each in broken.breaches[:1]] == [name], broken.breaches[:3]
    assert INVARIANTS[name].text
    assert str(broken.breaches[0]).startswith(f"{name} at ")


def test_an_exception_names_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS["exception"][0](monkeypatch)
    text = run().breaches[0].text
    assert text.startswith("RuntimeError: planted (") and "protocol/" in text


def test_a_broken_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS["rules"][0](monkeypatch)
    breach = run().breaches[0]
    assert breach.kind == ("rules", "R-ACK-01") and "violation of R-ACK-01" in breach.text
    assert not [each for each in run(judged=False).breaches if each.invariant == "rules"]


def test_breaches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS["once"][0](monkeypatch)
    assert len(run(messages=200).breaches) == 50


def test_a_host_that_never_comes_to_rest_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    wrap(monkeypatch, Node, "events", lambda events, node: [*events(node), Event(EventKind.PEER_FOUND)])
    outcome = run(messages=4)
    assert str(outcome.breaches[0]) == "liveness at 0.000000 s: host 0 does not come to rest"


def test_a_run_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_STEPS_PER_MESSAGE", 1)
    breach = run(messages=100).breaches[0]
    assert breach.invariant == "liveness" and breach.text.endswith("steps without an end")


def test_hosts_that_do_not_come_to_rest_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "idle", lambda node: False)
    assert [each.text for each in run(messages=4).breaches] == ["the hosts do not come to rest"]


def test_leftovers_of_closed_endpoints_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "left_in_node", lambda node: {"pull timers": 2, "orphaned pulls": 1})
    assert [each.text for each in run(messages=4).breaches[:2]] == [
        "host 0 still has 2 pull timers after all endpoints were closed",
        "host 0 still has 1 orphaned pulls after all endpoints were closed",
    ]
