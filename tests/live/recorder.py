"""Record the frames of an interface of a namespace while something happens there."""

from __future__ import annotations

import math
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mxwire.capture import create_capture
from mxwire.frames import FrameBatch
from mxwire.link import Tap

from .namespaces import Port
from .referee import Watched

_RING_BYTES: Final = 64 << 20
_LAST_SECONDS: Final = 20.0
"""Longest time after the end for which frames are taken: programs that were left behind may send without an end."""


class Recorder:
    """Collects frames of MXoE from the beginning of the ``with`` to its end, those received and those sent; with a path
    in a capture, otherwise in memory."""

    def __init__(self, port: Port, path: Path | None = None, ring_bytes: int = _RING_BYTES) -> None:
        self.frames: list[Watched] = []
        self.dropped = 0
        """Frames that were missed, which makes a judgement worthless."""
        self._stack = ExitStack()
        with port.namespace.inside():
            self._tap = self._stack.enter_context(Tap.open(port.interface, ring_bytes=ring_bytes))
        self._keep = self._remember if path is None else self._stack.enter_context(create_capture(path)).write
        self._until = math.inf
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._record, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._until = time.monotonic() + _LAST_SECONDS
        self._ended.set()
        self._thread.join()
        self.dropped = self._tap.statistics().dropped
        self._stack.close()

    def _record(self) -> None:
        while (len(batch := self._tap.receive(0.1)) and time.monotonic() < self._until) or not self._ended.is_set():
            self._keep(batch)

    def _remember(self, batch: FrameBatch) -> None:
        self.frames += zip(batch.timestamp_ns.tolist(), batch, strict=True)
