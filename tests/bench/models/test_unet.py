"""U-Net: descriptors, channels, and messages dropped for want of a free buffer."""

from __future__ import annotations

import pytest

from mxwire.bench.models.layer import CallError
from mxwire.bench.models.unet import CELL, UnetLayer
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)
TAG = 5


@pytest.fixture
def pair() -> tuple[UnetLayer, UnetLayer, ModelWire]:
    here, there = UnetLayer(0), UnetLayer(1)
    here.open_channel(TAG, THERE)
    there.open_channel(TAG, (0, 0))
    return here, there, ModelWire([here, there])


def test_messages_without_free_buffer_are_dropped(pair):
    here, there, wire = pair
    there.free(2 * there.payload)
    here.area[:100] = b"b" * 100
    for _ in range(3):
        here.send(TAG, 0, 100)
    wire.run()
    found = there.receive()
    assert (found.channel, found.length, found.offset) == (TAG, 100, 2 * there.payload)
    assert there.area[found.offset : found.offset + 100] == b"b" * 100
    assert there.receive() is None
    assert there.counts["dropped"] == 2


def test_short_messages_lie_in_their_descriptor(pair):
    here, there, wire = pair
    here.send_inline(TAG, b"s" * CELL)
    wire.run()
    assert there.receive().inline == b"s" * CELL
    with pytest.raises(CallError, match="room for 40 bytes, not for 41"):
        here.send_inline(TAG, bytes(CELL + 1))


def test_channels_that_are_not_open_or_of_another_partner_carry_nothing(pair):
    here, there, wire = pair
    with pytest.raises(CallError, match="channel 6 is not open"):
        here.send_inline(6, b"")
    here.open_channel(6, THERE)
    here.send_inline(6, b"not open there")
    third = UnetLayer(2, nodes=(0, 1, 2))
    third.open_channel(TAG, THERE)
    wire.attach(third)
    third.send_inline(TAG, b"of another partner")
    wire.run()
    assert there.receive() is None
    assert there.counts["refused"] == 2


def test_buffers_outside_of_the_area_are_refused_in_calls(pair):
    here, _, _ = pair
    for offset, length in ((len(here.area) - 1, 2), (0, here.payload + 1)):
        with pytest.raises(CallError, match="not in a buffer of the area"):
            here.send(TAG, offset, length)
    for offset in (1, len(here.area), -here.payload):
        with pytest.raises(CallError, match="there is no buffer at"):
            here.free(offset)
