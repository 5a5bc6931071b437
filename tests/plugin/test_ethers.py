"""``mxwire plugin names``: the host names of captures in the columns of a real tshark, in a home of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mxwire.cli.main import cli
from mxwire.dissector import plugin_path
from mxwire.errors import MxwireError
from mxwire.plugin import Tshark, names_path, write_names
from tests.dissector.support import capture, needs_scripts

WITH_NAMES = capture("mxoe-every-type")
WITHOUT_NAMES = capture("mxoe-connect")
NAMES = {0x5254000A0001: "vm1:0", 0x5254000A0002: "vm2:0"}
needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["plugin", "names", *map(str, arguments)])


def tshark(path: Path, *arguments: str) -> list[str]:
    command = ["tshark", "-X", f"lua_script:{plugin_path()}", "-r", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "Lua Error" not in done.stdout + done.stderr
    return done.stdout.splitlines()


def rows(path: Path, *arguments: str) -> set[tuple[str, ...]]:
    """The addresses of frames as (Source, Destination, eth.src, eth.dst)."""
    wanted = ["-e", "_ws.col.Source", "-e", "_ws.col.Destination", "-e", "eth.src", "-e", "eth.dst"]
    return {tuple(line.split("\t")) for line in tshark(path, "-T", "fields", *wanted, *arguments)}


@needs_scripts
class TestColumns:
    """Wireshark shows the names wherever it shows addresses, and filters compare addresses as before."""

    FORTH = ("vm1:0", "vm2:0", "52:54:00:0a:00:01", "52:54:00:0a:00:02")
    BACK = ("vm2:0", "vm1:0", "52:54:00:0a:00:02", "52:54:00:0a:00:01")

    @pytest.fixture(autouse=True)
    def _named(self, config) -> None:
        assert run(WITH_NAMES).exit_code == 0

    @pytest.mark.parametrize("passes", [(), ("-2",)])
    @pytest.mark.parametrize("path", [WITH_NAMES, WITHOUT_NAMES], ids=lambda path: path.stem)
    def test_source_and_destination_are_names_in_every_frame(self, path, passes):
        unicast = rows(path, *passes, "-Y", "eth.dst.ig == 0" if not passes else "mxoe and eth.dst.ig == 0")
        assert unicast == {self.FORTH, self.BACK}

    def test_columns_of_the_packet_list_show_them(self):
        columns = '"From","%s","To","%d","Address","%uhs"'
        shown = {tuple(line.split()) for line in tshark(WITHOUT_NAMES, "-o", f"gui.column.format:{columns}")}
        assert shown == {("vm1:0", "→", "vm2:0", self.FORTH[2]), ("vm2:0", "→", "vm1:0", self.BACK[2])}

    def test_filters_take_addresses_and_names(self):
        assert rows(WITHOUT_NAMES, "-Y", "eth.src == 52:54:00:0a:00:01") == {self.FORTH}
        assert rows(WITHOUT_NAMES, "-Y", 'eth.src_resolved == "vm2:0"') == {self.BACK}

    def test_conversations_keep_both_hosts(self):
        def table(*arguments: str) -> list[str]:
            lines = tshark(WITHOUT_NAMES, "-q", "-z", "conv,eth", *arguments)
            return [" ".join(line.split()) for line in lines if "<->" in line]

        (named,), (numeric,) = table(), table("-n")
        assert named.startswith("vm1:0 <-> vm2:0 ")
        assert named.replace("vm1:0", "52:54:00:0a:00:01").replace("vm2:0", "52:54:00:0a:00:02") == numeric

    @pytest.mark.parametrize("off", [("-n",), ("-o", "nameres.mac_name:FALSE")])
    def test_wireshark_s_preference_turns_them_off(self, off):
        assert {each[0] for each in rows(WITHOUT_NAMES, *off)} == {"52:54:00:0a:00:01", "52:54:00:0a:00:02"}


class TestFile:
    def test_other_entries_and_comments_remain(self, tmp_path):
        path = tmp_path / "ethers"
        path.write_bytes(b"# mine \xff\n52-54-00-0A-00-01 old # vm1\n0:1:2:3:4:5 other\n52:54:0:a:0:1 older\n")
        entries = write_names(path, NAMES)
        assert path.read_bytes() == (
            b"# mine \xff\n0:1:2:3:4:5 other\n52:54:00:0a:00:01 vm1:0\n52:54:00:0a:00:02 vm2:0\n"
        )
        assert [(each.name, each.before) for each in entries] == [("vm1:0", "old"), ("vm2:0", None)]

    def test_a_current_file_is_not_written(self, tmp_path):
        path = tmp_path / "ethers"
        write_names(path, NAMES)
        before = path.stat()
        assert [each.before for each in write_names(path, NAMES)] == list(NAMES.values())
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    @given(
        names=st.dictionaries(st.integers(0, 2**48 - 1), st.text(st.characters(codec="ascii"), min_size=1), max_size=4)
    )
    def test_written_names_are_found_again(self, names, tmp_path_factory):
        path = tmp_path_factory.mktemp("names") / "ethers"
        write_names(path, names)
        for entry in write_names(path, names):
            assert entry.before == entry.name
            assert not set(entry.name) & set(" \t\n#")

    def test_a_folder_that_cannot_be_written_is_reported(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(MxwireError, match=r"file/ethers cannot be read or written: Not a directory"):
            write_names(tmp_path / "file" / "ethers", NAMES)


@needs_tshark
class TestCommand:
    def test_the_file_is_in_the_user_s_configuration(self, config):
        done = run(WITH_NAMES)
        assert done.exit_code == 0
        assert names_path(Tshark()) == config / "ethers"
        assert done.stdout.splitlines() == [
            "52:54:00:0a:00:01 vm1:0 added",
            "52:54:00:0a:00:02 vm2:0 added",
            f"wrote {config / 'ethers'}: restart Wireshark if it is running",
        ]
        assert run(WITH_NAMES).stdout.splitlines()[-1] == "52:54:00:0a:00:02 vm2:0 is up to date"

    def test_json_names_the_file_and_the_hosts(self, tmp_path):
        target = tmp_path / "profile" / "ethers"
        made = json.loads(run("--json", "-w", target, WITH_NAMES).stdout)
        assert made["path"] == str(target)
        assert made["changed"]
        assert made["hosts"][0] == {"address": "52:54:00:0a:00:01", "name": "vm1:0", "before": None}
        assert target.read_text() == "52:54:00:0a:00:01 vm1:0\n52:54:00:0a:00:02 vm2:0\n"

    def test_a_capture_without_names_is_refused(self, config):
        done = run(WITHOUT_NAMES)
        assert isinstance(done.exception, MxwireError)
        assert "no HOST_REPLY in" in str(done.exception)
        assert done.stdout == ""
        assert not config.exists()

    def test_names_of_the_other_captures_are_written_if_one_is_missing(self, config):
        done = run(WITH_NAMES, "missing.pcap")
        assert done.exit_code == 2
        assert "missing.pcap: no such file" in done.stderr
        assert (config / "ethers").is_file()
