"""Settings in the environment and in a file: their precedence, their places in errors, and who may write the file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mxwire.cli.configuration import SETTINGS, variable_of
from tests.cli.support import EVERY_TYPE, ROOT, Run, mxwire

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the file of the configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in (*map(variable_of, SETTINGS), "NO_COLOR", "FORCE_COLOR", "MXWIRE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "mxwire" / "config.toml"
    path.parent.mkdir()

    def write(text: str) -> Path:
        path.write_text(text)
        path.chmod(0o644)
        return path

    return write


def settings() -> dict[str, tuple[object, ...]]:
    found = mxwire("config", "--json").objects
    return {each["setting"]: (each["value"], each["source"], each["variable"], each["line"]) for each in found}


def refused(run: Run) -> str:
    assert (run.code, run.out, len(run.err.splitlines())) == (2, "", 1)
    return run.err


def test_a_variable_takes_precedence_over_the_file_and_the_file_over_the_default(write, monkeypatch):
    path = write('# mine\ninterface = "eth7"\ndialect = "omx"\n')
    monkeypatch.setenv("MXWIRE_DIALECT", "omx:1500")
    monkeypatch.setenv("MXWIRE_NAME", "")
    assert settings() == {
        "interface": ("eth7", "file", None, 2),
        "name": (None, "default", None, None),
        "dialect": ("omx:1500", "environment", "MXWIRE_DIALECT", None),
        "peers": (None, "default", None, None),
        "color": (None, "default", None, None),
    }
    shown = mxwire("config").lines
    assert [f"{path}:2" in line for line in shown if line.startswith("interface")] == [True]
    assert [line.split() for line in shown if line.startswith("dialect")] == [["dialect", "omx:1500", "MXWIRE_DIALECT"]]


def test_commands_use_the_settings_unless_an_option_is_given(write, monkeypatch):
    assert "Missing option '-i'" in refused(mxwire("ping", "beta:0"))
    write('interface = "none7"\n')
    assert "no interface 'none7'" in refused(mxwire("ping", "beta:0"))
    assert "no interface 'none8'" in refused(mxwire("ping", "beta:0", "-i", "none8"))
    monkeypatch.setenv("MXWIRE_INTERFACE", "none9")
    assert "no interface 'none9'" in refused(mxwire("ping", "beta:0"))
    # These read files too, and would otherwise refuse them.
    assert mxwire("info", EVERY_TYPE).code == mxwire("messages", EVERY_TYPE).code == 0


def test_the_name_and_the_dialect_are_for_the_local_host(write):
    write('name = "alpha:0"\ndialect = "omx:1500"\n')
    assert mxwire("decode", "--count", "1", EVERY_TYPE).code == 0
    run = mxwire("info", "--json", EVERY_TYPE)
    assert run.code == 0 and "omx:1500" not in run.out


def test_peers_are_relative_to_the_folder_of_the_file(write):
    path = write('peers = "hosts.txt"\n')
    assert f"{path}:1: peers: {path.parent / 'hosts.txt'} is not a file" in refused(mxwire("config"))
    (path.parent / "hosts.txt").write_text("52:54:00:0a:00:01 first:0\n")
    assert settings()["peers"][0] == str(path.parent / "hosts.txt")
    (path.parent / "hosts.txt").write_text("nonsense\n")
    assert f"{path.parent / 'hosts.txt'}:1: " in refused(mxwire("messages", EVERY_TYPE))


def test_colours_of_the_file_yield_to_every_variable_and_option(write, monkeypatch):
    def coloured(*words: str) -> bool:
        return "\x1b[" in mxwire(*words, "info", EVERY_TYPE).out

    assert not coloured()
    write('color = "always"\n')
    assert coloured() and not coloured("--color", "never")
    assert "\x1b[" not in mxwire("info", EVERY_TYPE, "--color", "never").out
    monkeypatch.setenv("FORCE_COLOR", "0")
    assert coloured() and settings()["color"][1] == "file"
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured() and settings()["color"] == ("never", "environment", "NO_COLOR", None)
    monkeypatch.setenv("MXWIRE_COLOR", "always")
    assert coloured() and settings()["color"] == ("always", "environment", "MXWIRE_COLOR", None)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ('\ninterfac = "eth0"\n', ":2", "there is no setting 'interfac' (did you mean interface?)"),
        ("\n\n[colours]\ncolor = 1\n", ":3", "there is no setting 'colours'"),
        ("[xyz]\n", ":1", "the settings are interface, name, dialect, peers, color"),
        ("dialect = 9000\n", ":1", "dialect: write a text in quotes"),
        ('name = ""\n', ":1", "name: write a text in quotes"),
        ('name = "alpha:0"\ndialect = "tcp"\n', ":2", "dialect: no dialect 'tcp'"),
        ('"name" = "a b"\n', ":1", "name: "),
        ('interface = "a b"\n', ":1", "interface: 'a b' is not the name"),
        ('color = "sometimes"\n', ":1", "'sometimes' is not auto, always or never"),
        ('name = "alpha:0"\nname = "beta:0"\n', ":2", "this is not TOML"),
        ("name\n", ":1", "this is not TOML"),
        ('name = "', "", "this is not TOML"),
        ("\x00", ":1", "this is not TOML"),
        ("#" * 70_000, "", "more than 65536 bytes"),
    ],
)
def test_mistakes_in_the_file_are_reported_with_their_line(write, text, place, problem):
    path = write(text)
    error = refused(mxwire("config"))
    assert error.startswith(f"mxwire: {path}{place}: ") and problem in error
    assert mxwire("--help").code == mxwire("--version").code == 0


def test_mistakes_in_variables_are_reported(write, monkeypatch):
    monkeypatch.setenv("MXWIRE_DIALECT", "tcp")
    for words in (("config",), ("ping", "beta:0", "-i", "lo")):
        assert refused(mxwire(*words)).startswith("mxwire: MXWIRE_DIALECT: dialect: no dialect 'tcp'")
    monkeypatch.setenv("MXWIRE_COLOR", "sometimes")
    assert refused(mxwire("formats")).startswith("mxwire: MXWIRE_COLOR: color: 'sometimes'")


def test_a_file_that_others_may_write_is_refused(write):
    path = write('color = "never"\n')
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert f"(mode {mode:04o}): chmod go-w {path}" in refused(mxwire("formats"))


def test_files_without_text_are_refused(write):
    path = write("")
    path.write_bytes(b"\xff\xfe")
    assert "not a text in UTF-8" in refused(mxwire("config"))
    path.unlink()
    os.mkfifo(path, 0o644)
    assert "must be a file" in refused(mxwire("config"))
    path.unlink()
    path.mkdir()
    assert f"{path}: the configuration cannot be read: Is a directory" in refused(mxwire("config"))


def test_a_missing_file_and_a_relative_folder_are_ignored(monkeypatch, tmp_path):
    assert mxwire("config").lines[-1] == "File: none"
    monkeypatch.setenv("MXWIRE_CONFIG", str(tmp_path / "mine"))
    assert mxwire("config").lines[-1] == f"File: {tmp_path}/mine (does not exist)"
    monkeypatch.delenv("MXWIRE_CONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    run = mxwire("config")
    assert run.code == 0 and run.lines[-1] == f"File: {tmp_path}/.config/mxwire/config.toml (does not exist)"


def test_completion_ignores_a_wrong_file(write):
    write("nonsense")
    environment = os.environ | {"_MXWIRE_COMPLETE": "bash_complete", "COMP_LINE": "mxwire ping --na"}
    script = "from mxwire.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert "--name" in done.stdout and not done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file to another user, and Python to another group, need root")
def test_a_file_of_another_user_is_refused_and_a_privileged_process_reads_none(write, tmp_path):
    path = write("nonsense")
    script = "from mxwire.cli import main; main(['config'])"
    python = tmp_path / "python"
    shutil.copy(Path(sys.executable).resolve(), python)
    variables = os.environ | {
        "PYTHONPATH": ":".join([str(ROOT), *filter(None, sys.path)]),
        "PYTHONHOME": sys.base_prefix,
    }
    ordinary, privileged = [], []
    for found, mode in ((ordinary, 0o755), (privileged, 0o2755)):
        os.chown(python, -1, 65534)
        python.chmod(mode)
        done = subprocess.run([python, "-c", script], env=variables, cwd=ROOT, capture_output=True, text=True)
        found += [done.returncode, "this is not TOML" in done.stderr, done.stderr]
    assert ordinary[:2] == [2, True] and privileged == [0, False, ""]
    os.chown(path, 65534, -1)
    assert "belongs to user 65534, and must belong to user 0" in refused(mxwire("config"))
