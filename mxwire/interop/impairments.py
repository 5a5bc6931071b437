"""What the link does to frames, by a seed: the same on the simulated network and on a live one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mxwire.ethernet import SOURCE
from mxwire.interop.naming import named
from mxwire.interop.result import Impairment
from mxwire.link.faults import Faults
from mxwire.units import MILLISECOND
from mxwire.wire.codec import TYPE_OFFSET


@dataclass(frozen=True, slots=True)
class Treatment:
    """An impairment and its rates, which are probabilities a frame in both directions."""

    impairment: Impairment
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_ns: int = 10_000
    """How long every frame is on its way through the simulated network."""
    added_ns: int = 0
    """How much longer than on a plain link."""

    @property
    def name(self) -> str:
        """Of the impairment."""
        return self.impairment.name

    @property
    def faults(self) -> Faults:
        """The same for a live link."""
        return Faults(
            loss=self.loss, duplicate=self.duplicate, reorder=self.reorder, delay=self.added_ns / 1_000_000_000
        )


def _treatment(name: str, title: str, description: str, **rates: float) -> Treatment:
    added = int(rates.pop("added_ns", 0))
    return Treatment(Impairment(name, title, description), **rates, added_ns=added)  # type: ignore[arg-type]


TREATMENTS: Final = {
    each.name: each
    for each in (
        _treatment("none", "none", "every frame arrives, once and in order"),
        _treatment("loss", "1 % loss", "one frame in a hundred is lost", loss=0.01),
        _treatment("heavy-loss", "10 % loss", "one frame in ten is lost", loss=0.10),
        _treatment("duplicates", "duplicates", "one frame in twenty arrives twice", duplicate=0.05),
        _treatment("reorder", "reordering", "one frame in twenty is held back for up to 2 ms", reorder=0.05),
        _treatment("slow", "slow link", "every frame takes 5 ms longer", added_ns=5 * MILLISECOND),
        _treatment(
            "mixed",
            "all at once",
            "2 % are lost, 5 % arrive twice, 5 % are held back",
            loss=0.02,
            duplicate=0.05,
            reorder=0.05,
        ),
    )
}
"""By name."""


def treatment_by_name(name: str) -> Treatment:
    """The impairment that a user names.

    Raises :class:`~mxwire.errors.MxwireError` for a name that is none.
    """
    return named(name, TREATMENTS, "impairment")


@dataclass(slots=True)
class Cut:
    """Loses chosen frames of one packet type, whatever the impairment is: a case asks for it."""

    packet_type: int
    places: frozenset[int]
    """Which of them, counted from 0."""
    source: bytes | None = None
    """Of the host with this address only."""
    seen: int = field(default=0, init=False)
    lost: int = field(default=0, init=False)

    def takes(self, frame: bytes) -> bool:
        """Whether this frame is lost."""
        if frame[TYPE_OFFSET] != self.packet_type or (self.source is not None and frame[SOURCE] != self.source):
            return False
        self.seen += 1
        if self.seen - 1 not in self.places:
            return False
        self.lost += 1
        return True
