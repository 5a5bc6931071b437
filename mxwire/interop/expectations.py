"""Expected result of a case for two implementations, derived from the frames that their releases send.

The basis is the compatibility table (:mod:`mxwire.analysis.compatibility`): connects and messages of up to 128 bytes
work everywhere; MEDIUM and PULL do not. Pairs that cannot exchange a message of the case are expected to fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mxwire.analysis.compatibility import Build, Reach, reach
from mxwire.interop.cases.definition import CaseDefinition
from mxwire.interop.result import Expectation
from mxwire.interop.roles import ANSWERS, Answer, HostSetup
from mxwire.wire.formats import MEDIUM_MXOE


@dataclass(frozen=True, slots=True)
class CellExpectation:
    """Expected result of a cell."""

    expectation: Expectation
    text: str
    """Description of the expectation."""


WORKS: Final = CellExpectation("works", "works")
_KEPT: Final = "fails: native MX keeps a partner after a disconnect, Open-MX forgets it (their numbers disagree)"


def build_of(casting: HostSetup) -> Build:
    """Return the build of a host of mxwire, for the table."""
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
    part: CaseDefinition, left: HostSetup, right: HostSetup, *, echoed: bool = False, answer: Answer | None = None
) -> CellExpectation:
    """Return the expected result of a case for two implementations.

    With ``echoed``, all messages are returned. ``answer`` describes the answers of the program on the right, by default
    those of its role. If they do not have the content, a message that arrives complete but corrupted is not detected.
    """
    if part.keeps_partner and left.profile.keeps_partner_on_disconnect != right.profile.keeps_partner_on_disconnect:
        return CellExpectation("fails", _KEPT)
    if answer is None and part.role is not None:
        answer = ANSWERS.get(part.role)
    whole = part.whole and answer != "length"
    ways = [(left, right), (right, left)] if part.answered or echoed else [(left, right)]
    for sender, receiver in ways:
        found = reach(build_of(sender), build_of(receiver))
        # An answer has the length of the message that it answers.
        lost = _first_lost(found, part.lengths(left.dialect), part.synchronous(left.dialect))
        if lost is None:
            continue
        if not whole and found.large:
            return CellExpectation("either", f"may fail: {lost.why}")
        return CellExpectation(
            "fails", f"fails: {lost.what} from {sender.name} to {receiver.name} cannot arrive: {lost.why}"
        )
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
