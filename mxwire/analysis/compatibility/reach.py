"""Length limits of messages from one build to another, in bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from mxwire.analysis.compatibility.build import Build
from mxwire.analysis.compatibility.table import MEDIUM, PULL, Agreement, medium_format, pull_format
from mxwire.wire.numbers import SMALL_MAXIMUM

NO_END: Final = math.inf


@dataclass(frozen=True, slots=True)
class Reach:
    """Greatest lengths of messages that arrive from one build at another, by kind, in bytes."""

    medium: float
    large: float
    threshold: int
    """The longest message that is sent as MEDIUM."""
    why_medium: str = ""
    """The limit of messages sent as MEDIUM."""
    why_large: str = ""
    """The limit of messages that are pulled."""
    change_medium: str = ""
    """The change that removes the limits."""
    change_large: str = ""

    def limit(self, length: int, *, synchronous: bool) -> str | None:
        """Why a message does not arrive; None where it does."""
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
    return max(least, SMALL_MAXIMUM), *_texts(row, sender, receiver, size, other)


def _large(sender: Build, receiver: Build) -> _Limit:
    there, here = sender.dialect, receiver.dialect
    row = PULL[pull_format(there), pull_format(here)]
    size, other = there.reply_payload, here.reply_payload
    extent = row.equal if size == other else row.unequal
    if extent != "all":
        least = 0 if extent == "nothing" else max(0, min(size, other) - sender.region_offset)
        return least, *_texts(row, sender, receiver, size, other)
    if there.frames_per_block < here.frames_per_block:
        return (
            there.frames_per_block * size - sender.region_offset,
            f"a replier of {there} gives {there.frames_per_block} frames for a PULL, and {here} asks for "
            f"{here.frames_per_block}",
            "run the same release on both hosts",
        )
    return _NONE


def _texts(row: Agreement, sender: Build, receiver: Build, size: int, other: int) -> tuple[str, str]:
    words = {"there": sender.dialect, "here": receiver.dialect, "there_size": size, "here_size": other}
    return row.why.format(**words), row.advice
