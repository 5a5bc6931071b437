"""Runs of plain frames judged by columns: the same findings, and the same memory, as if they were judged one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any
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
from mxwire.wire.codec import build
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import ConnectReply, ConnectRequest, Tiny
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture
from tests.analysis.conversations.test_plain_runs import cut, state_of, traffic
from tests.analysis.test_reply_runs import VANTAGES
from tests.rules.testbed import Testbed

WINDOWS = {"LEAST_PLAIN": 16, "MOST_PLAIN": 64, "SKIPPED": 1, "MOST_SKIPPED": 2}


def judged(batches: Sequence[DecodedBatch], vantage: Vantage, shortest: int) -> tuple[object, ...]:
    """All findings and all state of ``verify``, with runs of at least ``shortest`` frames; and the number taken."""
    taken: list[int] = []
    original = plain_run.FlowTable.take
    with ExitStack() as stack:
        for name, value in WINDOWS.items():
            stack.enter_context(patch.object(verification, name, value))
        for module in (verification, plain_frames):
            stack.enter_context(patch.object(module, "SHORTEST", shortest))
        counted = stack.enter_context(patch.object(plain_run.FlowTable, "take", autospec=True))
        counted.side_effect = lambda *a, **b: (found := original(*a, **b), taken.append(int(found.sum())))[0]
        made = Verification(vantage)
        findings = [str(each) for batch in batches for each in made.observe(batch)]
        assert all(len(each.args[1]) <= WINDOWS["MOST_PLAIN"] for each in counted.call_args_list)
    hosts = {each.address: (each.frames, each.findings) for each in made.hosts.values()}
    made._table.release_all()
    judge = made._judge
    for flow in (flow for pair in judge._pairs.values() for flow in pair.flows.values()):
        for stream in (flow.stream, flow.former):
            if stream is not None:
                stream.unpack()
                stream.messages = dict(sorted(stream.messages.items()))
    return (
        findings,
        hosts,
        made.frames,
        state_of(*(dict(sorted(each.items())) for each in (judge._hosts, judge._pairs))),
    ), sum(taken)


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


HANDSHAKES = {
    "one after the other": ((0, 0), (1, 1), (1, 0), (0, 1)),
    "both at once": ((0, 0), (1, 0), (1, 1), (0, 1)),
    "answered in turn": ((1, 0), (0, 0), (1, 1), (0, 1)),
    "a reply before its request": ((1, 1), (0, 0), (1, 0), (0, 1)),
    "one request twice": ((0, 0), (0, 0), (1, 1), (1, 0), (0, 1)),
    "only one": ((0, 0), (1, 1)),
}
"""Frames by their sender, and 1 if they are replies."""
OTHER_VALUES: dict[str, tuple[Any, ...]] = {
    "dst_src_peer_index": (1, 7, 0xFFFF),
    "src_dst_peer_index": (1, 7),
    "src_session_id": (0x11111111, 0x22222222, 0xFFFFFFFF),
    "target_session_id": (0x11111111, 0x22222222, 0xFFFFFFFF),
    "target_recv_seqnum_start": (1, 2, 0x4001, 0x3FFF),
    "connect_seqnum": (0, 1, 5),
    "connect_status_code": (0, 11, 3),
    "lib_seqnum": (0, 1),
    "length": (16, 17),
    "src_endpoint": (1, 2, 3),
    "dst_endpoint": (1, 2, 3),
    "app_key": (0, 0x12345678),
    "dst_mac": (bytes.fromhex("0060dd470001"), bytes.fromhex("0060dd470003"), bytes.fromhex("ffffffffffff")),
}


def conversations(random: Random, pairs: int, damaged: float) -> FrameBatch:
    """Conversations of pairs of hosts, which connect in several ways and then exchange messages, some of their frames
    with another value in a field."""
    made = []
    for first in range(0, 2 * pairs, 2):
        hosts = [bytes.fromhex(f"0060dd47{first + number:04x}") for number in range(2)]
        frames: list[Any] = []
        for sender, is_reply in HANDSHAKES[random.choice([*HANDSHAKES] if damaged else [*HANDSHAKES][:3])]:
            fields = {"src_dst_peer_index": 1, "target_recv_seqnum_start": 1, "connect_seqnum": 0}
            own, other = ((0x11111111, 0x22222222), (0x22222222, 0x11111111))[sender]
            if is_reply:
                fields |= {"src_session_id": other, "target_session_id": own, "connect_status_code": 0}
            else:
                fields |= {"src_session_id": own, "app_key": 1}
            frames.append((ConnectReply if is_reply else ConnectRequest, sender, fields))
        for position in range(1, random.randrange(2, 30)):
            for sender in (0, 1):
                session = (0x22222222, 0x11111111)[sender]
                fields = {"session": session, "lib_seqnum": position, "lib_piggyack": position + sender}
                data = random.randbytes(random.choice((0, 8, 24, 25, 32)))
                fields |= {"match_a": 0, "match_b": position, "length": len(data)}
                frames.append((Tiny, sender, {**fields, "data": data}))
        built = []
        for kind, sender, fields in frames:
            ends = {"dst_mac": hosts[1 - sender], "src_mac": hosts[sender], "dst_src_peer_index": 1}
            fields = {**ends, "src_endpoint": 1 + sender, "dst_endpoint": 2 - sender, **fields}
            changed = random.choice([*OTHER_VALUES])
            if changed in fields and random.random() < damaged:
                fields[changed] = random.choice(OTHER_VALUES[changed])
            built.append(build(kind(**fields), MXOE))
        made.append(built)
    raws = []
    while made := [each for each in made if each]:
        one = random.choice(made) if random.random() < 0.5 else made[0]
        raws += [one.pop(0) for _ in range(min(len(one), random.randrange(1, 6)))]
    return FrameBatch.from_frames(raws, [10_000 * each for each in range(len(raws))])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from((0, 0.02, 0.3)), st.sampled_from((2, 6, 1024)))
def test_handshakes_of_many_hosts_are_judged_as_frame_by_frame(seed, damaged, kept):
    random = Random(seed)
    batches = decoded([conversations(random, 12, damaged)], MXOE)
    with patch.object(streams, "KEPT_FLOWS", kept):
        alike(cut(batches, random))
        alike(batches)


@pytest.mark.parametrize("frames", [*HANDSHAKES.values()][:3], ids=[*HANDSHAKES][:3])
def test_an_ordinary_handshake_creates_no_objects(frames):
    """Until a frame is judged singly."""
    random = Random(1)
    with patch.dict(HANDSHAKES, dict.fromkeys(HANDSHAKES, frames)):
        batches = decoded([conversations(random, 20, 0)], MXOE)
    made = Verification()
    with ExitStack() as stack:
        for module in (verification, plain_frames):
            stack.enter_context(patch.object(module, "SHORTEST", 1))
        assert not [*made.observe(batches[0])]
    known = set(made._judge._hosts)
    made._table.release_all()
    assert len(known) < len(made._judge._hosts) == 40
