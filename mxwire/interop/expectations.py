"""What is expected of two implementations in a case, by what their releases put on the wire.

The basis is the table of formats and generations (differences document, section 4): connects and messages of up to 128
bytes are the same everywhere; MEDIUM and PULL are not. What a pair must not be able to do is expected to fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mxwire.interop.cases.part import Part
from mxwire.interop.result import Expectation
from mxwire.interop.stage import Casting
from mxwire.wire.dialect import RENDEZVOUS_THRESHOLD, SMALL_MAXIMUM, Dialect

_NO_END: Final = math.inf
_N1_BLOCK: Final = 31 * 8192
"""What a replier of generation N1 gives for one PULL at most, in bytes."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How long messages from one host to another may be so that they arrive, by kind, in bytes."""

    medium: float
    large: float
    threshold: int = RENDEZVOUS_THRESHOLD
    """Longest message that is sent as MEDIUM."""
    why_medium: str = ""
    """What limits those that are sent as MEDIUM."""
    why_large: str = ""
    """What limits those that are pulled."""

    def limit(self, length: int, *, synchronous: bool) -> str | None:
        """Why a message does not arrive; None where it does."""
        if synchronous or length > self.threshold:
            return None if length <= self.large else self.why_large
        return None if length <= SMALL_MAXIMUM or length <= self.medium else self.why_medium


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a cell."""

    expectation: Expectation
    text: str
    """In words."""


WORKS: Final = Expected("works", "works")


def reach(sender: Casting, receiver: Casting) -> Reach:
    """How far messages of one implementation reach another."""
    there, here = sender.dialect, receiver.dialect
    medium, why_medium = _medium(sender, receiver)
    large, why_large = _large(there, here, sender.profile.region_offset)
    return Reach(medium, large, _threshold(sender), why_medium, why_large)


def _threshold(sender: Casting) -> int:
    """Up to where a sender uses MEDIUM (R-SND-01)."""
    return min(sender.profile.medium_threshold, _fragment(sender) * sender.dialect.fragments_maximum)


def _fragment(sender: Casting) -> int:
    """Bytes of a full fragment."""
    pipeline = sender.profile.fragment_pipeline if _piped(sender.dialect) else None
    return sender.dialect.fragment_payload if pipeline is None else 1 << pipeline


def expected_of(part: Part, left: Casting, right: Casting) -> Expected:
    """What is expected of two implementations in a case."""
    if part.keeps_partner and left.profile.keeps_partner_on_disconnect != right.profile.keeps_partner_on_disconnect:
        return Expected(
            "fails", "fails: native MX keeps a partner after a disconnect, Open-MX forgets it (their numbers disagree)"
        )
    ways = [(left, right), (right, left)] if part.answered else [(left, right)]
    for sender, receiver in ways:
        found = reach(sender, receiver)
        # What is answered comes back as long as it was.
        lost = _first_lost(found, part.lengths(left.dialect), part.synchronous(left.dialect))
        if lost is None:
            continue
        if not part.whole and found.large:
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


def _medium(sender: Casting, receiver: Casting) -> tuple[float, str]:
    there, here = sender.dialect, receiver.dialect
    if _piped(there) != _piped(here):
        if (here if _piped(there) else there).generation == "N4":
            return SMALL_MAXIMUM, f"MEDIUM has another layout in {there} than in {here}"
        return _one_fragment(sender, receiver), f"MEDIUM of {there} and {here} agree in a single fragment at most"
    if _piped(there):
        ours = sender.profile.fragment_pipeline
        if ours is not None and receiver.profile.pipeline_ignored and 1 << ours != here.fragment_payload:
            return 1 << ours, "the receiver ignores the fragment size that the pipeline field tells"
        return _NO_END, ""
    if there.generation != here.generation:
        return SMALL_MAXIMUM, f"the length of a MEDIUM has 16 bits in N3 and 32 in N4 ({there} to {here})"
    if there.fragment_payload != here.fragment_payload:
        return _one_fragment(
            sender, receiver
        ), f"fragments have {there.fragment_payload} and {here.fragment_payload} bytes"
    return _NO_END, ""


def _piped(dialect: Dialect) -> bool:
    """Whether fragments say their own size."""
    return dialect.family == "mxoe" or dialect.generation in ("N1", "N2")


def _one_fragment(sender: Casting, receiver: Casting) -> int:
    return min(_fragment(sender), receiver.dialect.receive_slot)


def _large(there: Dialect, here: Dialect, offset: int) -> tuple[float, str]:
    if there.family != here.family:
        return 0, f"PULL has another layout in {there} than in {here}"
    if there.reply_payload != here.reply_payload:
        least = min(there.reply_payload, here.reply_payload)
        return max(0, least - offset), f"frames of large messages have {there.reply_payload} and {here.reply_payload}"
    if there.frames_per_block < here.frames_per_block:
        return _N1_BLOCK - offset, f"a replier of {there} gives {there.frames_per_block} frames for a PULL, not more"
    return _NO_END, ""
