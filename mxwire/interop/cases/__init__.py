"""The cases, one file per group, in the order of the report."""

from __future__ import annotations

from typing import Final

from mxwire.interop.cases import connects, discovery, ends, losses, matching, perf, sizes, streams
from mxwire.interop.cases.definition import CaseDefinition
from mxwire.interop.result import named

ALL_CASES: Final[dict[str, CaseDefinition]] = {
    part.case.name: part
    for group in (discovery, connects, sizes, matching, streams, losses, ends, perf)
    for part in group.CASES.definitions
}
"""Cases by name."""


def case_by_name(name: str) -> CaseDefinition:
    """Return a case by its name.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    return named(name, ALL_CASES, "case", GROUPS)


GROUPS: Final = tuple(dict.fromkeys(part.case.group for part in ALL_CASES.values()))

__all__ = ["ALL_CASES", "GROUPS", "CaseDefinition", "case_by_name"]
