"""The cases, a small file a group, in the order in which they are shown."""

from __future__ import annotations

from typing import Final

from mxwire.interop.cases import connecting, discovering, ending, lossy, matching, measuring, sizes, streaming
from mxwire.interop.cases.part import Part
from mxwire.interop.naming import named

PARTS: Final[dict[str, Part]] = {
    part.case.name: part
    for group in (discovering, connecting, sizes, matching, streaming, lossy, ending, measuring)
    for part in group.CASES.parts
}
"""By name."""


def part_by_name(name: str) -> Part:
    """The case that a user names.

    Raises :class:`~mxwire.errors.MxwireError` for a name that is none.
    """
    return named(name, PARTS, "case", GROUPS)


GROUPS: Final = tuple(dict.fromkeys(part.case.group for part in PARTS.values()))

__all__ = ["GROUPS", "PARTS", "Part", "part_by_name"]
