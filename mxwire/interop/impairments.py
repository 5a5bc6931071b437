"""Impairments of the link between two hosts, with a seed: the same in the simulated network and on live links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from mxwire.ethernet import SOURCE
from mxwire.frames import FrameBatch
from mxwire.interop.result import Impairment, named
from mxwire.link import Link, LinkWrapper
from mxwire.link.faults import Faults
from mxwire.texts import table_rows
from mxwire.units import MILLISECOND
from mxwire.wire.layout import TYPE_OFFSET


@dataclass(frozen=True, slots=True)
class Treatment:
    """An impairment and its rates: probabilities per frame, in both directions."""

    impairment: Impairment
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_ns: int = 10_000
    """Delay of each frame in the simulated network."""
    added_ns: int = 0
    """Additional delay, compared with the unimpaired link."""

    @property
    def name(self) -> str:
        """Name of the impairment."""
        return self.impairment.name

    @property
    def faults(self) -> Faults:
        """The equivalent faults of a live link."""
        return Faults(
            loss=self.loss, duplicate=self.duplicate, reorder=self.reorder, delay=self.added_ns / 1_000_000_000
        )


def _read_treatments() -> Iterator[Treatment]:
    for _, (*texts, loss, duplicate, reorder, delay) in table_rows(__file__, "impairments.md"):
        added = int(delay) * MILLISECOND
        yield Treatment(Impairment(*texts), float(loss), float(duplicate), float(reorder), added_ns=added)


TREATMENTS: Final = {each.name: each for each in _read_treatments()}
"""Impairments by name."""


def treatment_by_name(name: str) -> Treatment:
    """Return an impairment by its name.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    return named(name, TREATMENTS, "impairment")


@dataclass(slots=True)
class Cut:
    """Drops chosen frames of one packet type, at the request of a case, in addition to the impairment."""

    packet_type: int
    places: frozenset[int]
    """Indexes of the dropped frames among those of the type."""
    source: bytes | None = None
    """Drop only frames of the host with this address."""
    seen: int = field(default=0, init=False)
    lost: int = field(default=0, init=False)

    def takes(self, frame: bytes) -> bool:
        """Return whether a frame is dropped."""
        if frame[TYPE_OFFSET] != self.packet_type or (self.source is not None and frame[SOURCE] != self.source):
            return False
        self.seen += 1
        if self.seen - 1 not in self.places:
            return False
        self.lost += 1
        return True


class CuttingLink(LinkWrapper):
    """A link that drops chosen transmitted frames and, with ``both``, received ones."""

    def __init__(self, link: Link, *, both: bool) -> None:
        super().__init__(link)
        self._both = both
        self.cuts: list[Cut] = []

    def send(self, batch: FrameBatch) -> int:
        """Transmit frames, except dropped ones; return the number of accepted frames, including dropped ones."""
        kept = self._kept(batch)
        return self.link.send(kept) + len(batch) - len(kept)

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Return received frames, except dropped ones."""
        batch = self.link.receive(timeout)
        return self._kept(batch) if self._both else batch

    def _kept(self, batch: FrameBatch) -> FrameBatch:
        if not self.cuts or not len(batch):
            return batch
        lost = np.zeros(len(batch), np.bool_)
        for index in range(len(batch)):
            frame = batch.frame(index)
            for cut in self.cuts:
                lost[index] |= cut.takes(frame)
        return batch.select(~lost) if lost.any() else batch
