"""GeneratorRun: one run of a generator, agreed with a sink before and compared with its counters afterwards."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.lab.machine import boot_id
from mxwire.linerate.control import SinkAddress, SinkControl
from mxwire.linerate.drops import KernelDrops, drops_by_place, read_drops
from mxwire.linerate.generator import GeneratorPlan, GeneratorResult
from mxwire.linerate.template import RUNS, FrameTemplate
from mxwire.linerate.transmitters import RunningGenerator, Transmitter

SETTLE: Final = 0.2
"""Seconds after the last frame before the counters of the sink are read: late frames still arrive."""


@dataclass
class RunResult:
    """A run as the generator sent it, and as the sink counted it."""

    generator: GeneratorResult
    sink: Mapping[str, Any] | None = None
    """The reply of the sink; None without a sink, or if it did not answer."""
    sender: KernelDrops = field(default_factory=KernelDrops)
    """Drops at the sending interface."""
    common_clocks: bool = False
    """True if both sides run on one machine, so that latencies are exact."""
    error: str = ""
    """The reason why the run, or its count, is not complete."""

    @property
    def sent(self) -> int:
        """Frames sent."""
        return self.generator.frames

    @property
    def received(self) -> int:
        """Frames received by the sink, without duplicates; 0 without a sink."""
        return int(self.sink["received"]) if self.sink is not None else 0

    @property
    def lost(self) -> int:
        """Frames sent that did not arrive."""
        return max(self.sent - self.received, 0)

    @property
    def loss(self) -> float:
        """Share of the frames sent that did not arrive, 0 to 1."""
        return self.lost / self.sent if self.sent else 0.0

    def places(self) -> dict[str, int]:
        """Frames that were not received, by place; empty without a sink."""
        if self.sink is None:
            return {}
        return drops_by_place(self.sent, self.received, self.sender, self.sink)

    def record(self) -> dict[str, Any]:
        """The run as an object for JSON."""
        return {
            "generator": self.generator.record(),
            "sink": None if self.sink is None else dict(self.sink),
            "lost": None if self.sink is None else self.lost,
            "loss": None if self.sink is None else self.loss,
            "places": self.places(),
            "common_clocks": self.common_clocks,
            "complete": not self.error and not self.generator.ended,
            "error": self.error or None,
        }


@contextmanager
def _interrupts_deferred(generator: RunningGenerator) -> Iterator[None]:
    """Let Ctrl-C end a run between two batches, and raise KeyboardInterrupt then.

    Raised within a batch, it would leave frames uncounted that the interface has accepted. Python runs signal handlers
    on the main thread only, so there is nothing to do on others.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    interrupt: KeyboardInterrupt | None = None

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal interrupt
        try:
            before(number, frame)
        except KeyboardInterrupt as error:
            interrupt = error
            generator.stopped = True

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupt is not None:
        raise interrupt


class GeneratorRun:
    """Runs of one generator against one sink, or none.

    ``first`` is the number of the first run, which a caller draws at random so that runs of different processes
    differ.
    """

    def __init__(
        self, transmitter: Transmitter, control: SinkControl | None, sink: SinkAddress | None, *, first: int = 0
    ) -> None:
        self._transmitter = transmitter
        self._control = control
        self._sink = sink
        self._number = first
        self.generator: RunningGenerator | None = None
        """The generator of the current run, or the last one."""

    def run(
        self,
        templates: Sequence[FrameTemplate],
        plan: GeneratorPlan,
        *,
        streams: int = 1,
        settle: float = SETTLE,
        progress: Callable[[GeneratorResult], None] | None = None,
    ) -> RunResult:
        """Send frames by ``plan``, and compare with the counters of the sink ``settle`` seconds after the last one.

        An error after the first frame does not discard the result, which then has its text. Raises
        :class:`~mxwire.errors.MxwireError` if the sink does not answer before the run; Ctrl-C ends the run after the
        current batch, and is noted in the result.
        """
        self._number = (self._number + 1) % RUNS
        self.generator = generator = self._transmitter.generator(templates, plan, streams=streams, run=self._number)
        self._begin()
        before = read_drops(self._transmitter.name)
        result = RunResult(generator.result)
        try:
            with _interrupts_deferred(generator):
                generator.run(progress)
        except KeyboardInterrupt:
            generator.result.ended = "interrupted"
        except MxwireError as error:
            generator.result.ended = str(error)
        self._end(result, settle)
        result.sender = read_drops(self._transmitter.name) - before
        return result

    def _begin(self) -> None:
        if self._control is not None and self._sink is not None:
            self._control.ask(self._sink.address, "begin", run=self._number)

    def _end(self, result: RunResult, settle: float) -> None:
        if self._control is None or self._sink is None:
            return
        # Where identifiers are hidden, those of two machines are equally empty.
        result.common_clocks = bool(boot_id()) and self._sink.fields.get("boot") == boot_id()
        try:
            time.sleep(settle)
            result.sink = self._control.ask(
                self._sink.address, "end", run=self._number, sent=result.sent, boot=boot_id()
            )
        except KeyboardInterrupt:
            result.generator.ended = "interrupted"
        except MxwireError as error:
            result.error = str(error)
