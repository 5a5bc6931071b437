"""Whatever is in a capture: no exception, bounded memory, and a word on what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from mxwire.analysis.diagnosis import Examination
from mxwire.frames import LINKTYPE_LINUX_SLL, FrameBatch
from mxwire.wire.decoder import Decoder
from tests.analysis.test_hostile_traffic import crowd
from tests.wire.mutation import mutated, scattered
from tests.wire.support import read_capture

from .plays import SHOWS
from .scene import diagnosed, examine, ids

MOST = 1 << 17
"""Entries that anything may remember of a capture, at most."""
_OTHERS = ("follower", "decoder", "_senders")
"""Bounded elsewhere, and tested there."""


def timed(batch: FrameBatch, random: Random, span_ns: int) -> FrameBatch:
    """The same frames at random times, not in order."""
    times = np.array([random.randrange(span_ns) for _ in range(len(batch))], np.int64)
    return replace(batch, timestamp_ns=times)


@pytest.mark.parametrize("seed", range(6))
def test_spoilt_frames_are_survived(seed):
    random = Random(seed)
    batches = [
        timed(scattered([mutated(random) for _ in range(150)], random), random, 10 ** random.randrange(1, 13))
        for _ in range(6)
    ]
    examination = examine(*batches)
    assert examination.findings() == examination.findings(), "findings change what they look at"
    assert any("malformed" in each for each in examination.limits())


@pytest.mark.parametrize("seed", range(3))
def test_damaged_captures_are_survived(seed):
    random = Random(seed)
    for capture in ("mxoe-every-type", "omx9000-resends-exhausted", "mxoe-lossy-1M", "mxoe-nack-lib"):
        batch = read_capture(capture)
        buffer = batch.buffer.copy()
        for _ in range(len(batch)):
            place = random.randrange(len(batch))
            buffer[int(batch.offset[place]) + random.randrange(14, 60)] = random.randrange(256)
        examination = examine(replace(batch, buffer=buffer))
        for found in examination.findings():
            assert found.evidence and found.summary


def sizes(thing: Any, name: str, depth: int = 0) -> Iterator[tuple[str, int]]:
    """The number of entries of each store, by its place."""
    if isinstance(thing, (str, bytes, np.ndarray)):
        return
    if isinstance(thing, Sized) and not hasattr(thing, "layout"):
        yield name, len(thing)
    attributes = getattr(thing, "__dict__", {})
    if depth < 2:
        for each, value in attributes.items():
            yield from sizes(value, f"{name}.{each}", depth + 1)


def test_memory_is_bounded_in_a_crowd():
    examination = examine(crowd(18_000, 1), crowd(18_000, 2))
    remembered = [
        each for part in (examination.facts, *examination._examiners) for each in sizes(part, type(part).__name__)
    ]
    assert len(remembered) > 40
    assert not [each for each in remembered if each[1] > MOST]
    assert max(size for name, size in remembered if not any(each in name for each in _OTHERS)) <= 1 << 15
    assert any("some were not followed" in each for each in examination.limits())


def test_other_protocols_are_not_taken_for_mxoe():
    generator = np.random.default_rng(3)
    frames = generator.integers(0, 256, (6000, 80), np.uint8)
    frames[:, 12:14] = generator.choice([[8, 0], [0x86, 0xDD], [8, 6], [0x88, 0xCC]], 6000)
    batch = FrameBatch.from_frames([each.tobytes() for each in frames], list(range(6000)))
    examination = examine(batch)
    assert examination.findings() == []
    assert "no frame of MXoE (EtherType 0x86df) among 6000 frames of other protocols" in examination.limits()[0]


def test_a_cooked_capture_reports_the_missing_judgements():
    scene = SHOWS["dialect-mismatch"].scene()
    cooked = [b"\0\0\0\1\0\6" + raw[6:12] + b"\0\0" + raw[12:] for raw in scene.frames]
    examination = examine(FrameBatch.from_frames(cooked, scene.times, link_type=LINKTYPE_LINUX_SLL))
    assert not ids(examination.findings()) - {"receiver-not-progressing", "frames-lost"}
    assert any("lacks the destinations of frames" in each for each in examination.limits())


def test_disorder_and_clock_jumps_of_a_capture_are_reported():
    batch = SHOWS["wrong-key"].scene().batch()
    assert any(
        "1 frame behind later ones in the file" in each for each in examine(batch.select(np.array([1, 0]))).limits()
    )
    exchange = SHOWS["capture-incomplete"].scene()
    late = replace(exchange.batch(), timestamp_ns=np.array(exchange.times) + 10**9 * (np.arange(25) % 2 == 0))
    order = np.argsort(late.timestamp_ns, kind="stable")
    assert any("the times are those of two clocks" in each for each in examine(late.select(order)).limits())


def test_an_empty_capture_is_reported():
    examination = examine()
    assert examination.findings() == [] and examination.limits() == [
        "the capture has no frames: nothing could be judged"
    ]


def test_findings_can_be_listed_at_any_time():
    decoder = Decoder()
    examination = Examination(decoder)
    batch = SHOWS["mtu-too-small"].scene().batch()
    seen: list[set[str]] = []
    for at in range(len(batch)):
        one = batch.select(np.array([at]))
        for decoded in decoder.decode_all(examination.watch([one]), 0):
            examination.observe(decoded)
        examination.wait_until(int(batch.timestamp_ns[at]))
        seen.append(ids(examination.findings()))
    examination.finish()
    assert ids(examination.findings()) == {"mtu-too-small"}
    assert all(each <= {"mtu-too-small"} for each in seen)


def test_frames_dropped_by_the_capture_are_reported():
    batch = SHOWS["wrong-key"].scene().batch()
    assert ids(examine(batch, lose=7).findings()) == {"wrong-key", "capture-incomplete"}
    assert ids(diagnosed(batch)) == {"wrong-key"}
