"""A third host that sends what it likes, from its own address, does not disturb the messages of others.

It knows the key or not, and in any case the session, which the refusal of a connect reveals (R-CON-08), and it guesses
indexes, handles, regions and sequence numbers. Against a host that forges addresses the protocol has no protection.
"""

from __future__ import annotations

from dataclasses import fields
from random import Random
from typing import Any

import pytest

from mxwire.errors import MxwireError
from mxwire.protocol import EngineEndpoint, Status
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.numbers import HOST_QUERY_MAGIC, PULL_MAGIC
from mxwire.wire.packets import (
    Announcement,
    ConnectReply,
    ConnectRequest,
    Frame,
    HostQuery,
    HostReply,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Raw,
    Rndv,
    Small,
    Tiny,
    Truc,
)

from .world import KEY, World, address, pattern

EAGER = (Tiny, Small, Medium, Rndv)
KINDS: tuple[type[Frame], ...] = (
    *EAGER,
    Notify,
    Pull,
    PullReply,
    Truc,
    NackLib,
    NackMcp,
    ConnectRequest,
    ConnectReply,
    HostQuery,
    HostReply,
    Raw,
    Announcement,
)
STRANGE = (0, 1, 2, 3, 22, 24, 127, 128, 255, 4096, 0x3FFF, 0x4001, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
THIRD = 2
LENGTHS = (0, 20, 100, 9000, 70_000, 300_000)


class ThirdHost:
    """The frames of the third host to an endpoint of one of the others."""

    def __init__(self, world: World, endpoint: EngineEndpoint, seed: str, *, keyed: bool) -> None:
        self._random = Random(seed)
        self._world = world
        self._endpoint = endpoint
        self.host = endpoint.card.port.address[-1] - 1
        known = world.nodes[self.host].peers.by_address(address(THIRD))
        assert known is not None
        session = endpoint.session
        self._likely: dict[str, tuple[Any, ...]] = {
            "dst_mac": (endpoint.card.port.address,),
            "src_mac": (address(THIRD),),
            "dst_src_peer_index": (known.index, known.index, 0, 1, 2, 0xFFFF),
            "src_dst_peer_index": (0, 1, 2),
            "dst_endpoint": (endpoint.number,),
            "src_endpoint": (1, 2, 3),
            "session": (session,),
            "liback_session_id": (session,),
            "src_session_id": (7, 8, session),
            "target_session_id": (session,),
            "app_key": (KEY if keyed else KEY + 1,),
            "ptype": (),
            "ethertype": (),
            "is_reply": (),
            "lib_seqnum": tuple(range(12)),
            "lib_piggyack": (1, 1, *range(6)),
            "connect_seqnum": (0, 1, 2),
            "connect_status_code": (0, 11),
            "length": (8, 16, 20, 32, 128, 5000, 32768),
            "pulled_rdma_id": (0, 1),
            "pulled_rdma_seqnum": (23, 24, 25),
            "msg_length": (0, 70_000, 300_000, 0xFFFFFFFF),
            "dst_pull_handle": tuple(slot << 22 | generation for slot in range(4) for generation in (0x23, 0x24)),
            "dst_magic": (PULL_MAGIC ^ endpoint.number,),
            "nack_type": (1, 2, 3, 4),
            "magic": (HOST_QUERY_MAGIC,),
            "frame_seqnum": tuple(range(12)),
            "frame_length": (4096, 1468),
            "msg_offset": tuple(4096 * each for each in range(12)),
        }
        self._likely["src_pull_handle"] = self._likely["dst_pull_handle"]
        self._likely["src_magic"] = self._likely["dst_magic"]

    def frame(self) -> bytes:
        """A frame of a random type whose fields are mostly likely ones."""
        kind = self._random.choice(KINDS)
        values: dict[str, Any] = {}
        for each in fields(kind):
            likely = self._likely.get(each.name, STRANGE)
            if each.type == "bytes" and not each.name.endswith("_mac"):
                values[each.name] = bytes(80 if each.name == "hostname" else self._random.choice((0, 20, 48, 4096)))
            elif likely:
                certain = each.name.endswith("_mac") or each.name == "app_key"
                strange = self._random.random() < 0.1 and not certain
                values[each.name] = self._random.choice(STRANGE if strange else likely)
        for mask in (0xFFFFFFFF, 0xFFFF, 0xFF, 0x0F):
            try:
                return self._world.codec.build(
                    kind(**{name: each & mask if type(each) is int else each for name, each in values.items()})
                )
            except (MxwireError, ValueError, OverflowError):
                continue
        raise AssertionError(f"{kind.__name__} cannot be built: {values}")


@pytest.mark.parametrize("keyed", [False, True], ids=["without key", "with key"])
@pytest.mark.parametrize("dialect", [MXOE, omx(1500)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_messages_of_others_arrive_whole_and_once(dialect: Dialect, seed: int, keyed: bool) -> None:
    world = World(hosts=3, dialect=dialect)
    one, two, there, back = world.pair()
    random = Random(seed)
    thirds = [ThirdHost(world, each, f"{seed} {each.number} {keyed}", keyed=keyed) for each in (one, two)]
    for number in range(20):
        length = random.choice(LENGTHS)
        # Match information of its own, since a receive does not look at the sender (R-MAT-03).
        info = 0xC0FFEE0000000000 | number
        source, target, partner = random.choice(((one, two, there), (two, one, back)))
        memory = bytearray(length)
        receive = target.receive(memory, info)
        send = source.send(partner, pattern(length), info)
        for _ in range(8):
            for third in thirds:
                world.inject(third.host, *[third.frame() for _ in range(random.randrange(12))])
            for _ in range(random.randrange(4)):
                world.step()
        world.seconds(random.choice((0, 1, 2)))
        for _ in range(60):
            if receive.done and send.done:
                break
            world.seconds(1)
        assert (receive.status, send.status) == (Status.SUCCESS, Status.SUCCESS), (number, length)
        assert bytes(memory) == pattern(length), (number, length)
    for each in (one, two):
        assert len(each.partners) <= (260 if keyed else 1)
