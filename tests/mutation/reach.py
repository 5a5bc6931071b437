"""Plugin of pytest that records the mutants which each test reaches: their lines have probes (``-p``)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from .operators import PACKAGE

# pytest has put its own loader, which rewrites assertions of mxwire's plugin, before that of changed modules.
sys.meta_path.sort(key=lambda each: type(each).__name__ != "ChangedFinder")

ROOMS = ("protocol", "wire", "rules", "analysis", "host")


def import_rooms() -> None:
    """Import all modules of the rooms, so that no test does it."""
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            if path.stem != "__main__":
                parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
                import_module(".".join(parts).removesuffix(".__init__"))


class Reach:
    """The mutants that tests, and fixtures of several tests, reach in all processes."""

    def __init__(self, folder: Path, worker: str) -> None:
        self.reached = folder / f"reached{worker}"
        self.result = folder / f"tests{worker}.jsonl"
        os.environ["MXWIRE_REACHED"] = str(self.reached)
        self.by_fixture: dict[object, set[int]] = {}
        self.by_test: set[int] = set()
        self.seconds = 0.0
        self.passed = True

    def take(self) -> set[int]:
        """Return the mutants that were reached since the last call."""
        sys.modules["sitecustomize"].known.clear()
        numbers = {*map(int, self.reached.read_text().split())} if self.reached.exists() else set()
        self.reached.write_text("")
        return numbers

    def write(self, name: str) -> None:
        """Write the line of a test."""
        fields = {"test": name, "passed": self.passed, "seconds": self.seconds, "mutants": sorted(self.by_test)}
        with self.result.open("a") as file:
            file.write(json.dumps(fields) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        """Record what is reached while modules are imported."""
        import_rooms()
        self.by_test = self.take()
        self.write("")
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[object]:
        """Record what a fixture of several tests reaches."""
        if fixturedef.scope == "function":
            return (yield)
        self.by_test |= self.take()
        try:
            return (yield)
        finally:
            self.by_fixture[fixturedef] = self.take()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[object]:
        """Record what a test reaches."""
        self.take()
        self.by_test, self.seconds, self.passed = set(), 0.0, True
        result = yield
        self.by_test |= self.take()
        for fixtures in item._fixtureinfo.name2fixturedefs.values():
            for each in fixtures:
                self.by_test |= self.by_fixture.get(each, set())
        self.write(item.nodeid)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sum up what a test takes."""
        self.seconds += report.duration
        self.passed = self.passed and report.passed


def pytest_configure(config: pytest.Config) -> None:
    """Start, except in a process that only hands tests to others."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Reach(Path(os.environ["MXWIRE_REACH_FOLDER"]), worker))
