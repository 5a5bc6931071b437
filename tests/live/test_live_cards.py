"""Libraries whose card is a process of its own: messages, copies, and one process without the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mxwire.bench.channels.cards import CardChannel, CardPort
from mxwire.bench.channels.carriers import open_channel
from mxwire.bench.channels.channel import Channel, ChannelSetup
from mxwire.bench.errors import SilenceError
from mxwire.bench.models.catalogue import CARD, COPIED, MODELS, UNSYNCHRONISED, model_of
from mxwire.bench.testbed import NamespaceTestbed, TestbedOptions
from tests.waiting import until

ON_CARDS = {"bip", "pm", "vmmc2", "gm", "portals", "unet", "null"}
"""Libraries whose messages the adapter takes, by table 3 of the paper; of the others it moves frames."""
SIZE = 5000
pytestmark = pytest.mark.usefixtures("_namespaces_work")


def has_ended(process: int) -> bool:
    """Return whether a process has ended; another one may reap it at any moment."""
    try:
        return " Z " in Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True


def opened(ports, place: int, carrier: str) -> CardChannel:
    """One side of a cable."""
    own, other = ports[place], ports[1 - place]
    addresses = {"own": own.address, "other": other.address}
    with own.namespace.inside():
        found = open_channel(
            ChannelSetup(carrier, own.interface, active=not place, spin=False, size=SIZE, depth=4, **addresses)
        )
    assert isinstance(found, CardChannel)
    return found


@contextmanager
def both(ports, carrier: str) -> Iterator[tuple[CardChannel, CardChannel]]:
    """Both sides; the passive one is opened first."""
    with closing(opened(ports, 1, carrier)) as passive, closing(opened(ports, 0, carrier)) as active:
        yield active, passive


def pass_message(source: Channel, target: Channel, size: int) -> None:
    """Send a message while the other side receives it."""
    with ThreadPoolExecutor(1) as other:
        received = other.submit(target.receive, size)
        source.send(size)
        received.result(60)
    target.check(size)


LIBRARIES = [*MODELS, UNSYNCHRONISED]


@pytest.mark.parametrize(
    "carrier", [each + CARD for each in LIBRARIES] + [each + CARD + COPIED for each in sorted(ON_CARDS)]
)
def test_messages_pass_in_both_directions_with_the_copies_of_the_library(ports, carrier):
    model, copied = model_of(carrier)
    expected = model.facts.elsewhere if copied else (0, 0)
    with both(ports, carrier) as (active, passive):
        on_cards = isinstance(active.port, CardPort)
        assert on_cards == (model.name.partition(" ")[0] in ON_CARDS)
        for size in (4, SIZE):
            for source, target in ((active, passive), (passive, active)):
                before = source.port.program.length, target.port.program.length
                if model.name == UNSYNCHRONISED:
                    target.port.expect(size)
                    target.frames()  # the card has answered, so it has posted the receive
                pass_message(source, target, size)
                after = source.port.program.length, target.port.program.length
                if on_cards and size > model.port.written:
                    made = tuple(new - old for new, old in zip(after, before, strict=True))
                    assert made == tuple(each * size for each in expected)
        frames = active.frames()
        assert frames["sent"] >= 3 and frames["received"] >= 3


@pytest.mark.parametrize("name", ["bip", "gm", "pm", "portals", "unet", "vmmc2"])
def test_long_messages_lie_in_memory_that_the_card_has_filled(ports, name):
    with both(ports, name + CARD) as (active, passive):
        pass_message(active, passive, SIZE)
        assert all(passive._arena.place_of(each) is not None for each in passive.port.pieces)


def test_a_message_is_received_while_its_program_makes_no_call(ports):
    """More messages than a program may leave to its card are taken, since the other card receives them."""
    with both(ports, "vmmc2 with card") as (active, passive):
        pass_message(active, passive, 4)
        for _ in range(4):
            active.send(SIZE)
            active.settle()
        found = active.frames()
        assert found["sent"] >= 8
        for _ in range(4):
            passive.receive(SIZE)
            passive.check(SIZE)


def test_frames_that_arrive_while_a_program_asks_for_counters_are_kept(ports):
    with both(ports, "gam with card") as (active, passive):
        for _ in range(3):
            active.send(4)
            passive.frames()
        for _ in range(3):
            passive.receive(4)
            passive.check(4)


@pytest.mark.parametrize("name", ["gam", "pm"])
def test_a_card_that_is_killed_ends_the_waits_of_its_program(ports, name):
    with both(ports, name + CARD) as (active, passive):
        pass_message(active, passive, 4)
        os.kill(passive._link.card, signal.SIGKILL)
        with pytest.raises(SilenceError, match="the card's process has ended"):
            passive.receive(4)


def test_a_program_that_is_killed_leaves_no_card(forked_sides):
    with NamespaceTestbed(TestbedOptions()) as testbed:
        side = testbed.sides[1]
        side.start("trips", {"carrier": "pm with card", "spin": False, "sizes": [4], "counts": [1]})
        side.ready()
        (card,) = map(int, Path(f"/proc/{side.pid}/task/{side.pid}/children").read_text().split())
        assert Path(f"/proc/{card}").exists()
        os.kill(side.pid, signal.SIGKILL)
        until(lambda: has_ended(card))


def test_a_study_plays_its_roles_on_cards(forked_sides):
    shared = {"spin": False, "carrier": "gm with card copied"}
    with NamespaceTestbed(TestbedOptions()) as testbed:
        # The passive side ends with its only message, before which its library imports memory.
        assert "1000" in testbed.run("spin error", carrier="vmmc2 with card", spin=False, durations=[1000])[0]
        assert testbed.run("simultaneous", size=20_000, count=3, **shared)[0]["interval"] > 0
        found, _ = testbed.run("used data", sizes=[4, 4096], counts=[4, 4], numbers=[2, 2], depth=4, **shared)
        assert found["points"]["4096"]["central queue"] > 0
        testbed.steer(False)
        assert testbed.run("flood", size=100, count=20, window=4, depth=4, **shared)[0]["interval"] > 0
