"""Captures for several modules, and columns of them: tshark takes longer to start than to read a capture."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from mxwire.dissector import expert_rows

from .support import AS_TEXT, BACKWARD, DIALECTS, LINKS, captures_of, columns_text, join, rows_of

Once = Callable[[str, Callable[[], str]], str]
Rows = Callable[..., list[list[str]]]


@pytest.fixture(scope="module", params=DIALECTS)
def captures(request: pytest.FixtureRequest, run_folder: Path, once: Once) -> Path:
    """All captures of a dialect in one, one after the other, each between hosts of its own."""
    path = run_folder / f"{request.param}.pcap"

    def joined() -> str:
        join(path, captures_of(request.param))
        return str(path)

    return Path(once(f"captures of {request.param}", joined))


@pytest.fixture(scope="module")
def one_pass(captures: Path, once: Once) -> Rows:
    """Columns of all captures, read in one pass."""
    names = ["mxoe.message", *(f"mxoe.{each}" for each in BACKWARD), *(each.name for each in expert_rows())]
    return selected(captures, once, names)


@pytest.fixture(scope="module")
def two_passes(captures: Path, once: Once) -> Rows:
    """Columns of all captures, read in two passes."""
    names = dict.fromkeys((*BACKWARD, *chain(*LINKS)))
    return selected(captures, once, [f"mxoe.{each}" for each in names], "-2")


def selected(captures: Path, once: Once, names: list[str], *arguments: str) -> Rows:
    every = [*AS_TEXT, *names]
    name = " ".join(("columns of", captures.stem, *arguments))
    made = rows_of(once(name, lambda: columns_text(captures, every, *arguments)))

    def rows(*wanted: str) -> list[list[str]]:
        places = [every.index(each) for each in wanted]
        return [[row[place] for place in places] for row in made]

    return rows
