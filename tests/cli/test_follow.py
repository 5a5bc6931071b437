"""``mxwire conversations``, ``mxwire follow`` and ``mxwire extract`` as a user runs them."""

from __future__ import annotations

import pytest

from mxwire.capture import create_capture, open_capture
from mxwire.cli.message_choice import follow_message, message_of_frame
from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.report.ladder import MessageLadder, ladder_lines
from mxwire.wire.decoder import Decoder
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire
from tests.conformance.words import pattern

FIRST, SECOND = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
NACKED = CAPTURES / "mxoe-nack-lib.pcap"
TRUNCATED = CAPTURES / "mxoe-truncated.pcap"


@pytest.mark.parametrize("width", [76, 80, 100, 120, 200])
def test_the_ladder_fits_a_terminal(width):
    decoder, ladder = Decoder(), MessageLadder()
    message = follow_message(
        str(EVERY_TYPE), 11, decoder, lambda decoded, frames, _, marks: ladder.take(decoded, frames, marks)
    )
    lines = [*ladder_lines(message, ladder, decoder.start_ns, width)]
    drawn = lines[lines.index("") + 1 :]
    assert len(drawn) == 10 and max(map(len, drawn)) <= width + 8 * (width < 80)
    assert [line.split()[0] for line in drawn[1:]] == ["63", "64", "65", "66-74", "75", "76", "82", "84", "86"]
    whole = [*ladder_lines(message, ladder, decoder.start_ns)]
    assert ([*ladder_lines(message, ladder, decoder.start_ns, 400)] == whole) and (lines == whole) == (width == 200)


@pytest.mark.parametrize("number", [1, 3, 6, 7, 10, 11])
def test_extracted_bytes_are_those_that_were_sent(tmp_path, number):
    """TINY, SMALL, MEDIUM and large; the pattern that the application wrote."""
    messages = mxwire("messages", "--json=full", EVERY_TYPE).objects
    match, length = int(messages[number - 1]["match"], 16), messages[number - 1]["length"]
    run = mxwire("extract", "--message", number, "-w", tmp_path / "data", EVERY_TYPE)
    assert (run.code, run.err) == (0, "")
    assert (tmp_path / "data").read_bytes() == pattern(match, length)
    assert [each.name for each in tmp_path.iterdir()] == ["data"]


def test_missing_bytes_are_refused_and_an_earlier_file_stays(tmp_path):
    target = tmp_path / "data"
    target.write_text("mine")
    run = mxwire("extract", "--message", 5, "-w", target, TRUNCATED)
    assert run.code == 2 and len(run.err.splitlines()) == 1
    assert "40000 of 50000 bytes are missing" in run.err and "took only 10000" in run.err and "--partial" in run.err
    assert target.read_text() == "mine" and list(tmp_path.iterdir()) == [target]


def test_partial_fills_with_zeros_and_lists_the_gaps(tmp_path):
    target = tmp_path / "data"
    run = mxwire("extract", "--message", 5, "--partial", "-w", target, TRUNCATED)
    assert run.code == 0 and "10000-49999" in run.err
    assert target.read_bytes() == pattern(5, 50000)[:10000] + bytes(40000)
    (reported,) = mxwire("extract", "--message", 5, "--partial", "--json", "-w", target, TRUNCATED).objects
    assert reported == {"message": 5, "file": str(target), "bytes": 50000, "length": 50000, "gaps": [[10000, 50000]]}


LOSSY = EVERY_TYPE.with_name("mxoe-lossy-1M.pcap")


def test_the_ladder_shows_marks():
    steps = mxwire("follow", "--message", 1, "--json", LOSSY).objects
    flags = {flag for each in steps for flag in each["flags"]}
    assert {"gap", "out_of_order", "retransmission", "re_request", "early_re_request"} <= flags
    requests = [each for each in steps if "early_re_request" in each["flags"]]
    lines = mxwire("follow", "--message", 1, LOSSY).lines
    assert len([line for line in lines if "PULL [early re-request] frames" in line]) == len(requests) > 0


def test_replies_with_different_marks_are_not_folded():
    steps = mxwire("follow", "--message", 1, "--json", LOSSY).objects
    runs = [each for each in steps if each["role"] == "reply"]
    marked = {
        each["frame"]: each["flags"] for each in mxwire("decode", "--json=full", "--type", "PULL_REPLY", LOSSY).objects
    }
    for each in runs:
        inside = [flags for frame, flags in marked.items() if each["frame"] <= frame <= each["last_frame"]]
        assert all(flags == each["flags"] for flags in inside)


