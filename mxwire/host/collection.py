"""Garbage collection while hosts are open.

Python's collector searches new objects for cycles often and quickly, and all objects after some thousand messages. The
imported modules alone have a hundred thousand objects, whose search takes 10 to 20 ms, as long as a thousand round
trips, and finds nothing. So the objects that exist when the first host of a process opens are exempt from searches
until the last one ends. Objects without references are still freed at once.
"""

from __future__ import annotations

import gc
import threading
from typing import Final

_BY_PYTHON: Final = 2000
"""Maximum number of objects that Python itself exempts at its start; 3.12 exempts 375."""


class _Exemption:
    """The open hosts of this process, and whether objects are exempt on their behalf."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.hosts = 0
        self.frozen = False


_exemption = _Exemption()


def exempt_objects() -> None:
    """Exempt the existing objects from garbage collection, unless the application has exempted some itself."""
    with _exemption.lock:
        _exemption.hosts += 1
        if _exemption.hosts == 1 and gc.get_freeze_count() <= _BY_PYTHON:
            gc.freeze()
            _exemption.frozen = True


def include_objects() -> None:
    """End the exemption for one host; after the last one, all objects are searched again."""
    with _exemption.lock:
        _exemption.hosts -= 1
        if not _exemption.hosts and _exemption.frozen:
            gc.unfreeze()
            _exemption.frozen = False
