"""The words in front of numbers in a frame's line, and the fields behind them; imports nothing."""

from __future__ import annotations

from typing import Final, NamedTuple


class Label(NamedTuple):
    """A word of the line."""

    shown: str
    """As it stands in a line, with an example."""
    fields: tuple[str, ...]
    """Names of the fields, as ``--fields`` takes them; which of them depends on the packet type."""
    meaning: str
    joint: bool = False
    """Whether the value is made of all fields; else the packet type decides which it is."""

    @property
    def fields_text(self) -> str:
        """The fields as words of a sentence."""
        return (" and " if self.joint else " or ").join(self.fields)


LEGEND: Final = {
    "seq": Label("seq 7", ("lib_seqnum",), "sequence number of the message"),
    "ack": Label("ack 4", ("lib_piggyack", "liback.lib_seqnum"), "next sequence number expected from the other side"),
    "liback": Label("liback 1", ("liback.acknum",), "number of this acknowledgement"),
    "match": Label("match 0x1000", ("match_a", "match_b"), "match information, 64 bits", True),
    "fragment": Label("fragment 2", ("frag_seqnum",), "fragment of a MEDIUM message, from 0"),
    "at": Label("904 bytes at 4096", ("msg_offset",), "offset of the data in the message"),
    "of": Label("904 bytes of 5000", ("length", "total_length"), "length of the whole message"),
    "region": Label("region 0/23", ("pulled_rdma_id", "pulled_rdma_seqnum"), "memory of the sender to pull from", True),
    "offset": Label("offset 64", ("pulled_rdma_offset",), "first byte of the message in its region"),
    "frame": Label("frame 3", ("frame_seqnum", "frame_index"), "reply of a pull, from 0"),
    "frames": Label("frames 0..31", ("frame_index", "block_length"), "replies that a PULL requests", True),
    "handle": Label("handle 0x00010000", ("src_pull_handle", "dst_pull_handle"), "pull of the receiver"),
    "request": Label("request 0", ("connect_seqnum",), "number of the connect request"),
    "reply": Label(
        "reply 0 SUCCESS", ("connect_seqnum", "connect_status_code"), "the request it answers, and how", True
    ),
    "session": Label(
        "session 0xc889dcdc",
        ("src_session_id", "target_session_id", "session"),
        "session of an endpoint, drawn when it is opened",
    ),
    "key": Label("key 0x12345678", ("app_key",), "key that the applications agreed on"),
    "start": Label(
        "start 1", ("target_recv_seqnum_start",), "next sequence number that the sender of this frame expects"
    ),
    "peer": Label("peer 1", ("src_dst_peer_index",), "index of the destination in the sender's peer table"),
    "magic": Label("magic 0x13052008", ("magic",), "number in a host query that its reply repeats"),
    "serial": Label("serial 0x33a98d91", ("serial",), "number drawn at each start of the host"),
}
"""By word."""


def legend_text() -> str:
    """A line per word."""
    width = max(len(each.shown) for each in LEGEND.values()) + 2
    return "".join(f"  {each.shown:{width}}{each.meaning}  ({each.fields_text})\n" for each in LEGEND.values())
