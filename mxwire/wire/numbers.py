"""The numbers of the protocol: reserved values, masks, magics, limits and times, each written here and nowhere else.

Engine, judge, follower, scenarios and the Wireshark plugin interpret frames independently, so that each can reveal
defects of the others. They nevertheless share these numbers: two independent copies of a limit would add errors without
revealing any. Offsets and sizes of packets are not here: they follow from :mod:`mxwire.wire.formats`
(:func:`mxwire.wire.layout.layout_of`), and numbers that depend on the dialect are in :mod:`mxwire.wire.dialect`.
Sections are those of the wire format, rules those of the behaviour.
"""

from __future__ import annotations

from typing import Final

from mxwire.units import MILLISECOND, SECOND

# Reserved values.

NO_SESSION: Final = 0xFFFF_FFFF
"""Session id sent if that of the destination endpoint is unknown (R-CON-12)."""
NO_PEER_INDEX: Final = 0xFFFF
"""Peer index sent if the sender's index at the destination is unknown (section 5)."""

DEFAULT_KEY: Final = 0x12345678
"""Default key of an endpoint; that of ``omx_perf``."""

# Sequence numbers: 14 bits of number below two bits of session number (R-SEQ-01).

NUMBER_MASK: Final = 0x3FFF
SESSION_NUMBER_MASK: Final = 0xC000
SESSION_NUMBER_SHIFT: Final = 14
SESSION_NUMBER_STEP: Final = 1 << SESSION_NUMBER_SHIFT
FIRST_NUMBER: Final = 1
"""The number that a receiver expects first (R-SEQ-05)."""
ABANDONED_NEXT: Final = 0x30F1
ABANDONED_DONE: Final = 0x0F0E
"""Next and acknowledged number in frames of a host that has abandoned its partner (R-RTX-05)."""

# Magics.

PULL_MAGIC: Final = 0x21071980
"""``src_magic`` of a PULL, XORed with the endpoint number (section 6.9)."""
HOST_QUERY_MAGIC: Final = 0x13052008
"""Magic of a driver's HOST_QUERYs until its first reset of the name table (R-HOST-03)."""

# Limits. Lengths are in bytes.

TINY_MAXIMUM: Final = 32
SMALL_MAXIMUM: Final = 128
RAW_FRAME_MAXIMUM: Final = 1024
RENDEZVOUS_THRESHOLD: Final = 32768
"""Default maximum length of a MEDIUM message, in both dialects (R-SND-01)."""
HOST_NAME_MAXIMUM: Final = 80
"""Maximum length of a host name, including its NUL (section 6.3)."""
LIBACK_LENGTH: Final = 16
"""``length`` of a TRUC with a liback (section 6.4)."""
CONNECT_LENGTH: Final = 16
"""``length`` of a CONNECT, request or reply (section 6.5)."""
RNDV_LENGTH: Final = 8
"""``length`` of a RNDV (section 6.8)."""
OUTSTANDING_MAXIMUM: Final = 8191
"""Maximum unacknowledged numbers (R-SEQ-06)."""
EARLY_WINDOW: Final = 255
"""Maximum distance from the expected number at which an early packet is kept (R-ORD-03)."""
BLOCKS_IN_FLIGHT: Final = 4
"""Blocks that a pull requests in parallel (R-PUL-02)."""
FRAGMENTS_TRACKED: Final = 32
"""Fragments of a MEDIUM message that a receiver can track (R-MED-03)."""
ENDPOINT_MAXIMUM: Final = 32
"""Default maximum of endpoints per interface (R-EP-01)."""
REGION_MAXIMUM: Final = 256
"""Maximum regions per endpoint (R-RDV-01)."""
LONGEST_PLAIN_QUERY: Final = 500
"""Maximum length of a HOST_QUERY, in bytes, to which real hosts replied with the correct magic (R-MEA-07)."""
QUERY_MAGICS: Final = range(0x4000_0000, 0x8000_0000)
"""Magics of probing queries. A driver counts up by one from 0x13052008 at each reset of its name table (R-HOST-03), so
it never reaches them."""

# Times, in nanoseconds.

RESEND_DELAY: Final = 500 * MILLISECOND
"""Interval between retransmissions (R-RTX-01); a host counts it in its kernel's ticks, see resend_ticks()."""
PULL_TIMER: Final = SECOND
"""Silence after which a pull re-requests (R-PUL-06)."""
QUERY_INTERVAL: Final = 5 * SECOND
"""Interval between HOST_QUERYs to a nameless peer (R-HOST-02)."""
ANNOUNCEMENT_INTERVAL: Final = SECOND
"""Interval between announcements of a series (R-DISC-02)."""


def resend_ticks(hz: int) -> int:
    """Return the ticks between retransmissions by a host of ``hz`` ticks per second (R-RTX-01).

    The number is one more than RESEND_DELAY in ticks, because the tick of the first transmission has already begun.
    """
    return hz * RESEND_DELAY // SECOND + 1
