"""Units of time in nanoseconds, the unit of all times in mxwire."""

from __future__ import annotations

from typing import Final

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
