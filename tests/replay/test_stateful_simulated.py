"""Conversations of simulated hosts in bad networks, recorded and then played by each of them: nothing differs."""

from __future__ import annotations

from collections import Counter

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.replay.stateful.comparison import Cause
from mxwire.replay.stateful.conversation import EndpointPair
from mxwire.replay.stateful.script import ReplayScript, script_of
from mxwire.simulation import Scenario, Simulation
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.numbers import RESEND_DELAY
from tests.replay.testbed import live_node, played

HOSTS = (bytes.fromhex("020000000000"), bytes.fromhex("020000000100"))
SCENARIOS = (
    Scenario(1, messages=60),
    Scenario(2, messages=60, dialect=omx(9000)),
    Scenario(3, messages=60, loss=0.03),
    Scenario(4, messages=60, dialect=omx(1500), duplicate=0.05),
    Scenario(5, messages=120, workload="stream", largest=100_000),
    Scenario(6, messages=120, workload="ping-pong", largest=4096, loss=0.02),
)


def recorded(scenario: Scenario, host: bytes) -> ReplayScript:
    kept: list[bytes] = []
    times: list[int] = []

    def tap(batch: FrameBatch) -> None:
        kept.extend(batch.frame(place) for place in range(len(batch)))
        times.extend(batch.timestamp_ns.tolist())

    Simulation(scenario, tap=tap).run()
    decoded = Decoder(scenario.dialect).decode(FrameBatch.from_frames(kept, times))
    return script_of([decoded], "simulated", host, dialect=scenario.dialect)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: f"seed {each.seed}")
@pytest.mark.parametrize("host", HOSTS, ids=["first", "second"])
def test_simulated_hosts_can_be_played(scenario: Scenario, host: bytes) -> None:
    chosen = recorded(scenario, host)
    actor = played(chosen, live_node(chosen, OPEN_MX_1_5))
    own = [each for each in actor.findings if each.kind is not Cause.APPLICATION]
    assert not own and not actor.failure, Counter(map(str, own))
    missing = [each for each in actor.expectations.all.values() if not each.met and not each.again]
    assert not missing and actor.played > 50


def test_unrecorded_hosts_are_not_there() -> None:
    with pytest.raises(MxwireError, match="no frame of"):
        recorded(Scenario(1, messages=3, dialect=MXOE), b"nobody")


def test_the_next_retransmission_is_that_of_the_message_which_waits_longest() -> None:
    """And not always that of the first unacked message, which may have been retransmitted."""
    pair = EndpointPair(0, 1)
    pair.note_sent(1, 1, b"one", 0)
    pair.note_sent(2, 2, b"two", 100)
    assert pair.due(RESEND_DELAY) == [b"one"]
    assert min(pair.deadlines()) == 100 + RESEND_DELAY
    assert pair.due(100 + RESEND_DELAY) == [b"two"]
