"""Host names (behaviour, chapter 3)."""

from __future__ import annotations

from mxwire.rules.registry import Breach, judges
from mxwire.rules.state.frame import JudgedFrame
from mxwire.rules.vantage import tick
from mxwire.units import MILLISECOND
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, HOST_QUERY_MAGIC, QUERY_MAGICS
from mxwire.wire.packets import HostQuery, HostReply
from mxwire.words import count_of

_REBUILT_IN = 100 * MILLISECOND
"""A host that rebuilds its peer table within this time may have a new index for the same peer."""


@judges("R-HOST-02", HostQuery, severity="deviation")
def query_interval(seen: JudgedFrame) -> Breach | None:
    """Queries are repeated every 5 s; the first repetition may be earlier, from a timer that was already running."""
    pair = seen.pair
    first, last = pair.query_times
    if not seen.vantage.as_sent and seen.frame.magic in QUERY_MAGICS:
        return None  # tools query as often as they like
    if not first or seen.time_ns - last < seen.within_reordering:
        return None  # it is the first repetition, or a duplicate
    least = seen.vantage.query_interval_ns - seen.within_reordering - tick(seen.vantage)
    if seen.time_ns - last < least and last - first < least:
        return Breach(
            f"one name query every {seen.vantage.query_interval_ns // MILLISECOND} ms",
            f"three queries within {(seen.time_ns - first) // MILLISECOND} ms",
            frames=pair.query_numbers,
        )
    return None


@judges("R-HOST-03", HostQuery, severity="deviation")
def query_magic(seen: JudgedFrame) -> Breach | None:
    """The magic starts at 0x13052008 and is incremented whenever all names are cleared."""
    magic, last = seen.frame.magic, seen.pair.source.magic
    if magic in (last, HOST_QUERY_MAGIC) or (last is None and not seen.vantage.from_start):
        return None
    if last is not None and magic == (last + 1) & 0xFFFF_FFFF:
        return None
    expected = f"0x{HOST_QUERY_MAGIC:08x}" if last is None else f"0x{last:08x} or one more"
    return Breach(f"the magic is {expected}", f"0x{magic:08x}")


@judges("R-HOST-06", HostReply)
def reply_magic(seen: JudgedFrame) -> Breach | None:
    """The reply's magic is the query's."""
    queries = seen.pair.back.queries
    if queries and seen.frame.magic not in queries:
        requested = ", ".join(f"0x{each:08x}" for each in queries)
        return Breach(f"the magic is that of the query: {requested}", f"0x{seen.frame.magic:08x}")
    return None


@judges("R-HOST-06", HostReply)
def reply_index(seen: JudgedFrame) -> Breach | None:
    """A reply teaches the responder's own index for the querier, not the index in the query."""
    back = seen.pair.back
    index, taught = seen.frame.src_dst_peer_index, back.lesson
    if index != back.query_index or taught is None or index == taught:
        return None
    # After a longer time its peer table may have been rebuilt, with this index by chance.
    if seen.time_ns - back.lesson_ns > _REBUILT_IN:
        return None
    return Breach(f"src_dst_peer_index {taught}, as announced before", f"{index}, as in the query")


@judges("R-HOST-04", HostReply, severity="deviation")
def answers_query(seen: JudgedFrame) -> Breach | None:
    """A host reports its name when queried, once per query (an unrequested reply is accepted, R-HOST-07)."""
    pair = seen.pair
    requested = sum(pair.back.queries.values())
    if not (requested or seen.vantage.from_start):
        return None
    if not requested or (seen.delivered_ns is not None and pair.replies >= requested):
        return Breach(
            "one HOST_REPLY per HOST_QUERY", f"reply {pair.replies + 1} to {count_of(requested, 'query', 'queries')}"
        )
    return None


@judges("R-HOST-08", HostReply, alone=True)
def name_length(seen: JudgedFrame) -> Breach | None:
    """1 to 80 bytes, including the terminating NUL."""
    frame = seen.frame
    if not 1 <= frame.length <= HOST_NAME_MAXIMUM:
        return Breach("a name of 1 to 80 bytes, including NUL", f"length {frame.length}")
    if len(frame.hostname) == frame.length and frame.hostname[-1]:
        return Breach("a name that ends with NUL", repr(frame.hostname))
    return None


@judges("D-14", HostReply, severity="note", alone=True, strange=True)
def renaming(seen: JudgedFrame) -> Breach | None:
    """A reply from the receiver's own address renames it."""
    if seen.frame.src_mac == seen.frame.dst_mac:
        return Breach("no reply of a host to itself", "the reply renames its receiver")
    return None
