"""Messages taken as rows: the same lines and JSON as one by one, in the same order."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis.conversations import Follower, message_rows
from mxwire.analysis.conversations.message import CapturedMessage, MessageSorter
from mxwire.analysis.conversations.message_rows import GroupSorter, MessageGroup
from mxwire.analysis.message_counter import MessageCounter, size_class
from mxwire.report.message_rows import FlowTexts, row_json, row_lines
from mxwire.report.messages import message_json, message_layout
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import MXOE
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture
from tests.analysis.conversations.test_plain_runs import ALWAYS, bounds, cut, small_bounds, traffic

WIDTHS = None, 80
FILES = None, "100%s é.pcap"


@pytest.fixture(scope="module", autouse=True)
def _small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_rows, "PART", 50)
        yield


def messages_of(batches: list[DecodedBatch]) -> list[CapturedMessage]:
    follower, sorter = Follower(), MessageSorter()
    messages = []
    for each in batches:
        messages += sorter.put(follower.observe(each))
    return [*messages, *sorter.put(follower.finish()), *sorter.rest()]


def one_by_one(messages: list[CapturedMessage], start_ns: int) -> list[list[str]]:
    lines = [["\n".join(message_layout(width).lines(each, start_ns, width)) for each in messages] for width in WIDTHS]
    return lines + [[message_json(each, {}, start_ns, file=file) for each in messages] for file in FILES]


def by_rows(batches: list[DecodedBatch], start_ns: int) -> tuple[list[list[str]], int]:
    follower, none = Follower(rows=True), np.zeros(0, message_rows.ROW)
    sorter, groups = GroupSorter(none), []
    for each in batches:
        completed = follower.observe(each)
        groups += sorter.put([*follower.take_rows(), MessageGroup(none, messages=completed)]).parts()
    rest = follower.finish()
    groups += sorter.put([*follower.take_rows(), MessageGroup(none, messages=rest)], all_left=True).parts()
    assert all(0 < len(each) <= message_rows.PART for each in groups)
    found: list[list[str]] = []
    for width in WIDTHS:
        layout, texts, flow_texts = message_layout(width), [], FlowTexts()
        for each in groups:
            objects = ["\n".join(layout.lines(message, start_ns, width)) for message in each.messages]
            rows = [row.decode() for row in row_lines(each, layout, start_ns, width, None, flow_texts)]
            texts += each.merged(rows, objects)
        found.append(texts)
    for file in FILES:
        texts, flow_texts = [], FlowTexts()
        for each in groups:
            objects = [message_json(message, {}, start_ns, file=file) for message in each.messages]
            texts += each.merged(row_json(each, {}, start_ns, file, flow_texts), objects)
        found.append(texts)
    return found, sum(len(each.rows) for each in groups)


def compare(batches: list[DecodedBatch]) -> int:
    start_ns = int(batches[0].batch.timestamp_ns[0])
    found, rows = by_rows(batches, start_ns)
    messages = messages_of(batches)
    assert found == one_by_one(messages, start_ns)
    counter, counted, octets, repeated = MessageCounter(), Counter[Any](), Counter[Any](), Counter[str]()
    for each in batches:
        counter.observe(each)
    counter.finish()
    for message in messages:
        repeated[message.kind.lower()] += message.repeated_frames
        if message.length is not None:
            known = message.kind.lower(), size_class(message.length)
            counted[known] += 1
            octets[known] += message.length
    assert (counter.messages, counter.bytes, counter.repeated) == (counted, octets, repeated)
    return rows


@pytest.mark.parametrize("capture", CAPTURES)
def test_messages_of_a_capture_are_the_same(capture):
    with bounds(**ALWAYS):
        compare(cut(decoded([read_capture(capture)], dialect_of(capture)), Random(capture)))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from((0, 0.01, 0.1)), small_bounds)
def test_messages_of_generated_traffic_are_the_same(seed, faults, limits):
    """With small bounds, so that messages are reported early, and found again by late frames."""
    random = Random(seed)
    batches = decoded([traffic(random, 400, faults)], MXOE)
    room, entries = limits["LINGERING"] // 4, limits["OUTSTANDING_MAXIMUM"] + limits["KEPT_BEHIND"]
    with bounds(**ALWAYS), bounds(**limits, ROOM=room, ENTRIES=entries):
        compare(cut(batches, random))
        compare(batches)


def test_most_messages_of_ordinary_traffic_are_rows():
    batches = decoded([traffic(Random(1), 3000, 0)], MXOE)
    with bounds(**ALWAYS), bounds(LINGERING=60, ROOM=15):
        assert compare(batches) > 1000
