"""State tables, profiles and the small types around them."""

from __future__ import annotations

from enum import StrEnum

import pytest

from mxwire.errors import MxwireError
from mxwire.protocol import PROFILES, Counter, Counters, Status, profile_by_name
from mxwire.protocol.library import outbound, receive, reliability
from mxwire.protocol.library.partner import Request
from mxwire.protocol.profile import NATIVE_MX, OPEN_MX_1_5, Defect
from mxwire.protocol.state_machine import StateMachine, TransitionTable
from mxwire.protocol.status import ImpossibleEventError
from mxwire.units import SECOND

from .tables import tables
from .world import World, pattern


class Light(StrEnum):
    RED = "red"
    GREEN = "green"
    BROKEN = "broken"


class Press(StrEnum):
    BUTTON = "button"
    HAMMER = "hammer"


def _count(lamp: Lamp, times: int) -> None:
    lamp.pressed += times


ROWS = (
    (Light.RED, Press.BUTTON, Light.GREEN, _count, ("R-XXX-01", "R-XXX-02")),
    (Light.GREEN, Press.BUTTON, Light.RED, None, ()),
    (Light.GREEN, Press.HAMMER, Light.BROKEN, None, ()),
)


class Lamp(StateMachine):
    table = TransitionTable("lamp", Light.RED, ROWS)
    pressed = 0


@pytest.mark.interpreted("a class of its own cannot be derived from a compiled one")
def test_a_machine_follows_its_table():
    lamp = Lamp()
    lamp.fire(Press.BUTTON, 3)
    assert (lamp.state, lamp.pressed) == (Light.GREEN, 3)
    assert lamp.can(Press.HAMMER)
    lamp.fire(Press.HAMMER)
    assert not lamp.can(Press.BUTTON)
    with pytest.raises(ImpossibleEventError, match="lamp: button cannot happen in state broken"):
        lamp.fire(Press.BUTTON)


@pytest.mark.interpreted("a class of its own cannot be derived from a compiled one")
def test_a_machine_follows_a_row_only_from_its_state():
    lamp, row = Lamp(), Lamp.table.row(Light.GREEN, Press.HAMMER)
    with pytest.raises(ImpossibleEventError, match="lamp: hammer cannot happen in state red"):
        lamp.follow(row)
    assert lamp.state is Light.RED
    lamp.fire(Press.BUTTON, 1)
    lamp.follow(row)
    assert lamp.state is Light.BROKEN
    assert not lamp.can(Press.BUTTON)


@pytest.mark.interpreted("a compiled module need not have its constants as attributes")
def test_the_action_of_a_row_that_is_followed_is_that_of_its_table():
    """The caller calls it itself."""
    assert reliability._ASSIGNED.action is reliability._emit
    assert reliability._ACKED.action is reliability._acked
    assert outbound._POSTED.action is receive._MESSAGE.action is Request.finish
    assert outbound._ACKED.action is None


def test_a_table_has_a_description():
    table = Lamp.table
    assert (table.states, table.final) == ((Light.RED, Light.GREEN, Light.BROKEN), (Light.BROKEN,))
    assert r'"red" -> "green" [label="  button (R-XXX-01, R-XXX-02)\l"]' in table.diagram()
    assert '"broken" [peripheries=2]' in table.diagram()


def test_a_table_has_one_row_for_each_state_and_event():
    with pytest.raises(ValueError, match="two rows"):
        TransitionTable("lamp", Light.RED, (*ROWS, ROWS[0]))


@pytest.mark.parametrize("table", tables().values(), ids=lambda each: each.name)
def test_the_tables_of_the_engine(table):
    """Each has a machine, rules for its rows, a function for each action, and a diagram."""
    assert any(getattr(each, "table", None) is table for each in subclasses(StateMachine))
    for row in table.rows:
        assert row.rules, row
        assert row.action is None or callable(row.action), row
    assert all(f'"{row.state}" -> "{row.next}"' in table.diagram() for row in table.rows)


def subclasses(kind: type) -> list[type]:
    return [each for direct in kind.__subclasses__() for each in (direct, *subclasses(direct))]


def test_profiles_by_name():
    """R-GEN-03: the formulas in ticks."""
    assert profile_by_name("open-mx") is OPEN_MX_1_5
    assert profile_by_name(" Native-MX ") is NATIVE_MX
    assert {each.name for each in PROFILES.values()} == set(PROFILES)
    assert all(each.about for each in PROFILES.values())
    with pytest.raises(MxwireError, match="no profile 'mx': use one of open-mx"):
        profile_by_name("mx")
    assert (OPEN_MX_1_5.tick, OPEN_MX_1_5.resend_delay, OPEN_MX_1_5.ack_delay) == (4_000_000, 126, 4)
    assert OPEN_MX_1_5.pull_limit == 504 * SECOND
    assert OPEN_MX_1_5.with_defects().defects == frozenset(Defect)


def test_statuses_and_counters():
    """Section 20 and 21."""
    assert Status(33).text == "remote endpoint closed"
    counters = Counters()
    assert counters[Counter.RECV_TINY] == 0
    counters[Counter.RECV_TINY] += 2
    assert counters == {"Recv Tiny": 2}
    with pytest.raises(TypeError, match="no hash"):
        hash(counters)


def test_the_representation_for_debugging():
    world = World()
    one, two, there, _ = world.pair()
    receive = two.receive(bytearray(1), 5)
    assert repr(one).startswith("<Endpoint host0:0/1 session=0x")
    assert repr(there) == "<Partner host1:0/2 tx 0x1..0x1 rx 0x1>"
    assert repr(receive) == "<Receive posted pending match=0x5 length=0>"
    receive.cancel()
    assert repr(receive) == "<Receive done cancelled match=0x5 length=0>"


def test_transmitted_packets_are_counted_by_type():
    """Section 21."""
    world = World()
    one, two, there, _ = world.pair()
    for data in (b"x", pattern(100), pattern(9000), pattern(40000)):
        two.receive(bytearray(40000))
        one.send(there, data)
    world.seconds(1)
    counters = [{each.value: node.counters[each] for each in Counter} for node in world.nodes]
    assert [counters[0][f"Send {each}"] for each in ("Tiny", "Small", "MediumSQ Frag", "Rndv")] == [1, 1, 3, 1]
    assert [counters[1][f"Send {each}"] for each in ("Pull Request", "Notify")] == [2, 1]
