"""Profiles: the behaviour of an implementation, where the specification permits a choice, as data.

Times are nanoseconds, lengths bytes. Tick counts follow the formulas of the rules with integer division (R-GEN-03).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.units import SECOND
from mxwire.wire.numbers import (
    ANNOUNCEMENT_INTERVAL,
    BLOCKS_IN_FLIGHT,
    EARLY_WINDOW,
    ENDPOINT_MAXIMUM,
    HOST_QUERY_MAGIC,
    OUTSTANDING_MAXIMUM,
    PULL_TIMER,
    QUERY_INTERVAL,
    REGION_MAXIMUM,
    RENDEZVOUS_THRESHOLD,
    resend_ticks,
)
from mxwire.words import suggestion


class Defect(StrEnum):
    """Known defects and oddities of the real stack that an engine can reproduce (behaviour, sections 16, 23 and 25).

    D-8 concerns memory, D-11 a benchmark command, D-12 the calls of an application, and D-9 is a crash: they are not
    reproduced.
    """

    REPLY_LEAVES_REVERSE_SESSION = "D-1"
    """A connect reply does not set ``rev`` (R-CON-12)."""
    WRONG_KEY_CHANGES_PARTNER = "D-2"
    """A request with a wrong key changes the partner's state nevertheless (R-CON-09)."""
    RESTART_HOLE = "D-3"
    """The survivor of a restart forgets the start number that it has requested from the restarted endpoint."""
    SESSION_NUMBERS_DISAGREE = "D-4"
    """An abandoned endpoint keeps its old session number when its partner connects again."""
    EARLY_DRAINED_BY_ONE = "D-5"
    """Early packets are processed one number at a time (R-ORD-04)."""
    NACK_TO_INDEX = "D-6"
    """The peer index alone identifies the source of a packet; the source address is not compared (R-NAK-02)."""
    REPLY_LENGTH_UNCHECKED = "D-10"
    """A PULL_REPLY of an unexpected length is accepted as complete (R-PUL-05)."""
    HANDLES_REUSED = "D-13"
    """Pull handles restart from the first at each opening of an endpoint."""
    REPLY_RENAMES_SELF = "D-14"
    """A HOST_REPLY from the host's own address renames the host (R-MEA-05)."""
    FIRST_FRAME_BEYOND_PAYLOAD = "D-15"
    """A PULL whose first frame starts at or beyond P is served."""
    LONG_QUERY_LOSES_MAGIC = "R-MEA-07"
    """A HOST_QUERY with very long padding is answered with magic 0."""
    ODD_NACK_ENDS_PULL = "R-NAK-09"
    """A NACK_MCP of type 0, 5 or 6 ends the pull as a success, as aborted, or as timed out."""
    TRANSFERS_WITH_ANY_HOST = "R-PUL-15"
    """A region may be pulled by any host that knows its number and the session, not only by the host to which it was
    announced; and a pull accepts data and refusals from any host (R-PUL-05)."""
    NOTIFIES_NEXT_SESSION = "R-MEA-14"
    """The NOTIFY of a refused pull goes to the partner's new session, if there is one."""
    FIRST_PULLS_OUT_OF_ORDER = "R-MEA-15"
    """The first PULLs of some transfers are transmitted out of order."""
    TRUNCATION_REPORTED_LATE = "R-MEA-18"
    """A truncated large receive is a success until its NOTIFY is acked."""
    NAMELESS_QUERIED_FOREVER = "R-HOST-02"
    """A peer that never answers is queried every 5 s without end."""
    PEERS_NEVER_REPLACED = "R-DISC-05"
    """A full peer table takes no further host, even if those in it never answer."""
    ANY_RAW_ANNOUNCES = "R-MEA-22"
    """Any RAW frame is an announcement to the discovery program, whatever it contains."""
    EARLY_QUERY_UNANSWERED = "R-MEA-26"
    """The HOST_QUERY of a host that is not in the peer table yet is forgotten, so its repetition 5 s later is the first
    one answered (R-HOST-04)."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The behaviour of one implementation; the defaults are those of Open-MX 1.5.4 without its defects."""

    name: str
    about: str = ""
    hz: int = 250
    """Ticks per second, the unit of the library's timers (R-GEN-03)."""
    resend_maximum: int = 1000
    """Retransmissions of a request before its partner is abandoned (R-RTX-03)."""
    ack_threshold: int = 4
    """Number of unacked packets from which an ack is sent at once (R-ACK-02, R-ACK-07)."""
    notify_acked_at_once: bool | None = None
    """True if a NOTIFY is acked at once (R-ACK-08); None: in the dialect `mxoe` only."""
    progress_in_background: bool = False
    """True if the library works while the application does not call it (R-GEN-01)."""
    connects_back: bool = True
    """True if an endpoint connects to a partner that has connected to it, before it sends the first message there
    (R-CON-12)."""
    keeps_partner_on_disconnect: bool = False
    """Native MX keeps the partner; Open-MX forgets it (R-CLS-03)."""
    endpoint_maximum: int = ENDPOINT_MAXIMUM
    """Maximum number of endpoints per interface (R-EP-01)."""
    peer_maximum: int = 1024
    """Maximum number of peers, including the local interfaces; a further one replaces one that never answers."""
    ring_size: int = 1024
    """Maximum number of queued events while the application makes no calls (R-GEN-01)."""
    ring_batch: int = 256
    """Number of events whose slots in the ring the library returns together (R-MEA-17)."""
    region_maximum: int = REGION_MAXIMUM
    """Maximum number of regions per endpoint (R-RDV-01)."""
    rendezvous_maximum: int = 128
    """Maximum number of RNDVs per endpoint that wait for their NOTIFY (R-RDV-05)."""
    pull_maximum: int = 1024
    """Maximum number of running pulls per endpoint (R-PUL-03)."""
    outstanding_maximum: int = OUTSTANDING_MAXIMUM
    """Maximum number of unacked packets (R-SEQ-06)."""
    early_window: int = EARLY_WINDOW
    """Maximum distance from the window of an early packet that is kept (R-ORD-03)."""
    early_bytes_maximum: int = 256 << 20
    """Maximum bytes of early packets per endpoint; more are dropped, and retransmitted by their source."""
    reply_bytes_maximum: int = 256 << 20
    """Maximum bytes of queued PULL_REPLYs per interface; a PULL that exceeds them is dropped, and re-requested."""
    unexpected_maximum: int = 65536
    """Maximum number of unexpected messages per endpoint; more are treated as lost, as by a host without memory."""
    unexpected_bytes_maximum: int = 256 << 20
    """Maximum bytes of unexpected messages per endpoint."""
    partner_maximum: int = 65536
    """Maximum number of partners per endpoint; connect requests of further ones are not answered."""
    medium_threshold: int = RENDEZVOUS_THRESHOLD
    """Maximum length of a message that is sent as MEDIUM (R-SND-01); the dialect may allow less."""
    shortcut_to_self: bool = True
    """False if messages to the own endpoint are treated as those to other endpoints of the host (R-LOC-01)."""
    shortcut_to_host: bool = True
    """False if messages to other endpoints of the host are buffered as those to other hosts are (R-LOC-02)."""
    fragment_pipeline: int | None = None
    """Base-2 logarithm of the fragment size in dialect `mxoe`; None: the dialect's own."""
    pipeline_ignored: bool = False
    """True if a receiver places fragments by its own size and ignores the pipeline field."""
    region_offset: int = 0
    """Offset of messages in their regions, in bytes (R-RDV-02)."""
    region_first_use: int = 23
    """First value of a region's use counter (R-RDV-01)."""
    blocks_in_flight: int = BLOCKS_IN_FLIGHT
    """Blocks that a pull requests in parallel (R-PUL-02)."""
    pull_timer: int = PULL_TIMER
    """Time without a useful frame until a pull re-requests (R-PUL-06); real timers are up to 32 ms late (R-MEA-20)."""
    query_interval: int = QUERY_INTERVAL
    """Interval between two HOST_QUERYs to a nameless peer (R-HOST-02)."""
    query_patience: int = 12
    """Number of HOST_QUERYs at that interval; those to a peer that never answers become rarer afterwards."""
    initial_magic: int = HOST_QUERY_MAGIC
    """Magic of the first HOST_QUERY (R-HOST-03)."""
    reply_echoes_index: bool = False
    """True if a HOST_REPLY repeats the query's index instead of the replier's own."""
    announcement_count: int = 8
    """Number of announcements per series (R-DISC-02)."""
    announcement_interval: int = ANNOUNCEMENT_INTERVAL
    """Interval between two announcements of a series (R-DISC-02)."""
    announcement_pause: int = 180 * SECOND
    """Interval between announcements after a series (R-DISC-02)."""
    raw_queue_maximum: int = 33
    """Maximum number of RAW frames that wait for a discovery program (R-DISC-06)."""
    defects: frozenset[Defect] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for a number of ticks out of range."""
        if not 0 < self.hz <= SECOND:
            raise MxwireError(f"{self.hz} ticks per second: a profile needs 1 to {SECOND}")

    def __reduce__(self) -> tuple[type[Profile], tuple[Any, ...]]:
        """Pickle by constructor, since the fields of the compiled class cannot be set individually."""
        return Profile, tuple(getattr(self, each.name) for each in fields(self))

    @property
    def tick(self) -> int:
        """Length of a tick in nanoseconds."""
        return SECOND // self.hz

    @property
    def resend_delay(self) -> int:
        """Ticks between two transmissions (R-RTX-01)."""
        return resend_ticks(self.hz)

    @property
    def ack_delay(self) -> int:
        """Maximum delay of an ack in ticks (R-ACK-04)."""
        return (self.hz + 64) // 64

    @property
    def pull_limit(self) -> int:
        """Time in ns after which an expiry ends a pull as failed (R-PUL-09)."""
        return self.resend_delay * 1000 * self.tick

    def has(self, defect: Defect) -> bool:
        """Return whether this implementation has a defect."""
        return defect in self.defects

    def with_defects(self, *defects: Defect) -> Profile:
        """The same implementation with additional defects; without arguments, with all of them."""
        return replace(self, defects=self.defects | frozenset(defects or Defect))


OPEN_MX_1_5: Final = Profile("open-mx-1.5", "Open-MX 1.3.2 to 1.5.4, without its defects")
OPEN_MX_1_5_AS_FOUND: Final = replace(
    OPEN_MX_1_5, name="open-mx-1.5-as-found", about="the real Open-MX 1.5.4, defects included", connects_back=False
).with_defects()
OPEN_MX_1_1: Final = replace(
    OPEN_MX_1_5,
    name="open-mx-1.1",
    about="Open-MX 1.0.901 to 1.3.1: the pipeline of MEDIUM is ignored",
    query_interval=SECOND,
    pipeline_ignored=True,
)
OPEN_MX_1_0: Final = replace(
    OPEN_MX_1_5,
    name="open-mx-1.0",
    about="Open-MX 0.7.0 to 1.0.6: messages start at their offset within a page",
    query_interval=SECOND,
    region_offset=264,
)
OPEN_MX_0_6: Final = replace(
    OPEN_MX_1_0,
    name="open-mx-0.6",
    about="Open-MX 0.6.0: a HOST_REPLY echoes the index of the query",
    reply_echoes_index=True,
)
OPEN_MX_0_5: Final = replace(
    OPEN_MX_1_0, name="open-mx-0.5", about="Open-MX 0.4.0 to 0.5.0: two blocks in flight", blocks_in_flight=2
)
NATIVE_MX: Final = replace(
    OPEN_MX_1_5,
    name="native-mx",
    about="Myricom's MX as documented by Open-MX: other fragments, region offsets, a progress thread",
    fragment_pipeline=11,
    region_offset=1000,
    progress_in_background=True,
    notify_acked_at_once=True,
    ack_threshold=1,
    keeps_partner_on_disconnect=True,
)

PROFILES: Final = {
    each.name: each
    for each in (OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND, OPEN_MX_1_1, OPEN_MX_1_0, OPEN_MX_0_6, OPEN_MX_0_5, NATIVE_MX)
}


def profile_by_name(name: str) -> Profile:
    """Return the profile with a name; ``open-mx`` is the newest.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    found = PROFILES.get({"open-mx": OPEN_MX_1_5.name}.get(name.strip().lower(), name.strip().lower()))
    if found is None:
        raise MxwireError(f"no profile {name!r}{suggestion(name, PROFILES)}: use one of {', '.join(PROFILES)}")
    return found
