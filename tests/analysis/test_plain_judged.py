"""Runs of plain frames judged by columns: the same findings, and the same memory, as if they were judged one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis import plain_frames, verification
from mxwire.analysis.verification import Verification
from mxwire.frames import FrameBatch
from mxwire.rules import CAPTURE, Vantage, plain_run
from mxwire.rules.state import streams
from mxwire.simulation import Simulation, draw_scenario
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import MXOE
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture
from tests.analysis.conversations.test_plain_runs import cut, state_of, traffic
from tests.analysis.test_reply_runs import VANTAGES
from tests.rules.testbed import Testbed

WINDOWS = {"LEAST_PLAIN": 16, "SKIPPED": 1, "MOST_SKIPPED": 2}


def judged(batches: Sequence[DecodedBatch], vantage: Vantage, shortest: int) -> tuple[object, ...]:
    """All findings and all state of ``verify``, with runs of at least ``shortest`` frames; and the number taken."""
    made, taken = Verification(vantage), []
    original = verification.take_plain
    with ExitStack() as stack:
        for name, value in WINDOWS.items():
            stack.enter_context(patch.object(verification, name, value))
        for module in (verification, plain_frames):
            stack.enter_context(patch.object(module, "SHORTEST", shortest))
        counted = stack.enter_context(patch.object(verification, "take_plain"))
        counted.side_effect = lambda *a, **b: (found := original(*a, **b), taken.append(int(found.sum())))[0]
        findings = [str(each) for batch in batches for each in made.observe(batch)]
    hosts = {each.address: (each.frames, each.findings) for each in made.hosts.values()}
    judge = made._judge
    for flow in (flow for pair in judge._pairs.values() for flow in pair.flows.values()):
        for stream in (flow.stream, flow.former):
            if stream is not None:
                stream.unpack()
                stream.messages = dict(sorted(stream.messages.items()))
    return (findings, hosts, made.frames, state_of(judge._hosts, judge._pairs)), sum(taken)


def alike(batches: Sequence[DecodedBatch], vantage: Vantage = CAPTURE) -> int:
    """Check that both ways agree; return the number of frames taken by columns."""
    expected, none = judged(batches, vantage, 1 << 60)
    found, taken = judged(batches, vantage, 1)
    assert not none
    assert found == expected
    return taken


@pytest.mark.parametrize("vantage", VANTAGES, ids=("capture", "from start", "lossy"))
@pytest.mark.parametrize("capture", CAPTURES)
def test_a_capture_is_judged_as_frame_by_frame(capture, vantage):
    alike(cut(decoded([read_capture(capture)], dialect_of(capture)), Random(capture)), vantage)


@pytest.mark.parametrize("seed", range(8))
def test_a_simulated_run_is_judged_as_frame_by_frame(seed):
    """Lost, repeated and reordered frames, partners that die and restart; captured in several places."""
    simulation = Simulation(replace(draw_scenario(seed), judged=False))
    recorded: dict[int | None, list[FrameBatch]] = {at: [] for at in (None, 0, 1)}
    simulation.world.taps.update({at: batches.append for at, batches in recorded.items()})
    simulation.run()
    for batches in recorded.values():
        for vantage in VANTAGES[:2]:
            alike([*Decoder().decode_all(batches)], vantage)


small_bounds = st.fixed_dictionaries(
    {
        "KEPT_BEHIND": st.sampled_from((3, 10, 64)),
        "KEPT_FLOWS": st.sampled_from((2, 1024)),
        "OUTSTANDING_MAXIMUM": st.sampled_from((15, 40, 8191)),
    }
)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from((0, 0.01, 0.1)), small_bounds)
def test_generated_traffic_is_judged_as_frame_by_frame(seed, faults, limits):
    """With small bounds, so that messages are forgotten in a short capture."""
    random = Random(seed)
    batches = decoded([traffic(random, 400, faults)], MXOE)
    with ExitStack() as stack:
        for name, value in limits.items():
            for module in (each for each in (streams, plain_run) if hasattr(each, name)):
                stack.enter_context(patch.object(module, name, value))
        kept = limits["OUTSTANDING_MAXIMUM"] - limits["KEPT_BEHIND"]
        stack.enter_context(patch.object(plain_run, "MOST_OUTSTANDING", kept))
        taken = alike(cut(batches, random))
        alike(batches)
    assert taken or faults


def test_frames_of_an_ordinary_conversation_are_judged_by_columns():
    on = Testbed().connect()
    for position in range(1, 300):
        on.send(on.a.tiny(lib_seqnum=position), on.b.tiny(lib_seqnum=position, lib_piggyack=position + 1))
    batch = FrameBatch.from_frames([raw for _, raw in on.sent], [time for time, _ in on.sent])
    for vantage in VANTAGES:
        assert alike([*Decoder().decode_all([batch])], vantage) > 500


@pytest.mark.parametrize(
    ("field", "value", "rules"),
    [
        ("lib_seqnum", 300, set()),
        ("lib_seqnum", 0x40C8, {"R-SEQ-03"}),
        ("lib_piggyack", 301, {"R-ACK-01"}),
        ("lib_piggyack", 0x40C8, set()),
        ("session", 0x77777777, {"R-EP-02"}),
        ("session", 0xFFFFFFFF, {"R-EP-02"}),
        ("dst_src_peer_index", 99, {"W-5"}),
        ("src_endpoint", 9, set()),
    ],
)
def test_one_wrong_field_is_found_in_a_run(field, value, rules):
    on = Testbed().connect()
    for position in range(1, 300):
        fields = {field: value} if position == 200 else {}
        on.send(on.a.tiny(**{"lib_seqnum": position, "lib_piggyack": position} | fields))
        on.send(on.b.tiny(lib_seqnum=position, lib_piggyack=position + 1))
    batch = FrameBatch.from_frames([raw for _, raw in on.sent], [time for time, _ in on.sent])
    batches = [*Decoder().decode_all([batch])]
    for vantage in VANTAGES:
        assert alike(batches, vantage) > 300
    assert {each.rule for each in Verification().observe(batches[0])} == rules


def test_a_stream_may_begin_in_a_run():
    """With the number that its receiver requested, and acks before the first message of the other direction."""
    on = Testbed().connect()
    connects = len(on.sent)
    on.send(on.a.tiny(lib_seqnum=1), on.a.tiny(lib_seqnum=2), on.b.liback(liback_lib_seqnum=2, liback_send_seq=2))
    for position in range(1, 100):
        on.send(on.b.tiny(lib_seqnum=position, lib_piggyack=3))
    batch = FrameBatch.from_frames([raw for _, raw in on.sent], [time for time, _ in on.sent])
    batches = [batch.part(0, connects), batch.part(connects, len(batch))]
    assert alike([*Decoder().decode_all(batches)]) == len(batch) - connects


def test_duplicates_are_judged_by_columns():
    """Of messages and libacks, of the same run and of the one before; a retransmission is left to the judge."""
    on = Testbed().connect()
    for position in range(1, 600):
        frames = [
            on.a.tiny(lib_seqnum=position, lib_piggyack=position),
            on.b.liback(liback_lib_seqnum=position + 1, liback_send_seq=position + 1),
        ]
        frames.append(on.b.tiny(lib_seqnum=position, lib_piggyack=position + 1))
        for each in frames:
            on.send(*[each] * (2 if position % 10 == 0 else 1), after_ms=0.01)
    batch = FrameBatch.from_frames([raw for _, raw in on.sent], [time for time, _ in on.sent])
    (decoded_batch,) = Decoder().decode_all([batch])
    for vantage in VANTAGES[:2]:
        assert alike([decoded_batch], vantage) > 1900
        assert alike(cut([decoded_batch], Random(1)), vantage) > 1000
