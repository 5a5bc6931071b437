"""The live part of ``bench overlap``: overlap of a message with work of its receiver, by the way of progress.

Theory of operation
-------------------
A receiver posts a receive, requests the message with a short one, works for twice the time that an idle message takes,
and waits. Its overlap is (idle + work - total) / min(idle, work): 1 if message and work take the time of the longer
one, 0 if one waits for the other. Work is *slept*, so that other processes get the processor of the receiver, as if it
had one for the card; or *burnt*, a fixed number of loops, so that time that others take from it shows.

The ways of progress are ``library`` (the host runs in the calls of the receiver), ``thread`` (a thread of it runs the
host, at the latest 10 ms after the last call, ``NAP`` in ``host/driver.py``), ``match`` (card and matching in an agent,
``mxwire agent``, on the processor of the sender or, with ``same``, of the receiver), and ``kernel`` (TCP). Sides and
agent are processes that are bound to the processors in the fact ``processors``.

Names in the recording: those of post-work-wait in virtual time (``overlap.py``), ``<way>, receiver sleeps`` and
``receiver burns``; details are the medians of the times in µs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from mxwire.bench.channels.hosts import WITH
from mxwire.bench.overlap import OVERLAP, STUDY
from mxwire.bench.record import Recording
from mxwire.bench.stage import NamespaceStage
from mxwire.bench.study import Points, StudyOptions, Turns, kept
from mxwire.errors import MxwireError
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD
from mxwire.words import suggestion

LIVE_PROGRESS: Final = ("library", "thread", "match", "kernel")
LIVE_SIZES: Final = (RENDEZVOUS_THRESHOLD, RENDEZVOUS_THRESHOLD + 1, 262144, 1 << 20)
_REPETITIONS: Final = 5
"""Messages per round and point."""
_WORK: Final = {"sleeps": 0, "burns": 1}


@dataclass(frozen=True)
class LiveOverlapStudy:
    """The axes of the study. Raises :class:`~mxwire.errors.MxwireError` for an unknown way of progress."""

    dialect: str
    progress: tuple[str, ...] = LIVE_PROGRESS
    sizes: tuple[int, ...] = LIVE_SIZES
    same: bool = False
    """True if the agent shares the processor of the receiver."""

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        for each in self.progress:
            if each not in LIVE_PROGRESS:
                raise MxwireError(
                    f"no live way of progress {each!r}{suggestion(each, LIVE_PROGRESS)}: use "
                    f"{', '.join(LIVE_PROGRESS)}, or add --simulated TABLE for the others"
                )

    def carrier(self, way: str) -> str:
        """The carrier of a way of progress."""
        if way == "kernel":
            return "tcp"
        return self.dialect + {"thread": f"{WITH}thread", "match": f"{WITH}agent"}.get(way, "")


def run_live_overlap(stage: NamespaceStage, study: LiveOverlapStudy, options: StudyOptions) -> Recording:
    """Run the study in rounds, in which all ways take turns."""
    recording = options.begin(STUDY, stage.conditions)
    place = stage.placement[1 if study.same else 0]
    recording.remarks.append(f"the agent runs on the processor of the {'receiver' if study.same else 'sender'}")
    recording.remarks.append("thread: no progress before 10 ms after the last call of the receiver")
    points = Points(recording)
    points.declare("of the shorter", OVERLAP)
    facts: dict[str, Any] = recording.facts.setdefault("processors", {})

    def measure(way: str, size: int, work: str, number: int) -> None:
        sent, found = stage.run(
            "post, work, wait",
            carrier=study.carrier(way),
            spin=False,
            size=size,
            repetitions=1 if options.quick else _REPETITIONS,
            burnt=_WORK[work],
            agent_processor=0 if place is None else place,
        )
        facts[way] = {"sender": sent["processors"], "receiver": found["processors"]}
        if "agent" in found:
            facts[way]["agent"] = found["agent"]
        if number < 0:
            return
        idle, alone, total = (median(found[each]) for each in ("idle", "alone", "total"))
        details = {"idle": idle / 1e3, "work": alone / 1e3, "total": total / 1e3}
        points.add(OVERLAP, f"{way}, receiver {work}", _overlap(idle, alone, total), details=details, size=size)

    with kept(recording, points):
        for size in study.sizes:
            turns = Turns(recording, options.progress)
            contestants: dict[str, Callable[[int], None]] = {
                f"{way}, {work}, {size:,} bytes": partial(measure, way, size, work)
                for way in study.progress
                for work in _WORK
            }
            turns.play(contestants, options.rounds, warm_up=options.warm_up)
    return recording


def _overlap(idle: float, work: float, total: float) -> float:
    """The share of the shorter of message and work that both have in common."""
    return (idle + work - total) / min(idle, work)
