"""BlockResponder: answers each PULL of a requester with a block of PULL_REPLYs, all at once."""

from __future__ import annotations

import time
from typing import Final

from mxwire.linerate.sink import FrameSink
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import template_of
from mxwire.link.link import Link

_AT_ONCE: Final = 256


class BlockResponder:
    """The sending side of an incast test: a run of PULLs is answered with ``frames`` PULL_REPLYs per PULL.

    ``run`` has the requester's address and the number of the run, ``size`` is the length of a reply in bytes.
    """

    def __init__(self, run: tuple[bytes, int], own: bytes, *, size: int, frames: int) -> None:
        self._run = run
        self._frames = frames
        template = template_of("PULL_REPLY", run[0], own, size)
        self._slots = FrameSlots([template], run=run[1], least=min(max(frames, 64), _AT_ONCE))
        self._answered = 0
        self._sent = 0

    def respond(self, sink: FrameSink, link: Link) -> None:
        """Send a block for each PULL that ``sink`` has counted since the last call."""
        found = sink.runs.get(self._run)
        if found is None or found.frames == self._answered:
            return
        wanted = (found.frames - self._answered) * self._frames
        self._answered = found.frames
        while wanted:
            count = min(wanted, self._slots.room(self._sent))
            sent = link.send(self._slots.batch(self._sent, count, time.time_ns()))
            self._sent += sent
            wanted -= count
