"""Garbage collection while hosts are open.

Python's collector searches new objects for cycles often and quickly, and all objects after some thousand messages. The
imported modules alone have a hundred thousand objects, whose search takes 10 to 20 ms, as long as a thousand round
trips, and finds nothing. So the objects that exist when the first host of a process opens are exempt from searches
until the last one ends. Objects without references are still freed at once.
"""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Final

_BY_PYTHON: Final = 2000
"""Maximum number of objects that Python itself exempts at its start; 3.12 exempts 375."""


class _Exemption:
    """The open hosts of this process, and whether objects are exempt on their behalf."""

    def __init__(self) -> None:
        # Reentrant, since a search that begins while it is held may end the exemption for a host that was dropped.
        self.lock = threading.RLock()
        self.hosts = 0
        self.frozen = False


_exemption = _Exemption()


class HostExemption:
    """The exemption of all existing objects from garbage collection for one host, unless the application has exempted
    some itself; after the last host, all objects are searched again.

    Make it before the objects of the host: a host that is dropped without ``close()`` is then found by a search, which
    ends its exemption.
    """

    def __init__(self) -> None:
        # An object that can be weakly referenced, in contrast to those of compiled classes.
        self._token = threading.Lock()
        self._finalizer = weakref.finalize(self._token, _include_objects)
        self._finalizer.atexit = False
        with _exemption.lock:
            _exemption.hosts += 1
            if _exemption.hosts == 1 and gc.get_freeze_count() <= _BY_PYTHON:
                gc.freeze()
                _exemption.frozen = True

    def end(self) -> None:
        """End the exemption for the host; ending it again does nothing."""
        self._finalizer()


def _include_objects() -> None:
    with _exemption.lock:
        _exemption.hosts -= 1
        if not _exemption.hosts and _exemption.frozen:
            gc.unfreeze()
            _exemption.frozen = False
