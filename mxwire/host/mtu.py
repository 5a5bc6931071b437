"""The MTU that hosts of a dialect need."""

from __future__ import annotations

from typing import Final

from mxwire.ethernet import HEADER_SIZE
from mxwire.host.errors import HostError
from mxwire.link import Link
from mxwire.protocol import Status
from mxwire.wire.dialect import MEDIUM_DATA_OFFSET, PULL_REPLY_DATA_OFFSET, Dialect

_JUMBO_MTU: Final = 9000


def longest_frame(dialect: Dialect) -> int:
    """Length of the longest frame that a dialect sends, in bytes with its Ethernet header."""
    return max(
        dialect.frame_limit,
        MEDIUM_DATA_OFFSET + dialect.fragment_payload,
        PULL_REPLY_DATA_OFFSET + dialect.reply_payload,
    )


def needed_mtu(dialect: Dialect) -> int:
    """MTU needed for the longest frame of a dialect: its length without the Ethernet header."""
    return longest_frame(dialect) - HEADER_SIZE


def advised_mtu(needed: int) -> int:
    """MTU to recommend if ``needed`` bytes are needed: that of jumbo frames, unless more are needed."""
    return max(needed, _JUMBO_MTU)


def require_mtu(link: Link, dialect: Dialect) -> None:
    """Raise :class:`~mxwire.host.errors.HostError` if the longest frames of a dialect do not fit a link."""
    needed = needed_mtu(dialect)
    if link.mtu < needed:
        raise HostError(
            Status.NO_DEVICE,
            f"{link.name}: its MTU of {link.mtu} is too small for dialect {dialect}, which needs {needed}: "
            f"raise it (ip link set {link.name} mtu {advised_mtu(needed)}), or use dialect omx:{link.mtu} on all "
            f"hosts",
        )
