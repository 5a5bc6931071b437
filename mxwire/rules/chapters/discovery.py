"""Who is on the fabric (behaviour, chapters 2 and 19)."""

from __future__ import annotations

from mxwire.rules.registry import CONNECTS, NUMBERED, Breach, judges
from mxwire.rules.state.sighting import Sighting
from mxwire.units import MILLISECOND
from mxwire.wire.numbers import ANNOUNCEMENT_INTERVAL
from mxwire.wire.packets import Announcement, NackLib, Pull, Truc


@judges("R-DISC-02", Announcement, severity="deviation")
def announcement_interval(seen: Sighting) -> Breach | None:
    """A daemon announces itself once a second at most, unless another one has begun a new series."""
    last = seen.pair.source.announced
    if last is None or last.provoked or last.serial != seen.frame.serial:
        return None
    since = seen.time_ns - last.time_ns
    if since < seen.within_reordering:
        return None  # a copy: from the network, or from a mirror port that shows frames twice
    if since < ANNOUNCEMENT_INTERVAL - seen.within_reordering:
        return Breach(
            "announcements follow each other after 1000 ms", f"{since // MILLISECOND} ms", frames=(last.number,)
        )
    return None


@judges("R-LOC-02", *NUMBERED, *CONNECTS, Pull, Truc, NackLib, severity="deviation", alone=True, strange=True)
def local_traffic(seen: Sighting) -> Breach | None:
    """Endpoints of one host do not talk over the wire (R-LOC-01 where it is the same endpoint)."""
    frame = seen.frame
    if frame.src_mac == frame.dst_mac:
        return Breach("messages within a host never reach the wire", "source and destination are the same interface")
    return None


@judges("R-LOC-01", *NUMBERED, *CONNECTS, Pull, Truc, also=("R-CON-07",), alone=True, strange=True)
def talking_to_itself(seen: Sighting) -> Breach | None:
    """An endpoint reaches itself without any packet (also R-CON-07)."""
    frame = seen.frame
    if frame.src_mac == frame.dst_mac and frame.src_endpoint == frame.dst_endpoint:
        return Breach("an endpoint talks to itself without a packet", f"endpoint {frame.src_endpoint} on both sides")
    return None
