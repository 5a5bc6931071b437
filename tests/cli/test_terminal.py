"""Output as wide as the terminal, and as coloured as it is wanted."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.captures import write_capture
from tests.cli.streams import Stream
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire
from tests.forked import fork_server

WIDTHS = (80, 100, 120, 200)
TRYING = CAPTURES / "mxoe-resends-exhausted.pcap"


def printed(*words: object, terminal: bool = True, folder: Path = CAPTURES, **environment: str) -> str:
    """The output of a command on a terminal, or into a pipe; standard error is not a terminal."""
    out, err = Stream(terminal), Stream(terminal=False)
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    nothing = os.open(os.devnull, os.O_RDONLY)
    streams = [nothing, out.theirs, err.theirs]
    try:
        code = fork_server().run([*map(str, words)], folder, streams, plain | {"TERM": "xterm-256color"} | environment)
    finally:
        os.close(nothing)
        shown, said = out.end().decode(), err.end().decode()
    assert code == 0, said
    return shown


def lines(*words: object, width: int) -> list[str]:
    return printed(*words, COLUMNS=str(width), NO_COLOR="1").splitlines()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("clock", ["relative", "delta", "absolute"])
def test_frames_fit_one_line_each(width: int, clock: str) -> None:
    whole = mxwire("decode", "--time-format", clock, EVERY_TYPE).lines
    shown = lines("decode", "--time-format", clock, EVERY_TYPE, width=width)
    assert len(shown) == len(whole)
    assert max(map(len, shown)) <= width
    types = {each["type"] for each in mxwire("decode", "--json=full", EVERY_TYPE).objects}
    assert types <= {word for each in shown for word in each.split()}
    for one, other in zip(shown, whole, strict=True):
        assert one.split()[0] == other.split()[0]


def test_a_nack_keeps_its_reason_beside_its_mark() -> None:
    shown = lines("decode", "--frames", "80,83,86", EVERY_TYPE, width=80)
    assert all(len(each) <= 80 for each in shown)
    texts = [each.split("NACK_")[1].split(maxsplit=1)[1] for each in shown]
    assert all(re.match(r"(BAD_SESSION|ENDPT_CLOSED)\b.*\[nack of #1[12]\]$", each) for each in texts), texts


def test_narrow_lines_leave_out_the_least_important_columns() -> None:
    (line,) = lines("decode", "--frames", "41", EVERY_TYPE, width=80)
    assert line == "   41   35.798491 vm1:0   →vm2:0      5→3 SMALL      seq 3 ack 3: 100 bytes mat…"
    (line,) = lines("decode", "--frames", "41", EVERY_TYPE, width=120)
    assert line.split() == [
        *("41", "35.798491", "vm1:0", "→", "vm2:0", "5→3", "SMALL"),
        *("seq", "3", "ack", "3:", "100", "bytes", "match", "0x1002"),
    ]


@pytest.mark.parametrize("width", (80, 100))
def test_the_reason_of_a_malformed_frame_is_never_cut(width: int, tmp_path: Path) -> None:

    path = write_capture(tmp_path / "cut.pcap", [bytes(12) + b"\x86\xdf" + bytes(2) + b"\x25"])
    whole = mxwire("decode", path).lines[0].partition("MALFORMED")[2].split()
    shown = lines("decode", path, width=width)
    assert len(shown) > 1 and max(map(len, shown)) <= width
    assert " ".join(shown).partition("MALFORMED")[2].split() == whole


@pytest.mark.parametrize("width", WIDTHS)
def test_trees_fit_and_lose_nothing(width: int) -> None:
    whole = mxwire("decode", "-v", "--frames", "35-63", EVERY_TYPE).lines
    shown = lines("decode", "-v", "--frames", "35-63", EVERY_TYPE, width=width)
    assert max(map(len, shown)) <= width

    def words(text: list[str]) -> list[str]:
        # Not the lines of frames, which are cut; wrapped cells stand in another order.
        return sorted(word for line in text if "→" not in line for word in line.split())

    assert words(shown) == words(whole)


@pytest.mark.parametrize("colour", ["1", ""])
@pytest.mark.parametrize(
    "command",
    [
        "messages --by conversation mxoe-lossy-1M.pcap",
        "stats --by endpoint mxoe-uninit.pcap",
        "top --once --no-names mxoe-early.pcap",
    ],
)
def test_tables_shorten_addresses_and_headings_to_fit(command: str, colour: str) -> None:
    """Numbers are never cut, and a pipe has complete addresses."""

    def shown(width: int, *, terminal: bool = True) -> list[str]:
        text = printed(*command.split(), terminal=terminal, COLUMNS=str(width), NO_COLOR=colour)
        return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()

    narrow, wide, piped = shown(80), shown(140), shown(80, terminal=False)
    assert max(map(len, narrow)) <= 80 < max(map(len, wide))
    assert any("rtx" in each for each in narrow) and any("retransmits" in each for each in wide)
    numbers = [re.findall(r"(?<![\w:.…])[\d.]+(?![\w:])", " ".join(each)) for each in (narrow, wide, piped)]
    assert numbers[0] == numbers[1] == numbers[2]
    addresses = [sum(each.count("0a:00:01") for each in text) for text in (narrow, wide, piped)]
    assert addresses[0] == addresses[1] == addresses[2]
    assert sum("52:54:00:0a:00:01" in each for each in piped) == sum("52:54:00:0a:00:01" in each for each in wide)


@pytest.mark.parametrize("width", WIDTHS)
def test_messages_fit(width: int) -> None:
    whole = mxwire("messages", TRYING).lines
    shown = lines("messages", TRYING, width=width)
    assert max(map(len, shown)) <= width
    numbers = [each.split()[0] for each in shown if each and each.split()[0].isdecimal()]
    assert numbers == [each.split()[0] for each in whole[1:-2]]
    text = " ".join(" ".join(shown).split())
    for remark in ("[sent 6 times]", "[nack BAD_SESSION]", "NOTIFY refused: ENDPT_CLOSED]"):
        assert remark in text
    assert "6576.861" in text and "6576.860851" not in text


def test_a_pipe_gets_whole_lines() -> None:
    assert "52:54:00:0a:00:01 → 52:54:00:0a:00:02" in mxwire("messages", TRYING).out
    assert "match 0x0000000000001002" in mxwire("decode", "--frames", "41", EVERY_TYPE).out


COLOURED = ("decode --type NACK_MCP {}", "info {}", "messages {}", "verify {}", "scenario show connect/bad-key")


class TestColours:
    @pytest.mark.parametrize("command", COLOURED)
    @pytest.mark.parametrize("before", [True, False])
    def test_always_and_never(self, command: str, before: bool) -> None:
        words = command.format(EVERY_TYPE).split()

        def option(choice: str) -> list[str]:
            return ["--color", choice, *words] if before else [*words, "--color", choice]

        plain = printed(*words, terminal=False)
        assert "\x1b" not in plain
        if words[0] != "messages":
            assert "\x1b[" in printed(*option("always"), terminal=False)
            assert "\x1b[" in printed(*words)
        assert printed(*option("never"), terminal=False) == plain
        assert "\x1b" not in printed(*option("never"))

    def test_the_environment(self) -> None:
        words = "decode", "--type", "NACK_MCP", EVERY_TYPE
        assert "\x1b[31m" in printed(*words, terminal=False, FORCE_COLOR="1")
        assert "\x1b" not in printed(*words, terminal=False, FORCE_COLOR="0")
        assert "\x1b" not in printed(*words, NO_COLOR="1")
        assert "\x1b[31m" in printed(*words, NO_COLOR="")
        assert "\x1b" not in printed(*words, NO_COLOR="1", FORCE_COLOR="1")
        assert "\x1b[31m" in printed(*words, "--color", "always", terminal=False, NO_COLOR="1", TERM="dumb")
        assert "\x1b[" in printed("info", EVERY_TYPE, "--color", "always", terminal=False, NO_COLOR="1", TERM="dumb")

    def test_an_invalid_choice(self) -> None:
        run = mxwire("decode", "--color", "sometimes", EVERY_TYPE)
        assert run.code == 2 and "'auto', 'always', 'never'" in run.err


def test_written_files_are_reported(tmp_path: Path) -> None:
    run = mxwire("decode", "--to", tmp_path / "frames.csv", EVERY_TYPE)
    assert run.err == f"mxwire: wrote 87 frames to {tmp_path}/frames.csv\n" and run.out == ""
    run = mxwire("messages", "--kind", "RNDV", "--to", tmp_path / "messages.csv", EVERY_TYPE)
    assert run.err.startswith("mxwire: wrote ") and run.err.endswith(f" messages to {tmp_path}/messages.csv\n")
    run = mxwire("decode", "--count", "1", "--to", tmp_path / "one.csv", EVERY_TYPE)
    assert run.err == f"mxwire: wrote 1 frame to {tmp_path}/one.csv\n"
    run = mxwire("stats", "--plot", tmp_path / "plot.svg", EVERY_TYPE)
    assert run.err == f"mxwire: wrote plots of 87 frames to {tmp_path}/plot.svg\n"


@pytest.mark.parametrize("command", ["decode", "linerate generate", "simulate", "ss"])
def test_help_fits_the_window_except_commands_to_copy(command):
    narrow, piped = (printed(*command.split(), "--help", terminal=each, COLUMNS="80", NO_COLOR="1") for each in (1, 0))
    assert all(line.startswith("    mxwire ") for line in narrow.splitlines() if len(line) > 80)
    assert narrow.split() == piped.split()
    assert printed(*command.split(), "--help", COLUMNS="130", NO_COLOR="1").split() == piped.split()
    # `mxwire COMMAND --help | less` would break longer sentences within a word.
    sentences = [line for line in piped.splitlines() if line[:2] == "  " and line[2:3].isalpha()]
    assert sentences and max(map(len, sentences)) <= 80


def test_topics_fit_the_window():
    narrow = printed("help", "commands", COLUMNS="80")
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.split() == printed("help", "commands", terminal=False).split()
