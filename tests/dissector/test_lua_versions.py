"""The plugin in other versions of Lua than the installed tshark's: the same words from 5.2 to 5.4."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mxwire.dissector import plugin_path
from tests.wire.mutation import mutated
from tests.wire.support import frames_of, read_capture

pytest.importorskip("lupa", reason="lupa is not installed")

STUB = Path(__file__).with_name("stub.lua")
VERSIONS = ("lua53", "lua54")
CAPTURES = ("mxoe-every-type", "mxoe-early", "omx9000-lossy-1M", "omx1500-echo-pattern", "mxoe-rndv-offset")
FRAMES_SPOILT = 3000
Frame = tuple[int, float, bytes, int]


def frames(name: str) -> list[Frame]:
    if name == "spoilt":
        random = Random("versions of Lua")
        made = [mutated(random) for _ in range(FRAMES_SPOILT)]
        return [(place + 1, place * 0.01, frame, length) for place, (frame, length) in enumerate(made)]
    batch = read_capture(name)
    start = int(batch.timestamp_ns[0])
    times = ((batch.timestamp_ns - start) / 1e9).tolist()
    together = zip(times, frames_of(batch), batch.wire_length.tolist(), strict=True)
    return [(place + 1, time, frame, length) for place, (time, frame, length) in enumerate(together)]


def said_by(version: str, name: str) -> list[str]:
    """The plugin's output for all frames in one version of Lua; each frame again after the first pass."""
    try:
        lupa = importlib.import_module(f"lupa.{version}")
    except ImportError:
        pytest.skip(f"no {version} here")
    lua: Any = lupa.LuaRuntime(encoding=None)
    lua.execute(STUB.read_bytes())
    lua.execute(plugin_path().read_bytes())
    dissect = lua.globals().dissect
    assert len(lua.globals().statistics) == 3
    said: list[str] = []
    for visited in (False, True):
        for number, time, frame, length in frames(name):
            if len(frame) > 14:
                ends = (frame[:6].hex(":").encode(), frame[6:12].hex(":").encode())
                said.append(dissect(number, time, *ends, frame[14:], length - 14, visited).decode("utf-8", "replace"))
    return said


@cache
def said_by_52(name: str) -> list[str]:
    return said_by("lua52", name)


@pytest.mark.parametrize("name", [*CAPTURES, "spoilt"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_words(version: str, name: str) -> None:
    given = said_by(version, name)
    assert given == said_by_52(name)
    assert any("mxoe.reassembled.data" in each for each in given) or name in (
        "mxoe-early",
        "omx9000-lossy-1M",
        "spoilt",
    )
