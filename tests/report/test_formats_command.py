"""``mxwire formats`` as a user runs it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from io import StringIO

import pytest
from click.testing import CliRunner

from mxwire.cli.formats import command
from mxwire.report import document
from mxwire.report.formats import layout_names

MXWIRE = (sys.executable, "-m", "mxwire")


def output(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_without_a_type_it_lists_all_and_names_the_next_command() -> None:
    text = output()
    assert text.splitlines()[0].split()[:2] == ["value", "packet"]
    assert all(name in text for name in ("RAW", "raw_omxoed", "connect_reply", "ETHER_NATIVE", "NACK_MCP"))
    assert "mxwire formats PULL --diagram" in text


def test_a_type_that_differs_is_shown_in_both_dialects() -> None:
    text = output("pull")
    order = ["PULL (41), dialect mxoe", "PULL (41), dialect omx", "PULL: where the dialects differ"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


def test_a_type_that_does_not_differ_is_shown_once() -> None:
    text = output("NOTIFY")
    assert text.count("NOTIFY (43)") == 1
    assert "both dialects" in text and "where the dialects differ" not in text


def test_one_dialect() -> None:
    text = output("MEDIUM", "--dialect", "omx")
    assert "dialect omx" in text and "dialect mxoe" not in text


def test_diagrams() -> None:
    text = output("CONNECT", "--diagram")
    assert text.count("ptype = 36") == 2
    assert "is_reply = 0" in text and "is_reply = 1" in text
    assert output("--diagram").count("ptype = ") == len(layout_names()) + 2


def test_json_lines() -> None:
    objects = [json.loads(line) for line in output("medium", "--json").splitlines()]
    assert {each["dialect"] for each in objects} == {"mxoe", "omx"}
    assert {each["layout"] for each in objects} == {"medium"}
    everything = [json.loads(line) for line in output("--json").splitlines()]
    assert {each["layout"] for each in everything} == set(layout_names())


def output_without_loading(modules: set[str], *words: str) -> str:
    """The output of a command that must not import any of ``modules``."""
    program = (
        "import sys; from mxwire.cli.main import cli\n"
        f"try: cli.main({list(words)})\n"
        "except SystemExit: pass\n"
        f"assert not {modules} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_has_examples_and_does_not_load_the_formats() -> None:
    output = output_without_loading({"construct", "numpy", "rich"}, "formats", "--help")
    assert "mxwire formats CONNECT --diagram" in output


def test_a_pipe_gets_plain_text_without_rich() -> None:
    output = output_without_loading({"rich"}, "formats", "pull")
    assert output and "\x1b" not in output


@pytest.mark.parametrize("arguments", [[], ["MEDIUM"], ["CONNECT", "--diagram"]])
def test_a_terminal_shows_the_same_words(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    piped = output(*arguments)
    shown: list[str] = []

    def show_styled(blocks: list[document.Block]) -> None:
        from rich.console import Console

        console = Console(width=100, force_terminal=True, highlight=False, record=True, file=StringIO())
        for block in blocks:
            console.print(document._styled_block(block, 100))
        shown.append(console.export_text())

    monkeypatch.setattr(document, "show", show_styled)
    output(*arguments)
    rules = set("=-─")
    assert {word for word in shown[0].split() if not set(word) <= rules} == {
        word for word in piped.split() if not set(word) <= rules
    }


@pytest.mark.parametrize(
    ("typed", "offered"), [("CONN", ["CONNECT"]), ("connect_r", ["connect_request", "connect_reply"]), ("zz", [])]
)
def test_shell_completion(typed: str, offered: list[str]) -> None:
    from mxwire.cli.formats import _complete

    found = _complete(None, None, typed)  # type: ignore[arg-type]
    assert [each.value for each in found] == offered


def test_on_a_terminal_it_is_styled() -> None:
    main, terminal = os.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen([*MXWIRE, "formats", "connect_reply"], stdout=terminal, env=environment) as process:
        os.close(terminal)
        shown = b""
        # Reading a terminal whose other end is closed is an error on Linux, and the end of the output.
        with contextlib.suppress(OSError):
            while piece := os.read(main, 65536):
                shown += piece
    os.close(main)
    assert process.returncode == 0
    assert b"\x1b[1;36mCONNECT (36): connect_reply, both dialects" in shown
    assert "─────" in shown.decode()
