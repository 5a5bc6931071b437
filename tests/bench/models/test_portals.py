"""Portals: order of entries, thresholds, options, and the race that an update closes."""

from __future__ import annotations

from collections import deque

import pytest

from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.portals import UNLIMITED, MemoryDescriptor, MemoryOption, PortalsLayer
from mxwire.bench.models.wire import ModelWire

THERE = (1, 0)
PUT, GET, TRUNCATE, REMOTE = MemoryOption.PUT, MemoryOption.GET, MemoryOption.TRUNCATE, MemoryOption.REMOTE_OFFSET


class Pair:
    """Two processes; the second one has entries at index 3, all of whose events are in one queue."""

    def __init__(self) -> None:
        self.here, self.there = PortalsLayer(0), PortalsLayer(1)
        self.wire = ModelWire([self.here, self.there])
        self.events, self.own = deque(), deque()

    def entry(self, size, match=0, ignore=0, options=PUT, threshold=UNLIMITED, **more):
        """Attach an entry with a descriptor."""
        entry = self.there.attach(3, match, ignore, **more)
        memory = memoryview(bytearray(size))
        entry.descriptor = MemoryDescriptor(memory, self.events, options, threshold)
        return entry

    def put(self, data, match=0, **more) -> list:
        """Put, and return the new events of the target: kind, memory, length requested, moved, and offset."""
        data = memoryview(data)
        self.here.put(MemoryDescriptor(data, self.own, MemoryOption(0)), THERE, 3, match, **more)
        self.wire.run()
        found = [(each.kind, each.descriptor, each.requested, each.moved, each.offset) for each in self.events]
        self.events.clear()
        return found


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_the_first_entry_that_matches_and_takes_the_data_gets_them(pair):
    last = pair.entry(100, ignore=0xFFFFFFFF)
    pair.entry(100, match=5, before=last)
    small = pair.entry(4, match=7, before=last)
    foreign = pair.entry(100, match=7, source=(5, 0), before=last)
    exact = pair.entry(100, match=0x17, ignore=0x10, before=last)
    assert pair.put(b"1234", 7) == [("put", small.descriptor, 4, 4, 0)]
    assert pair.put(b"12345", 7) == [("put", exact.descriptor, 5, 5, 0)]
    assert pair.put(b"12345", 8) == [("put", last.descriptor, 5, 5, 0)]
    assert not any(foreign.descriptor.memory)
    assert small.descriptor.memory == b"1234"
    assert exact.descriptor.memory[:5] == b"12345"


def test_a_threshold_counts_operations_and_unlinks_at_its_end(pair):
    first = pair.entry(100, threshold=2, unlinks=True)
    second = pair.entry(100)
    found = [pair.put(b"x")[0][1] for _ in range(3)]
    assert found == [first.descriptor, first.descriptor, second.descriptor]
    with pytest.raises(ValueError, match="not in list"):
        pair.there.unlink(3, first)
    pair.there.unlink(3, second)
    assert pair.put(b"x") == []
    assert pair.there.counts["dropped"] == 1


def test_offsets_are_those_of_the_target_or_of_the_initiator(pair):
    entry = pair.entry(10)
    assert [pair.put(b"abc", offset=7)[0][4] for _ in range(3)] == [0, 3, 6]
    assert pair.put(b"abc") == []
    assert entry.descriptor.memory == b"abcabcabc\0"
    pair.there.unlink(3, entry)
    remote = pair.entry(10, options=PUT | REMOTE)
    assert pair.put(b"abc", offset=7) == [("put", remote.descriptor, 3, 3, 7)]
    assert pair.put(b"abc", offset=8) == []


def test_a_descriptor_of_length_0_keeps_the_header_of_a_long_message_which_is_fetched_afterwards(pair):
    pair.entry(0, options=PUT | TRUNCATE)
    data = bytes(range(250)) * 40
    ((kind, _, requested, moved, _),) = pair.put(data)
    assert (kind, requested, moved) == ("put", 10_000, 0)
    exposed = pair.here.attach(3, 77)
    exposed.descriptor = MemoryDescriptor(memoryview(data), pair.own, GET)
    into = memoryview(bytearray(10_000))
    pair.own.clear()
    pair.there.get(MemoryDescriptor(into, pair.events, MemoryOption(0)), (0, 0), 3, 77)
    pair.wire.run()
    assert into == data
    assert [each.kind for each in pair.events] == ["reply"]
    assert [each.kind for each in pair.own] == ["get"]


def test_truncated_data_stay_in_their_memory(pair):
    entry = pair.entry(5000, options=PUT | TRUNCATE)
    assert pair.put(b"t" * 9000) == [("put", entry.descriptor, 9000, 5000, 0)]
    assert entry.descriptor.memory == b"t" * 5000


def test_data_move_and_match_without_a_call_of_the_target(pair):
    entry = pair.entry(9000)
    pair.put(b"m" * 9000, ack=True)
    assert entry.descriptor.memory == b"m" * 9000
    assert [each.kind for each in pair.own] == ["sent", "ack"]
    assert pair.there.receive_copies.length == 0


def test_an_update_fails_while_an_unexpected_message_waits(pair):
    pair.entry(100, ignore=0xFFFFFFFF)
    unexpected = pair.events
    posted: deque = deque()
    receive = pair.there.attach(3, 9, before=pair.there._table[3][0])
    receive.descriptor = MemoryDescriptor(memoryview(bytearray(10)), posted, PUT, threshold=0)
    assert not unexpected
    # The message arrives between the search and the posting.
    pair.here.put(MemoryDescriptor(memoryview(b"early"), pair.own, MemoryOption(0)), THERE, 3, 9)
    pair.wire.run()
    assert not pair.there.update(receive.descriptor, 1, unexpected)
    assert unexpected.popleft().moved == 5
    assert pair.there.update(receive.descriptor, 1, unexpected)
    pair.put(b"later", 9)
    assert [each.moved for each in posted] == [5]


def test_nodes_that_are_not_allowed_and_forged_answers_are_refused(pair):
    entry = pair.entry(10)
    pair.there.allowed = {5}
    assert pair.put(b"x") == []
    assert pair.there.counts["refused"] == 1
    for kind in (FrameKind.REPLY, FrameKind.NOTIFY):
        pair.here.order.send(THERE, ModelFrame(kind, ONLY, place=1, data=b"forged"))
    pair.wire.run()
    assert pair.there.counts["refused"] == 3
    assert not any(entry.descriptor.memory)
    assert not pair.events


def test_a_get_that_is_dropped_is_reported(pair):
    pair.here.get(MemoryDescriptor(memoryview(bytearray(4)), pair.own, MemoryOption(0)), THERE, 3, 0)
    pair.wire.run()
    assert pair.here.catastrophe == "stalled: operations without answer, and no event is due"
