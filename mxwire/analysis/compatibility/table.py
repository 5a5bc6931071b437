"""Which formats agree: the differences document, section 4, as data.

CONNECT, TRUC, TINY, SMALL, RNDV, NOTIFY, the nacks and all discovery are the same in every build. Two packets differ,
each in its own way: MEDIUM has three layouts, PULL has two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from mxwire.wire.dialect import Dialect

MediumFormat = Literal["piped", "N3", "N4"]
"""``piped``: mxoe, N1 and N2, whose fragments state their own size."""
PullFormat = Literal["narrow", "wide"]

Extent = Literal["all", "one frame", "nothing"]
"""Extent to which messages arrive: of any number of frames, of one frame, or not at all."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result when one host sends a packet and another receives it. The texts use ``{there}`` for the sender and
    ``{here}`` for the receiver."""

    equal: Extent
    """If the sizes that the two were built with are equal."""
    unequal: Extent
    """If they are not."""
    why: str
    advice: str


_SAME_FORMAT: Final = "build both hosts for the same format: wire compatibility with MX on, or off, on both"
_SAME_RELEASE: Final = "run the same release on both hosts, or 1.3.2 and later on both"
_SAME_LIMIT: Final = "build both hosts with the same frame limit (MTU)"

_OTHER_PULL: Final = "PULL is laid out otherwise in {here} than in {there}"

MEDIUM: Final[dict[tuple[MediumFormat, MediumFormat], Agreement]] = {
    ("piped", "piped"): Agreement("all", "all", "", ""),
    ("piped", "N3"): Agreement(
        "one frame",
        "one frame",
        "fragments of {there} state their size where {here} has none: only the first is placed right",
        _SAME_FORMAT,
    ),
    ("N3", "piped"): Agreement(
        "one frame",
        "one frame",
        "fragments of {there} do not state their size, which {here} needs: only the first is placed right",
        _SAME_FORMAT,
    ),
    ("piped", "N4"): Agreement(
        "nothing",
        "nothing",
        "MEDIUM has another layout: its length has 16 bits in {there} and 32 in {here}",
        _SAME_FORMAT,
    ),
    ("N4", "piped"): Agreement(
        "nothing",
        "nothing",
        "MEDIUM has another layout: its length has 32 bits in {there} and 16 in {here}",
        _SAME_FORMAT,
    ),
    ("N3", "N3"): Agreement(
        "all", "one frame", "fragments have {there_size} bytes in {there} and {here_size} in {here}", _SAME_LIMIT
    ),
    ("N3", "N4"): Agreement(
        "nothing",
        "nothing",
        "MEDIUM has another layout: its length has 16 bits in {there} and 32 in {here}",
        _SAME_RELEASE,
    ),
    ("N4", "N3"): Agreement(
        "nothing",
        "nothing",
        "MEDIUM has another layout: its length has 32 bits in {there} and 16 in {here}",
        _SAME_RELEASE,
    ),
    ("N4", "N4"): Agreement(
        "all", "one frame", "fragments have {there_size} bytes in {there} and {here_size} in {here}", _SAME_LIMIT
    ),
}
"""By who sends a MEDIUM and who reads it."""

PULL: Final[dict[tuple[PullFormat, PullFormat], Agreement]] = {
    ("narrow", "narrow"): Agreement("all", "all", "", ""),
    ("narrow", "wide"): Agreement("nothing", "nothing", _OTHER_PULL, _SAME_FORMAT),
    ("wide", "narrow"): Agreement("nothing", "nothing", _OTHER_PULL, _SAME_FORMAT),
    ("wide", "wide"): Agreement(
        "all",
        "one frame",
        "frames of large messages have {there_size} bytes in {there} and {here_size} in {here}",
        _SAME_LIMIT,
    ),
}
"""By who sends a large message and who pulls it."""


def medium_format(dialect: Dialect) -> MediumFormat:
    """Return the layout of MEDIUM in a dialect."""
    if dialect.family == "mxoe" or dialect.generation in ("N1", "N2"):
        return "piped"
    return "N3" if dialect.generation == "N3" else "N4"


def pull_format(dialect: Dialect) -> PullFormat:
    """Return the layout of PULL in a dialect."""
    return "narrow" if dialect.family == "mxoe" else "wide"