# A message by its number, or by one of its frames


def test_the_number_may_precede_the_file(tmp_path):
    whole = mxwire("follow", "--message", 11, EVERY_TYPE)
    assert whole.code == 0 and mxwire("follow", 11, EVERY_TYPE).out == whole.out
    assert mxwire("extract", 11, EVERY_TYPE, "-w", tmp_path / "a").code == 0
    assert mxwire("extract", "--message", 11, "-w", tmp_path / "b", EVERY_TYPE).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_whose_name_is_a_number(tmp_path):
    (tmp_path / "3").write_bytes(EVERY_TYPE.read_bytes())
    whole = mxwire("follow", "--message", 11, EVERY_TYPE).out
    for words in ([11, "3"], ["--message", 11, "3"], ["--frame", 63, "3"], ["--frame", 63, "./3"]):
        assert mxwire("follow", *words, cwd=tmp_path).out == whole


def test_a_frame_leads_to_its_message(tmp_path):
    run = mxwire("follow", "--frame", 428, LOSSY)
    assert (run.code, run.err) == (0, "") and run.out == mxwire("follow", 2, LOSSY).out
    assert run.lines[-1].startswith("mxwire decode -v --frames NUMBER FILE")
    run = mxwire("extract", "--frame", 66, "--json", "-w", tmp_path / "data", EVERY_TYPE)
    assert [each["message"] for each in run.objects] == [11]
    by_number = mxwire("extract", 11, "-w", tmp_path / "other", EVERY_TYPE)
    assert by_number.code == 0 and (tmp_path / "data").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize("capture", [EVERY_TYPE, NACKED, CAPTURES / "mxoe-early.pcap"], ids=lambda each: each.name)
def test_every_frame_is_in_the_ladder_of_its_message(capture):
    marked = {each["frame"]: each["message"] for each in mxwire("decode", "--json=full", capture).objects}
    ladders = {}
    for frame, message in marked.items():
        if message is None:
            with pytest.raises(MxwireError, match=rf"frame {frame} \(.*\) belongs to no message"):
                message_of_frame(str(capture), frame, Decoder())
            continue
        number = message_of_frame(str(capture), frame, Decoder())
        assert number == message
        if number not in ladders:
            ladders[number] = mxwire("follow", number, "--json", capture).objects
        assert any(each["frame"] <= frame <= each["last_frame"] for each in ladders[number])
    assert len(ladders) > 1 and None in marked.values()


def test_a_frame_of_another_protocol(tmp_path):
    with open_capture(EVERY_TYPE) as reader, create_capture(tmp_path / "mixed.pcap") as writer:
        writer.write(FrameBatch.from_frames([bytes(12) + b"\x08\x06" + bytes(46)] * 2))
        for batch in reader:
            writer.write(batch)
    run = mxwire("follow", "--frame", 2, tmp_path / "mixed.pcap")
    assert run.code == 2 and "frame 2 is not MXoE (EtherType 0x86df)" in run.err and run.err.count("\n") == 1
    run = mxwire("follow", "--frame", 90, tmp_path / "mixed.pcap")
    assert run.code == 2 and "no frame 90: it has 89 frames" in run.err
    run = mxwire("follow", "--frame", 65, "--json", tmp_path / "mixed.pcap")
    assert run.code == 0 and {each["message"] for each in run.objects} == {11}


def test_outputs_lead_to_their_frames_and_messages(tmp_path):
    for words in (["messages"], ["messages", LOSSY], ["messages", "--by", "conversation"], ["stats"]):
        assert "mxwire follow NUMBER FILE shows " in " ".join(mxwire(*words, LOSSY).out.split())
    for command in ("verify", "diagnose", "info", "compat"):
        assert "mxwire follow --frame NUMBER FILE" in " ".join(mxwire(command, LOSSY).out.split())
    for words in (["messages"], ["messages", "--by", "conversation"], ["stats"]):
        assert "mxwire follow" not in mxwire(*words, "--json", LOSSY).out
    assert "mxwire follow" not in mxwire("messages", "--endpoint", 77, LOSSY).out
