"""MXoE as scapy layers: read, change, build, send and match packets with scapy.

``from mxwire.scapy import *`` provides a layer for the head (:class:`MXoE`), one for each layout of the specification
(``MXoETiny``, ``MXoEConnectReply``, …; :data:`LAYERS` has all of them), and helpers. The layers are built from
:mod:`mxwire.wire.formats` at import.

scapy is under the GPL, version 2 only. No other module of mxwire imports this one, or scapy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mxwire.scapy import required  # noqa: F401  (first: it checks that scapy is there)

# isort: split
from scapy.config import conf
from scapy.layers.l2 import Ether
from scapy.packet import Padding

from mxwire.scapy.helpers import fragment_medium, from_frame, parse_mxoe, pull_replies, read_mxoe, to_frame
from mxwire.scapy.layers import LAYERS, MXoE, MXoEBody

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[Any]: ...


globals().update(LAYERS)

__all__ = [
    "LAYERS",
    "Ether",
    "MXoE",
    "MXoEBody",
    "Padding",
    "conf",
    "fragment_medium",
    "from_frame",
    "parse_mxoe",
    "pull_replies",
    "read_mxoe",
    "to_frame",
]
__all__ += list(LAYERS)
