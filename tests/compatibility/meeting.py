"""Two engines of any two builds on one wire, and the messages that they actually exchange."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from mxwire.analysis.compatibility import Build
from mxwire.frames import FrameBatch
from mxwire.protocol import Node, Status
from mxwire.protocol.profile import OPEN_MX_1_5, Profile
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.packets import Announcement, Raw
from tests.protocol.world import KEY, Line, World, address, pattern

PATIENCE_S = 8
"""Seconds of virtual time after which a message has not arrived: several timers of every kind."""


def profile_of(build: Build) -> Profile:
    """The profile of an engine built with these choices."""
    pipeline = None if build.fragment is None else build.fragment.bit_length() - 1
    return replace(
        OPEN_MX_1_5,
        fragment_pipeline=pipeline,
        pipeline_ignored=build.pipeline_ignored,
        region_offset=build.region_offset,
        medium_threshold=build.medium_threshold,
    )


class Meeting(World):
    """Two hosts, each of a build of its own."""

    def __init__(self, one: Build, other: Build, *, strangers: bool = False) -> None:
        self.builds = one, other
        super().__init__(acquainted=not strangers, announce=strangers)

    def _node(self, host: int) -> Node:
        build = self.builds[host]
        others = {address(each): f"host{each}:0" for each in range(self.hosts) if each != host}
        return Node(
            address(host),
            f"host{host}",
            dialect=build.dialect,
            profile=profile_of(build),
            rng=Random(host),
            peers=others if self.acquainted else None,
            announce=self.announce,
        )

    def _pass(self, host: int, batch: FrameBatch) -> list[list[bytes]]:
        every = [turned(batch.frame(place), self.builds[host], outgoing=True) for place in range(len(batch))]
        frames = [frame for each in every for frame in each]
        self.log += [Line(self.now, host, self.codec.parse(each), True) for each in frames]
        return [frames] if frames else []

    def _deliver(self, host: int, frames: list[bytes]) -> None:
        receiver = self.builds[1 - host]
        super()._deliver(host, [read for each in frames for read in turned(each, receiver, outgoing=False)])


def turned(frame: bytes, build: Build, *, outgoing: bool) -> list[bytes]:
    """Swap the byte order of a frame's integers, as such a host does when it sends or receives one.

    Frames that such a host refuses do not reach the engine.
    """
    if not build.swapped:
        return [frame]
    read = codec_of(build.dialect, swapped=not outgoing).parse(frame)
    if isinstance(read, (Announcement, Raw)):
        return [frame]
    return [] if isinstance(read, Malformed) else [codec_of(build.dialect, swapped=outgoing).build(read)]


class Talk:
    """Two hosts that try to connect both ways, and then to send."""

    def __init__(self, one: Build, other: Build) -> None:
        self.meet(Meeting(one, other))

    def meet(self, world: Meeting) -> None:
        """Connect both ways."""
        self.world = world
        self.endpoints = [self.world.open(0, 1), self.world.open(1, 2)]
        requests = [
            self.endpoints[each].connect(address(1 - each), self.endpoints[1 - each].number, KEY) for each in (0, 1)
        ]
        self.world.seconds(3)
        self.connected = all(each.status is Status.SUCCESS for each in requests)
        self.partners = [each.partner for each in requests]

    def arrives(self, sender: int, length: int, *, synchronous: bool = False) -> bool:
        """Return whether a message arrives whole; after one that does not, nothing more can be tested."""
        data, buffer = pattern(length), bytearray(length)
        receive = self.endpoints[1 - sender].receive(buffer, length)
        partner = self.partners[sender]
        assert partner is not None
        send = self.endpoints[sender].send(partner, data, length, synchronous=synchronous)
        waited = 0.0
        while not (receive.status and send.status) and waited < PATIENCE_S:
            self.world.seconds(0.5)
            waited += 0.5
        return receive.status is Status.SUCCESS and bytes(buffer) == data and send.status is Status.SUCCESS
