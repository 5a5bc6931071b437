"""Dialogues on a link: run a sans-IO speaker until it has a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from mxwire.frames import FrameBatch
from mxwire.link.link import Link
from mxwire.units import SECOND

Result = TypeVar("Result")


class LinkSpeaker(Protocol):
    """A sans-IO sender and receiver of frames; times are in ns."""

    @property
    def deadline(self) -> int:
        """Time of the next ``transmit`` if no frame arrives before."""

    def transmit(self, now: int) -> list[bytes]:
        """Return the frames to send now."""

    def receive(self, raw: bytes) -> None:
        """Handle a received frame."""


def converse(link: Link, speaker: LinkSpeaker, wanted: Callable[[], Result | None], timeout: float) -> Result | None:
    """Run ``speaker`` until ``wanted`` returns a result, and return the result; None after ``timeout`` seconds.

    Replies to the last frames are sent before it returns. Raises :class:`~mxwire.link.errors.LinkError` if the
    interface is gone.
    """
    now = time.monotonic_ns()
    end = now + round(timeout * SECOND)
    while True:
        outgoing = speaker.transmit(now)
        if outgoing:
            link.send(FrameBatch.from_frames(outgoing))
        found = wanted()
        if found is not None or now >= end:
            return found
        batch = link.receive(max(0, min(speaker.deadline, end) - now) / SECOND)
        for place in range(len(batch)):
            speaker.receive(batch.frame(place))
        now = time.monotonic_ns()
