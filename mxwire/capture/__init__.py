"""Capture files in pcap and pcapng format, read and written as batches of frames.

``reader.py`` opens a file and detects its format; ``pcap.py`` and ``pcapng.py`` decode the records and blocks of the
two formats, of which ``scan.py`` finds the starts; ``source.py`` supplies their bytes, decompressed. ``writer.py``
and ``encoder.py`` write both, and ``rotation.py`` splits a live capture into several files. ``memory.py`` keeps memory
between batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mxwire.first_use import import_on_first_use

if TYPE_CHECKING:
    from mxwire.capture.memory import retain_freed_memory
    from mxwire.capture.metadata import SUPPORTED_LINK_TYPES, CaptureInterface, CaptureSection, describe_link_type
    from mxwire.capture.reader import CaptureReader, open_capture
    from mxwire.capture.writer import CaptureFormat, CaptureWriter, create_capture

__getattr__ = import_on_first_use(
    __name__,
    {
        "memory": ("retain_freed_memory",),
        "metadata": ("SUPPORTED_LINK_TYPES", "CaptureInterface", "CaptureSection", "describe_link_type"),
        "reader": ("CaptureReader", "open_capture"),
        "writer": ("CaptureFormat", "CaptureWriter", "create_capture"),
    },
)

__all__ = [
    "SUPPORTED_LINK_TYPES",
    "CaptureFormat",
    "CaptureInterface",
    "CaptureReader",
    "CaptureSection",
    "CaptureWriter",
    "create_capture",
    "describe_link_type",
    "open_capture",
    "retain_freed_memory",
]
