"""Time-sequence graphs, against the messages of the follower and the frames of the captures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.analysis.conversations import CapturedMessage, Follower
from mxwire.analysis.time_sequence import KINDS, POINT, FrameTrace, thin
from tests.analysis.conversations.support import CAPTURES, decoded, dialect_of, read_capture, split


def traced(capture: str, size: int | None = None, **options: int) -> tuple[FrameTrace, list[CapturedMessage]]:
    follower, trace, messages = Follower(marks=True), FrameTrace(**options), []
    batch = read_capture(capture)
    for each in decoded([batch] if size is None else split(batch, size), dialect_of(capture)):
        done = follower.observe(each)
        trace.observe(each, follower.take_marks(each))
        trace.take(done)
        messages += done
    rest = follower.finish()
    trace.take(rest)
    return trace, messages + rest


def of_kind(graph, *names: str):
    return graph.points[np.isin(graph.points["kind"], [KINDS.index(each) for each in names])]


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_graph_of_each_message_has_its_frames_and_bytes(capture):
    trace, messages = traced(capture)
    for message in messages:
        graph = trace.of_message(message.number, most=10**9)
        assert graph.messages == (message.number,) and graph.length == (message.length or 0) and not graph.omitted
        pull = message.pull
        if pull is not None:
            assert len(of_kind(graph, "request")) == pull.pulls - pull.re_requests - pull.duplicate_pulls
            assert len(of_kind(graph, "re-request")) == pull.re_requests + pull.duplicate_pulls
            covered: set[int] = set()
            for point in of_kind(graph, "data").tolist():
                covered.update(range(point[2] // 8, -(-point[3] // 8)))
            expected = {each for start, end in pull.ranges for each in range(start // 8, -(-end // 8))}
            assert covered == expected
            if message.sender == "notified":
                assert graph.acked[-1].tolist() == [pull.notice.first_ns, message.length]
        elif message.sender == "acked":
            assert graph.acked[:, 1].tolist() in ([message.length], [])
            assert of_kind(graph, "data")["high"].max() == message.length
        assert (np.diff(graph.points["start_ns"]) >= 0).all()


def test_missing_bytes_are_those_that_are_requested_again():
    trace, messages = traced("mxoe-lossy-1M")
    for message in messages:
        graph = trace.of_message(message.number)
        again = of_kind(graph, "retransmission", "data")
        lost = of_kind(graph, "lost")
        assert len(lost)
        for gap in lost:
            later = again[again["start_ns"] > gap["start_ns"]]
            assert ((later["low"] < gap["high"]) & (later["high"] > gap["low"])).any()


@pytest.mark.parametrize("capture", ["mxoe-many", "mxoe-lossy-1M", "mxoe-every-type"])
def test_a_conversation_has_its_messages_one_above_the_other(capture):
    trace, messages = traced(capture)
    (number,) = trace.conversations()
    for graph in trace.of_conversation(number):
        mine = [each for each in messages if each.number in graph.messages]
        assert {each.flow.address for each in mine} == {graph.source.address}
        base = 0
        for message in sorted(mine, key=lambda each: each.number):
            data = graph.points[(graph.points["message"] == message.number) & (graph.points["kind"] == 0)]
            assert (data["low"] >= base).all() and (data["high"] <= base + message.length).all()
            base += message.length
        assert graph.length == base
        assert (np.diff(graph.acked, axis=0) >= 0).all() and (np.diff(graph.window, axis=0) >= 0).all()


@pytest.mark.parametrize("capture", ["mxoe-lossy-1M", "mxoe-many", "mxoe-nack-mcp-closed"])
def test_batches_do_not_matter(capture):
    one, other = traced(capture)[0], traced(capture, 7)[0]
    for number in one.conversations():
        for first, second in zip(one.of_conversation(number), other.of_conversation(number), strict=True):
            assert (first.points == second.points).all() and (first.window == second.window).all()


def test_frames_beyond_the_limit_are_counted():
    trace, messages = traced("mxoe-lossy-1M", 50, most=100)
    assert trace.omitted > 500
    assert trace.of_message(1) is not None and trace.of_message(99) is None and len(messages) == 2


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=300), st.integers(20, 100))
def test_thinning_keeps_order_and_bounds(given_, most):
    points = np.zeros(len(given_), POINT)
    at = 0
    for place, (kind, follows) in enumerate(given_):
        at += 0 if follows else 100
        points[place] = (place, place, at, at + 10, kind, place, place, 1)
        at += 10
    thinned, omitted = thin(points, most)
    assert len(thinned) <= most and (np.diff(thinned["start_ns"]) > 0).all()
    assert set(thinned["kind"].tolist()) == set(points["kind"].tolist()) or most < 2 * len(KINDS)
    if not omitted:
        assert (thinned["last_frame"] - thinned["frame"] + 1).sum() == len(points)
