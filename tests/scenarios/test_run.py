"""A run reports its failure: verdict, line, the expected and the actual frame."""

from __future__ import annotations

import pytest

from mxwire.scenarios import ScenarioOutcome, ScenarioVerdict, ScriptError, parse, run_simulated
from mxwire.wire.dialect import MXOE, omx


def play(body: str, head: str = "", **options: object) -> ScenarioOutcome:
    return run_simulated(parse(f"title: A test\n{head}{body}"), **options)


def test_all_is_well() -> None:
    outcome = play("> CONNECT_REQUEST\n< CONNECT_REPLY connect_status_code=0\n")
    assert outcome.verdict is ScenarioVerdict.PASS and outcome.passed
    assert not outcome.reason and outcome.line is None and not outcome.remarks
    assert len(outcome.frames) == 2 and outcome.sent.tolist() == [True, False]
    assert outcome.frames.timestamp_ns.tolist() == sorted(outcome.frames.timestamp_ns.tolist())


def test_a_wrong_field_is_reported_with_both_values() -> None:
    outcome = play("> CONNECT_REQUEST\n< CONNECT_REPLY connect_status_code=BAD_KEY connect_seqnum=1..3\n")
    assert outcome.verdict is ScenarioVerdict.FAIL and not outcome.passed and outcome.line == 3
    assert outcome.reason == (
        "CONNECT_REPLY: connect_status_code is 0, expected 11; connect_seqnum is 0, expected 1 to 3"
    )
    assert [(each.field, each.expected, each.found) for each in outcome.differences] == [
        ("connect_status_code", "11", "0"),
        ("connect_seqnum", "1 to 3", "0"),
    ]
    assert outcome.expected == "CONNECT_REPLY connect_status_code=11 connect_seqnum=1 to 3"
    assert outcome.found.startswith("CONNECT_REPLY ") and outcome.failed_frame == 1


def test_addresses_have_colons() -> None:
    outcome = play("> CONNECT_REQUEST\n< CONNECT_REPLY src_mac=52:54:00:11:22:33\n")
    assert outcome.reason == "CONNECT_REPLY: src_mac is 02:00:00:00:00:0a, expected 52:54:00:11:22:33"
    assert outcome.expected == "CONNECT_REPLY src_mac=52:54:00:11:22:33"


def test_another_packet_is_reported() -> None:
    outcome = play("> CONNECT_REQUEST dst_endpoint=closed\n< CONNECT_REPLY\n")
    assert outcome.reason == "NACK_LIB arrived instead of CONNECT_REPLY" and outcome.line == 3
    assert "nack_type=2" in outcome.found


def test_nothing_came() -> None:
    outcome = play("> TINY\n< TRUC within 20ms\n", "connected: once\n")
    assert outcome.verdict is ScenarioVerdict.PASS
    outcome = play("> TINY lib_seqnum=9\n< TRUC within 20ms\n", "connected: once\n")
    assert outcome.verdict is ScenarioVerdict.FAIL and outcome.reason == "TRUC did not arrive"
    assert 20 <= outcome.duration_ns / 1e6 < 21


def test_a_silent_host_is_missing() -> None:
    outcome = play("> @b CONNECT_REQUEST\n< @b CONNECT_REPLY\n", "tester: b host=2 unknown\n")
    assert outcome.verdict is ScenarioVerdict.MISSING and not outcome.passed


def test_too_early_and_too_late() -> None:
    early = play("> TINY\n< TRUC after 50ms within 100ms\n", "connected: once\n")
    assert early.verdict is ScenarioVerdict.FAIL and "ms too early" in early.reason
    late = play("> TINY\n< TRUC within 5ms\n", "connected: once\n")
    assert late.verdict is ScenarioVerdict.FAIL and late.reason == "TRUC did not arrive"


def test_silence_is_broken() -> None:
    outcome = play("> TINY\n< nothing for 50ms\n", "connected: once\n")
    assert outcome.reason == "TRUC arrived during 50 ms of silence" and outcome.line == 4
    assert play("> TINY\n< no PULL or NOTIFY for 50ms\n", "connected: once\n").verdict is ScenarioVerdict.PASS
    assert play("> TINY\n< no TRUC for 50ms\n", "connected: once\n").verdict is ScenarioVerdict.FAIL


