"""The numbers of the protocol: reserved values, masks, magics, limits and times, each written here and nowhere else.

Engine, judge, follower, scenarios and the Wireshark plugin decide independently of each other what a frame means, so
that one can find the mistakes of another; but they do not number independently, since a limit that is wrong in two
places is found by neither. Offsets and sizes of packets are not here: they follow from
:mod:`mxwire.wire.formats` (:func:`mxwire.wire.layout.layout_of`), and what depends on the dialect is in
:mod:`mxwire.wire.dialect`. Sections are those of the wire format, rules those of the behaviour.
"""

from __future__ import annotations

from typing import Final

from mxwire.units import MILLISECOND, SECOND

# Reserved values.

NO_SESSION: Final = 0xFFFF_FFFF
"""Session of an endpoint that the sender does not know (R-CON-12)."""
NO_PEER_INDEX: Final = 0xFFFF
"""Peer index of a sender that has not learnt its place in the receiver's table (section 5)."""

DEFAULT_KEY: Final = 0x12345678
"""Key of an endpoint for which none is chosen; that of ``omx_perf``."""

# Sequence numbers: 14 bits of number below two bits of session number (R-SEQ-01).

NUMBER_MASK: Final = 0x3FFF
SESSION_NUMBER_MASK: Final = 0xC000
SESSION_NUMBER_SHIFT: Final = 14
SESSION_NUMBER_STEP: Final = 1 << SESSION_NUMBER_SHIFT
FIRST_NUMBER: Final = 1
"""The number that a receiver asks for first (R-SEQ-05)."""
ABANDONED_NEXT: Final = 0x30F1
ABANDONED_DONE: Final = 0x0F0E
"""Numbers that a receiver that has abandoned its partner expects and acknowledges (R-RTX-05)."""

# Magics.

PULL_MAGIC: Final = 0x21071980
"""``src_magic`` of a PULL, combined by exclusive or with the endpoint's number (section 6.9)."""
HOST_QUERY_MAGIC: Final = 0x13052008
"""Magic of the first HOST_QUERY of a host (R-HOST-03)."""

# Limits. Lengths are in bytes.

TINY_MAXIMUM: Final = 32
SMALL_MAXIMUM: Final = 128
RAW_FRAME_MAXIMUM: Final = 1024
RENDEZVOUS_THRESHOLD: Final = 32768
"""Longest message that is sent as MEDIUM unless configured otherwise, both dialects (R-SND-01)."""
HOST_NAME_MAXIMUM: Final = 80
"""Longest host name, with its NUL (section 6.3)."""
LIBACK_LENGTH: Final = 16
"""``length`` of a TRUC that holds a liback (section 6.4)."""
CONNECT_LENGTH: Final = 16
"""``length`` of a CONNECT, request or reply (section 6.5)."""
RNDV_LENGTH: Final = 8
"""``length`` of a RNDV (section 6.8)."""
OUTSTANDING_MAXIMUM: Final = 8191
"""Numbers that may be unacknowledged (R-SEQ-06)."""
EARLY_WINDOW: Final = 255
"""How many numbers ahead of the expected one a packet may be and is kept (R-ORD-03)."""
BLOCKS_IN_FLIGHT: Final = 4
"""Blocks that a pull requests in parallel (R-PUL-02)."""
FRAGMENTS_TRACKED: Final = 32
"""Fragments of a MEDIUM message whose arrival a receiver can record (R-MED-03)."""
ENDPOINT_MAXIMUM: Final = 32
"""Endpoints of an interface, unless configured otherwise (R-EP-01)."""
REGION_MAXIMUM: Final = 256
"""Regions of an endpoint (R-RDV-01)."""
LONGEST_PLAIN_QUERY: Final = 500
"""Longest HOST_QUERY that a real host was seen to answer with the right magic (R-MEA-07)."""

# Times, in nanoseconds.

RESEND_DELAY: Final = 500 * MILLISECOND
"""Time between two transmissions of a request (R-RTX-01)."""
PULL_TIMER: Final = SECOND
"""Silence after which a pull requests again (R-PUL-06)."""
QUERY_INTERVAL: Final = 5 * SECOND
"""Time between two HOST_QUERYs to a nameless peer (R-HOST-02)."""
ANNOUNCEMENT_INTERVAL: Final = SECOND
"""Time between two announcements of a series (R-DISC-02)."""
