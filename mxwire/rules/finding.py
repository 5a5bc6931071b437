"""What the judge says: which rule was not kept, by which host, in which frames, and what would have been right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mxwire.ethernet import mac_text

Severity = Literal["violation", "deviation", "note"]
"""``violation``: a MUST is broken, a real peer drops, refuses or suffers. ``deviation``: a SHOULD is broken, or a real
host would have done it otherwise; peers survive it. ``note``: a known defect of real hosts (chapter 23 of the
behaviour specification), or something worth knowing that nobody is to blame for."""

Verdict = Literal["pass", "non-strict", "fail", "info", "missing"]
"""Of a host, or of two, as a whole. ``pass``: all as it should be; ``info``: the same, with notes; ``non-strict``: not
all that is recommended was done; ``fail``: a MUST was broken; ``missing``: nothing that could be judged."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of a rule, as seen on the wire."""

    rule: str
    """Number of the rule in the specification, for example ``R-SEQ-05``; of the defect (``D-1``) in a note on one."""
    severity: Severity
    """How bad it is; only ``violation`` makes a conversation wrong."""
    frames: tuple[int, ...]
    """Numbers of the frames that show it, as they were given to the judge; the last is the one it was noticed at."""
    time_ns: int
    """Time of the last of the frames, in nanoseconds."""
    host: bytes
    """Ethernet address of the host that broke the rule, six bytes."""
    expected: str
    """What the rule wants here, in words."""
    found: str
    """What the wire shows instead."""

    def __str__(self) -> str:
        """One line for a person."""
        frames = ", ".join(map(str, self.frames))
        where = f"{mac_text(self.host)}, frame {frames}"
        return f"{self.severity} of {self.rule} ({where}): {self.found}; expected: {self.expected}"
