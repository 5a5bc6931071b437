"""The plugin in Wireshark itself, on no screen: its menus are there, and their windows agree with tshark."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from mxwire.dissector import plugin_path

from .support import WIDTH, capture, isolated, needs_scripts, statistics

PROBE = Path(__file__).with_name("gui.lua")
MENUS = ("MXoE Packets", "MXoE Messages", "MXoE Peers")
SECONDS = 60

pytestmark = [needs_scripts, pytest.mark.skipif(shutil.which("wireshark") is None, reason="wireshark is not installed")]


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The lines of each window of the menu Statistics, by the name there."""
    home = tmp_path_factory.mktemp("wireshark")
    shown, log = home / "shown", home / "log"
    scripts = [part for each in (PROBE, plugin_path()) for part in ("-X", f"lua_script:{each}")]
    command = ["wireshark", "-n", *scripts, "-r", str(capture("mxoe-every-type"))]
    with isolated(home, installed=False) as environment, log.open("wb") as output:
        environment |= {"QT_QPA_PLATFORM": "offscreen", "XDG_RUNTIME_DIR": str(home), "MXWIRE_SHOWN": str(shown)}
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            text = _wait(process, shown, log)
        finally:
            process.kill()
            process.wait()
    assert "Lua" not in log.read_text(encoding="utf-8", errors="replace")
    parts = [part.partition("\n") for part in text.removesuffix("# end\n").split("# ")[1:]]
    return {name: lines.rstrip("\n").split("\n") for name, _, lines in parts}


def _wait(process: subprocess.Popen[bytes], shown: Path, log: Path) -> str:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        text = shown.read_text(encoding="utf-8") if shown.exists() else ""
        if text.endswith("# end\n"):
            return text
        time.sleep(0.1)
    pytest.fail(f"Wireshark has shown nothing (exit code {process.poll()}): {log.read_text(errors='replace')}")


def test_the_menus_are_there(windows: dict[str, list[str]]) -> None:
    assert windows.keys() == set(MENUS)


@pytest.mark.parametrize("name", MENUS)
def test_a_window_shows_the_output_of_tshark(windows: dict[str, list[str]], name: str) -> None:
    printed = statistics("mxoe-every-type")[name].splitlines()
    assert printed == [*windows[name], "=" * WIDTH]
    assert len(printed) > 3


@pytest.mark.parametrize("name", MENUS)
def test_lines_fit_the_window(windows: dict[str, list[str]], name: str) -> None:
    assert max(map(len, windows[name])) <= WIDTH
