"""Run tshark with the plugin, independently of the user's configuration, and parse its output."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from mxwire.capture import create_capture
from mxwire.cli.main import cli
from mxwire.dissector import plugin_path
from mxwire.frames import FrameBatch
from tests.wire.support import frames_of, read_capture

ROOT = Path(__file__).parents[2]
CAPTURES = tuple(sorted(each.stem for each in (ROOT / "captures").glob("*.pcap")))
DIALECTS = ("mxoe", "omx9000", "omx1500")
"""Prefixes of the names of captures."""
WIDTH = 72
"""Of the tables of the plugin."""
AS_TEXT = ("frame.number", "_ws.col.Info", "_ws.expert.message")
BACKWARD = ("request_in", "reply_time", "acknowledges", "analysis.ack_rtt", "original_in", "rndv_in", "refuses",
            "analysis.frames_in_flight", "transfer_time", "throughput", "dialect", "dialect.reason", "src_name",
            "dst_name", "reassembled.length", "fragment")  # fmt: skip
"""Facts about a frame and earlier ones: known when it is first seen."""
LINKS = (("request_in", "reply_in"), ("acknowledges", "acked_in"), ("refuses", "refused_in"))
"""Fields that lead to an earlier frame, and back."""


def capture(name: str) -> Path:
    return ROOT / "captures" / f"{name}.pcap"


def captures_of(dialect: str) -> list[str]:
    """The names of the captures of a dialect."""
    return [each for each in CAPTURES if each.startswith(dialect)]


def join(path: Path, names: Iterable[str]) -> None:
    """Write captures into one, one after the other, each between hosts of its own."""
    with create_capture(path) as writer:
        start = 0
        for which, name in enumerate(names):
            batch = read_capture(name)
            times = (batch.timestamp_ns - batch.timestamp_ns[0] + start).tolist()
            frames = [of_hosts(raw, which) for raw in frames_of(batch)]
            made = FrameBatch.from_frames(frames, times)
            writer.write(replace(made, wire_length=batch.wire_length))
            start = times[-1] + 100_000_000_000


def of_hosts(raw: bytes, which: int) -> bytes:
    """A frame between two other hosts."""
    changed = bytearray(raw)
    for address in (0, 6):
        if changed[address : address + 6] != b"\xff" * 6:
            changed[address + 3] = which + 1
    return bytes(changed)


def parts(captures: Path) -> Iterator[tuple[str, slice]]:
    """The name and the rows of each capture in the fixture ``captures``."""
    start = 0
    for name in captures_of(captures.stem):
        end = start + len(read_capture(name))
        yield name, slice(start, end)
        start = end


@cache
def _home() -> Path:
    """An empty folder in the place of the user's own: no plugins, preferences or names from there."""
    home = Path(tempfile.mkdtemp(prefix="mxwire-tshark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def _environment(home: Path) -> dict[str, str]:
    # The plugin has many small objects, which are allocated and freed in less time with larger caches of free ones.
    allocator = "glibc.malloc.tcache_count=65535:glibc.malloc.hugetlb=1"
    own = {"HOME": str(home), "WIRESHARK_CONFIG_DIR": str(home), "LC_ALL": "C.UTF-8", "GLIBC_TUNABLES": allocator}
    return {"PATH": os.environ["PATH"]} | own


def why_not() -> str:
    """The reason why tshark does not run scripts, or nothing; that of Wireshark 4.4 does not run them as root."""
    if shutil.which("tshark") is None:
        return "tshark is not installed"
    if os.name == "posix" and os.geteuid() == 0:
        command = ["tshark", "-X", f"lua_script:{plugin_path()}", "-r", str(capture("mxoe-connect")), "-c", "1"]
        done = subprocess.run(command, capture_output=True, timeout=60, env=_environment(_home()))
        if done.returncode == 0 and b"CONNECT" not in done.stdout and b"Lua" not in done.stderr:
            return "this tshark runs no scripts as root: run the tests as another user"
    return ""


needs_scripts = needs_tshark = pytest.mark.usefixtures("scripts")


@contextmanager
def isolated(home: Path, *, installed: bool = True) -> Iterator[dict[str, str]]:
    """An environment in which at most the plugin is installed in the user's folder, and nothing else."""
    plugins = home / "plugins"
    plugins.mkdir()
    if installed:
        shutil.copy(plugin_path(), plugins)
    environment = _environment(home) | {"WIRESHARK_PLUGIN_DIR": str(plugins)}
    yield environment


def run_tshark(
    path: Path, *arguments: str, timeout: float = 120, memory: int | None = None, plugin: bool = True
) -> tuple[str, str]:
    """The output of tshark for a capture, and its messages. Any error in Lua or in tshark fails the test."""
    loaded = ["-X", f"lua_script:{plugin_path()}"] if plugin else []
    command = ["tshark", "-n", *loaded, "-r", str(path), *arguments]
    if memory is not None:
        command = ["prlimit", f"--as={memory}", *command]
    done = subprocess.run(command, capture_output=True, timeout=timeout, env=_environment(_home()))
    out, errors = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, errors
    for said in (out, errors):
        assert "Lua Error" not in said and "Error during loading" not in said and "Dissector bug" not in said, said[
            max(said.find("Lua"), 0) :
        ][:600]
    return out, errors


def tshark(path: Path, *arguments: str, timeout: float = 120, memory: int | None = None) -> str:
    """The output of tshark with the plugin for a capture."""
    return run_tshark(path, *arguments, timeout=timeout, memory=memory)[0]


def mxwire(*arguments: object) -> list[str]:
    """The lines that mxwire's own command prints; in this process, which is quicker by far."""
    done = CliRunner().invoke(cli, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def columns(path: Path, fields: Iterable[str], *arguments: str) -> list[list[str]]:
    """Rows of fields; several values of one field with commas."""
    return rows_of(columns_text(path, fields, *arguments))


def columns_text(path: Path, fields: Iterable[str], *arguments: str) -> str:
    """Lines of fields, tab-separated."""
    return tshark(path, *arguments, "-T", "fields", *(part for field in fields for part in ("-e", field)))


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


@cache
def statistics(name: str) -> dict[str, str]:
    """The tables of a capture by title."""
    out = tshark(capture(name), "-q", "-z", "mxoe,stat", "-z", "mxoe,messages", "-z", "mxoe,peers")
    _, *parts = re.split(rf"^={{{WIDTH}}}\n(MXoE \w+)\n={{{WIDTH}}}\n", out, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


Items = dict[str, list[tuple[str, int, int]]]
"""The items of a frame below ``mxoe``, whatever the tree, by name: the value, the offset, and the length of each."""
_ITEM = re.compile(
    r'<field name="(mxoe[^"]*)"(?: showname="[^"]*")?(?: hide="yes")? size="(\d+)" pos="(\d+)"(?: show="([^"]*)")?'
)


def packets(path: Path, *arguments: str) -> Iterator[Items]:
    """The items of each frame."""
    for packet in tshark(path, *arguments, "-T", "pdml", "-J", "mxoe").split("<packet>")[1:]:
        items: Items = {}
        for name, size, start, shown in _ITEM.findall(packet):
            items.setdefault(name, []).append((unescape(shown), int(start), int(size)))
        yield items
