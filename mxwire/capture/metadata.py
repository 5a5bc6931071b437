"""What a capture file says about itself, besides its frames."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a pcapng file with its own byte order and interfaces; a pcap file counts as one."""

    little_endian: bool
    hardware: str | None = None
    operating_system: str | None = None
    application: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """Where frames were captured, as far as the file says."""

    section: int
    """The place of its section in the file, from 0."""
    number: int
    """Its place in its section, from 0."""
    link_type: int
    snap_length: int
    """Frames were cut to this many bytes; 0 if they were not."""
    ticks_per_second: int
    """How finely its timestamps count."""
    frame_check_bytes: int = 0
    """How many bytes of frame check sequence end each of its frames in the file; mxwire leaves them out."""
    name: str | None = None
    description: str | None = None
    capture_filter: str | None = None
    operating_system: str | None = None
    hardware: str | None = None
