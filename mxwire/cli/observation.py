"""Sources of traffic that ``top`` and ``watch`` observe: an interface, or a capture at its own pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from mxwire.cli.filters import FilterOptions
from mxwire.cli.option_groups import DecodingOptions, Inputs
from mxwire.cli.reading import BatchSource, capture_of, live_source, selection_of
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.analysis.observer import TrafficObserver
    from mxwire.analysis.selection import Selection
    from mxwire.analysis.snapshot import TrafficSnapshot
    from mxwire.frames import FrameBatch
    from mxwire.link.live_source import LiveSource

SNAP: Final = 160
"""Bytes of each frame to capture: all headers with tags, and the name in a HOST_REPLY."""
RING_BYTES: Final = 32 << 20
"""Memory for frames that wait while others are followed: enough for the headers of 150,000 frames."""


class Observation:
    """Passes the frames of a source to an observer, and makes a snapshot every ``interval`` seconds.

    ``paced`` plays a file at its pace; otherwise it is read as fast as possible.
    """

    def __init__(
        self,
        observer: TrafficObserver,
        origin: BatchSource,
        source: LiveSource | Iterator[FrameBatch],
        selection: Selection,
        interval: float,
        *,
        paced: bool,
    ) -> None:
        self.observer = observer
        self.selection = selection
        self.origin = origin
        """The interface or capture; ``source`` has its frames, in order."""
        self.latest: TrafficSnapshot | None = None
        """The newest snapshot; None before the first frame."""
        self.error: BaseException | None = None
        """The reason why the observation has failed."""
        self.over = False
        self._source = source
        self._interval = interval
        self._paced = paced
        self._stop = threading.Event()

    def run(self, *, empty: bool = False) -> Iterator[TrafficSnapshot]:
        """Observe until the source ends or :meth:`stop` is called; yield a snapshot per interval, and the last one.

        Before the first frame there are snapshots only with ``empty``.
        """
        observer = self.observer
        # The first snapshot comes early, so that a screen is not empty for a long interval.
        due = time.monotonic() + min(self._interval, 0.2)
        for batch, now_ns in self._frames():
            if len(batch):
                observer.observe(batch)
                self._check_lag(now_ns)
            if observer.first_ns is None and not empty:
                continue
            observer.wait_until(now_ns)
            if time.monotonic() >= due:
                due = time.monotonic() + self._interval
                yield self._snapshot()
        if observer.first_ns is not None:
            observer.settle()
            yield self._snapshot()

    def _check_lag(self, now_ns: int) -> None:
        from mxwire.link.live_source import LiveSource

        if isinstance(self._source, LiveSource):
            self.observer.lose(self._source.dropped)
            self.observer.starve(self._source.starvation.periods)
            self.observer.hurry(time.time_ns() - now_ns)

    def _snapshot(self) -> TrafficSnapshot:
        self.latest = self.observer.snapshot()
        return self.latest

    def _frames(self) -> Iterator[tuple[FrameBatch, int]]:
        from mxwire.capture.pace import at_pace
        from mxwire.link.live_source import LiveSource

        source = self._source
        if isinstance(source, LiveSource):
            for batch in source:
                yield batch, source.quiet_until_ns
        elif self._paced:
            yield from at_pace(source, self._stop.wait)
        else:
            for batch in source:
                yield batch, int(batch.timestamp_ns[-1]) if len(batch) else 0

    def run_all(self) -> None:
        """Run to the end, for a thread of its own; an exception ends it and is kept in ``error``."""
        try:
            for _ in self.run():
                pass
        except BaseException as error:
            self.error = error
        self.over = True

    def stop(self) -> None:
        """End the observation, from any thread."""
        from mxwire.link.live_source import LiveSource

        self._stop.set()
        if isinstance(self._source, LiveSource):
            self._source.end()

    @property
    def state(self) -> str | None:
        """The reason why there are no more frames, in a few words; None while it runs."""
        if self.error is not None:
            return f"failed: {self.error}"
        source_error = getattr(self._source, "error", None)
        if source_error is not None:
            return str(source_error)
        return "ended" if self.over else None


@contextmanager
def observation(
    inputs: Inputs,
    decoding: DecodingOptions,
    filters: FilterOptions,
    *,
    interval: float,
    paced: bool = True,
    pairs: int | None = None,
    quiet: bool = False,
) -> Iterator[Observation]:
    """Open the source that the options name, and an observer for it.

    Raises :class:`~mxwire.errors.MxwireError` for several files, or a source that cannot be opened. With ``quiet`` no
    note is printed about the interface.
    """
    from mxwire.analysis.follow_budget import SHARE
    from mxwire.analysis.observer import PAIRS, TrafficObserver
    from mxwire.capture.time_order import in_time_order

    if len(inputs.files) > 1:
        raise MxwireError(f"{len(inputs.files)} captures, but only one can be played: give one FILE")
    selection = selection_of(filters.selection(), filters.host_names(), inputs.names[0], decoding, live=inputs.live)
    observer = TrafficObserver(
        decoding.decoder,
        clock=time.monotonic_ns,
        processor_time=time.thread_time_ns,
        share=SHARE if inputs.live or paced else None,
        pairs=pairs or PAIRS,
        names=filters.host_names(),
        selection=selection,
    )
    with ExitStack() as stack:
        source: LiveSource | Iterator[FrameBatch]
        origin: BatchSource
        (name,) = inputs.names
        if inputs.live:
            source = origin = stack.enter_context(
                live_source(
                    name,
                    seconds=inputs.seconds,
                    ethertypes=decoding.ethertypes,
                    ring_bytes=RING_BYTES,
                    snap=SNAP,
                    copied=False,
                    quiet=quiet,
                )
            )
        else:
            origin = stack.enter_context(capture_of(name, decoding.skip_damage))
            source = in_time_order(origin)
        made = Observation(observer, origin, source, selection, interval, paced=paced)
        yield made
        if made.error is not None:
            raise made.error
