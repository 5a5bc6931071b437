"""Files that the tests of ``mxwire.wire`` read, and helpers that several of them use."""

from __future__ import annotations

import gzip
import json
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.wire.dialect import MXOE, Dialect, omx
from mxwire.wire.layout import Layout, layout_of

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
CAPTURES = tuple(sorted(each.stem for each in (ROOT / "captures").glob("*.pcap")))
VERDICT_FILES = ("mxoe", "omx9000", "omx1500")
DIALECTS = {"mxoe": MXOE, "omx9000": omx(9000), "omx1500": omx(1500)}

BAD_LENGTHS_AND_TYPES = {
    "Drop Bad Data Length": "bad data length",
    "Drop Bad Skbuff Length": "bad frame length",
    "Drop Bad Data Length for Headers": "bad header length",
    "Drop Raw Packet Too Large": "raw too large",
    "Drop Invalid Packet Type": "invalid type",
    "Drop Unknown Packet Type": "unknown type",
}
"""The driver's counters for malformed frames, with mxwire's words for them."""


def dialect_of(capture: str) -> Dialect:
    """The dialect of the hosts of a capture, from the first part of its name."""
    return DIALECTS[capture.split("-")[0]]


@cache
def read_capture(capture: str) -> FrameBatch:
    """All frames of one of ``captures/``: classic pcap, little-endian, nanoseconds."""
    data = (ROOT / "captures" / f"{capture}.pcap").read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B23C4D
    records = []
    at = 24
    while at < len(data):
        seconds, nanoseconds, captured, on_the_wire = struct.unpack_from("<4I", data, at)
        records.append((at + 16, captured, on_the_wire, seconds * 10**9 + nanoseconds))
        at += 16 + captured
    columns = np.array(records, np.int64).T.copy()
    return FrameBatch(np.frombuffer(data, np.uint8), *columns, np.arange(1, len(records) + 1))


def frames_of(batch: FrameBatch) -> list[bytes]:
    return [batch.frame(index) for index in range(len(batch))]


def split(batch: FrameBatch, size: int) -> list[FrameBatch]:
    """The same frames in batches of ``size``."""
    return [batch.select(np.arange(at, min(at + size, len(batch)))) for at in range(0, len(batch), size)]


@dataclass(frozen=True)
class Verdict:
    """One frame that was sent to a real driver, and what the driver counted."""

    number: int
    what: str
    frame: bytes
    counters: dict[str, int]

    @property
    def refused_for(self) -> str:
        """The driver's error about lengths or type in mxwire's words; empty if it accepted the frame."""
        return next((text for counter, text in BAD_LENGTHS_AND_TYPES.items() if counter in self.counters), "")


@cache
def read_verdicts(name: str) -> tuple[Verdict, ...]:
    with gzip.open(DATA / f"driver-verdicts-{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(Verdict(row["id"], row["what"], bytes.fromhex(row["frame"]), row["counters"]) for row in rows)


@cache
def specification() -> Any:
    """The machine-readable wire format."""
    return json.loads((DATA / "mxoe-wire.json").read_text())


def layouts(dialect: Dialect) -> dict[str, Layout]:
    return {each.name: layout_of(each) for each in dialect.formats}


def defined_bytes(layout: Layout, frame: bytes) -> list[bool]:
    """For each byte of a frame, whether the sender wrote it: not undefined, not padding behind the payload."""
    mask = [False] * len(frame)
    for each in layout.defined:
        mask[each.offset : each.end] = [True] * (each.size or 0)
    if layout.payload is not None:
        start = layout.payload.offset
        end = len(frame)
        if layout.payload.length_field is not None:
            length = layout.by_name[layout.payload.length_field]
            end = min(end, start + int.from_bytes(frame[length.offset : length.end], "big"))
        mask[start:end] = [True] * (end - start)
    return mask
