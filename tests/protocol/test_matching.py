"""Matching (behaviour, section 9) and cancelling (section 17)."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.protocol import Status
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.matching import Matching
from mxwire.wire.packets import Notify

from .world import World, pattern


class Naive:
    """Matching as section 9 words it: two lists that are walked through."""

    def __init__(self) -> None:
        self.posted: list[tuple[int, int, int]] = []
        self.unexpected: list[tuple[int, int]] = []

    def post(self, name: int, value: int, mask: int) -> int | None:
        for message in self.unexpected:
            if message[1] & mask == value:
                self.unexpected.remove(message)
                return message[0]
        self.posted.append((name, value, mask))
        return None

    def arrive(self, name: int, info: int) -> int | None:
        for receive in self.posted:
            if info & receive[2] == receive[1]:
                self.posted.remove(receive)
                return receive[0]
        self.unexpected.append((name, info))
        return None

    def cancel(self, name: int) -> None:
        self.posted = [each for each in self.posted if each[0] != name]


@settings(deadline=None)
@given(st.integers(0, 1 << 30))
def test_it_finds_the_same_as_a_search_through_lists(seed):
    """R-MAT-01, R-MAT-02: whatever the masks, in whatever order."""
    random, naive = Random(seed), Naive()
    world = World()
    one, _, there, _ = world.pair()
    matching: Matching = one.matching
    names: dict[object, int] = {}
    infos: dict[int, int] = {}
    masks = [random.getrandbits(3) for _ in range(3)] + [7, 0]
    for step in range(random.randrange(200)):
        if random.random() < 0.5:
            mask = random.choice(masks)
            value = random.getrandbits(3) & mask
            receive = one.receive(bytearray(1), value, mask)
            names[receive] = step
            expected = naive.post(step, value, mask)
            assert receive.done is (expected is not None)
            if expected is not None:
                assert receive.match_info == infos[expected]
        elif naive.posted and random.random() < 0.2:
            # Anywhere in the queue, not only the oldest.
            cancelled = random.choice(naive.posted)[0]
            assert one.cancel(next(receive for receive, name in names.items() if name == cancelled))
            naive.cancel(cancelled)
        else:
            info = random.getrandbits(3)
            infos[step] = info
            expected = naive.arrive(step, info)
            found = matching.arrive(info)
            assert (None if found is None else names[found]) == expected
            if found is None:
                matching.keep(Unexpected(there, info, 1, data=b"x"))
    assert (matching.posted, matching.unexpected) == (len(naive.posted), len(naive.unexpected))


def test_old_entries_are_swept():
    """Memory stays bounded however many masks and messages come and go."""
    world = World()
    one, _, there, _ = world.pair()
    matching: Matching = one.matching
    for mask in range(8):
        one.probe(0, mask)
        one.cancel(one.receive(bytearray(1), 0, mask))
    for value in range(20_000):
        matching.keep(Unexpected(there, value, 1, data=b"x"))
        assert one.receive(bytearray(1), 0, 0).done
        request = one.receive(bytearray(1), value | 1 << 40)
        one.cancel(request)
    assert not any(matching._posted.by_mask.values())
    assert sum(len(queue) for table in matching._unexpected.by_mask.values() for queue in table.values()) < 5000


def test_messages_taken_in_order_leave_nothing_behind():
    """Its memory may be large."""
    world = World()
    one, two, there, _ = world.pair()
    for value in range(20):
        two.receive(bytearray(1), value)
        one.send(there, b"x", value)
        world.settle()
        one.send(there, b"x", value)
        world.settle()
        assert two.receive(bytearray(1), value).done
    for side in (two.matching._posted, two.matching._unexpected):
        assert [table for table in side.by_mask.values() if table] == []


def test_a_notify_for_a_consumed_message_may_be_lost():
    """R-MAT-06, R-NAK-08: no receive waits for it."""
    world = World()
    one, two, there, _ = world.pair()
    two.handle_unexpected(lambda _message: True)
    world.lose = lambda _host, frame: type(frame) is Notify
    one.send(there, pattern(40000))
    world.settle()
    one.close()
    world.lose = lambda *_: False
    world.seconds(1)
    assert not two.requests


def test_masks_that_are_not_used_any_more_are_forgotten():
    """R-MAT-03: an application may use a thousand masks one after the other; each message is looked up by few."""
    world = World()
    one, two, there, _ = world.pair()
    for number in range(1000):
        mask = (1 << 63) | number
        one.send(there, b"x", 1 << 63)
        assert two.probe(1 << 63, mask) is None
        receive = two.receive(bytearray(1), 1 << 63, mask)
        world.settle()
        assert receive.status is Status.SUCCESS
    matching = two.matching
    assert not matching._posted.by_mask and not matching._unexpected.by_mask


def test_receives_that_are_cancelled_in_any_order_leave_nothing_behind():
    """R-MSC-02: the others keep their order."""
    world = World()
    one, two, there, _ = world.pair()
    buffers = [bytearray(1) for _ in range(3000)]
    receives = [two.receive(buffer, number % 3, 3) for number, buffer in enumerate(buffers)]
    kept = [receives[1], receives[4], receives[2999 - 1]]
    for receive in reversed(receives):
        if receive not in kept:
            assert two.cancel(receive)
    chain, found = two.matching._posted.by_mask[3], []
    assert list(chain) == [1]
    posting = chain.get(1)
    while posting is not None:
        found.append(posting.receive)
        posting = posting.after
    assert found == kept and two.matching.posted == 3
    for number in range(3):
        one.send(there, bytes([number]), 1)
    world.settle()
    assert [(each.value, bytes(each.memory.copy())) for each in kept] == [(1, b"\0"), (1, b"\1"), (1, b"\2")]
