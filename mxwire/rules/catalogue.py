"""All rules of the specification as data."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book import (
    connections,
    fabric,
    large_messages,
    lifecycle,
    messages,
    reality,
    wire_format,
)
from mxwire.rules.book.entry import Force, Judged, Rule

__all__ = ["CATALOGUE", "Force", "Judged", "Rule", "chapters"]

CATALOGUE: Final[dict[str, Rule]] = {
    rule.number: rule
    for part in (wire_format, fabric, connections, messages, large_messages, lifecycle, reality)
    for rule in part.RULES
}
"""All rules by number: those of the wire format, then those of behaviour in the order of the specification."""


def chapters() -> list[str]:
    """The titles of the chapters, in order."""
    return list(dict.fromkeys(rule.chapter for rule in CATALOGUE.values()))
