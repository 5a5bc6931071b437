"""Metadata of capture files: sections and interfaces."""

from __future__ import annotations

from dataclasses import dataclass


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
