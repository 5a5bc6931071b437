"""Discovery of hosts, and traffic within one host (behaviour, chapters 2 and 19)."""

from __future__ import annotations

from mxwire.rules.registry import CONNECTS, NUMBERED, Breach, judges
from mxwire.rules.state.frame import JudgedFrame
from mxwire.units import MILLISECOND
from mxwire.wire.numbers import ANNOUNCEMENT_INTERVAL
from mxwire.wire.packets import Announcement, NackLib, Pull, Truc


@judges("R-DISC-02", Announcement, severity="deviation")
def announcement_interval(seen: JudgedFrame) -> Breach | None:
    """A daemon announces itself at most once per second, unless another daemon has started a new series."""
    last = seen.pair.source.announced
    if last is None or last.provoked or last.serial != seen.frame.serial:
        return None
    since = seen.time_ns - last.time_ns
    if since < seen.within_reordering:
        return None  # a duplicate, made by the network or by a mirror port that shows frames twice
    if since < ANNOUNCEMENT_INTERVAL - seen.within_reordering:
        return Breach("at least 1000 ms between announcements", f"{since // MILLISECOND} ms", frames=(last.number,))
    return None


@judges("R-LOC-02", *NUMBERED, *CONNECTS, Pull, Truc, NackLib, severity="deviation", alone=True, strange=True)
def local_traffic(seen: JudgedFrame) -> Breach | None:
    """Endpoints of one host never communicate over the wire (R-LOC-01 if it is the same endpoint)."""
    frame = seen.frame
    if frame.src_mac == frame.dst_mac:
        return Breach("messages within a host never reach the wire", "source and destination are the same interface")
    return None


@judges("R-LOC-01", *NUMBERED, *CONNECTS, Pull, Truc, also=("R-CON-07",), alone=True, strange=True)
def talking_to_itself(seen: JudgedFrame) -> Breach | None:
    """An endpoint reaches itself without a packet (also R-CON-07)."""
    frame = seen.frame
    if frame.src_mac == frame.dst_mac and frame.src_endpoint == frame.dst_endpoint:
        return Breach(
            "no packet from an endpoint to itself", f"endpoint {frame.src_endpoint} is source and destination"
        )
    return None
