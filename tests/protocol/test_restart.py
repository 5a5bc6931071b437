"""Partners that restart, are abandoned or forgotten (behaviour, sections 12 and 18)."""

from __future__ import annotations

from mxwire.protocol import Defect, EngineEndpoint, Partner, Status
from mxwire.protocol.profile import NATIVE_MX, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.wire.packets import ConnectRequest, Tiny, Truc

from .world import KEY, World, frame_to


def reopen(world, host, endpoint):
    """The process dies and comes back."""
    endpoint.close()
    return world.open(host, endpoint.number)


def _exchange(world, *ways):
    """A message each way arrives; a way is from whom, to whom, over which partner."""
    for number, (source, target, partner) in enumerate(ways):
        receive = target.receive(bytearray(3), number)
        source.send(partner, b"abc", number)
        world.seconds(1)
        assert receive.status is Status.SUCCESS


def test_a_restart_in_the_middle_of_a_pass():
    """R-CLS-05, R-RTX-02: an ack that is owed at once, and a send that waits for its NOTIFY, end with the partner."""
    world = World()
    one, two, there, _ = world.pair()
    large = one.send(there, bytes(40000))
    world.seconds(1)
    assert not one.resends
    request = frame_to(one, ConnectRequest, src_session_id=77, app_key=KEY)
    world.clear()
    world.inject(0, *tinies(one, two), request)
    world.settle()
    assert large.status is Status.REMOTE_ENDPOINT_UNREACHABLE
    assert not world.sent(Truc, 0)


def abandoned_pair(world: World) -> tuple[EngineEndpoint, EngineEndpoint, Partner, Partner]:
    """Two endpoints as of ``world.pair()``, the first of which has abandoned the other."""
    one, two, there, back = world.pair()
    one.resend_maximum = 1
    world.lose = lambda *_: True
    one.send(there, b"x")
    world.seconds(2)
    world.lose = lambda *_: False
    return one, two, there, back


def tinies(one, two) -> list[Tiny]:
    """Five messages in sequence, as the second host's endpoint would send them."""
    return [frame_to(one, Tiny, lib_seqnum=1 + number, lib_piggyack=2) for number in range(5)]


def test_the_abandoned_side_may_connect_first():
    """D-4 off: the reply's session number shows it that it was abandoned."""
    world = World()
    one, two, there, back = abandoned_pair(world)
    world.connect(two, one, 0)
    _exchange(world, (two, one, back), (one, two, there))


def test_with_its_defect_the_session_numbers_stay_apart():
    """D-4: the messages of the abandoned side are dropped."""
    world = World(profile=OPEN_MX_1_5.with_defects(Defect.SESSION_NUMBERS_DISAGREE))
    one, two, _, back = abandoned_pair(world)
    world.connect(one, two, 1)
    receive = one.receive(bytearray(3), 6)
    two.send(back, b"abc", 6)
    world.seconds(1)
    assert not receive.done


def test_the_survivor_connects_first():
    """R-CON-05, R-CLS-07: without D-3 the survivor keeps the number that it has requested."""
    for profile, arrives in ((OPEN_MX_1_5, True), (OPEN_MX_1_5_AS_FOUND, False)):
        world = World(profile=profile)
        one, two, _, back = world.pair()
        for _ in range(8):
            two.send(back, b"x", 1)
        world.settle()
        two = reopen(world, 1, two)
        world.connect(one, two, 1)
        receive = one.receive(bytearray(3), 6)
        two.send(two.partners[1, 1], b"abc", 6)
        world.seconds(0.1)
        assert receive.done is arrives
        if not arrives:
            assert world.sent(Tiny, 1)[-1].lib_seqnum == 9


def test_native_mx_keeps_its_partners():
    """Differences, section 1: disconnecting changes nothing there."""
    world = World(profile=NATIVE_MX)
    one, _, there, _ = world.pair()
    one.disconnect(there)
    assert list(one.partners.values()) == [there]
