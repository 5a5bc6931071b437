"""Saves the plays that are examples in the documentation: ``python -m tests.analysis.diagnosis.write``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from .plays import SHOWS

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
REAL = tomllib.loads((EXAMPLES / "real.toml").read_text(encoding="utf-8"))
"""The captures of real hosts that are examples, by diagnosis."""


def saved(folder: Path) -> list[Path]:
    """Save the examples in a folder."""
    made = []
    for name, case in SHOWS.items():
        if name not in REAL:
            path = folder / f"{name}.pcap"
            case.scene().save(path)
            made.append(path)
    return made


if __name__ == "__main__":
    EXAMPLES.mkdir(exist_ok=True)
    for each in saved(EXAMPLES):
        print(each.name, each.stat().st_size)
