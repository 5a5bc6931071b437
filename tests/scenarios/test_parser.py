"""Texts become scenarios, or errors that say what, where and a value to do; never anything else."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxwire.errors import MxwireError
from mxwire.scenarios import ScriptError, parse, run_simulated
from mxwire.scenarios.files import paths_of
from mxwire.scenarios.steps import (
    AnyOrderStep,
    BurstStep,
    EitherStep,
    ExpectationLevel,
    ExpectStep,
    RepeatStep,
    SendStep,
    SilenceStep,
)
from mxwire.scenarios.vocabulary import FRAME, PACKETS, fields_of
from mxwire.wire.packets import FRAME_CLASSES
from tests.examples import examples

HEAD = "title: A test\n"


def test_every_packet_and_field_of_the_formats_has_a_name() -> None:
    assert len(PACKETS) == len(FRAME_CLASSES)
    for packet in PACKETS:
        for field in fields_of(packet):
            assert parse(f"{HEAD}< {packet} {field}=*").steps
    assert parse(f"{HEAD}> {FRAME} ptype=200").steps


def test_a_line_contains_a_whole_step() -> None:
    send, expect, silence = parse(
        HEAD
        + '> TINY length=5 data="ab\\0\\x41" match=0x10 at(19)=0xff cut=60 pad=80 as $sent\n'
        + "< TRUC lib_seqnum=$sent.lib_seqnum+1 acknum=1 or 3..5 send_seq=7±2 after 5ms within 1.5s should as $ack\n"
        + "< no PULL or NOTIFY for 30 ms info\n"
    ).steps
    assert isinstance(send, SendStep) and isinstance(expect, ExpectStep) and isinstance(silence, SilenceStep)
    assert send.fields["data"].constant == b"ab\0A" and send.bind == "sent" and len(send.patches) == 1
    assert expect.after == 5_000_000 and expect.within == 1_500_000_000 and expect.level is ExpectationLevel.SHOULD
    assert set(expect.fields) == {"liback_lib_seqnum", "liback_acknum", "liback_send_seq"}
    assert (
        silence.packets == ("PULL", "NOTIFY")
        and silence.duration == 30_000_000
        and silence.level is ExpectationLevel.INFO
    )


def test_blocks_are_made_by_indentation() -> None:
    repeat, either, order = parse(
        HEAD
        + "repeat 3 as $i:\n"
        + "  burst:\n"
        + "    > TINY lib_seqnum=$i\n"
        + "    > TINY\n"
        + "  < TRUC\n"
        + "either:\n"
        + "  < TRUC\n"
        + "  > TINY\n"
        + "or:\n"
        + "  < NACK_LIB\n"
        + "any order:\n"
        + "  < PULL\n"
        + "\n"
        + "  # between\n"
        + "  < TRUC\n"
    ).steps
    assert isinstance(repeat, RepeatStep) and isinstance(either, EitherStep) and isinstance(order, AnyOrderStep)
    assert isinstance(repeat.body[0], BurstStep) and len(repeat.body[0].body) == 2 and len(repeat.body) == 2
    assert [len(each) for each in either.branches] == [2, 1] and len(order.body) == 2


@pytest.mark.parametrize(("text", "answer"), examples(__file__, "mistakes.txt"), ids=lambda each: each[:40])
def test_an_error_has_its_place_and_text(text: str, answer: str) -> None:
    place, words = answer.split(" ", 1)
    with pytest.raises(ScriptError) as caught:
        parse(HEAD + text, "a.mxs")
    first, line, caret = str(caught.value).split("\n")
    assert first.startswith(f"a.mxs:{place}") and words in first, first
    assert caret.strip() == "^"
    assert caught.value.place is not None and caret.index("^") == caught.value.place.column - 1 + 2
    assert line[2:].strip() == caught.value.place.text.strip()


def test_a_scenario_needs_a_title_and_steps() -> None:
    with pytest.raises(ScriptError, match="no steps"):
        parse("title: x")
    with pytest.raises(ScriptError, match="no title"):
        parse("> TINY")
    with pytest.raises(ScriptError, match="exceed the limit of a scenario"):
        parse("#" * (1 << 21))


@pytest.mark.parametrize(("text", "words"), examples(__file__, "mistakes-when-played.txt"))
def test_errors_at_run_time_are_reported_too(text: str, words: str) -> None:
    with pytest.raises(ScriptError, match=r"^<text>:\d+:\d+: ") as caught:
        run_simulated(parse(HEAD + text))
    assert words in str(caught.value)


TEXTS = [path.read_text(encoding="utf-8") for path in paths_of(())]
WORDS = sorted({word for text in TEXTS for word in text.split()})


@st.composite
def scrambled(draw: st.DrawFn) -> str:
    """A scenario of the library with pieces cut out, doubled, or exchanged for others."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        new = draw(st.one_of(st.just(""), st.sampled_from(WORDS), st.text(string.printable + "±µ$\0é", max_size=8)))
        text = text[:start] + new + text[end:]
    return text


@settings(max_examples=600, deadline=None)
@given(st.one_of(scrambled(), st.text(max_size=200), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)))
def test_no_text_makes_it_fall_over(text: str) -> None:
    try:
        script = parse(text)
    except ScriptError as error:
        assert str(error)
        return
    assert script.steps


@settings(max_examples=150, deadline=None)
@given(scrambled())
def test_no_scenario_that_can_be_read_makes_a_run_fall_over(text: str) -> None:
    try:
        script = parse(text)
        if len(text) < 2000 and "resend_maximum" not in text and "s\n" not in text.replace("ms\n", ""):
            outcome = run_simulated(script, dialect=script.played_in()[0])
            assert outcome.verdict
    except MxwireError as error:
        assert str(error)