def test_should_is_not_strict_and_the_run_continues() -> None:
    body = "> TINY\n< TRUC lib_seqnum=7 should\n< TRUC lib_seqnum=2\n< nothing for 5ms\n"
    outcome = play(body, "connected: once\n")
    assert outcome.verdict is ScenarioVerdict.NON_STRICT and outcome.passed
    assert outcome.remarks[0].line == 4 and "lib_seqnum is 2, expected 7" in outcome.remarks[0].text


def test_info_is_only_reported() -> None:
    outcome = play("> TINY\n< TRUC info\n", "connected: once\nverdict: info\n")
    assert outcome.verdict is ScenarioVerdict.INFO and "TRUC arrived" in outcome.remarks[0].text
    outcome = play("> TINY lib_seqnum=9\n< TRUC info\n", "connected: once\n")
    assert outcome.verdict is ScenarioVerdict.PASS and outcome.remarks[0].text == "TRUC did not arrive"


def test_unexpected_frames_at_the_end() -> None:
    outcome = play(
        "> CONNECT_REQUEST\n> TINY session=0 dst_src_peer_index=1\n< CONNECT_REPLY\n< nothing for 0ms should\n"
    )
    assert outcome.verdict is ScenarioVerdict.NON_STRICT
    assert "unexpected at the end: NACK_LIB" in outcome.remarks[-1].text


def test_names_are_bound_by_answers_and_compared_with_later_ones() -> None:
    body = (
        "> CONNECT_REQUEST\n< CONNECT_REPLY target_session_id=$session src_dst_peer_index=$index as $reply\n"
        "> CONNECT_REQUEST\n< CONNECT_REPLY target_session_id=$session src_dst_peer_index={}\n"
    )
    assert play(body.format("$reply.src_dst_peer_index")).verdict is ScenarioVerdict.PASS
    outcome = play(body.format("$index+1"))
    assert outcome.verdict is ScenarioVerdict.FAIL and "src_dst_peer_index is 1, expected 2" in outcome.reason


def test_a_frame_that_does_not_fit_binds_nothing() -> None:
    body = "> TINY\n< TRUC acknum=$number lib_seqnum=9 should\n< TRUC acknum=$number\n> TRUC acknum=$number\n"
    assert play(body, "connected: once\n").verdict is ScenarioVerdict.NON_STRICT


def test_any_order() -> None:
    body = "! send\n! send length=50\nany order:\n  < SMALL lib_seqnum=2\n  < TINY lib_seqnum=1\n"
    assert play(body, "connected: both\n").verdict is ScenarioVerdict.PASS
    missing = play(body + "  < RNDV\n", "connected: both\n")
    assert missing.verdict is ScenarioVerdict.FAIL and missing.reason == "RNDV did not arrive" and missing.line == 8
    wrong = play(body.replace("lib_seqnum=1", "lib_seqnum=4"), "connected: both\n")
    assert "lib_seqnum is 1, expected 4" in wrong.reason


def test_either() -> None:
    body = (
        "> CONNECT_REQUEST dst_endpoint={}\neither:\n  < CONNECT_REPLY\n  > TINY\n  < TRUC\n"
        "or:\n  < NACK_LIB nack_type=$why\n  > CONNECT_REQUEST\n  < CONNECT_REPLY\n"
    )
    assert len(play(body.format("endpoint")).frames) == 4
    assert len(play(body.format("closed")).frames) == 4
    outcome = play("> HOST_QUERY\neither:\n  < CONNECT_REPLY\nor:\n  < NACK_LIB\n")
    assert outcome.verdict is ScenarioVerdict.FAIL and "HOST_REPLY arrived instead of" in outcome.reason
    outcome = play("> TINY session=0 dst_src_peer_index=99\neither:\n  < CONNECT_REPLY\nor:\n  < NACK_LIB\n")
    assert outcome.reason == "neither arrived: CONNECT_REPLY or NACK_LIB"


