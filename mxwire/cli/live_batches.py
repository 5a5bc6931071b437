"""What passes an interface, for the commands that also read captures: ``-i IF`` instead of files."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.frames import FrameBatch
from mxwire.words import count_of

if TYPE_CHECKING:
    from types import FrameType

    from mxwire.link import Tap
    from mxwire.link.errors import LinkError

_TICK: Final = 0.5
"""Seconds between looks at the clock while nothing comes."""
_COLLECTED: Final = 0.02
"""Seconds, more than the tap's delay."""
_LATE_NS: Final = 200_000_000
"""How long a frame may lie in the ring before it is handed out."""
_BUFFER: Final = 64 << 20
"""Bytes of frames that wait while those before them are looked at."""


class Signals:
    """Ctrl-C and SIGTERM end a loop between two batches, so that all is told or written; a second one ends at once."""

    def __init__(self, tap: Tap) -> None:
        self.seen: int | None = None
        """The number of the first signal that came."""
        self._tap = tap
        self._before = {each: signal.signal(each, self._note) for each in (signal.SIGINT, signal.SIGTERM)}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.seen is not None:
            raise KeyboardInterrupt
        self.seen = number
        self._tap.wake()

    def restore(self) -> None:
        """Let signals do what they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def passing(tap: Tap, signals: Signals, end: float | None) -> Iterator[FrameBatch]:
    """What passes until a signal comes or the monotonic clock says ``end``, to the last frame.

    Batches are empty where nothing came for a while, and lie in the tap's ring: they are gone with the next one.
    """
    while signals.seen is None:
        left = _TICK if end is None else min(_TICK, end - time.monotonic())
        if left <= 0:
            break
        yield tap.receive(left)
    # Frames that have passed may wait in the buffer, or for as long as the kernel collects them.
    time.sleep(_COLLECTED)
    last = time.time_ns()
    while len(batch := tap.receive(0.0)):
        yield batch
        if int(batch.timestamp_ns[-1]) > last:
            return


class Source(Protocol):
    """Where batches come from: a capture (:class:`~mxwire.capture.CaptureReader`) or an interface."""

    @property
    def name(self) -> str:
        """What to call it in messages."""

    @property
    def bytes_read(self) -> int:
        """How much of a file was read so far."""

    @property
    def total_bytes(self) -> int | None:
        """The size of the file, where it is one."""

    def __iter__(self) -> Iterator[FrameBatch]:
        """The batches, once."""


class LiveSource:
    """What passes an interface, as a :class:`Source`: until Ctrl-C, SIGTERM, ``seconds``, or the interface is gone.

    All frames are seen, for whomever they are, and those that this host sends. Batches stay valid; an empty one comes
    where nothing passed for a while, so that who takes them may look at the clock.
    """

    bytes_read = 0
    total_bytes = None

    def __init__(self, tap: Tap, signals: Signals, seconds: float | None) -> None:
        """Use :func:`live_source`."""
        self.frames = 0
        """Frames that were handed out."""
        self.error: LinkError | None = None
        """What ended it, if that was the interface."""
        self.quiet_until_ns = 0
        """By the clock of the frames' times, until when everything that passed has been handed out."""
        self._tap = tap
        self._signals = signals
        self._begun = time.monotonic()
        self._end = None if seconds is None else self._begun + seconds

    @property
    def name(self) -> str:
        """The interface."""
        return self._tap.name

    @property
    def dropped(self) -> int:
        """Frames that passed unseen so far, for want of room."""
        return self._tap.statistics().dropped

    @property
    def seconds(self) -> float:
        """How long it has been watched."""
        return time.monotonic() - self._begun

    def __iter__(self) -> Iterator[FrameBatch]:
        """The batches, to the end."""
        from mxwire.link.errors import LinkError

        try:
            for batch in passing(self._tap, self._signals, self._end):
                self.frames += len(batch)
                self.quiet_until_ns = time.time_ns() - _LATE_NS if not len(batch) else int(batch.timestamp_ns[-1])
                yield batch.compact()
        except LinkError as error:
            self.error = error


@contextmanager
def live_source(
    interface: str,
    *,
    seconds: float | None = None,
    ethertypes: tuple[int, ...] = (),
    promiscuous: bool = True,
    ring_bytes: int = _BUFFER,
) -> Iterator[LiveSource]:
    """Watch an interface; Ctrl-C then ends the batches instead of the program.

    What was seen and what was lost is told on standard error when it is over. Raises
    :class:`~mxwire.link.errors.LinkError` where the interface cannot be watched, or has gone meanwhile.
    """
    from mxwire.cli.notes import end_interrupted_line, listening, note
    from mxwire.link import Tap
    from mxwire.link.interface import read_interface

    wanted = ethertypes or (ETHERTYPE_MXOE,)
    with Tap.open(
        interface,
        ethertype=wanted[0] if len(wanted) == 1 else None,
        promiscuous=promiscuous,
        ring_bytes=ring_bytes,
    ) as tap:
        signals = Signals(tap)
        source = LiveSource(tap, signals, seconds)
        try:
            if not read_interface(interface).up:
                note(f"{interface} is down: nothing comes before it is set up")
            listening(interface, seconds)
            yield source
        finally:
            signals.restore()
            if signals.seen == signal.SIGINT:
                end_interrupted_line()
        note(_summary(source))
    if source.error is not None:
        raise source.error


def _summary(source: LiveSource) -> str:
    said = f"{source.name}: {count_of(source.frames, 'frame')} in {source.seconds:.1f} s"
    if source.dropped:
        return f"{said}; {source.dropped} more passed too fast to be looked at: capture them (mxwire capture -w FILE)"
    return f"{said}, 0 dropped"


def dropped_by(source: Source) -> int:
    """How many frames a source has lost so far; files do not say."""
    return source.dropped if isinstance(source, LiveSource) else 0
