"""Captures: pcap and pcapng files, read and written as batches of frames."""

from __future__ import annotations

from mxwire.capture.link_types import SUPPORTED_LINK_TYPES, describe_link_type
from mxwire.capture.metadata import Interface, Section
from mxwire.capture.reader import CaptureReader, open_capture
from mxwire.capture.writer import CaptureFormat, CaptureWriter, create_capture

__all__ = [
    "SUPPORTED_LINK_TYPES",
    "CaptureFormat",
    "CaptureReader",
    "CaptureWriter",
    "Interface",
    "Section",
    "create_capture",
    "describe_link_type",
    "open_capture",
]
