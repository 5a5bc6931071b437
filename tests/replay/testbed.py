"""A played host and a simulated one, with whatever a test puts between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from mxwire.frames import FrameBatch
from mxwire.protocol import Node, Profile
from mxwire.protocol.profile import OPEN_MX_1_5_AS_FOUND
from mxwire.replay.stateful.actor import ReplayActor
from mxwire.replay.stateful.application import RecordedApplication
from mxwire.replay.stateful.comparison import RuleWatch
from mxwire.replay.stateful.script import ReplayScript, script_of
from mxwire.replay.stateful.simulated_play import play_simulated
from mxwire.wire.decoder import Decoder
from tests.wire.support import dialect_of, read_capture

A, B = bytes.fromhex("5254000a0001"), bytes.fromhex("5254000a0002")
REAL, BY_HAND = bytes.fromhex("5254000a00aa"), bytes.fromhex("020000000099")
HOSTS = {"A": A, "B": B, "real": REAL, "by-hand": BY_HAND}
OURS, THEIRS = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")

Between = Callable[[bytes, bool], list[bytes]]
"""The fate of a frame on its path; called with the frame and true if it is the live host's."""


def script(capture: str, host: str) -> ReplayScript:
    """A capture with one of its hosts to be played."""
    decoded = Decoder(dialect_of(capture)).decode(read_capture(capture))
    return script_of([decoded], capture, HOSTS[host], dialect=dialect_of(capture))


@dataclass
class Network:
    """A node, and what happens to frames before it gets them, or after they have left it."""

    node: Node
    between: Between

    def receive(self, batch: FrameBatch, now: int) -> None:
        frames = [each for place in range(len(batch)) for each in self.between(batch.frame(place), False)]
        self.node.receive(FrameBatch.from_frames(frames), now)

    def transmit(self, now: int) -> FrameBatch:
        batch = self.node.transmit(now)
        return FrameBatch.from_frames(
            [each for place in range(len(batch)) for each in self.between(batch.frame(place), True)]
        )

    def deadline(self) -> int | None:
        return self.node.deadline()


def live_node(chosen: ReplayScript, profile: Profile = OPEN_MX_1_5_AS_FOUND) -> Node:
    """A host that knows us."""
    peers = {OURS: "alpha:0"}
    return Node(THEIRS, "beta", dialect=chosen.dialect, profile=profile, rng=Random(2), peers=peers)


def played(
    chosen: ReplayScript,
    node: Node,
    between: Between | None = None,
    seed: int = 1,
    timeout: int | None = None,
    **rest: Any,
) -> ReplayActor:
    """The played host after all is over, against a node that does what the recorded host did."""
    if timeout is not None:
        rest["timeout"] = timeout
    actor = ReplayActor(chosen, OURS, THEIRS, rng=Random(seed), **rest)
    application = RecordedApplication(node, chosen, OURS)
    met: Any = node if between is None else Network(node, between)
    watch = RuleWatch(chosen.dialect, THEIRS)
    play_simulated(actor, met, application, watch.see)
    actor.findings += watch.findings
    return actor
