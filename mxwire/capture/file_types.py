"""Recognition of files that are not captures, for helpful messages."""

from __future__ import annotations

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
    """Describe a file that is not a capture by its first bytes, and what to do with it."""
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
