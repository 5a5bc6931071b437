"""The command as a whole: help, completion, version, speed of start."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import click
import pytest

import mxwire as package
from mxwire.cli.catalogue import ENTRIES, FIRST, GROUPS, TOPICS
from mxwire.cli.main import COMMANDS, cli
from mxwire.errors import MxwireError
from mxwire.native import is_compiled
from tests.cli.support import EVERY_TYPE, ROOT, mxwire


def test_help_describes_the_first_commands_and_names_the_others_by_task(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    run = mxwire("--help")
    assert run == mxwire() == mxwire("help")
    assert run.code == 0 and 24 <= len(run.lines) <= 50 and max(map(len, run.lines)) <= 80
    first = run.out.split("First commands:\n", 1)[1].split("\n\n", 1)[0].splitlines()
    assert [line.split(maxsplit=1) for line in first] == [[name, ENTRIES[name].help] for name in FIRST]
    for title, entries in GROUPS.items():
        (line,) = (each for each in run.lines if each.startswith(f"  {title}  "))
        assert line.removeprefix(f"  {title}").strip().split(", ") == [e.name for e in entries if e.name not in FIRST]
    assert all(topic in run.out for topic in TOPICS)


def test_help_commands_describes_each_in_one_line():
    run = mxwire("help", "commands")
    for title, entries in GROUPS.items():
        section = run.out.split(f"{title}:\n", 1)[1].split("\n\n", 1)[0].splitlines()
        assert [re.split(" {2,}", line.strip()) for line in section] == [
            [f"mxwire {each.name} {each.usage}".rstrip(), each.help] for each in entries
        ]


@pytest.mark.parametrize("topic", [each for each in TOPICS if each != "commands"])
def test_topics_have_a_text_and_their_options(topic):
    run = mxwire("help", topic)
    assert run.code == 0 and run.lines[0] == f"{TOPICS[topic]}." and len(run.lines) > 10
    (record,) = mxwire("help", topic, "--json").objects
    assert record["topic"] == topic and "\b" not in record["text"] + run.out
    assert all(name in run.out for option in record["options"] for name in option["names"])
    words = record["text"].split()
    assert [word for word in run.out.split() if word in words] and set(words) <= set(run.out.split())


def test_help_of_a_command_names_shared_options_beside_their_topic(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    own, shared = mxwire("messages", "--help").out.split("Shared options (mxwire help TOPIC):\n")
    assert "--incomplete" in own and "--host" not in own.split("Options:")[1]
    rows = " ".join(shared.split("\n\n")[0].split())
    assert "filter --host, --pair, --endpoint, --type, --kind, --message, --frames, --between, --match" in rows
    assert "hosts --peers, --names" in rows and rows.endswith("output --color")


@pytest.mark.parametrize("words", [("decode",), ("plugin", "install"), ("interop", "diff"), ("scenario",)])
def test_the_help_command_prints_the_same_as_the_option(words):
    assert mxwire("help", *words) == mxwire(*words, "--help")


def test_help_command_lists_every_command_as_json():
    found = {each["command"] for each in mxwire("help", "--json").objects}
    assert {"mxwire decode", "mxwire plugin install", "mxwire interop diff"} <= found
    (decode,) = mxwire("help", "decode", "--json").objects
    assert ["-v", "--verbose"] in [each["names"] for each in decode["options"]]


@pytest.mark.parametrize("group", ["plugin", "scenario"])
def test_group_without_subcommand_prints_its_help_once(group):
    run = mxwire(group)
    assert run == mxwire(group, "--help")
    assert run.code == 0 and not run.err and run.out.count("Usage:") == 1
    assert "..." not in run.out.split("Commands:")[1].split("Examples:")[0]


def test_version():
    python = ".".join(map(str, sys.version_info[:3]))
    kind = "compiled" if is_compiled() else "pure Python"
    machine = f"{kind}; cpython {python}, Linux {os.uname().machine}"
    assert mxwire("--version").out == f"mxwire, version {package.__version__} ({machine})\n"


HELP = """
import contextlib, io, sys
from mxwire.cli import main
for command in sys.argv[1:]:
    sys.argv = ["mxwire", command, "--help"]
    try:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            main()
    except SystemExit as ended:
        assert ended.code == 0, command
    assert "Examples:" in shown.getvalue() and "--json" in shown.getvalue(), command
    print(command, *{"numpy", "polars", "construct", "rich", "numba"} & set(sys.modules))
