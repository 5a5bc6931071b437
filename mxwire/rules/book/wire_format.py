"""What the wire format part of the specification demands of frames; the numbers are its sections."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book.entry import chapter, on_wire

RULES: Final = chapter(
    "Wire format",
    on_wire("W-2", "MUST", "A frame has at least 60 bytes and at most M, is not padded further, and goes to one host."),
    on_wire("W-5", "MUST", "dst_src_peer_index is the last value the destination taught, 0xFFFF before."),
    on_wire("W-6", "MUST", "Only the packet types of Open-MX are sent."),
    on_wire("W-6.1", "SHOULD", "An announcement is broadcast, has index 0 and the sender's own address as NIC id."),
    on_wire("W-6.4", "MUST", "A liback has sub-type 0x55, 16 bytes of data, and the same session in both places."),
    on_wire("W-6.5", "MUST", "A CONNECT has 16 bytes of data, lib_seqnum 0, and is_reply 0 or 1."),
    on_wire("W-6.7", "MUST", "Length and match information are the same in all fragments of a MEDIUM."),
    on_wire("W-6.8", "MUST", "A RNDV has 8 bytes of data."),
    on_wire("W-7", "MUST", "Lengths lie within the limits of the packet type and within the frame."),
)
