"""Hosts on a testbed whose frames are recorded instead of judged: captures for the diagnoses."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mxwire.analysis.diagnosis import Examination, Finding
from mxwire.frames import FrameBatch
from mxwire.wire.codec import codec_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.packets import Frame
from tests.captures import write_capture
from tests.rules.testbed import MILLISECOND, Side, Testbed

RESEND_MS = 504.0
START_NS = 1_700_000_000_000_000_000


class Scene(Testbed):
    """The testbed of the rules, recorded as a capture; it starts with ``a`` and ``b``, and ``host`` adds others."""

    def __init__(self, dialect: Dialect = MXOE) -> None:
        super().__init__(dialect)
        self.time_ns = START_NS
        self.frames: list[bytes] = []
        self.times: list[int] = []
        self.wire_lengths: list[int] = []
        self.swapped: set[bytes] = set()
        """Addresses of hosts whose integers are little-endian."""

    def send(self, *frames: Frame, after_ms: float = 1, **knowledge) -> None:
        for frame in frames:
            codec = codec_of(self.dialect, swapped=frame.src_mac in self.swapped)
            self.send_bytes(codec.build(frame), after_ms)

    def send_bytes(self, raw: bytes, after_ms: float = 1, *, wire_length: int | None = None, **knowledge) -> None:
        self.time_ns += int(after_ms * MILLISECOND)
        self.frames.append(raw)
        self.times.append(self.time_ns)
        self.wire_lengths.append(len(raw) if wire_length is None else wire_length)

    def wait(self, milliseconds: float) -> None:
        self.time_ns += int(milliseconds * MILLISECOND)

    def host(self, last: int, endpoint: int = 0, index: int = 7) -> Side:
        """Add a host that communicates with ``b``."""
        made = Side(self, bytes([2, 0, 0, 0, 0, last]), endpoint, 0x55550000 + last, index)
        made.peer = self.b
        return made

    def again(self, *frames: Frame, times: int, every_ms: float = RESEND_MS) -> None:
        """The same frames once more, several times."""
        for _ in range(times):
            for place, frame in enumerate(frames):
                self.send(frame, after_ms=0.1 if place else every_ms)

    def batch(self) -> FrameBatch:
        made = FrameBatch.from_frames(self.frames, self.times)
        return FrameBatch(
            made.buffer, made.offset, made.length, np.array(self.wire_lengths, np.int64), made.timestamp_ns, made.number
        )

    def save(self, path: Path) -> None:
        write_capture(str(path), self.batch(), format="pcap")


def examine(*batches: FrameBatch, lose: int = 0) -> Examination:
    decoder = Decoder()
    examination = Examination(decoder)
    for decoded in decoder.decode_all(examination.watch(batches)):
        examination.observe(decoded)
    examination.lose(lose)
    examination.finish()
    return examination


def diagnosed(*batches: FrameBatch) -> list[Finding]:
    return examine(*batches).findings()


def ids(findings: list[Finding]) -> set[str]:
    return {each.id for each in findings}
