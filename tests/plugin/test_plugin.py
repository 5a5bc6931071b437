"""``mxwire plugin`` with a real tshark, in a home of its own."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from mxwire.cli.plugin import command
from mxwire.dissector import plugin_path
from mxwire.errors import MxwireError
from mxwire.plugin import Tshark, check, install, places, uninstall
from mxwire.plugin.check import shipped_capture
from mxwire.plugin.programs import wireshark
from tests.cli.support import open_to_all
from tests.dissector.support import needs_scripts

SOURCE = plugin_path()


@pytest.fixture
def target(home) -> Path:
    return Tshark().folder("personal") / SOURCE.name


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def fake(path: Path, script: str) -> Path:
    """A tshark that runs the script; the real one is ``$REAL``."""
    path.write_text(f"#!/bin/sh\nREAL={Tshark().path}\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


class TestInstalling:
    def test_the_folder_is_in_the_home(self, home, target):
        assert home in target.parents
        assert run("path").output == f"{target}\n"

    def test_the_whole_life(self, target, config):
        extcap = config / "extcap" / "mxwire-extcap"
        assert run("install").output == f"{target} installed\n{extcap} installed\n"
        assert target.read_bytes() == SOURCE.read_bytes()
        assert [stat.S_IMODE(each.stat().st_mode) for each in (target, extcap)] == [0o644, 0o755]
        assert run("install").output == f"{target} is up to date\n{extcap} is up to date\n"
        target.write_text("-- old\n")
        assert next(each.state for each in places(Tshark())) == "stale"
        assert run("install").output == f"{target} replaced by that of this mxwire\n{extcap} is up to date\n"
        assert [each.name for each in target.parent.iterdir()] == [SOURCE.name], "nothing temporary is left"
        assert json.loads(run("uninstall", "--json").output) == {
            "path": str(target),
            "before": "current",
            "changed": True,
            "extcap": {"path": str(extcap), "before": "current", "changed": True},
        }
        assert run("uninstall").output == f"{target} was not installed\n{extcap} was not installed\n"

    def test_path_as_json(self, target):
        reported = json.loads(run("path", "--json").output)
        assert reported["source"] == str(SOURCE)
        assert reported["personal"] == {"path": str(target), "state": "missing"}
        assert reported["extcap"]["personal"]["path"].endswith("/extcap/mxwire-extcap")
        assert set(reported) == {"source", "personal", "global", "extcap"}

    def test_for_all_users(self, tmp_path):
        """A tshark whose global folder is one that the test may write to."""
        folder = tmp_path / "global"
        tshark = fake(
            tmp_path / "tshark",
            f'"$REAL" "$@" | sed -e "s|^\\(Global \\)\\?Extcap path:.*|Extcap path:\t{folder}|" '
            f'-e "s|^Global Lua Plugins:.*|Global Lua Plugins:\t{folder}|"',
        )
        lines = run("install", "--global", "--tshark", str(tshark)).output.splitlines()
        assert lines == [f"{folder / name} installed" for name in (SOURCE.name, "mxwire-extcap")]
        result = run("install", "--tshark", str(tshark))
        assert isinstance(result.exception, MxwireError)
        assert "would load both: run mxwire plugin uninstall --global first" in str(result.exception)
        assert run("uninstall", "--global", "--tshark", str(tshark)).output.endswith("removed\n")

    def test_a_folder_that_may_not_be_written(self, tmp_path):
        """As an unprivileged user, since root may write anywhere."""
        folder = tmp_path / "global"
        folder.mkdir(mode=0o555)
        open_to_all(tmp_path)
        tshark = fake(
            tmp_path / "tshark",
            f'printf "Personal Lua Plugins:\\t{tmp_path}/own\\nGlobal Lua Plugins:\\t{folder}\\n'
            f'Personal configuration:\\t{tmp_path}/own\\nExtcap path:\\t{folder}\\n"',
        )
        script = (
            "import os, sys\nfrom pathlib import Path\nfrom mxwire.errors import MxwireError\n"
            "from mxwire.plugin import Tshark, install\nimport tempfile, mxwire.dissector\n"
            "if os.geteuid() == 0: os.setuid(65534)\n"
            "try: install('global', Tshark(Path(sys.argv[1])))\n"
            "except MxwireError as error: print(error)"
        )
        done = subprocess.run([sys.executable, "-c", script, str(tshark)], capture_output=True, text=True, cwd=tmp_path)
        assert "mxoe.lua cannot be written (Permission denied)" in done.stdout, done.stderr
        assert done.stdout.count("\n") == 1

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        folder = tmp_path / "global"
        folder.write_text("a file")
        self._refused(tmp_path, folder, "")

    def _refused(self, tmp_path, folder, reason):
        tshark = fake(
            tmp_path / "tshark", f'"$REAL" "$@" | sed "s|^Global Lua Plugins:.*|Global Lua Plugins:\t{folder}|"'
        )
        with pytest.raises(MxwireError, match=r"mxoe\.lua cannot be written \(" + reason) as caught:
            install("global", Tshark(tshark))
        assert "\n" not in str(caught.value)

    def test_permission_denied_names_the_remedy(self, monkeypatch):
        def refuse(*arguments: object, **options: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("mxwire.plugin.folder.tempfile.mkstemp", refuse)
        monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
        with pytest.raises(MxwireError, match=r"\(Permission denied\): run it as root \(sudo\), or without --global"):
            install("global", Tshark())
        with pytest.raises(MxwireError, match=r"\(Permission denied\): see its permissions"):
            install("personal", Tshark())

    def test_a_write_that_fails_leaves_the_old_file(self, target, monkeypatch):
        run("install")
        target.write_text("-- old\n")

        def fail(*arguments: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", fail)
        with pytest.raises(MxwireError, match="No space left on device"):
            install("personal", Tshark())
        assert target.read_text() == "-- old\n"
        assert len(list(target.parent.iterdir())) == 1


class TestTshark:
    def test_its_version_and_lua(self):
        program = Tshark().program()
        assert program.version.count(".") >= 1 and program.lua is not None

    def test_there_is_none(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr("mxwire.plugin.programs._ELSEWHERE", ())
        with pytest.raises(MxwireError, match=r"tshark is not installed: install it \(apt install tshark"):
            Tshark()
        assert wireshark() is None

    def test_the_given_one_is_not_there(self):
        with pytest.raises(MxwireError, match="there is no program /nowhere/tshark"):
            Tshark("/nowhere/tshark")

    def test_an_invalid_tshark(self, tmp_path):
        with pytest.raises(MxwireError, match="names no personal plugin folder"):
            Tshark(fake(tmp_path / "tshark", "echo hello")).folder("personal")
        with pytest.raises(MxwireError, match="fails with exit code 3: oh no"):
            Tshark(fake(tmp_path / "tshark", "echo oh no >&2; exit 3")).folder("personal")

    def test_older_names_of_the_folders(self, tmp_path):
        text = "Personal configuration:\t/x\nPersonal Plugins:\t/home/me/plugins\nGlobal Plugins:\t/usr/plugins"
        tshark = Tshark(fake(tmp_path / "tshark", f"printf '{text}'"))
        assert [str(tshark.folder("personal")), str(tshark.folder("global"))] == ["/home/me/plugins", "/usr/plugins"]

    @needs_scripts
    def test_it_lists_the_loaded_plugins(self, target):
        assert Tshark().loaded(SOURCE.name) == []
        install("personal", Tshark())
        assert Tshark().loaded(SOURCE.name) == [target]
        uninstall("personal", Tshark())


@needs_scripts
class TestCheck:
    def test_not_installed(self):
        report = check()
        assert [str(each) for each in report.problems] == ["the plugin is not installed: run mxwire plugin install"]
        assert report.loaded == "source" and report.expected == report.decoded
        result = run("check")
        assert result.exit_code == 1
        assert "wrong:           the plugin is not installed: run mxwire plugin install" in result.output

    def test_all_is_well(self, target, monkeypatch):
        run("install")
        monkeypatch.setattr("mxwire.plugin.check", cache(check))
        result = run("check")
        assert result.exit_code == 0, result.output
        assert result.output.endswith("The plugin is installed and works.\n")
        reported = json.loads(run("check", "--json").output)
        assert reported["ok"] and reported["problems"] == []
        assert reported["frames"]["expected"] == reported["frames"]["decoded"] > 50
        assert len(reported["types"]) >= 14
        assert all(each["expected"] == each["decoded"] for each in reported["types"].values())
        assert reported["places"][0] == {
            "file": "dissector",
            "scope": "personal",
            "path": str(target),
            "state": "current",
        }
        assert reported["loaded"] == "installed" and reported["tshark"]["lua"]

    def test_stale_but_working(self, target):
        run("install")
        target.write_text(target.read_text(encoding="utf-8") + "\n-- changed\n", encoding="utf-8")
        (problem,) = check().problems
        assert str(problem) == f"{target} is not the plugin of this mxwire: run mxwire plugin install"

    def test_a_plugin_that_does_not_load(self, target):
        target.parent.mkdir(parents=True)
        target.write_text("error('broken')\n")
        reported = "\n".join(str(each) for each in check().problems)
        assert "is not the plugin of this mxwire" in reported
        assert "tshark complains: " in reported and "broken" in reported
        assert run("check").exit_code == 1

    def test_a_second_copy_under_another_name(self, target):
        target.parent.mkdir(parents=True)
        for path in (target, target.with_name("mxoe-copy.lua")):
            path.write_bytes(SOURCE.read_bytes())
        assert any("Lua: Error during loading" in str(each) for each in check().problems)

    def test_a_plugin_that_decodes_differently(self, tmp_path):
        drop = '"$REAL" "$@" | { case "$*" in *frame.number*) sed "3d";; *) cat;; esac; }'
        reported = [str(each) for each in check(fake(tmp_path / "tshark", drop)).problems]
        assert any("of 87 frames differently, the first is frame 3: nothing instead of" in each for each in reported)

    def test_a_tshark_that_loads_no_plugins(self, tmp_path):
        empty = 'case "$*" in *frame.number*) ;; *) "$REAL" "$@";; esac'
        reported = [str(each) for each in check(fake(tmp_path / "tshark", empty)).problems]
        assert any("tshark does not load the plugin: see that Lua is not disabled" in each for each in reported)

    @pytest.mark.parametrize(("user", "reported"), [(0, True), (1000, False)])
    def test_root_learns_why_no_plugin_is_loaded(self, user, reported, tmp_path, monkeypatch):
        """As root, Wireshark 4.4 runs no scripts of the user's own."""
        empty = fake(tmp_path / "tshark", 'case "$*" in *frame.number*) ;; *) "$REAL" "$@";; esac')
        monkeypatch.setattr("os.geteuid", lambda: user)
        (problem,) = [str(each) for each in check(empty).problems if "does not load" in each.what]
        assert ("run mxwire plugin install --global" in problem) == reported

    def test_a_tshark_without_lua(self, tmp_path):
        bare = '[ "$1" = -v ] && echo "TShark (Wireshark) 4.0.1" || "$REAL" "$@"'
        (problem,) = check(fake(tmp_path / "tshark", bare)).problems
        assert "was built without Lua" in str(problem)

    def test_no_tshark(self):
        result = run("check", "--tshark", "/nowhere/tshark", "--json")
        reported = json.loads(result.output)
        assert result.exit_code == 1 and reported["tshark"] is None
        assert "install it" in reported["problems"][0]["remedy"]

    def test_both_folders(self, tmp_path, target):
        run("install")
        folder = tmp_path / "global"
        folder.mkdir()
        (folder / SOURCE.name).write_bytes(SOURCE.read_bytes())
        script = f'"$REAL" "$@" | sed "s|^Global Lua Plugins:.*|Global Lua Plugins:\t{folder}|"'
        reported = [str(each) for each in check(fake(tmp_path / "tshark", script)).problems]
        assert reported == [
            "the plugin is in both folders, and Wireshark loads both: run mxwire plugin uninstall --global"
        ]

    def test_the_shipped_capture_has_every_type(self):
        assert shipped_capture().is_file()
        assert len(check().expected) == 14


@pytest.mark.parametrize(("changed", "reported"), [(True, f"wrote {SOURCE}"), (False, f"{SOURCE} is up to date")])
def test_build_reports_whether_it_wrote(changed, reported, monkeypatch):
    """The writing itself is the dissector's own; it is not let loose on the checkout here."""
    monkeypatch.setattr("mxwire.dissector.build.write", lambda: changed)
    assert run("build").output == f"{reported}\n"


def test_build_needs_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr("mxwire.dissector.location.source_path", lambda: tmp_path / "mxoe.lua")
    assert "the plugin can be built only in a checkout" in str(run("build").exception)


def test_every_subcommand_explains_itself():
    assert isinstance(command, click.Group)
    for name in command.commands:
        result = run(name, "--help")
        assert result.exit_code == 0 and "Usage:" in result.output
    assert "Examples:" in run("--help").output
