"""A link that loses the frames that a case wants lost."""

from __future__ import annotations

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.interop.impairments import Cut
from mxwire.link import Link, LinkWrapper


class CuttingLink(LinkWrapper):
    """A link that loses chosen frames of those that leave, and with ``both`` of those that come too."""

    def __init__(self, link: Link, *, both: bool) -> None:
        super().__init__(link)
        self._both = both
        self.cuts: list[Cut] = []

    def send(self, batch: FrameBatch) -> int:
        """Give frames to the link behind it; returns how many were taken, which includes the lost."""
        kept = self._kept(batch)
        return self.link.send(kept) + len(batch) - len(kept)

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """The frames that have arrived and were not chosen to be lost."""
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
