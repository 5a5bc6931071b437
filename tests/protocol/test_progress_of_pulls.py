"""The progress of a large message, as both sides can report it during the transfer."""

from __future__ import annotations

import pytest

from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.packets import PullReply

from .world import World, pattern


@pytest.mark.parametrize("dialect", [MXOE, omx(9000)], ids=str)
def test_both_sides_know_the_requested_part(dialect):
    blocks = 5
    passed = []

    def lose(_host: int, frame: object) -> bool:
        if isinstance(frame, PullReply):
            passed.append(frame)
        return isinstance(frame, PullReply) and len(passed) > dialect.frames_per_block

    world = World(dialect=dialect, lose=lose)
    source, target, partner, _ = world.pair()
    length = blocks * dialect.block_length
    receive = target.receive(bytearray(length))
    send = source.send(partner, pattern(length))
    world.settle()
    (pull,) = target.card.pulls.values()
    region = send.packet.region
    # One block has arrived, so that the fifth was requested after the four of the beginning.
    assert pull.requested == region.requested == length
    assert not receive.done and [block.missing != 0 for block in pull.blocks] == [True] * 4
    world.lose = lambda *_: False
    world.sleep(3 * 10**9)
    assert receive.done and send.done


def test_parts_beyond_the_receive_are_not_requested():
    world = World()
    source, _, partner, _ = world.pair()
    send = source.send(partner, pattern(100_000))
    world.settle()
    assert send.packet.region.requested == 0
