"""The sink: every frame is counted once, in its run, and every changed byte is noticed."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mxwire.capture import open_capture
from mxwire.frames import FrameBatch
from mxwire.linerate.sink import CheckLevel, FrameSink
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import KINDS, STAMP, captured_templates, header_of, template_of, templates_of
from tests.cli.support import CAPTURES

from .frames import HERE, THERE, frames_of, in_slots, received


def run_of(sink: FrameSink, run: int = 0):
    return sink.runs[THERE, run]


@pytest.mark.parametrize("kind", [*KINDS, "mix"])
@pytest.mark.parametrize("streams", [1, 5])
@pytest.mark.parametrize("level", CheckLevel)
def test_an_undisturbed_run_is_complete(kind, streams, level):
    frames = frames_of(FrameSlots(templates_of(kind, HERE, THERE), streams=streams, run=9), 500, 400)
    sink = FrameSink(level)
    for first in range(0, 500, 37):
        sink.take(in_slots(frames[first : first + 37], 5120))
    run = run_of(sink, 9)
    counts = run.counts()
    assert (counts.received, counts.lost, counts.duplicates, counts.reordered, run.altered) == (500, 0, 0, 0, 0)
    assert run.bytes == sum(map(len, frames))
    assert (run.latency.minimum_ns, run.latency.count) == (600, 500)
    assert sink.foreign == 0


@pytest.mark.parametrize("kind", [*KINDS])
@settings(max_examples=60)
@given(data=st.data())
def test_every_changed_byte_is_noticed(kind, data):
    """In a frame in the middle of a uniform batch; the same frames in a batch of their own."""
    template = template_of(kind, HERE, THERE)
    frames = frames_of(FrameSlots([template]), 60)
    header = [each for each in range(12, header_of(kind)) if template.mask[each]]
    patched = [each for each in range(header_of(kind)) if not template.mask[each]]
    payload = list(range(header_of(kind), template.stamp_at))
    at = data.draw(st.sampled_from([*header[5:], *patched, *payload[:1], *payload[-1:]]))
    changed = bytearray(frames[40])
    changed[at] ^= data.draw(st.integers(1, 255))
    frames[40] = bytes(changed)
    for uniform in (True, False):
        sink = FrameSink(CheckLevel.ALL)
        sink.take(in_slots(frames[:20], 5120))
        sink.take(in_slots(frames[20:], 5120) if uniform else received(frames[20:]))
        assert (run_of(sink).altered, run_of(sink).counts().received) == (1, 60)


def test_each_level_checks_its_parts_of_a_frame():
    template = template_of("MEDIUM", HERE, THERE)
    frames = frames_of(FrameSlots([template]), 30)
    body, head = bytearray(frames[20]), bytearray(frames[21])
    body[1000] ^= 1
    head[30] ^= 1
    frames[20:22] = [bytes(body), bytes(head)]
    for level, altered in ((CheckLevel.STAMP, 0), (CheckLevel.HEADER, 1), (CheckLevel.ALL, 2)):
        sink = FrameSink(level)
        sink.take(received(frames[:10]))
        sink.take(received(frames[10:]))
        assert run_of(sink).altered == altered


def test_losses_duplicates_and_reordering_are_counted():
    frames = frames_of(FrameSlots(templates_of("TINY", HERE, THERE)), 100)
    order = [*range(10), *range(12, 30), 10, 5, *range(30, 100)]
    sink = FrameSink()
    sink.take(received([frames[each] for each in order]))
    counts = run_of(sink).counts()
    assert (counts.lost, counts.duplicates, counts.reordered, counts.depth) == (1, 1, 1, 19)


def test_the_end_of_a_run_is_part_of_its_loss():
    frames = frames_of(FrameSlots(templates_of("TINY", HERE, THERE)), 100)
    sink = FrameSink()
    sink.take(received(frames[:90]))
    run = run_of(sink)
    assert run.counts().lost == 0
    run.sent = 100
    assert run.counts().lost == 10


def test_runs_and_sources_are_counted_apart():
    other = bytes.fromhex("020000000003")
    sink = FrameSink()
    batches = [
        frames_of(FrameSlots([template_of("PULL_REPLY", HERE, source)], run=run), 50)
        for source, run in ((THERE, 1), (THERE, 2), (other, 1))
    ]
    sink.take(received([frame for three in zip(*batches, strict=True) for frame in three]))
    assert {key: run.counts().received for key, run in sink.runs.items()} == {
        (THERE, 1): 50,
        (THERE, 2): 50,
        (other, 1): 50,
    }
    assert not any(run.counts().lost for run in sink.runs.values())


def test_frames_of_a_capture_are_checked_by_their_format():
    with open_capture(CAPTURES / "mxoe-every-type.pcap") as reader:
        templates = captured_templates(reader, HERE, THERE)
    frames = frames_of(FrameSlots(templates), 3 * len(templates))
    sink = FrameSink(CheckLevel.ALL)
    sink.take(received(frames))
    assert run_of(sink).counts().received == len(frames)
    assert (run_of(sink).altered, sink.foreign) == (0, 0)


@settings(max_examples=300)
@example([(bytes(16) + b"\x03" + bytes(23), True)])  # a HOST_QUERY, except for its EtherType
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=120), st.booleans()), min_size=1, max_size=20))
def test_hostile_frames_are_counted_and_change_no_run(frames):
    good = frames_of(FrameSlots(templates_of("TINY", HERE, THERE)), 40)
    sink = FrameSink(CheckLevel.ALL, others=lambda _: None)
    sink.take(received(good[:20]))
    stamp = bytes.fromhex("6c72") + b"\xff" * (STAMP.itemsize - 2)
    sink.take(received([data + stamp * stamped for data, stamped in frames]))
    sink.take(received(good[20:]))
    assert (run_of(sink).counts().received, run_of(sink).counts().lost) == (40, 0)


def test_the_number_of_runs_is_bounded():
    sink = FrameSink()
    for number in range(100):
        source = number.to_bytes(6, "big")
        sink.take(received(frames_of(FrameSlots([template_of("TINY", HERE, source)]), 1)))
    assert len(sink.runs) == 64
    assert sink.foreign == 36
    assert not len(sink.runs) < 64


def test_an_empty_batch_changes_nothing():
    sink = FrameSink()
    sink.take(FrameBatch.from_frames([]))
    assert not sink.runs
