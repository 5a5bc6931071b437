"""The reactions of a real driver to single frames: ``tests/data/driver-verdicts-*``, with replies and circumstances."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.wire.support import DATA


@dataclass(frozen=True)
class Verdict:
    """One frame, and what the driver counted and sent back."""

    id: int
    what: str
    state: str
    frame: bytes
    counters: dict[str, int]
    replies: tuple[bytes, ...]
    context: dict[str, Any]

    @property
    def sessions(self) -> dict[int, int]:
        """The sessions of the endpoints that were open, as far as they were written down."""
        return {int(number): int(session, 16) for number, session in self.context.get("session", {}).items()}

    @property
    def pull(self) -> tuple[int, int, int] | None:
        """Handle, length and region offset of the pull that was under way, if one was."""
        if "total" not in self.context:
            return None
        # The description of the PULLs is a Python literal in a string: their region offset is the same in all.
        _, found, rest = self.context["pulls"].partition("'roff': ")
        return int(self.context["handle"], 16), self.context["total"], int(rest.split(",")[0]) if found else 0


@cache
def read_verdicts(name: str) -> tuple[Verdict, ...]:
    """All verdicts of a dialect in the order in which the frames were sent."""
    with gzip.open(DATA / f"driver-verdicts-{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(
        Verdict(
            row["id"],
            row["what"],
            row["state"],
            bytes.fromhex(row["frame"]),
            row["counters"],
            tuple(map(bytes.fromhex, row["replies"])),
            row.get("context", {}),
        )
        for row in rows
    )
