"""The live ranks of ``bench overlap``: two processes on a virtual cable, each bound to a processor.

Theory of operation
-------------------
The ranks play the programs of the study (``overlap_programs.py``) over the communicators of ``bench imb``; those that
work have a way of progress:

======== ======================================================================================
library  the host runs in the calls of its application
thread   a thread runs it too, at the latest 10 ms after the last call (``NAP`` in ``host/driver.py``)
signal   while the application works, a frame raises a signal, whose handler runs it (``imb/signals.py``)
card     the card's side in an agent (``mxwire agent``) of the rank, the library in its calls
match    card and library in the agent
push     as match, with large messages of RTS, CTS and data; only the data need no call (``imb/push.py``)
kernel   TCP
======== ======================================================================================

An agent is bound to the processor of the other rank, as if it were a card with a processor of its own, or with ``same``
to that of its application. Frames are handed to the processor on which the card of a side runs; otherwise the kernel
would take time from the work for each frame, which no adapter does. With two processors the agent shares that of the
waiting rank; a side without work has no agent.

A timeline is drawn from a capture of its run, taken by this process on the interface of rank 0.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import Any, Final

from mxwire.bench.imb.rank_testbed import LiveRanks
from mxwire.bench.overlap import PROCESSORS, SIDES, DrawnFrame, OverlapRanks, OverlapStudy
from mxwire.bench.overlap_programs import Answer
from mxwire.bench.record import Conditions, Recording
from mxwire.errors import MxwireError
from mxwire.ethernet import SOURCE
from mxwire.lab.machine import available_processors
from mxwire.link.tap import Tap
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

LIVE_SIZES: Final = (RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 1 << 20)
_REPETITIONS: Final = 5
_IN_AGENT: Final = ("card", "match", "push")
_PARTIES: Final = 4
"""Two ranks with an agent each."""
_COLLECTED: Final = 0.1
"""Seconds after a run within which the kernel hands over its last frames."""
_HEADERS: Final = 64
"""Bytes of each frame that a capture keeps."""


class LiveOverlap(OverlapRanks):
    """Two live ranks.

    With ``same`` an agent shares the processor of its application.
    """

    works = ("slept", "burnt")
    reference = "library"

    def __init__(self, ranks: LiveRanks, *, same: bool = False, quick: bool = False) -> None:
        self.ranks = ranks
        self.same = same
        self.repetitions = 1 if quick else _REPETITIONS
        self._opened: tuple[str, tuple[int, ...], int | None] | None = None
        self._parties: dict[str, dict[str, list[int]]] = {}

    @property
    def conditions(self) -> Conditions:
        """The circumstances."""
        return self.ranks.conditions

    def prepare(self, study: OverlapStudy, recording: Recording) -> tuple[str, ...]:
        """Add the places of agents and the limit of threads; all ways of progress exist live."""
        where = "its application" if self.same else "the other side"
        recording.remarks.append(f"an agent runs on the processor of {where}, and the kernel handles its frames there")
        if len(available_processors()) < _PARTIES and any(each in _IN_AGENT for each in study.progress):
            recording.remarks.append(
                "double buffering: both ranks work, and both have an agent; as there are no processors for "
                f"{_PARTIES} parties, each agent takes time of a rank, so that its rate may be below that of library"
            )
        if "thread" in study.progress:
            recording.remarks.append("thread: no progress before 10 ms after the last call")
        recording.facts[PROCESSORS] = self._parties
        return study.progress

    def _open(self, way: str, busy: tuple[int, ...]) -> None:
        """Open the communicators for a way of progress of the ranks that work, unless they are open."""
        if self._opened == (way, busy, self.buffers):
            return
        self._opened = None
        changes = []
        for rank, port in enumerate(self.ranks.ports):
            own, other = self.ranks.placement[rank], self.ranks.placement[1 - rank]
            agent = way in _IN_AGENT and rank in busy
            place = own if self.same else other
            # A push is a protocol of both sides.
            progress = way if rank in busy or way == "push" else "library"
            over = "tcp" if way == "kernel" else "mx"
            change = {"over": over, "progress": progress, "agent": agent, "agent_processor": place}
            changes.append(change | {"buffers": self.buffers})
            port.steer(place if agent else own)
        parties = self._parties.setdefault(way, {})
        for side, found in zip(SIDES, self.ranks.open(*changes), strict=True):
            parties |= _by_party(side, found)
        self._opened = way, busy, self.buffers

    def play(self, way: str, busy: Sequence[int], work: str, program: str, /, **parameters: Any) -> list[Answer]:
        """Play a program. Raises :class:`~mxwire.errors.MxwireError` if a rank fails."""
        self._open(way, tuple(busy))
        try:
            results = self.ranks.play(program, work == "slept", parameters)
        except MxwireError:
            self._opened = None
            raise
        self.used = {}
        for side, each in zip(SIDES, results, strict=True):
            self.used |= _by_party(side, each["used"])
        return [each["answer"] for each in results]

    def watch(
        self, way: str, busy: Sequence[int], work: str, program: str, /, **parameters: Any
    ) -> tuple[list[Answer], list[DrawnFrame]]:
        """Play a program, and capture the frames of both sides."""
        self._open(way, tuple(busy))
        with self.ranks.ports[0].namespace.inside():
            tap = Tap.open(self.ranks.ports[0].interface, ethertype=None, snap=_HEADERS)
        frames: list[DrawnFrame] = []
        addresses = [bytes.fromhex(each) for each in self.ranks.addresses]
        # Frames have the time of day, phases the monotonic clock.
        moved, ended = time.time_ns() - time.perf_counter_ns(), Event()

        def collect() -> None:
            while not ended.is_set():
                batch = tap.receive(_COLLECTED)
                for place in range(len(batch)):
                    source = batch[place][SOURCE]
                    if source in addresses:
                        when = int(batch.timestamp_ns[place]) - moved
                        frames.append(DrawnFrame(when, addresses.index(source), int(batch.wire_length[place])))

        collector = Thread(target=collect, daemon=True)
        try:
            collector.start()
            answers = self.play(way, busy, work, program, **parameters)
            time.sleep(_COLLECTED)
        finally:
            ended.set()
            collector.join()
            tap.close()
        return answers, sorted(frames, key=lambda each: each.time)


def _by_party(side: str, found: dict[str, Any]) -> dict[str, Any]:
    """Values of a rank and its agent, by their names as parties."""
    return {side if name == "rank" else f"{name} of the {side}": value for name, value in found.items()}
