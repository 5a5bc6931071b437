"""Supported link types, and names of common others for messages."""

from __future__ import annotations

from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2

SUPPORTED_LINK_TYPES = frozenset({LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2})

LINK_TYPE_NAMES = {
    0: "NULL (BSD loopback)",
    LINKTYPE_ETHERNET: "Ethernet",
    6: "IEEE 802.5 (Token Ring)",
    9: "PPP",
    10: "FDDI",
    50: "PPP in HDLC framing",
    51: "PPP over Ethernet",
    101: "raw IP",
    104: "Cisco HDLC",
    105: "IEEE 802.11 (wireless)",
    107: "Frame Relay",
    108: "OpenBSD loopback",
    LINKTYPE_LINUX_SLL: "Linux cooked",
    117: "OpenBSD pflog",
    122: "IP over Fibre Channel",
    127: "IEEE 802.11 with radiotap",
    138: "IP over IEEE 1394",
    147: "user defined 0",
    163: "IEEE 802.11 with AVS header",
    189: "Linux USB",
    192: "PPI",
    195: "IEEE 802.15.4",
    197: "ERF (Endace)",
    201: "Bluetooth HCI",
    220: "Linux USB, memory-mapped",
    224: "Fibre Channel FC-2",
    227: "SocketCAN",
    228: "raw IPv4",
    229: "raw IPv6",
    239: "Linux netfilter log",
    247: "InfiniBand",
    249: "USBPcap",
    253: "Linux netlink",
    272: "nRF Sniffer",
    LINKTYPE_LINUX_SLL2: "Linux cooked version 2",
}
"""Common numbers of the registry at https://www.tcpdump.org/linktypes.html."""


def describe_link_type(number: int) -> str:
    """The number of a link type, with its name if known, for messages."""
    name = LINK_TYPE_NAMES.get(number)
    return f"{number}, {name}" if name else f"{number}"
