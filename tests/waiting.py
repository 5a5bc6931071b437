"""Waiting for a condition, and never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 60.0
"""Seconds after which a condition that should hold at once fails its test: more than any takes on a busy machine."""
T = TypeVar("T")


def until(condition: Callable[[], T]) -> T:
    """Wait until a condition holds, and return its value."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {found!r}"
        time.sleep(0.002)
    return found
