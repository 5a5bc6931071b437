"""Sink: counts test frames by run and stream, and checks their bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE, ETHERTYPE_MXOE, SHORTEST_FRAME, SOURCE, mac_text
from mxwire.frames import FrameBatch
from mxwire.latency_histogram import LatencyHistogram
from mxwire.linerate.accounting import StreamAccount, StreamCounts
from mxwire.linerate.template import (
    MAGIC,
    RUN_SHIFT,
    SEQUENCE_MASK,
    STAMP,
    STREAM_MASK,
    STREAM_SHIFT,
    STREAMS_MASK,
    STREAMS_MAXIMUM,
    FrameTemplate,
    header_of,
    recognise,
)
from mxwire.units import SECOND
from mxwire.wire.columns import decode_columns
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET

_RUNS_KEPT: Final = 64
"""Maximum number of runs whose counters are kept; frames of further runs count as foreign, so that hostile frames
cannot fill the memory.
"""
_FORMS_KEPT: Final = 1 << 10
_WORDS: Final = np.dtype("<u8")
_WORD: Final = 8
"""Bytes compared at a time; the headers of all test frames are multiples of it."""


_HEADS: Final = np.dtype("<u4")
_TIMES: Final = STAMP["time"]
_PLACE_AT: Final = 4
_TIME_AT: Final = 12
"""Offsets of ``place`` and ``time`` in a stamp, which has no gaps."""
_SEQUENCES: Final = np.uint64(SEQUENCE_MASK)
_RUN_SHIFT: Final = np.uint64(RUN_SHIFT)
_STREAM_SHIFT: Final = np.uint64(STREAM_SHIFT)
_NO_STREAMS: Final = np.zeros(0, np.int64)


class CheckLevel(StrEnum):
    """Thoroughness of the check of each frame."""

    STAMP = "stamp"
    """Only the stamp, by which frames are counted."""
    HEADER = "header"
    """All defined bytes of the header, also fields that depend on the sequence number."""
    ALL = "all"
    """Every byte."""


class _FrameForm:
    """The frames of one type, length and source, with the bytes that they must have."""

    def __init__(self, template: FrameTemplate, level: CheckLevel) -> None:
        self.template = template
        self.length = len(template)
        frame, mask = np.frombuffer(template.frame, np.uint8), template.mask
        unchecked = level is CheckLevel.STAMP or template.captured
        self._words = 0 if unchecked else header_of(template.name) // _WORD
        end = self._words * _WORD
        self._mask = mask[:end].view("<u8").copy()
        self._header = frame[:end].view("<u8") & self._mask
        self._patches = [] if unchecked else [(each, each.dtype) for each in template.patches]
        last = template.stamp_at if level is CheckLevel.ALL and not unchecked else end
        self._data_at, self._data = end, frame[end:last]
        self.needed = max(end, last)
        """Number of bytes at the start of a frame that are checked."""

    def failing(
        self, memory: NDArray[np.uint8], start: int, step: int, sequence: NDArray[np.uint64]
    ) -> NDArray[np.bool_] | None:
        """Return which frames have other bytes, or None if all are right.

        The frames lie at ``start`` in ``memory`` and every ``step`` bytes after it; ``sequence`` has their numbers.
        """
        count = len(sequence)
        wrong: NDArray[np.bool_] | None = None
        # count_nonzero is several times as fast as any or all, and these few calls are most of the cost of a batch.
        if self._words:
            words = np.ndarray((count, self._words), _WORDS, memory, start, (step, _WORD))
            differs = (words & self._mask) != self._header
            if np.count_nonzero(differs):
                wrong = differs.any(axis=1)
        for patch, dtype in self._patches:
            column = np.ndarray(count, dtype, memory, start + patch.offset, (step,))
            differs = column != patch.values(sequence)
            if np.count_nonzero(differs):
                wrong = differs if wrong is None else wrong | differs
        if len(self._data):
            data = np.ndarray((count, len(self._data)), np.uint8, memory, start + self._data_at, (step, 1))
            differs = data != self._data
            if np.count_nonzero(differs):
                rows = differs.any(axis=1)
                wrong = rows if wrong is None else wrong | rows
        return wrong


@dataclass
class SinkRun:
    """Counters of the frames of one generator in one run."""

    source: bytes
    number: int
    streams: int
    account: StreamAccount
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    frames: int = 0
    """Frames received, including duplicates."""
    bytes: int = 0
    altered: int = 0
    """Frames with a valid stamp whose other bytes are not those that were sent."""
    first_ns: int = 0
    last_ns: int = 0
    """Times of the first and the last frame, in ns since 1970."""
    sent: int | None = None
    """Frames sent, as announced by the generator at the end."""
    head: int = 0
    """The first word of its stamps: the magic and the number of streams."""
    boot: str | None = None
    """Boot identifier of the generator's kernel, as announced; if both sides have the same one, they share a clock."""
    ended: bool = False
    """True if the generator announced the end, or was silent for too long."""

    @property
    def mark(self) -> int:
        """The run in its place in a stamp."""
        return self.number << RUN_SHIFT

    @property
    def frames_per_second(self) -> float:
        """Frame rate from the first frame to the last."""
        duration = self.last_ns - self.first_ns
        return (self.frames - 1) * SECOND / duration if duration > 0 and self.frames > 1 else 0.0

    @property
    def bits_per_second(self) -> float:
        """Bit rate of the frames' bytes, without frame check sequence, preamble and gap."""
        return self.frames_per_second * 8 * self.bytes / self.frames if self.frames else 0.0

    def counts(self) -> StreamCounts:
        """Return the counters over all streams; the loss includes the last frames, if their number is known."""
        found = self.account.counts()
        if self.sent is not None:
            found.lost = max(self.sent - found.received, found.lost)
        return found

    def record(self) -> dict[str, Any]:
        """The run as an object for JSON, without its streams."""
        return {
            "source": mac_text(self.source),
            "run": self.number,
            "streams": self.streams,
            "frames": self.frames,
            "bytes": self.bytes,
            "sent": self.sent,
            **self.counts().record(),
            "altered": self.altered,
            "frames_per_second": round(self.frames_per_second, 1),
            "bits_per_second": round(self.bits_per_second, 1),
            "duration_ns": self.last_ns - self.first_ns,
            "latency": self.latency.record(),
        }

    def stream_records(self) -> list[dict[str, int]]:
        """The counters of each stream as objects for JSON."""
        return [{"stream": each, **self.account.counts(each).record()} for each in range(self.streams)]


