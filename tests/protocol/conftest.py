"""Notes which transitions of the engine's tables the tests take, if asked to (see test_every_transition.py)."""

from __future__ import annotations

import os
from pathlib import Path

from .tables import Recording, tables

RECORD = os.environ.get("MXWIRE_RECORD_TRANSITIONS")
_taken: set[str] = set()


def pytest_configure() -> None:
    if RECORD:
        for name, table in tables().items():
            for state, rows in table.leaving.items():
                table.leaving[state] = Recording(name, rows, _taken)


def pytest_sessionfinish() -> None:
    if RECORD:
        Path(RECORD).write_text("\n".join(sorted(_taken)), encoding="utf-8")
