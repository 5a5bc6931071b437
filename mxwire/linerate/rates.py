"""Rates of frames: those of a line, and those that users write."""

from __future__ import annotations

import re
from typing import Final

from mxwire.errors import MxwireError
from mxwire.replay.raw.pace import parse_rate

CHECK_SEQUENCE: Final = 4
"""Bytes of the frame check sequence, which no frame here includes."""
LINE_OVERHEAD: Final = CHECK_SEQUENCE + 20
"""Overhead on the line per frame in bytes: frame check sequence, preamble and gap."""
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%", re.ASCII)


def line_rate(megabits: int, length: float) -> float:
    """Maximum number of frames of ``length`` bytes per second on a line of the given speed in Mb/s."""
    return megabits * 1e6 / (8 * (length + LINE_OVERHEAD))


def frame_rate(text: str, length: float, megabits: int | None) -> float:
    """Return frames per second for ``50000/s``, ``1Gbit/s`` (the bits of the frames) or ``80%`` of the line rate.

    ``length`` is the mean length of the frames in bytes, ``megabits`` the speed of the interface. Raises
    :class:`~mxwire.errors.MxwireError` for other forms, and for a percentage if the speed is unknown.
    """
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        value, bits = parse_rate(text)
        return value / (8 * length) if bits else value
    if megabits is None:
        raise MxwireError(f"--rate {text}: the driver reports no speed: give frames or bits per second")
    if not float(found[1]):
        raise MxwireError(f"--rate {text}: give a percentage greater than 0")
    return line_rate(megabits, length) * float(found[1]) / 100