class FrameSink:
    """Counts and checks the frames of batches; ``others`` is called with each frame of type RAW, before
    the other frames of its batch are counted.

    A batch whose frames all have the form of the last one is checked and counted in place, by a few array operations.
    Any other batch is sorted by form first.
    """

    def __init__(self, level: CheckLevel = CheckLevel.HEADER, others: Callable[[bytes], object] | None = None) -> None:
        self.level = level
        self._others = others
        self._forms: dict[tuple[int, bytes], _FrameForm | None] = {}
        self._form: _FrameForm | None = None
        self._run: SinkRun | None = None
        self.runs: dict[tuple[bytes, int], SinkRun] = {}
        """Runs by source and number."""
        self.foreign = 0
        """Frames of MXoE that are not test frames."""
        self.active = time.monotonic()
        """Time of the last test frame, on the monotonic clock, in seconds."""

    def take(self, batch: FrameBatch) -> None:
        """Check and count the frames of a batch."""
        count = len(batch)
        if not count:
            return
        form = self._form
        if form is not None and self._take_uniform(form, batch, count):
            return
        self._take_mixed(batch)

    # Batches of one form

    def _take_uniform(self, form: _FrameForm, batch: FrameBatch, count: int) -> bool:
        """Count a batch whose frames all have the given form; return False, without a change, for any other."""
        length, offset, run = batch.length, batch.offset, self._run
        if run is None or length[0] != form.length or np.count_nonzero(length != form.length):
            return False
        start, step = int(offset[0]), form.length
        if count > 1:
            step = int(offset[1]) - start
            if step <= 0 or np.count_nonzero(offset[1:] - offset[:-1] != step):
                return False
        at = start + form.template.stamp_at
        if np.count_nonzero(np.ndarray(count, _HEADS, batch.buffer, at, (step,)) != run.head):
            return False
        place = np.ndarray(count, _WORDS, batch.buffer, at + _PLACE_AT, (step,))
        sequence = place & _SEQUENCES
        # The other path counts altered frames one by one.
        if form.failing(batch.buffer, start, step, sequence) is not None:
            return False
        if run.streams == 1:
            # All bits but those of the sequence number are those of the run; the stream is 0.
            if np.count_nonzero(place - sequence != run.mark):
                return False
            stream = _NO_STREAMS
        else:
            if np.count_nonzero(place >> _RUN_SHIFT != run.number):
                return False
            stream = (place >> _STREAM_SHIFT).view(np.int64) & STREAM_MASK
            if np.count_nonzero(stream >= run.streams):
                return False
        sent = np.ndarray(count, _TIMES, batch.buffer, at + _TIME_AT, (step,))
        self._count(run, batch.timestamp_ns, sent, stream, sequence.view(np.int64), count * form.length)
        return True

    def _count(
        self,
        run: SinkRun,
        arrived: NDArray[np.int64],
        sent: NDArray[np.int64],
        stream: NDArray[np.int64],
        sequence: NDArray[np.int64],
        octets: int,
    ) -> None:
        run.account.add(stream, sequence)
        run.latency.add(arrived - sent)
        if not run.frames:
            run.first_ns = int(arrived[0])
        run.frames += len(sequence)
        run.bytes += octets
        run.last_ns = int(arrived[-1])
        self.active = time.monotonic()

    # All other batches

    def _take_mixed(self, batch: FrameBatch) -> None:
        batch = self._only_stamped(batch)
        if not len(batch):
            return
        stamp_at = batch.offset + batch.length - STAMP.itemsize
        stamps = batch.buffer[stamp_at[:, None] + np.arange(STAMP.itemsize)].view(STAMP)[:, 0]
        sequence = stamps["place"] & np.uint64(SEQUENCE_MASK)
        altered = np.zeros(len(batch), np.bool_)
        known = np.zeros(len(batch), np.bool_)
        for places in _alike(batch):
            form = self._form_of(batch.frame(int(places[0])))
            if form is None:
                continue
            known[places] = True
            altered[places] = self._altered(form, batch.select(places), sequence[places])
            if len(places) == len(batch) and not form.template.captured:
                self._form = form
        self.foreign += int((~known).sum())
        self._count_mixed(batch, stamps, altered, known)

    def _only_stamped(self, batch: FrameBatch) -> FrameBatch:
        """Return the frames of MXoE with a stamp; pass on those of type RAW, and count the others."""
        buffer = batch.buffer
        long_enough = batch.length >= SHORTEST_FRAME
        if not long_enough.all():
            self.foreign += int((~long_enough).sum())
            batch = batch.select(long_enough)
        raw = buffer[batch.offset + TYPE_OFFSET] == PacketType.RAW
        if raw.any():
            for place in np.flatnonzero(raw).tolist():
                if self._others is not None:
                    self._others(batch.frame(place))
            batch = batch.select(~raw)
        stamp_at = batch.offset + batch.length - STAMP.itemsize
        stamped = (buffer[stamp_at] == MAGIC & 0xFF) & (buffer[stamp_at + 1] == MAGIC >> 8)
        type_at = batch.offset + ETHERTYPE.start
        stamped &= (buffer[type_at] == ETHERTYPE_MXOE >> 8) & (buffer[type_at + 1] == ETHERTYPE_MXOE & 0xFF)
        if not stamped.all():
            self.foreign += int((~stamped).sum())
            batch = batch.select(stamped)
        return batch

    def _form_of(self, frame: bytes) -> _FrameForm | None:
        """Return the form of a frame, which is remembered for further ones; None if it is not a test frame."""
        key = len(frame), frame[SOURCE] + frame[TYPE_OFFSET : TYPE_OFFSET + 1] + frame[-STAMP.itemsize + 3 :][:1]
        if key in self._forms:
            return self._forms[key]
        template = recognise(frame)
        form = None if template is None else _FrameForm(template, self.level)
        if len(self._forms) < _FORMS_KEPT and form is not None:
            self._forms[key] = form
        return form

    def _altered(self, form: _FrameForm, batch: FrameBatch, sequence: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which frames have other bytes than their form requires."""
        count = len(batch)
        if form.template.captured:
            if self.level is CheckLevel.STAMP:
                return np.zeros(count, np.bool_)
            wrong = [decode_columns(batch, each).reason != 0 for each in (MXOE, omx())]
            both: NDArray[np.bool_] = wrong[0] & wrong[1]
            return both
        if not form.needed:
            return np.zeros(count, np.bool_)
        rows = batch.buffer[batch.offset[:, None] + np.arange(form.needed)].reshape(-1)
        failing = form.failing(rows, 0, form.needed, sequence)
        return np.zeros(count, np.bool_) if failing is None else failing

    def _count_mixed(
        self, batch: FrameBatch, stamps: NDArray[Any], altered: NDArray[np.bool_], known: NDArray[np.bool_]
    ) -> None:
        """Count the frames of a batch per run, in the order of their arrival."""
        place = stamps["place"]
        number = (place >> np.uint64(RUN_SHIFT)).astype(np.int64)
        stream = (place >> np.uint64(STREAM_SHIFT)).astype(np.int64) & STREAM_MASK
        streams = (stamps["streams"] & STREAMS_MASK).astype(np.int64)
        known &= (streams <= STREAMS_MAXIMUM) & (stream < streams)
        source = _words(batch, SOURCE.start) & np.uint64((1 << 48) - 1)
        while known.any():
            first = int(known.argmax())
            which = known & (number == number[first]) & (source == source[first]) & (streams == streams[first])
            known &= ~which
            run = self._run_of(batch.frame(first)[SOURCE], int(number[first]), int(streams[first]))
            if run is None:
                self.foreign += int(which.sum())
                continue
            run.altered += int(altered[which].sum())
            sequence = (place[which] & np.uint64(SEQUENCE_MASK)).view(np.int64)
            octets = int(batch.length[which].sum())
            self._count(run, batch.timestamp_ns[which], stamps["time"][which], stream[which], sequence, octets)
            self._run = run

    def _run_of(self, source: bytes, number: int, streams: int) -> SinkRun | None:
        """Return the run with that source and number; None if its number of streams differs, or runs are too many."""
        found = self.runs.get((source, number))
        if found is None:
            if len(self.runs) >= _RUNS_KEPT:
                return None
            found = self.runs[source, number] = SinkRun(
                source, number, streams, StreamAccount(streams), head=MAGIC | streams << 16
            )
        return found if found.streams == streams else None

    def begin(self, source: bytes, number: int) -> None:
        """Discard the counters of a run, and of all but the last ended ones, because a new run begins."""
        self.runs.pop((source, number), None)
        for key in [key for key, each in self.runs.items() if each.ended][: -_RUNS_KEPT // 2]:
            del self.runs[key]
        self._run = self._form = None


def _words(batch: FrameBatch, at: int) -> NDArray[np.uint64]:
    """The 8 bytes at an offset of each frame, as integers in the order of memory."""
    found: NDArray[np.uint64] = batch.buffer[(batch.offset + at)[:, None] + np.arange(_WORD)].view("<u8")[:, 0]
    return found


def _alike(batch: FrameBatch) -> list[NDArray[np.intp]]:
    """Group the places of frames by source, type, length and origin."""
    buffer = batch.buffer
    flag = buffer[batch.offset + batch.length - STAMP.itemsize + 3].astype(np.uint64)
    kind = buffer[batch.offset + TYPE_OFFSET].astype(np.uint64)
    # Equal frames have equal keys. If different frames have the same key, the check of their bytes fails.
    key = _words(batch, SOURCE.start) ^ kind << np.uint64(48) ^ batch.length.astype(np.uint64) << np.uint64(40)
    key ^= flag << np.uint64(56)
    keys, inverse = np.unique(key, return_inverse=True)
    if len(keys) == 1:
        return [np.arange(len(batch))]
    return [np.flatnonzero(inverse == each) for each in range(len(keys))]
