"""Findings of the judge: the broken rule, the host, the frames, and the expected and actual values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from mxwire.ethernet import mac_text

Severity = Literal["violation", "deviation", "note"]
"""``violation``: a MUST is broken; a real peer drops or refuses the frame, or suffers. ``deviation``: a SHOULD is
broken, or a real host would behave differently; peers survive it. ``note``: a known defect of real hosts (chapter 23 of
the behaviour specification), or information that is not attributable to a host."""
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""Severities, the worst first."""

Verdict = Literal["pass", "non-strict", "fail", "info", "missing"]
"""Of one host or two, as a whole. ``pass``: no finding; ``info``: notes only; ``non-strict``: deviations, but no
violation; ``fail``: at least one violation; ``missing``: no frame that could be judged."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of a rule, as seen on the wire."""

    rule: str
    """Number of the broken rule in the specification, for example ``R-SEQ-05``; in a note on a defect its number
    (``D-1``)."""
    severity: Severity
    """Severity of the breach; only ``violation`` makes a conversation wrong."""
    frames: tuple[int, ...]
    """Numbers of the frames that show the breach, as given to the judge; the last one is the frame that broke the
    rule."""
    time_ns: int
    """Time of the last of the frames, in nanoseconds."""
    host: bytes
    """Ethernet address of the host that broke the rule, six bytes."""
    expected: str
    """The value or behaviour that the rule requires, in words."""
    found: str
    """The value or behaviour on the wire."""

    def __str__(self) -> str:
        """Return one line with all fields but the time."""
        return finding_text(self.rule, self.severity, mac_text(self.host), self.frames, self.found, self.expected)


def finding_text(rule: str, severity: str, host: str, frames: Iterable[int], found: str, expected: str) -> str:
    """Describe a breach in one line."""
    return f"{severity} of {rule} ({host}, frame {', '.join(map(str, frames))}): {found}; expected: {expected}"
