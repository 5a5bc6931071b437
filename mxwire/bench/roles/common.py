"""Constants of all roles and their channels."""

from __future__ import annotations

from random import Random
from typing import Final

LARGE: Final = 4 << 20
"""Length of the longest message."""
PATIENCE: Final = 30.0
"""Seconds to wait for the other side."""
WARM: Final = 0.1
"""Fraction of the operations, the first ones, that are not counted."""
BARE_ETHERTYPE: Final = 0x88B6
"""EtherType of bare frames: the second for local experiments."""
IP_ADDRESSES: Final = ("10.77.0.1", "10.77.0.2")
"""IPv4 addresses of the active and the passive side."""
CONTENT: Final = Random(0).randbytes(LARGE)
"""Content of all messages."""
