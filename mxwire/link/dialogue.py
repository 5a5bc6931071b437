"""Conversing: somebody who knows what to say and when, on a link, until he has what is wanted of him."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from mxwire.frames import FrameBatch
from mxwire.link.link import Link
from mxwire.units import SECOND

Result = TypeVar("Result")


class LinkSpeaker(Protocol):
    """Somebody who knows no link and no clock; times are in ns."""

    @property
    def deadline(self) -> int:
        """When he wants to speak again, if nothing is heard before."""

    def transmit(self, now: int) -> list[bytes]:
        """The frames that leave now."""

    def receive(self, raw: bytes) -> None:
        """Take a frame that has arrived."""


def converse(link: Link, speaker: LinkSpeaker, wanted: Callable[[], Result | None], timeout: float) -> Result | None:
    """Let him speak and hear until ``wanted`` gives something, and return that; None after ``timeout`` seconds.

    What he has to say to the last frames leaves before that. Raises :class:`~mxwire.link.errors.LinkError` when the
    interface is gone.
    """
    now = time.monotonic_ns()
    end = now + round(timeout * SECOND)
    while True:
        leaving = speaker.transmit(now)
        if leaving:
            link.send(FrameBatch.from_frames(leaving))
        found = wanted()
        if found is not None or now >= end:
            return found
        batch = link.receive(max(0, min(speaker.deadline, end) - now) / SECOND)
        for place in range(len(batch)):
            speaker.receive(batch.frame(place))
        now = time.monotonic_ns()
