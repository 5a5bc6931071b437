"""Legend of the one-line form of frames: its words and the fields they show.

Imports nothing heavy, since ``decode --help`` prints it.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class LegendEntry(NamedTuple):
    """A word of the line, with the fields it shows."""

    shown: str
    """The word with an example value, as in a line."""
    fields: tuple[str, ...]
    """Names of the fields for ``--fields``; the packet type determines which of them applies."""
    meaning: str
    joint: bool = False
    """True if the value combines all ``fields``; else the packet type selects one."""

    @property
    def fields_text(self) -> str:
        """The fields joined by "and" or "or"."""
        return (" and " if self.joint else " or ").join(self.fields)


LEGEND: Final = {
    "seq": LegendEntry("seq 7", ("lib_seqnum",), "sequence number of the message"),
    "ack": LegendEntry(
        "ack 4", ("lib_piggyack", "liback.lib_seqnum"), "next sequence number expected from the other side"
    ),
    "liback": LegendEntry("liback 1", ("liback.acknum",), "number of this ack, which is a frame of its own"),
    "match": LegendEntry("match 0x1000", ("match_a", "match_b"), "match information, 64 bits", True),
    "fragment": LegendEntry("fragment 2", ("frag_seqnum",), "fragment of a MEDIUM message, from 0"),
    "at": LegendEntry("904 bytes at 4096", ("msg_offset",), "offset of the data in the message"),
    "of": LegendEntry("904 bytes of 5000", ("length", "total_length"), "length of the whole message"),
    "region": LegendEntry(
        "region 0/23", ("pulled_rdma_id", "pulled_rdma_seqnum"), "memory of the sender to pull from", True
    ),
    "offset": LegendEntry("offset 64", ("pulled_rdma_offset",), "first byte of the message in its region"),
    "frame": LegendEntry("frame 3", ("frame_seqnum", "frame_index"), "reply of a pull, from 0"),
    "frames": LegendEntry("frames 0..31", ("frame_index", "block_length"), "replies that a PULL requests", True),
    "handle": LegendEntry("handle 0x00010000", ("src_pull_handle", "dst_pull_handle"), "pull of the receiver"),
    "request": LegendEntry("request 0", ("connect_seqnum",), "number of the connect request"),
    "reply": LegendEntry(
        "reply 0 SUCCESS",
        ("connect_seqnum", "connect_status_code"),
        "number of the request it answers, and status",
        True,
    ),
    "session": LegendEntry(
        "session 0xc889dcdc",
        ("src_session_id", "target_session_id", "session"),
        "session of an endpoint, drawn when it is opened; 0xffffffff if the sender does not know it",
    ),
    "key": LegendEntry("key 0x12345678", ("app_key",), "application key, the same on both sides"),
    "start": LegendEntry(
        "start 1", ("target_recv_seqnum_start",), "next sequence number that the sender of this frame expects"
    ),
    "peer": LegendEntry("peer 1", ("src_dst_peer_index",), "index of the destination in the sender's peer table"),
    "magic": LegendEntry("magic 0x13052008", ("magic",), "number in a host query that its reply repeats"),
    "serial": LegendEntry("serial 0x33a98d91", ("serial",), "number drawn at each start of the host"),
}
"""Legend entries by word."""


def legend_text() -> str:
    """The legend as text, one line per word."""
    width = max(len(each.shown) for each in LEGEND.values()) + 2
    return "".join(f"  {each.shown:{width}}{each.meaning}  ({each.fields_text})\n" for each in LEGEND.values())