def test_repeat_and_let() -> None:
    body = "let $first = next+1\nrepeat 3 as $i:\n  ! send\n  < TINY lib_seqnum=$first+$i-1\n"
    assert play(body, "connected: both\n").verdict is ScenarioVerdict.PASS


def test_a_broken_check_of_a_result() -> None:
    outcome = play("! receive as $receive\n> TINY\n? $receive status=success transferred=6\n", "connected: once\n")
    assert outcome.line == 5 and outcome.reason == "$receive: transferred is 5, expected 6"


def test_a_call_that_is_refused() -> None:
    outcome = play("! send\n")
    assert outcome.verdict is ScenarioVerdict.FAIL and outcome.reason.startswith("send was refused: ")
    for call in ("send length=-1", "receive length=-1", "receive length=99999999"):
        assert "is not between 0 and 16777216" in play(f"! {call}\n", "connected: both\n").reason
    assert play("! send as $no\n? $no status=bad_request\n").verdict is ScenarioVerdict.PASS
    with pytest.raises(ScriptError, match="no value of transferred in no"):
        play("! send as $no\n? $no transferred=1\n")


def test_unspecified_fields_have_correct_defaults() -> None:
    """A request to connect back is answered, a host query too, and announcements are passed over."""
    outcome = play("! send length=5\n< TINY\n", "connected: once\n")
    assert outcome.verdict is ScenarioVerdict.PASS
    outcome = play('wait 6s\n? peer @b name="tester2:0"\n', "tester: b host=2 nameless\n")
    assert outcome.verdict is ScenarioVerdict.PASS


def test_raw_bytes() -> None:
    body = '> FRAME ptype=200 opaque=hex("0102") at(20)=0x33 pad=64\n? counters drop_unknown_type=1\n'
    outcome = play(body)
    assert outcome.verdict is ScenarioVerdict.PASS
    raw = outcome.frames.frame(0)
    assert len(raw) == 64 and raw[16] == 200 and raw[17:21] == b"\x01\x02\x00\x33"
    assert len(play("> TINY cut=39\n< nothing for 5ms\n", "connected: once\n").frames.frame(2)) == 39


def test_dialects_and_profiles() -> None:
    skipped = play("> CONNECT_REQUEST\n", "dialects: omx\n")
    assert (
        skipped.verdict is ScenarioVerdict.SKIPPED
        and skipped.reason == "it is for the dialect omx"
        and not skipped.passed
    )
    body = "! send length=F+1\n< MEDIUM frag_length=F\n< MEDIUM frag_length=1\n"
    for dialect in (MXOE, omx(1500), omx(9000)):
        assert play(body, "connected: both\n", dialect=dialect).verdict is ScenarioVerdict.PASS
    limited = play(
        "! connect as $c\nwait 3s\n? $c status=remote_endpoint_unreachable\n",
        "host: resend_maximum=1\nignore: CONNECT_REQUEST\n",
    )
    assert limited.passed, limited.reason


def test_an_outcome_as_an_object() -> None:
    reported = play("> CONNECT_REQUEST\n< TINY\n").as_object()
    assert (
        reported["verdict"] == "fail"
        and reported["line"] == 3
        and reported["frames"] == 2
        and reported["dialect"] == "mxoe"
    )


def test_a_cancel_of_an_unknown_request() -> None:
    outcome = play("let $x = 5\n! cancel $x\n")
    assert (
        outcome.reason.startswith("cancel was refused: None is not a request") or "5 is not a request" in outcome.reason
    )
    assert (
        play("! connect as $c\n< CONNECT_REQUEST\n! cancel $c as $done\n? $done value=1\n").verdict
        is ScenarioVerdict.PASS
    )


def test_other_bytes_are_reported_with_their_place() -> None:
    outcome = play("! receive as $r\n> SMALL data=pattern(100)+zeros(9)\n? $r data=pattern(109)\n", "connected: once\n")
    assert "109 bytes" in outcome.reason
    outcome = play("! receive as $r\n> SMALL data=zeros(100)\n? $r data=zeros(50)+filled(50, 1)\n", "connected: once\n")
    assert outcome.reason.endswith(
        "data is 100 bytes 0000000000000000… that differ from byte 50 onwards, expected 100 bytes 0000000000000000…"
    )