"""


def test_help_has_examples_and_needs_no_heavy_import():
    """In one process, since only the first offender matters."""
    done = subprocess.run([sys.executable, "-c", HELP, *COMMANDS], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout.splitlines(), done.stderr) == ([*COMMANDS], "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command):
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    for parameter in found.params:
        known = isinstance(parameter, click.Argument) or (isinstance(parameter, click.Option) and parameter.hidden)
        assert known or parameter.help, parameter.name


def test_module_and_script_are_the_same_command():
    for start in (["-m", "mxwire"], ["cli.py"]):
        done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, cwd=ROOT)
        assert done.stdout.startswith("mxwire, version")


COUNTING = """
import atexit, os, sys
atexit.register(lambda: os.system("echo $OPENBLAS_NUM_THREADS"))
atexit.register(lambda: print("numpy" in sys.modules, len(os.listdir("/proc/self/task")), flush=True))
from mxwire.__main__ import main
main()
"""


def test_numpy_starts_no_threads_unless_they_are_requested(monkeypatch: pytest.MonkeyPatch):
    words = [sys.executable, "-c", COUNTING, "info", "--json", str(EVERY_TYPE)]
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["True 1", "1"]
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "3"


def test_shell_completion():
    environment = {
        "_MXWIRE_COMPLETE": "bash_complete",
        "COMP_WORDS": "mxwire dec",
        "COMP_CWORD": "1",
        "PATH": "/usr/bin:/bin",
    }
    script = "from mxwire.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert re.search(r"\bdecode\b", done.stdout)


def test_help_breaks_lines_at_spaces_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in (("diagnose",), ("simulate",), ("interop",), ("bench", "imb"), ("perf",), ("scenario", "run")):
        lines = mxwire(*arguments, "--help").lines
        assert not [line for line in lines if re.search(r"[\w.]-$", line)]
        assert "\N{NON-BREAKING HYPHEN}" not in "".join(lines)


def test_a_copy_of_mxwire_elsewhere_is_reported_in_a_checkout(tmp_path):
    (tmp_path / "mxwire" / "cli").mkdir(parents=True)
    (tmp_path / "mxwire" / "cli" / "main.py").touch()
    run = mxwire("formats", cwd=tmp_path)
    assert (run.code, len(run.err.splitlines())) == (0, 1)
    assert f"not the checkout in {tmp_path}" in run.err
    assert not mxwire("formats", cwd=tmp_path.parent).err


def test_the_kit_ends_a_command_that_does_not_end_and_answers_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each later test of this process would get the result of the command before its own."""
    os.mkfifo(tmp_path / "pipe.pcap")
    monkeypatch.setattr("tests.forked._SECONDS", 0.5)
    with pytest.raises(TimeoutError, match=r"decode .*pipe.pcap has not ended within 0.5 s"):
        mxwire("decode", tmp_path / "pipe.pcap")
    monkeypatch.undo()
    assert mxwire("decode").code == 2 and mxwire("formats").code == 0


@pytest.mark.parametrize("error", [None, MxwireError("wrong"), KeyError("wrong")])
def test_a_command_in_a_process_lets_the_garbage_collector_run_as_seldom_as_in_its_own(error):
    before, often = gc.get_threshold(), (700, 10, 10)
    thresholds = []

    def probe() -> None:
        thresholds.append(gc.get_threshold())
        if error is not None:
            raise error

    try:
        gc.set_threshold(*often)
        with pytest.MonkeyPatch.context() as patch, nullcontext() if error is None else pytest.raises(type(error)):
            patch.setattr(cli, "get_command", lambda *_: click.Command("probe", callback=probe))
            cli.main(["probe"], standalone_mode=False)
        assert thresholds[0][0] >= 100 * often[0]
        assert gc.get_threshold() == often
    finally:
        gc.set_threshold(*before)
