"""Watching: being shown all frames that a host hears and says."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mxwire.frames import FrameBatch
from mxwire.host.core import Core


class Watcher(ABC):
    """Is shown all frames, from when it is made until it is closed, while the core is turned.

    Whoever derives from it is complete before it calls ``__init__`` here: frames may come at once.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        with core.section:
            core.watchers.append(self._watch)

    def close(self) -> None:
        """See no more; closing again does nothing."""
        with self._core.section:
            if self._watch in self._core.watchers:
                self._core.watchers.remove(self._watch)

    @abstractmethod
    def _watch(self, batch: FrameBatch, sent: bool) -> None:
        """Frames that have arrived, or (``sent``) are about to leave; the batch must not be kept."""
