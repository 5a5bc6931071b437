"""Planned faults: each at one frame, or before one step of a run, instead of drawn from the seed.

A plan is written as its faults with commas, ``lose@7,die:1@31``: frame 7 is lost, and application 1 dies before step
31. Frames are numbered from 1 in the order in which all hosts send them, steps from 1 as the schedule runs them. Up to
the first fault, both are the same in every run of a scenario, so a plan identifies a run as a seed does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mxwire.errors import MxwireError
from mxwire.texts import meanings

FRAME_FAULTS: Final = meanings(__file__, "faults.md", "Faults of a frame")
"""Faults of a frame, with their effects."""
SIDE_FAULTS: Final = meanings(__file__, "faults.md", "Faults of an application")
"""Faults of an application, with their effects."""
_WRITTEN: Final = re.compile(r"([a-z]+)(?::(\d{1,3}))?@(\d{1,9})")


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault: its kind, and the number of the frame or step. ``victim`` is the number of the application."""

    kind: str
    place: int
    victim: int | None = None

    def __str__(self) -> str:
        """Return the fault as it is written in a plan."""
        victim = "" if self.victim is None else f":{self.victim}"
        return f"{self.kind}{victim}@{self.place}"


Plan = tuple[PlannedFault, ...]
"""Faults in the order in which they happen."""


def plan_text(plan: Plan) -> str:
    """Return a plan as it is written."""
    return ",".join(map(str, plan))


def parse_plan(text: str) -> Plan:
    """Return the plan that is written as ``lose@7,die:1@31``; raise MxwireError if it is malformed."""
    return tuple(map(_parse_fault, text.split(",")))


def _parse_fault(text: str) -> PlannedFault:
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or int(match[3]) == 0:
        raise MxwireError(f"fault {text!r}: write it as lose@7 (frame 7) or die:1@31 (application 1, step 31)")
    kind, victim, place = match[1], match[2], int(match[3])
    if kind in FRAME_FAULTS and victim is None:
        return PlannedFault(kind, place)
    if kind in SIDE_FAULTS and victim is not None:
        return PlannedFault(kind, place, int(victim))
    if kind in FRAME_FAULTS:
        raise MxwireError(f"fault {text!r}: {kind} is a fault of a frame and has no application; write {kind}@{place}")
    if kind in SIDE_FAULTS:
        raise MxwireError(f"fault {text!r}: name the application, as in {kind}:0@{place}")
    raise MxwireError(f"fault {text!r}: no fault {kind!r}; use one of {', '.join((*FRAME_FAULTS, *SIDE_FAULTS))}")
