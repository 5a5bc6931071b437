"""Length limits of messages from one build to another, in bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from mxwire.analysis.compatibility.builds import Build
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import SMALL_MAXIMUM

MediumFormat = Literal["piped", "N3", "N4"]
"""``piped``: mxoe, N1 and N2, whose fragments state their own size."""
PullFormat = Literal["narrow", "wide"]

Extent = Literal["all", "one frame", "nothing"]
"""Extent to which messages arrive: of any number of frames, of one frame, or not at all."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result of a packet from one build to another. The texts use ``{there}`` for the sender and ``{here}`` for
    the receiver."""

    equal: Extent
    """Extent if both hosts were built with the same sizes."""
    unequal: Extent
    """Extent if the sizes differ."""
    why: str
    advice: str


_SAME_FORMAT: Final = "build both hosts for the same format: wire compatibility with MX on, or off, on both"
_SAME_RELEASE: Final = "run the same release on both hosts, or 1.3.2 and later on both"
_SAME_LIMIT: Final = "build both hosts with the same frame limit (MTU)"
_SIZES: Final = "have {there_size} bytes in {there} and {here_size} in {here}"
_OTHER_PULL: Final = "PULL is laid out otherwise in {here} than in {there}"
_LONGER: Final = "MEDIUM has another layout: its length has 16 bits in {there} and 32 in {here}"
_SHORTER: Final = "MEDIUM has another layout: its length has 32 bits in {there} and 16 in {here}"
_UNNEEDED: Final = "fragments of {there} state their size where {here} has none: only the first is placed right"
_MISSING: Final = "fragments of {there} do not state their size, which {here} needs: only the first is placed right"

_NO_LIMIT: Final = Agreement("all", "all", "", "")
_SAME_MEDIUM: Final = Agreement("all", "one frame", f"fragments {_SIZES}", _SAME_LIMIT)

MEDIUM: Final[dict[tuple[MediumFormat, MediumFormat], Agreement]] = {
    ("piped", "piped"): _NO_LIMIT,
    ("piped", "N3"): Agreement("one frame", "one frame", _UNNEEDED, _SAME_FORMAT),
    ("N3", "piped"): Agreement("one frame", "one frame", _MISSING, _SAME_FORMAT),
    ("piped", "N4"): Agreement("nothing", "nothing", _LONGER, _SAME_FORMAT),
    ("N4", "piped"): Agreement("nothing", "nothing", _SHORTER, _SAME_FORMAT),
    ("N3", "N3"): _SAME_MEDIUM,
    ("N3", "N4"): Agreement("nothing", "nothing", _LONGER, _SAME_RELEASE),
    ("N4", "N3"): Agreement("nothing", "nothing", _SHORTER, _SAME_RELEASE),
    ("N4", "N4"): _SAME_MEDIUM,
}
"""By the formats of the sender and the receiver of a MEDIUM."""

PULL: Final[dict[tuple[PullFormat, PullFormat], Agreement]] = {
    ("narrow", "narrow"): _NO_LIMIT,
    ("narrow", "wide"): Agreement("nothing", "nothing", _OTHER_PULL, _SAME_FORMAT),
    ("wide", "narrow"): Agreement("nothing", "nothing", _OTHER_PULL, _SAME_FORMAT),
    ("wide", "wide"): Agreement("all", "one frame", f"frames of large messages {_SIZES}", _SAME_LIMIT),
}
"""By the formats of the sender and the puller of a large message."""


def medium_format(dialect: Dialect) -> MediumFormat:
    """Return the layout of MEDIUM in a dialect."""
    if dialect.family == "mxoe" or dialect.generation in ("N1", "N2"):
        return "piped"
    return "N3" if dialect.generation == "N3" else "N4"


def pull_format(dialect: Dialect) -> PullFormat:
    """Return the layout of PULL in a dialect."""
    return "narrow" if dialect.family == "mxoe" else "wide"


NO_END: Final = math.inf


@dataclass(frozen=True, slots=True)
class Reach:
    """Maximum lengths of messages that pass from one build to another, by kind, in bytes."""

    medium: float
    large: float
    threshold: int
    """Maximum length of messages sent as MEDIUM."""
    why_medium: str = ""
    """Limit on the length of messages sent as MEDIUM."""
    why_large: str = ""
    """Limit on the length of messages that are pulled."""
    change_medium: str = ""
    """The change that removes the limits."""
    change_large: str = ""

    def limit(self, length: int, *, synchronous: bool) -> str | None:
        """Return the reason why a message does not arrive; None if it does."""
        if synchronous or length > self.threshold:
            return None if length <= self.large else self.why_large
        return None if length <= SMALL_MAXIMUM or length <= self.medium else self.why_medium


def reach(sender: Build, receiver: Build) -> Reach:
    """Return the limits of messages from one build to another, or None if they cannot connect."""
    medium, why_medium, change_medium = _medium(sender, receiver)
    large, why_large, change_large = _large(sender, receiver)
    return Reach(medium, large, sender.threshold, why_medium, why_large, change_medium, change_large)


_Limit = tuple[float, str, str]
_NONE: Final[_Limit] = (NO_END, "", "")


def _medium(sender: Build, receiver: Build) -> _Limit:
    there, here = sender.dialect, receiver.dialect
    row = MEDIUM[medium_format(there), medium_format(here)]
    size, other = sender.fragment_payload, receiver.dialect.fragment_payload
    # Such a receiver places fragments by its own size, so that only the first one, at offset 0, is right.
    if row.equal == "all" and receiver.pipeline_ignored and medium_format(here) == "piped" and size != other:
        return (
            size,
            "the receiver ignores the fragment size in the pipeline field",
            "run 1.3.2 or later on the receiver (1.0.901 to 1.3.1 ignore the field), or send fragments of "
            f"{other} bytes",
        )
    extent = row.equal if size == other else row.unequal
    if extent == "all":
        # A fragment that is longer than the receiver's slot is refused, whatever its fields.
        if size <= receiver.dialect.receive_slot:
            return _NONE
        return (
            receiver.dialect.receive_slot,
            f"fragments of {size} bytes do not fit into the receiver's slots of {receiver.dialect.receive_slot}",
            "send smaller fragments",
        )
    least = 0 if extent == "nothing" else min(size, receiver.dialect.receive_slot)
    # TINY and SMALL are laid out alike in all formats: shorter messages pass in any case.
    return max(least, SMALL_MAXIMUM), *_texts(row, sender, receiver, size, other)


def _large(sender: Build, receiver: Build) -> _Limit:
    there, here = sender.dialect, receiver.dialect
    row = PULL[pull_format(there), pull_format(here)]
    size, other = there.reply_payload, here.reply_payload
    extent = row.equal if size == other else row.unequal
    if extent != "all":
        # A message that begins within its page leaves less room in its first frame (R-RDV-02).
        least = 0 if extent == "nothing" else max(0, min(size, other) - sender.region_offset)
        return least, *_texts(row, sender, receiver, size, other)
    if there.frames_per_block < here.frames_per_block:
        return (
            there.frames_per_block * size - sender.region_offset,
            f"a replier of {there} gives {there.frames_per_block} frames for a PULL, and {here} requests "
            f"{here.frames_per_block}",
            "run the same release on both hosts",
        )
    return _NONE


def _texts(row: Agreement, sender: Build, receiver: Build, size: int, other: int) -> tuple[str, str]:
    words = {"there": sender.dialect, "here": receiver.dialect, "there_size": size, "here_size": other}
    return row.why.format(**words), row.advice
