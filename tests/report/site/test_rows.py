"""The frames of an exchange that a ladder shows, and those that it leaves out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.analysis.fate import LOST, Fate
from mxwire.interop.recorded_frames import fates
from mxwire.interop.testbed import RecordedFrame
from mxwire.report.exchange import (
    MOST_ROWS,
    MOST_ROWS_WHOLE,
    FrameStep,
    Omission,
    Pause,
    Reading,
    ShownFrame,
    is_everything,
    rows_of,
)
from mxwire.rules import LOST as NEVER

MILLISECOND = 1_000_000


def seen(number: int, kind: str = "PULL_REPLY", source: int = 1, **rest) -> ShownFrame:
    reading = Reading(kind, "", "", rest.pop("malformed", False))
    return ShownFrame(number, number * 1000, source, 3 - source, reading, **rest)


def numbers(rows) -> list[list[int]]:
    return [list(range(row.first.number, row.first.number + row.count)) for row in rows if isinstance(row, FrameStep)]


def replies(count: int, **marked) -> list[ShownFrame]:
    return [seen(number, **marked.get(f"n{number}", {})) for number in range(1, count + 1)]


def test_few_frames_have_a_step_each():
    rows = rows_of(replies(MOST_ROWS))
    assert numbers(rows) == [[number] for number in range(1, MOST_ROWS + 1)]
    assert is_everything(rows)


def test_of_many_those_alike_are_one_step():
    frames = [*replies(60), *(seen(number, "PULL", 2) for number in range(61, 64)), *replies(200)[63:]]
    assert numbers(rows_of(frames)) == [list(range(1, 61)), [61], [62], [63], list(range(64, 201))]
    assert not is_everything(rows_of(frames))


@pytest.mark.parametrize(
    "what", [{"fate": Fate(0)}, {"fate": Fate(2)}, {"concerned": ("R-1",)}, {"comments": ("odd",)}, {"malformed": True}]
)
def test_a_frame_with_something_about_it_stands_alone(what):
    rows = rows_of(replies(200, n70=what))
    assert numbers(rows) == [list(range(1, 70)), [70], list(range(71, 201))]


def test_a_long_exchange_shows_its_beginning_its_end_and_important_frames():
    frames = [seen(number, source=1 + number % 2) for number in range(1, 1001)]
    frames[499].concerned = ("R-1",)
    rows = rows_of(frames)
    shown = [number for step in numbers(rows) for number in step]
    assert len(shown) <= MOST_ROWS
    assert {1, 2, 497, 498, 499, 500, 501, 502, 503, 999, 1000} <= set(shown)
    assert sum(row.frames for row in rows if isinstance(row, Omission)) + len(shown) == 1000


def test_the_page_with_all_frames_has_its_limit_too():
    frames = replies(MOST_ROWS_WHOLE + 7)
    rows = rows_of(frames, whole=True)
    assert len(numbers(rows)) == MOST_ROWS_WHOLE
    assert rows[-1] == Omission(7)
    assert is_everything(rows_of(frames[:-7], whole=True))


def test_time_in_which_nothing_is_sent_is_shown():
    frames = replies(5)
    for frame in frames[3:]:
        frame.time_ns += 500 * MILLISECOND
    assert [type(row) for row in rows_of(frames)] == [FrameStep, FrameStep, FrameStep, Pause, FrameStep, FrameStep]
    assert rows_of(frames)[3] == Pause(500 * MILLISECOND + 1000)


@given(
    st.lists(st.tuples(st.sampled_from(["PULL", "PULL_REPLY"]), st.integers(1, 2), st.booleans()), max_size=400),
    st.booleans(),
)
def test_every_frame_is_shown_or_counted_once_and_in_order(what, whole):
    frames = [
        seen(number, kind, source, fate=Fate(0) if lost and number % 7 == 0 else Fate())
        for number, (kind, source, lost) in enumerate(what, 1)
    ]
    rows = rows_of(frames, whole=whole)
    number = 1
    for row in rows:
        if isinstance(row, FrameStep):
            assert (row.first.number, row.last.number) == (number, number + row.count - 1)
            number += row.count
        elif isinstance(row, Omission):
            number += row.frames
    assert number == len(frames) + 1
    assert sum(isinstance(row, FrameStep) for row in rows) <= (MOST_ROWS_WHOLE if whole else MOST_ROWS + 6)


@given(st.builds(Fate, st.integers(0, 9999), st.integers(0, 10**12).map(lambda each: each // 1000 * 1000)))
def test_fates_survive_being_written(fate):
    assert Fate.from_lines(fate.lines) == fate
    assert Fate.from_lines(("something else", *fate.lines)) == fate


def test_arrivals_decide_the_fate_of_frames():
    ours, theirs = bytes(12), bytes([1]) * 12
    recorded = [
        RecordedFrame(0, ours, 100),
        RecordedFrame(10, ours, 5_000_010, 2),
        RecordedFrame(20, theirs, 120),
        RecordedFrame(30, ours, 130),
        RecordedFrame(40, ours, NEVER),
        RecordedFrame(50, ours, None),
        RecordedFrame(60, ours, 160, 2),
    ]
    assert fates(recorded) == {2: Fate(2, 5_000_000), 5: Fate(0), 7: Fate(2)}
    assert fates(recorded)[5].lines == (LOST,)
    assert fates([]) == {}
