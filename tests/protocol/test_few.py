"""Frames by themselves: what they do is what they would do in a batch, whatever they are."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.frames import FrameBatch
from mxwire.native import native
from mxwire.protocol.agent.remote_segments import RemoteSegments
from mxwire.protocol.card.outgoing import FEW
from mxwire.protocol.profile import OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.wire.dialect import MXOE, omx

from .agent_channel import OwnMemory
from .test_hostile import mutate, traffic
from .world import World, pattern

DIALECTS = {str(each): each for each in (MXOE, omx(1500))}
QUARRIES = {name: traffic(each) for name, each in DIALECTS.items()}


@given(
    seed=st.integers(0, 1 << 30),
    dialect=st.sampled_from(sorted(DIALECTS)),
    profile=st.sampled_from((OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND)),
    hostile=st.floats(0, 1),
    promiscuous=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_any_frames(seed, dialect, profile, hostile, promiscuous):
    """Real traffic, mutated traffic and noise, a few frames at a time: same counters, answers, state and deadline."""
    random, quarry = Random(seed), QUARRIES[dialect]
    worlds = [World(dialect=DIALECTS[dialect], profile=profile) for _ in range(2)]
    pairs = [each.pair() for each in worlds]
    for world, (_, two, _, back) in zip(worlds, pairs, strict=True):
        for length in (0, 20, 70_000):
            two.receive(bytearray(length))
            two.send(back, pattern(length), length)
        world.nodes[1].transmit(world.now)
        world.nodes[1].interfaces[0].promiscuous = promiscuous
    session = pairs[0][1].session.to_bytes(4, "big")
    for _ in range(12):
        place = random.randrange(len(quarry))
        frames = quarry[place : place + random.randrange(1, 9)]
        frames = [mutate(random, each) if random.random() < hostile else each for each in frames]
        frames = [random.randbytes(random.randrange(40)) if random.random() < 0.05 else each for each in frames]
        frames = [each[:26] + session + each[30:] if random.random() < 0.2 else each for each in frames]
        worlds[0].nodes[1].receive(FrameBatch.from_frames(frames), worlds[0].now)
        worlds[1].nodes[1].receive_few(frames, worlds[1].now)
        compare(worlds, pairs)
        for world in worlds:
            world.now += 10**8


def compare(worlds, pairs) -> None:
    """Everything that can be seen of the two second hosts is the same."""
    one, two = (each.nodes[1] for each in worlds)
    assert one.counters == two.counters
    assert one.deadline() == two.deadline()
    ours = one.transmit(worlds[0].now)
    theirs = two.transmit_few(worlds[1].now)
    if isinstance(theirs, FrameBatch):
        theirs = [theirs.frame(place) for place in range(len(theirs))]
    assert [ours.frame(place) for place in range(len(ours))] == theirs
    assert [repr(each) for each in one.events()] == [repr(each) for each in two.events()]
    partners = [[repr(each) for each in pair[1].partners.values()] for pair in pairs]
    assert partners[0] == partners[1]
    assert pairs[0][1].matching.unexpected == pairs[1][1].matching.unexpected


def test_a_few_frames_leave_without_a_batch():
    """Many frames and bulk leave as a batch; nothing is lost, and the count continues."""
    world = World()
    one, _, there, _ = world.pair()
    node = world.nodes[0]
    assert node.transmit_few(world.now) == []
    first = node._sent
    for number in range(FEW):
        one.send(there, b"", number)
    found = node.transmit_few(world.now)
    assert isinstance(found, list) and len(found) == FEW
    for number in range(FEW + 1):
        one.send(there, b"", number)
    batch = node.transmit_few(world.now)
    assert isinstance(batch, FrameBatch)
    assert batch.number.tolist() == list(range(first + FEW + 1, first + 2 * FEW + 2))


def test_a_link_that_gathers_takes_many_frames_in_parts():
    """They are those of a batch, in order, with replies to PULLs among them; a caller without a limit gets a batch."""
    found = []
    for limit in (FEW, 0):
        world = World()
        one, two, there, _ = world.pair()
        node = world.nodes[0]
        node.interfaces[0].outgoing.gathers = True
        two.receive(bytearray(40_000))
        one.send(there, pattern(40_000))
        world.nodes[1].receive(node.transmit(world.now), world.now)
        asked = world.nodes[1].transmit_few(world.now)
        for number in range(3 * FEW):
            if number in (0, 2 * FEW):
                node.receive_few(asked, world.now)
            one.send(there, b"", number)
        parts, sent = [], node._sent
        while len(part := node.transmit_few(world.now, limit=limit)):
            parts.append([part.frame(each) for each in range(len(part))] if isinstance(part, FrameBatch) else part)
        assert (len(parts) > 1) is (limit > 0) and node._sent - sent == sum(map(len, parts)) == 3 * FEW + 20
        outgoing = node.interfaces[0].outgoing
        assert (outgoing.frames, outgoing.bulk_bytes, outgoing._pieces) == (0, 0, [])
        found.append([bytes(each) for part in parts for each in part])
    assert found[0] == found[1]


def test_without_timely_timers_wait():
    """R-RTX-01: without ``timely`` new packets leave, and nothing is retransmitted, however late it is."""
    world = World()
    one, _, there, _ = world.pair()
    node = world.nodes[0]
    one.send(there, b"first")
    assert len(node.transmit_few(world.now, timely=False)) == 1
    deadline = node.deadline()
    assert deadline is not None and not node.eager()
    assert node.transmit_few(deadline, timely=False) == []
    assert node.deadline() == deadline
    assert len(node.transmit_few(deadline)) == 1


def test_a_run_of_replies_is_written_to_another_process_by_one_call(monkeypatch):
    """An interpreted mxwire takes one frame per call, as for all memory."""
    world = World()
    one, two, there, _ = world.pair()
    two.receive(bytearray(40_000))
    one.send(there, pattern(40_000))
    world.nodes[1].receive(world.nodes[0].transmit(world.now), world.now)
    world.nodes[0].receive_few(world.nodes[1].transmit_few(world.now), world.now)
    (pull,) = two.card.pulls.values()
    memory, calls = OwnMemory(40_000), []
    monkeypatch.setattr(memory, "write", lambda *given: calls.append(given) or OwnMemory.write(memory, *given))
    pull.memory = RemoteSegments(memory, [(4096, 40_000)])
    world.nodes[1].receive_few(world.nodes[0].transmit_few(world.now, limit=10), world.now)
    assert memory.content == pattern(40_000) and not two.card.pulls
    # The last frame is not full.
    assert len(calls) == (10 if native is None else 2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_gathered_frames_are_those_that_are_copied(dialect):
    """Messages of several fragments and replies to PULLs, by themselves, together and in a batch.

    An interpreted mxwire copies all of them.
    """
    payload = DIALECTS[dialect].fragment_payload
    found = []
    for gathers in (False, native is not None):
        world = World(dialect=DIALECTS[dialect])
        one, two, there, _ = world.pair()
        node, leaving = world.nodes[0], []
        node.interfaces[0].outgoing.gathers = gathers

        def take(limit: int, node=node, world=world, leaving=leaving) -> None:
            frames = node.transmit_few(world.now, limit=limit)
            if isinstance(frames, FrameBatch):
                frames = [frames.frame(place) for place in range(len(frames))]
            leaving.append([bytes(each) for each in frames])

        two.receive(bytearray(40_000))
        one.send(there, pattern(40_000))
        take(FEW)
        world.nodes[1].receive_few(leaving[0], world.now)
        asked = world.nodes[1].transmit_few(world.now)
        for limit in (FEW, 0):
            for length in (payload, payload + 1, 2 * payload, 3 * payload + 1):
                one.send(there, pattern(length))
                take(limit)
            node.receive_few(asked, world.now)
            one.send(there, pattern(2 * payload))
            take(limit)
            world.now += 1000
        found.append(leaving)
    assert found[0] == found[1] and len(found[0][5]) > 10


def test_handlers_that_raise_are_heard():
    """R-MAT-06: as in a batch, when all is done."""
    worlds = [World(), World()]
    for few, world in enumerate(worlds):
        one, two, there, _ = world.pair()
        two.handle_unexpected(lambda _message: 1 // 0)
        one.send(there, b"x")
        outgoing = world.nodes[0].transmit(world.now)
        with pytest.raises(ZeroDivisionError):
            if few:
                world.nodes[1].receive_few([outgoing.frame(0)], world.now)
            else:
                world.nodes[1].receive(outgoing, world.now)
        assert two.probe() is not None
