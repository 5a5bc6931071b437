"""A home for each test, and the reports of tshark about itself, each of which is made once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mxwire.plugin import Tshark, programs

REPORT = Tshark._report


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that does not exist yet, at the same path in all tests, so that tshark's folders are, too."""
    folder = tmp_path_factory.getbasetemp() / "of-wireshark"
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("WIRESHARK_CONFIG_DIR", str(folder / "config"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    yield folder / "home"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def config(home: Path) -> Path:
    """Wireshark's configuration in that home."""
    return home.with_name("config")


@cache
def remembered(path: Path, what: str, home: str) -> str:
    """The report of a tshark."""
    return REPORT(Tshark(path), what)


@pytest.fixture(autouse=True)
def asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember versions, the folders of the real tshark, and its plugins while there is no home with others: each start
    takes it a quarter of a second."""

    def report(tshark: Tshark, what: str) -> str:
        home = os.environ["HOME"]
        if str(tshark.path) == shutil.which("tshark") and (what == "folders" or not Path(home).exists()):
            return remembered(tshark.path, what, home)
        return REPORT(tshark, what)

    monkeypatch.setattr(Tshark, "_report", report)
    monkeypatch.setattr(programs, "_program", PROGRAM)


PROGRAM = cache(programs._program)
