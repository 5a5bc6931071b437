"""``mxwire scenario`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from mxwire.capture import open_capture
from mxwire.rules.catalogue import CATALOGUE
from mxwire.scenarios import library
from mxwire.scenarios.syntax import coloured
from tests.cli.support import ROOT, mxwire

FAILS = (
    "title: A key that is refused\nrules: R-CON-08\n\n> CONNECT_REQUEST\n< CONNECT_REPLY connect_status_code=BAD_KEY\n"
)


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    path = tmp_path / "mine.mxs"
    path.write_text(FAILS)
    return path


def test_list_shows_all_with_their_rules() -> None:
    objects = mxwire("scenario", "list", "--json").objects
    assert [each["name"] for each in objects] == [each.name for each in library()]
    assert all(set(each["rules"]) <= set(CATALOGUE) for each in objects)
    shown = mxwire("scenario", "list", "connect", "--rule", "R-CON-07")
    assert "connect/to-itself" in shown.out and "1 scenario;" in shown.out and shown.code == 0


def test_list_of_a_chapter_of_rules() -> None:
    shown = mxwire("scenario", "list", "acks", "--rule", "R-ACK", "--json")
    found = [json.loads(line) for line in shown.out.splitlines()]
    assert len(found) > 9 and all(any(rule.startswith("R-ACK") for rule in each["rules"]) for each in found)
    assert mxwire("scenario", "list", "--rule", "R-CON-7").out == mxwire("scenario", "list", "--rule", "R-CON-07").out


def test_show_is_the_text() -> None:
    path = ROOT / "replay/connect/bad-key.mxs"
    for name in ("connect/bad-key", "replay/connect/bad-key.mxs", path):
        assert mxwire("scenario", "show", name).out == path.read_text()


def test_check_of_the_library() -> None:
    run = mxwire("scenario", "check")
    assert run.code == 0 and run.out == f"{len(list(library()))} scenarios well formed\n" and not run.err


def test_check_names_file_line_and_column(tmp_path: Path, failing: Path) -> None:
    bad, binary = tmp_path / "bad.mxs", tmp_path / "binary.mxs"
    bad.write_text("title: x\n> TYNY\n")
    binary.write_bytes(b"\xff\xfe\x00")
    run = mxwire("scenario", "check", tmp_path)
    assert run.code == 2 and run.out == "1 scenario well formed, 2 not\n"
    assert run.err.splitlines()[:3] == [f"{bad}:2:3: unknown packet TYNY (did you mean TINY?)", "  > TYNY", "    ^"]
    assert f"{binary}: not a text file in UTF-8" in run.err
    reported = {Path(each["file"]).name: each for each in mxwire("scenario", "check", tmp_path, "--json").objects}
    assert (reported["bad.mxs"]["line"], reported["bad.mxs"]["column"], reported["mine.mxs"]["ok"]) == (2, 3, True)
    assert mxwire("scenario", "run", bad).code == 2


def test_run_reports_the_failure(failing: Path) -> None:
    run = mxwire("scenario", "run", failing, "--dialect", "mxoe", "--ladder")
    assert run.code == 1
    assert run.lines[:6] == [
        "FAIL        mine (mxoe): A key that is refused",
        f"    {failing}:5: CONNECT_REPLY: connect_status_code is 0, expected 11",
        "      < CONNECT_REPLY connect_status_code=BAD_KEY",
        "    expected  CONNECT_REPLY connect_status_code=11",
        run.lines[4],
        "    rules     R-CON-08",
    ]
    assert run.lines[4].startswith("    found     CONNECT_REPLY dst_src_peer_index=257 (0x101) dst_endpoint=5 ")
    assert "◀ not as expected" in run.out and run.lines[-1] == "1 run: 1 fail"


def test_a_failure_reports_the_frames_that_the_host_dropped(tmp_path: Path) -> None:
    path = tmp_path / "mine.mxs"
    path.write_text("title: A TINY without a connection\n\n> TINY\n< TRUC within 1s\n")
    run = mxwire("scenario", "run", path, "--dialect", "mxoe")
    assert run.code == 1 and "    dropped   by the host under test, which counted drop_bad_peer_index 1" in run.lines
    path.write_text("title: A TINY without a connection\n\n> TINY\n< nothing for 1s\n")
    assert "dropped" not in mxwire("scenario", "run", path, "--dialect", "mxoe").out
    run = mxwire("scenario", "run", path, "--dialect", "mxoe", "--json")
    assert run.code == 0 and run.objects[0]["counted"] == {"drop_bad_peer_index": 1}


def test_run_as_objects_and_into_a_capture(failing: Path, tmp_path: Path) -> None:
    capture = tmp_path / "out.pcapng"
    run = mxwire("scenario", "run", failing, "connect/good-key", "--dialect", "mxoe", "--json", "-w", capture)
    assert run.code == 1 and [each["verdict"] for each in run.objects] == ["fail", "pass"]
    assert run.objects[0]["differences"] == [{"field": "connect_status_code", "expected": "11", "found": "0"}]
    with open_capture(capture) as reader:
        assert sum(len(batch) for batch in reader) == sum(each["frames"] for each in run.objects)
    assert b"mine: CONNECT_REPLY: connect_status_code is 0, expected 11" in capture.read_bytes()


def test_a_failure_is_written_to_a_pcap_file_which_has_no_comments(failing: Path, tmp_path: Path) -> None:
    capture = tmp_path / "out.pcap"
    run = mxwire("scenario", "run", failing, "connect/good-key", "--dialect", "mxoe", "--json", "-w", capture)
    assert run.code == 1 and not run.err and [each["verdict"] for each in run.objects] == ["fail", "pass"]
    with open_capture(capture) as reader:
        assert sum(len(batch) for batch in reader) == sum(each["frames"] for each in run.objects)


def test_colours_change_no_letter() -> None:
    import re

    for script in library():
        for line in script.text.splitlines():
            assert re.sub(r"\x1b\[[0-9;]*m", "", coloured(line, click.style)) == line
    assert coloured("> TINY length=5", click.style).count("\x1b[") >= 6


def test_an_editor_knows_all_words() -> None:
    from mxwire.scenarios.expression import FUNCTIONS, KNOWN_WORDS
    from mxwire.scenarios.head import KEYS
    from mxwire.scenarios.line_parser import BLOCK_WORDS, FIRST_WORDS
    from mxwire.scenarios.vocabulary import PACKETS, VERBS

    run = mxwire("scenario", "highlight")
    keywords = [line.split()[3:] for line in run.lines if line.startswith("syntax keyword ")]
    known = [word for words in keywords for word in words]
    assert len(known) == len(set(known)), "a word has two colours"
    (head,) = (line for line in run.lines if line.startswith("syntax match mxsHead "))
    assert all(f"{each}" in head for each in KEYS)
    words = {
        *BLOCK_WORDS,
        *(each for each in FIRST_WORDS if each.isalpha()),
        *PACKETS,
        *VERBS,
        *KNOWN_WORDS,
        *FUNCTIONS,
    }
    assert words <= set(known), words - set(known)


def test_the_judge_convicts_a_host_whose_steps_all_pass(tmp_path: Path) -> None:
    path = tmp_path / "echo.mxs"
    path.write_text("title: x\n> CONNECT_REQUEST\n< CONNECT_REPLY\n> HOST_QUERY\n< HOST_REPLY\n")
    words = ("scenario", "run", path, "--profile", "open-mx-0.6", "--dialect", "mxoe")
    assert mxwire(*words).code == 0
    run = mxwire(*words, "--judge")
    assert run.code == 1 and run.lines[0].startswith("FAIL        echo (mxoe)")
    assert "breaks R-HOST-06" in run.out
    assert mxwire("scenario", "run", "notify", "--judge").code == 0
