"""What the judge may take for granted: how the frames were observed, and how the hosts are set. All of it is data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LOST: Final = -1
"""Given as ``delivered_ns`` of a frame: it never reached its destination."""

DEFECTS: Final = frozenset(f"D-{number}" for number in range(1, 16))
"""The defects of real hosts (behaviour specification, chapter 23)."""


@dataclass(frozen=True, slots=True)
class Vantage:
    """How frames were observed, and what is known of the hosts. All times are in nanoseconds.

    The defaults are those of a capture of real hosts at one point of the path between them, begun at any moment. See
    :data:`CAPTURE` and :data:`SENDERS`.
    """

    as_sent: bool = False
    """Each frame is observed once, as its host sends it, in the order of sending. False: the network may have lost,
    repeated, delayed or reordered frames before they were observed."""
    complete: bool = True
    """No frame was delivered without being observed. False where the capture itself dropped frames; then only rules
    that need nothing but one frame are applied."""
    from_start: bool = False
    """All endpoints were opened after the observation began: what was not told on the wire is not known."""
    empty_tables: bool = False
    """All hosts were started after the observation began: nobody knows his index in another's peer table before he is
    taught it on the wire."""
    clock_ns: int = 1_000_000
    """How far two times may be wrong against each other."""
    reorder_ns: int = 100_000_000
    """How long the network, or the way from a host's decision to the observer, may delay a frame so that a later one
    is observed first. Ignored with ``as_sent``."""
    hz: int | None = None
    """Kernel ticks a second of the hosts (R-GEN-03); None where it is unknown, anything from 100 to 1000."""
    resends_maximum: int | None = 1000
    """Resends of one request before a partner is given up (R-RTX-03); None where hosts set their own."""
    query_interval_ns: int = 5_000_000_000
    """How often a host is asked for its name (R-HOST-02); releases before 1.3.2 do it every second."""
    excused: frozenset[str] = field(default=DEFECTS)
    """Defects (chapter 23) that are reported as notes; others of them count as what they break."""


CAPTURE: Final = Vantage()
"""A capture of real hosts."""

SENDERS: Final = Vantage(as_sent=True, from_start=True, empty_tables=True, clock_ns=0, reorder_ns=0)
"""Every frame as its host sends it, from the first one on, with exact times: what a simulator sees."""
