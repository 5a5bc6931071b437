"""Messages of simulated networks, with faults, restarts and silences: the simulation knows what was sent and taken."""

from __future__ import annotations

from collections import Counter

import pytest

from mxwire.analysis.conversations import CapturedMessage, Follower
from mxwire.simulation import Scenario, Simulation, draw_scenario
from mxwire.simulation.workload import PlannedMessage as Planned
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import dialect_by_name
from tests.analysis.conversations.support import extracted

SEEDS = 45
CHUNK = 15


def watched(scenario: Scenario) -> tuple[Simulation, Follower, list[CapturedMessage], list[DecodedBatch]]:
    """A run, and what its frames say, each as its host sent it."""
    decoder, follower = Decoder(scenario.dialect), Follower()
    messages: list[CapturedMessage] = []
    batches: list[DecodedBatch] = []

    def tap(batch):
        decoded = decoder.decode(batch)
        batches.append(decoded)
        messages.extend(follower.observe(decoded))

    simulation = Simulation(scenario, tap)
    simulation.run()
    messages += follower.finish()
    return simulation, follower, messages, batches


def problems(scenario: Scenario) -> list[str]:
    """Differences between the analysis and the simulation."""
    simulation, follower, messages, _ = watched(scenario)
    planned = {each.match_info: each for each in simulation.world.ledger.messages}
    times = Counter(each.match for each in messages)
    found = [f"message with match {match} seen {count} times" for match, count in times.items() if count > 1]
    if follower.evicted or follower.malformed:
        found.append(f"evicted {follower.evicted}, malformed {follower.malformed}")
    for each in messages:
        known = planned.get(each.match)
        if known is None or known.posted_at is None or known.length != each.length:
            found.append(f"{each.number}: nobody sent {each.kind} {each.length} {each.match}")
            continue
        found += (f"{each.number} ({scenario.seed}): {text}" for text in disagreements(each, known))
    return found


def disagreements(message: CapturedMessage, known: Planned) -> list[str]:
    found = []
    # A host that restarts before it acknowledges leaves no trace on the wire of the messages that it had.
    silent = message.abandoned_ns is not None and message.receiver == "unknown"
    if known.delivered and not known.excuse and not silent and message.receiver not in ("received", "truncated"):
        found.append(f"was delivered, but the receiver knows: {message.receiver}")
    if message.receiver == "received" and not known.delivered and not known.excuse and message.kind == "RNDV":
        found.append("was not delivered, but said to be received")
    if known.taken is not None and message.receiver in ("received", "truncated") and message.pull is not None:
        notice = message.pull.notice
        taken = min(known.taken[1], known.length)
        if notice is not None and notice.total_length != taken:
            found.append(f"{taken} bytes taken, but {notice.total_length} told")
    return found


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_message_is_found_once_and_ends_as_it_did(first):
    """Loss, copies, reordering, restarts, power failures, partitions: drawn by the seed."""
    found = [text for seed in range(first, first + CHUNK) for text in problems(draw_scenario(seed))]
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize("dialect", ["mxoe", "omx"])
def test_payloads_survive_loss_copies_and_reordering(dialect):
    scenario = Scenario(
        seed=4, messages=40, dialect=dialect_by_name(dialect), loss=0.03, duplicate=0.03, reorder=0.05, largest=200_000
    )
    simulation, _, messages, batches = watched(scenario)
    planned = {each.match_info: each for each in simulation.world.ledger.messages}
    whole = [each for each in messages if each.receiver == "received"]
    assert len(whole) >= 20
    for each in whole:
        data, content, _ = extracted(batches, each.number)
        assert not content.gaps(each.length)
        assert data == simulation.world.ledger.data_of(planned[each.match])
