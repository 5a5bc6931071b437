"""Frames that pass an interface, as a source of batches that ends on a signal, after a time, or with the interface."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Final

from mxwire.link.errors import LinkError
from mxwire.link.starvation import StarvationMeter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from mxwire.frames import FrameBatch
    from mxwire.link.tap import Tap

_TICK: Final = 0.5
"""Maximum wait in seconds before the clock is checked again."""
_COLLECTED: Final = 0.02
"""Seconds to wait for the last frames: more than the delay of the tap, during which the kernel collects frames."""
_LATE_NS: Final = 200_000_000
"""Maximum time for which a frame may stay in the ring before it is handed out."""


class EndSignals:
    """Handlers for Ctrl-C and SIGTERM that end a loop between two batches; a second signal interrupts at once."""

    def __init__(self, tap: Tap) -> None:
        self.seen: int | None = None
        """The number of the first signal received; 0 if the program has ended the loop."""
        self._tap = tap
        self._before = {each: signal.signal(each, self._note) for each in (signal.SIGINT, signal.SIGTERM)}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.seen is not None:
            raise KeyboardInterrupt
        self.seen = number
        self._tap.wake()

    def end(self) -> None:
        """End the loop like a signal, from any thread."""
        self.seen = self.seen or 0
        self._tap.wake()

    def restore(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def passing(tap: Tap, signals: EndSignals, end: float | None) -> Iterator[FrameBatch]:
    """Yield batches until a signal or the time ``end`` of the monotonic clock, including all frames that passed before
    then.

    A batch is empty if no frame passed for a while. Batches lie in the tap's ring: each is valid until the next one.
    """
    while signals.seen is None:
        left = _TICK if end is None else min(_TICK, end - time.monotonic())
        if left <= 0:
            break
        yield tap.receive(left)
    # Frames that have passed may still be in the ring, or with the kernel, which collects them.
    time.sleep(_COLLECTED)
    last = time.time_ns()
    while len(batch := tap.receive(0.0)):
        yield batch
        # On a busy interface there is always another frame.
        if int(batch.timestamp_ns[-1]) > last:
            return


class LiveSource:
    """Batches of the frames that pass an interface, until a signal, ``seconds`` have passed, or the interface is gone.

    All frames are included, whatever their destination, and those sent by this host. Batches stay valid; an empty batch
    is yielded if no frame passed for a while, so that the consumer can check its clock. With ``copied=False`` the
    frames stay in the memory of the tap, which takes less time, but a batch is valid only until the next one.
    """

    bytes_read = 0
    total_bytes = None
    names: Final[dict[bytes, str]] = {}

    def __init__(self, tap: Tap, signals: EndSignals, seconds: float | None, *, copied: bool = True) -> None:
        self.frames = 0
        """Frames handed out."""
        self.error: LinkError | None = None
        """The failure of the interface, if that ended the batches."""
        self.quiet_until_ns = 0
        """Time of the frames' clock up to which all frames that passed have been handed out."""
        self.starvation = StarvationMeter(time.time_ns, time.process_time_ns)
        """Periods in which frames waited because this process lacked the processor."""
        self._tap = tap
        self._signals = signals
        self._copied = copied
        self._begun = time.monotonic()
        self._end = None if seconds is None else self._begun + seconds

    @property
    def name(self) -> str:
        """The interface."""
        return self._tap.name

    @property
    def dropped(self) -> int:
        """Frames lost so far because the ring was full."""
        return self._tap.statistics().dropped

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begun

    def end(self) -> None:
        """End the batches, from any thread."""
        self._signals.end()

    def __iter__(self) -> Iterator[FrameBatch]:
        """Iterate over the batches, once."""
        try:
            # Frames may pass after the ring was found empty, if this process does not run for a while.
            asked_ns = time.time_ns()
            for batch in passing(self._tap, self._signals, self._end):
                self.frames += len(batch)
                if len(batch):
                    self.starvation.note(int(batch.timestamp_ns[0]))
                self.quiet_until_ns = int(batch.timestamp_ns[-1]) if len(batch) else asked_ns - _LATE_NS
                yield batch.compact() if self._copied else batch
                asked_ns = time.time_ns()
        except LinkError as error:
            self.error = error
