"""Incast: several senders answer one requester at once, to find the buffer size of the switch in front of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.linerate.control import SinkAddress, SinkControl
from mxwire.linerate.drops import read_drops
from mxwire.linerate.sink import CheckLevel, FrameSink
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import RUNS, template_of
from mxwire.link import Link
from mxwire.wire.dialect import MXOE
from mxwire.words import count_of

BLOCK: Final = MXOE.frames_per_block
"""Frames of the smallest answer: those of one PULL."""
_QUIET: Final = 0.3
"""Seconds without a frame after which a round has ended."""
_LATEST: Final = 10.0
"""Seconds after which a round ends in any case."""


@dataclass(frozen=True, slots=True)
class IncastOptions:
    """Settings of an incast test."""

    size: int = 4128
    """Length of the answers in bytes."""
    most_blocks: int = 64
    """Maximum number of blocks of 8 frames per sender and round."""
    repetitions: int = 3
    cool_down: float = 0.2


class IncastTester:
    """Requests blocks from 1, 2 … senders at once, and counts the frames of each that arrive.

    ``link`` is the requester's; its receive ring must hold all frames of a round. ``first`` is the number of the first
    run. ``progress`` is called with a line about each round before it. ``clock`` returns the time in ns since 1970,
    which requests carry.
    """

    def __init__(
        self,
        link: Link,
        control: SinkControl,
        senders: Sequence[SinkAddress],
        options: IncastOptions,
        *,
        first: int = 0,
        progress: Callable[[str], object] = lambda _: None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._clock = clock
        self._link = link
        self._control = control
        self._senders = tuple(senders)
        self._options = options
        self._number = first
        self._progress = progress

    def measure(self, count: int) -> dict[str, Any]:
        """Return the largest answer of ``count`` senders that arrives without loss, up to the limit of the options.

        The number of blocks per sender is doubled until frames are lost. Raises
        :class:`~mxwire.errors.MxwireError` if a sender does not answer.
        """
        options = self._options
        rounds: list[dict[str, Any]] = []
        clean, lossy, blocks = 0, None, 1
        while blocks <= options.most_blocks:
            found = [self._round(count, blocks) for _ in range(options.repetitions)]
            rounds += found
            if any(each["lost"] for each in found):
                lossy = blocks
                break
            clean, blocks = blocks, blocks * 2
        lost = [each for each in rounds if each["lost"]]
        # More than half of the loss happened here, behind the switch.
        by_ring = sum(each["ring"] for each in lost) * 2 > sum(each["lost"] for each in lost) if lost else False
        frames = count * clean * BLOCK
        return {
            "test": "incast",
            "size": options.size,
            "senders": count,
            "blocks": clean,
            "count": frames,
            "bytes": frames * options.size,
            "lossy_blocks": lossy,
            "no_loss": lossy is None,
            "tester_limited": by_ring or lossy is None,
            "limited_by": "requester's ring" if by_ring else "largest answer" if lossy is None else None,
            "rounds": rounds,
        }

    def _round(self, count: int, blocks: int) -> dict[str, Any]:
        options, senders = self._options, self._senders[:count]
        frames = blocks * BLOCK
        self._progress(f"{count_of(count, 'sender')}, {frames} frames each")
        time.sleep(options.cool_down)
        # Late frames of the last round have its number, and do not count in this one.
        self._number = (self._number + 1) % RUNS
        for each in senders:
            self._control.ask(each.address, "respond", run=self._number, size=options.size, frames=frames)
        sink = FrameSink(CheckLevel.HEADER)
        ring, kernel = self._link.statistics().dropped, read_drops(self._link.name)
        # One batch, so that the requests leave one after another, without a pause.
        requests = [
            FrameSlots([template_of("PULL", each.address, self._link.address)], run=self._number, least=1)
            for each in senders
        ]
        now = self._clock()
        sent = self._link.send(FrameBatch.from_frames([each.batch(0, 1, now).frame(0) for each in requests]))
        if sent < count:
            raise MxwireError(f"{self._link.name}: the requests could not be sent; see mxwire doctor")
        self._collect(sink, count * frames)
        received = {run.source: run.counts().received for run in sink.runs.values() if run.number == self._number}
        per_sender = [received.get(each.address, 0) for each in senders]
        card = read_drops(self._link.name) - kernel
        return {
            "blocks": blocks,
            "frames": count * frames,
            "received": sum(per_sender),
            "lost": count * frames - sum(per_sender),
            "per_sender": per_sender,
            "ring": self._link.statistics().dropped - ring,
            "card": card.received + card.backlog,
            "altered": sum(run.altered for run in sink.runs.values()),
            "spread_ns": _spread([run.first_ns for run in sink.runs.values()]),
        }

    def _collect(self, sink: FrameSink, wanted: int) -> None:
        end = time.monotonic() + _LATEST
        while sum(run.frames for run in sink.runs.values()) < wanted and time.monotonic() < end:
            batch = self._link.receive(_QUIET)
            if not len(batch):
                return
            sink.take(batch)


def _spread(times: list[int]) -> int | None:
    """Time between the first frames of the first and the last sender: the skew of the answers."""
    return max(times) - min(times) if times else None
