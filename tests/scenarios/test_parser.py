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


ERRORS = [
    ("> TYNY", "2:3", "unknown packet TYNY: did you mean TINY?"),
    ("> TINY lenght=5", "2:8", "TINY has no field lenght: did you mean length?"),
    ("> TINY length=5 length=6", "2:17", "length is given twice"),
    ("> TINY data=5", "2:8", "data needs bytes, and the value is not"),
    ('> TINY length="5"', "2:8", "length needs a number, and the value is not"),
    ("< TINY length=$x+1", "2:15", "$x has no value yet: nothing before this line binds it"),
    ("< TINY length=$a\n> TINY length=$b", "3:15", "nothing before this line binds it: use $a"),
    ("> CONNECT_REQUEST as $r\n< CONNECT_REPLY connect_seqnum=$r.conect_seqnum", "3:32", "has no field conect_seqnum"),
    ("> TINY length=sesion", "2:15", "unknown word sesion: did you mean session"),
    ("> TINY length=patern(5)", "2:15", "unknown function patern: did you mean pattern or part?"),
    ("> TINY length=min(5)", "2:15", "min takes 2 values"),
    ("> TINY length=(5", "2:17", "expected ')', found the end of the line"),
    ("> TINY length", "2:14", "expected '=' after length, found the end of the line"),
    ('> TINY data="abc', "2:13", "a text without its closing quote"),
    ('> TINY data="\\q"', "2:13", "\\q is not an escape"),
    ("> TINY length=5 ;", "2:17", "';' is not valid here"),
    ("< TRUC within 20", "2:15", "expected a time after 'within', like 20ms, found '20'"),
    ("< TRUC inside 20ms", "2:8", "times are given with within and after, not with inside"),
    ("< TRUC after 20ms within 10ms", "2:1", "'within' ends before 'after'"),
    ("< nothing", "2:10", "expected 'for', found the end of the line"),
    ("< nothing for 5", "2:15", "expected a time after 'for', like 20ms, found '5'"),
    ("! recieve", "2:3", "applications cannot recieve: did you mean receive?"),
    ("! receive size=5", "2:11", "receive does not take size"),
    ("! cancel", "2:9", "expected a value to cancel like $first"),
    ("? counter x=1", "2:3", "unknown subject counter: did you mean counters?"),
    ("? counters drop_bad=1", "2:12", "counters has no drop_bad: did you mean"),
    ("! receive as $r\n? $r", "3:5", "a condition is needed, like status=success"),
    ("? $r done=1", "2:1", "$r has no value yet"),
    ("> @other TINY", "2:1", "unknown tester other"),
    ("HELLO", "2:1", "a step cannot begin with 'HELLO'"),
    ("wait 2h", "2:6", "'2h' is not a number, nor a time like 20ms"),
    ("wait 5", "2:6", "expected a time to wait, like 20ms"),
    ("let $a.b = 5", "2:5", "names have no dot"),
    ("  > TINY", "2:3", "this line is indented, but no block is open"),
    ("\t> TINY", "2:2", "indentation with a tab: use spaces"),
    ("burst:\n> TINY", "2:1", "this block has no steps: indent them below it"),
    ("burst:\n  < TINY", "3:3", "a burst may only contain frames that are sent"),
    ("any order:\n  > TINY", "3:3", "'any order' may only contain frames that are expected (<)"),
    ("either:\n  < TINY", "2:1", "'either:' needs an 'or:' after it"),
    ("either:\n  > TINY\nor:\n  < TINY", "3:3", "each branch must begin with the frame (<) that selects it"),
    ("or:\n  < TINY", "2:1", "'or:' has no 'either:' before it"),
    ("repeat 3:\n    > TINY\n  > TINY", "4:3", "the indentation matches no block above"),
    ("rule: R-ACK-01\n> TINY", "2:1", "the head has no key 'rule': did you mean rules?"),
    ("rules: R-ACK-99\n> TINY", "2:8", "unknown rule R-ACK-99: did you mean R-ACK-09"),
    ("dialects: mxoe, mx\n> TINY", "2:17", "unknown dialect 'mx': did you mean omx or mxoe?"),
    ("connected: twice\n> TINY", "2:12", "'twice' is not one of no, once, both"),
    ("host: resends=3\n> TINY", "2:7", "hosts have no setting resends"),
    ("host: defects=D-99\n> TINY", "2:7", "hosts have no defect D-99"),
    ("host: hz=fast\n> TINY", "2:7", "hz needs a number, yes, no or default, not 'fast'"),
    ("within: soon\n> TINY", "2:9", "'soon' is not a time: write it like 100ms"),
    ("tester: b host=x\n> TINY", "2:11", "'host=x' is not a property of a tester"),
    ("within: 5ms\nwithin: 6ms\n> TINY", "3:1", "'within' is given twice"),
    ("> TINY length=" + "(" * 60, "2:", "nested brackets"),
    ("> TINY length=" + "9" * 60, "2:15", "a number has at most 40 digits"),
]


@pytest.mark.parametrize(("text", "place", "words"), ERRORS, ids=[each[0][:40] for each in ERRORS])
def test_an_error_has_its_place_and_text(text: str, place: str, words: str) -> None:
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


WRONG_WHEN_PLAYED = [
    ("> TINY length=0x10000", "TINY cannot be built"),
    ('> TINY dst_mac=hex("00")', "TINY cannot be built"),
    ("> PULL_REPLY", "the host has pulled nothing"),
    ("> CONNECT_REPLY", "there is no request to reply to"),
    ("> NOTIFY", "the host has announced no message"),
    ("> TINY lib_seqnum=5/0", "division by 0"),
    ("> TINY length=index", "index is not known yet"),
    ("> TINY cut=3", "frames have 14 to 65535 bytes"),
    ("> TINY at(70)=1", "the frame has 60 bytes: no room at 70 for 1"),
    ("repeat 200000:\n  > TINY", "not between 0 and 100000"),
    ("repeat 5000 as $i:\n  repeat 5000 as $j:\n    let $k = $i", "not between 0 and 100000"),
    ("burst:\n  repeat 2:\n    repeat 99999:\n      > TINY", "not between 0 and 100000"),
    ("let $x = 5\n> TINY length=$x.length", "$x.length has no value yet"),
    ("> TINY data=zeros(99999999)", "zeros cannot be computed: the length 99999999 is not between 0 and"),
    ('> TINY data=hex("zz")', "hex cannot be computed"),
    ("> TINY length=size(5)", "size needs bytes here"),
    ("! send data=5", "bytes are needed here"),
    ('! receive length="five"', "a number is needed here"),
]


@pytest.mark.parametrize(("text", "words"), WRONG_WHEN_PLAYED, ids=[each[0] for each in WRONG_WHEN_PLAYED])
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
