"""Metadata of capture files: sections, interfaces and link types; and descriptions of other files, for messages."""

from __future__ import annotations

from dataclasses import dataclass

from mxwire.frames import LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2
from mxwire.texts import table_rows

SUPPORTED_LINK_TYPES = frozenset({LINKTYPE_ETHERNET, LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2})


def describe_link_type(number: int) -> str:
    """The number of a link type, with its name if known, for messages."""
    names = {int(each): name for _, (each, name) in table_rows(__file__, "link_types.md")}
    return f"{number}, {names[number]}" if number in names else f"{number}"


@dataclass(frozen=True, slots=True)
class CaptureSection:
    """A section of a pcapng file, with its own byte order and interfaces; a pcap file counts as one section."""

    little_endian: bool
    hardware: str | None = None
    operating_system: str | None = None
    application: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class CaptureInterface:
    """An interface that frames were captured on, as described in the file."""

    section: int
    """Index of its section in the file, from 0."""
    number: int
    """Index in its section, from 0."""
    link_type: int
    snap_length: int
    """Maximum captured bytes per frame; 0 for no limit."""
    ticks_per_second: int
    """Resolution of its timestamps."""
    frame_check_bytes: int = 0
    """Length in bytes of the frame check sequence in the file, which mxwire removes from frames."""
    name: str | None = None
    description: str | None = None
    capture_filter: str | None = None
    operating_system: str | None = None
    hardware: str | None = None


_OTHER_FILES = {
    b"BZh": "is compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "is compressed with xz; unpack it first",
    b"\x04\x22\x4d\x18": "is compressed with lz4; unpack it first",
    b"PK\x03\x04": "is a zip archive; unpack it first",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive; unpack it first",
    b"\x1f\x9d": "is compressed with compress; unpack it first",
    b"snoop\0\0\0": "is a snoop capture; convert it with editcap first",
    b"\x34\xcd\xb2\xa1": "is a pcap file of the variant with longer headers; convert it with editcap first",
    b"\xa1\xb2\xcd\x34": "is a pcap file of the variant with longer headers; convert it with editcap first",
    b"\x54\x52\x53\x4e\x49\x46\x46": "is a Sniffer capture; convert it with editcap first",
    b"\x7fELF": "is a program, not a capture; name a pcap or pcapng file",
    b"\x89PNG": "is a picture, not a capture; name a pcap or pcapng file",
    b"%PDF": "is a PDF document, not a capture; name a pcap or pcapng file",
}


def describe_other(head: bytes) -> str:
    """Describe a file that is not a capture by its first bytes, with the remedy."""
    for start, description in _OTHER_FILES.items():
        if head.startswith(start):
            return description
    if not head.strip(b"\0"):
        return "starts with zeros, so it was perhaps never written; name a pcap or pcapng file"
    text = head.decode("utf-8", errors="ignore")
    # The last character may be truncated by up to three bytes.
    if text and len(text.encode()) >= len(head) - 3 and all(each.isprintable() or each.isspace() for each in text):
        return f"looks like text ({text!r}), not a capture; name a pcap or pcapng file"
    return f"is not a capture (it starts with {head[:8].hex(' ')}); name a pcap or pcapng file"
