"""What is expected of two implementations in a case, by what their releases put on the wire.

The basis is the one table of what goes with what (:mod:`mxwire.analysis.compatibility`): connects and messages of up to
128 bytes are the same everywhere; MEDIUM and PULL are not. What a pair must not be able to do is expected to fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mxwire.analysis.compatibility import Build, Reach, reach
from mxwire.interop.cases.part import Part
from mxwire.interop.casting import ANSWERS, Answer, Casting
from mxwire.interop.result import Expectation
from mxwire.wire.formats import MEDIUM_MXOE


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a cell."""

    expectation: Expectation
    text: str
    """In words."""


WORKS: Final = Expected("works", "works")
_KEPT: Final = "fails: native MX keeps a partner after a disconnect, Open-MX forgets it (their numbers disagree)"


def build_of(casting: Casting) -> Build:
    """How a host of ours was built, for the table."""
    dialect, profile = casting.dialect, casting.profile
    pipeline = profile.fragment_pipeline if dialect.medium_format is MEDIUM_MXOE else None
    return Build(
        dialect,
        fragment=None if pipeline is None else 1 << pipeline,
        pipeline_ignored=profile.pipeline_ignored,
        region_offset=profile.region_offset,
        medium_threshold=profile.medium_threshold,
    )


def expected_of(
    part: Part, left: Casting, right: Casting, *, echoed: bool = False, answer: Answer | None = None
) -> Expected:
    """What is expected of two implementations in a case; ``echoed`` says that all that is sent comes back.

    ``answer`` is how the program on the right answers, None: as its role does. Where it does not return the content,
    nobody notices a message that is complete but not intact.
    """
    if part.keeps_partner and left.profile.keeps_partner_on_disconnect != right.profile.keeps_partner_on_disconnect:
        return Expected("fails", _KEPT)
    if answer is None and part.role is not None:
        answer = ANSWERS.get(part.role)
    whole = part.whole and answer != "length"
    ways = [(left, right), (right, left)] if part.answered or echoed else [(left, right)]
    for sender, receiver in ways:
        found = reach(build_of(sender), build_of(receiver))
        # What is answered comes back as long as it was.
        lost = _first_lost(found, part.lengths(left.dialect), part.synchronous(left.dialect))
        if lost is None:
            continue
        if not whole and found.large:
            return Expected("either", f"may fail: {lost.why}")
        return Expected("fails", f"fails: {lost.what} from {sender.name} to {receiver.name} cannot arrive: {lost.why}")
    return WORKS


class _Lost(NamedTuple):
    what: str
    why: str


def _first_lost(found: Reach, lengths: Sequence[int], synchronous: Sequence[int]) -> _Lost | None:
    for length in lengths:
        why = found.limit(length, synchronous=False)
        if why is not None:
            return _Lost(f"{length} bytes", why)
    for length in synchronous:
        why = found.limit(length, synchronous=True)
        if why is not None:
            return _Lost(f"{length} bytes sent synchronously", why)
    return None
