"""Which dialect each pair of hosts speaks, judged by what their frames show.

Nothing on the wire says it; the hints are those of the wire format, section 1, and the differences document, section
4.4. MEDIUM and PULL, the two packets whose layout depends on the dialect, carry most of the evidence themselves, so
one pass is enough: a frame that needs the answer nearly always gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.byteorder import PULL_MAGIC_PREFIX, ByteOrderDetector
from mxwire.wire.codec import TYPE_OFFSET
from mxwire.wire.codes import CodeTable
from mxwire.wire.columns import row_type
from mxwire.wire.dialect import (
    DEFAULT_FRAME_LIMIT,
    LARGEST_FRAME_LIMIT,
    MEDIUM_DATA_OFFSET,
    MXOE,
    PULL_REPLY_DATA_OFFSET,
    SMALLEST_FRAME_LIMIT,
    Dialect,
    Generation,
    omx,
)
from mxwire.wire.encapsulation import Located
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import MEDIUM_MXOE, MEDIUM_OMX, PULL_MXOE, PULL_OMX, PULL_REPLY, PacketFormat
from mxwire.wire.layout import layout_of


class Hint(IntEnum):
    """One kind of evidence."""

    PULL_MXOE = 0
    PULL_OMX = 1
    MEDIUM_PIPELINE_12 = 2
    MEDIUM_PIPELINE = 3
    MEDIUM_LENGTH_32 = 4
    MEDIUM_NO_PIPELINE = 5
    REPLY_4096 = 6
    REPLY_FULL = 7
    REPLY_LARGE = 8


@dataclass(frozen=True, slots=True)
class _Meaning:
    supports: str
    strength: float
    text: str


HINTS: Final = {
    Hint.PULL_MXOE: _Meaning("mxoe", 0.99, "PULL with an Open-MX magic where mxoe has it"),
    Hint.PULL_OMX: _Meaning("omx", 0.99, "PULL with an Open-MX magic where omx has it"),
    Hint.MEDIUM_PIPELINE_12: _Meaning("mxoe", 0.95, "MEDIUM with a 16-bit length and pipeline 12"),
    Hint.MEDIUM_PIPELINE: _Meaning("mxoe", 0.85, "MEDIUM with a 16-bit length and another pipeline that fits"),
    Hint.MEDIUM_LENGTH_32: _Meaning("omx", 0.95, "MEDIUM with a 32-bit length"),
    Hint.MEDIUM_NO_PIPELINE: _Meaning("omx N3", 0.6, "MEDIUM with a 16-bit length and no pipeline that fits"),
    Hint.REPLY_4096: _Meaning("mxoe", 0.8, "PULL_REPLY numbered in frames of 4096 bytes"),
    Hint.REPLY_FULL: _Meaning("omx", 0.9, "PULL_REPLY numbered in frames of another size"),
    Hint.REPLY_LARGE: _Meaning("omx", 0.99, "PULL_REPLY with more than 4096 bytes"),
}

_MXOE_REPLY: Final = MXOE.reply_payload
_OPEN_MX_PIPELINE: Final = 12
_PIPELINES: Final = range(7, 16)
"""Pipelines that a sender of `mxoe` may use: fragments of 128 bytes to 32 KiB."""
_LONGEST_MEDIUM: Final = 255 * 8192
"""No build sends a longer MEDIUM: most fragments times the largest fragment (section 7)."""
_OLD_REPLY_LIMITS: Final = {1024: 1500, 2048: 2500, 4096: 4500, 8192: 9000}
"""P of generations N1 and N2, and a frame limit that leads to it."""
_N1_BLOCK_SHARE: Final = 31 * 8192 // 32
"""What a block of N1, which has 31 frames, looks like if it is taken for one of 32."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for one answer, and where it was first seen."""

    text: str
    supports: str
    frames: int
    first_frame: int


@dataclass(frozen=True, slots=True)
class Detection:
    """The dialect of one pair of hosts."""

    hosts: tuple[int, int]
    """Their addresses as integers."""
    dialect: Dialect | None
    """None where no frame decides."""
    confidence: float
    """From 0 to 1."""
    evidence: tuple[Evidence, ...]


@dataclass
class _Pair:
    """What is known of one pair."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Hint), np.int64))
    first: dict[Hint, int] = field(default_factory=dict)
    reply_payload: int = 0
    """P, where a full reply or block told it."""
    fragment_payload: int = 0
    """F, where the first fragment of several told it."""
    longest_fragment: int = 0

    def dialect(self) -> tuple[Dialect | None, float]:
        """The best answer and how sure it is."""
        count = {hint: int(self.counts[hint]) for hint in Hint}
        sixteen = count[Hint.MEDIUM_PIPELINE_12] + count[Hint.MEDIUM_PIPELINE]
        generation: Generation = "N4"
        against: set[Hint] = set()
        if count[Hint.PULL_OMX] > count[Hint.PULL_MXOE]:
            if self._has_old_sizes(sixteen - count[Hint.MEDIUM_LENGTH_32]):
                generation = "N2"
                against = {Hint.MEDIUM_PIPELINE_12, Hint.MEDIUM_PIPELINE, Hint.REPLY_4096}
            elif count[Hint.MEDIUM_NO_PIPELINE] > count[Hint.MEDIUM_LENGTH_32]:
                generation = "N3"
        elif count[Hint.MEDIUM_NO_PIPELINE] > count[Hint.MEDIUM_LENGTH_32] + sixteen:
            generation = "N3"
        weight = {"mxoe": 0.0, "omx": 0.0}
        strongest = {"mxoe": 0.0, "omx": 0.0}
        for hint, meaning in HINTS.items():
            family = "omx" if hint in against else meaning.supports[:4].strip()
            weight[family] += meaning.strength * count[hint]
            if count[hint]:
                strongest[family] = max(strongest[family], meaning.strength)
        if not any(weight.values()):
            return None, 0.0
        family = max(weight, key=lambda each: weight[each])
        confidence = strongest[family] * weight[family] / sum(weight.values())
        return (MXOE if family == "mxoe" else self._omx(generation)), confidence

    def _has_old_sizes(self, more_short_lengths: int) -> bool:
        """Whether PULLs in the layout of omx come from N1 or N2: by the size of replies, else by MEDIUMs."""
        if self.reply_payload == _N1_BLOCK_SHARE and more_short_lengths > 0:
            return True
        if self.reply_payload:
            return self.reply_payload in _OLD_REPLY_LIMITS and more_short_lengths >= 0
        return more_short_lengths > 0

    def _omx(self, generation: Generation) -> Dialect:
        if generation in ("N1", "N2"):
            limit = _OLD_REPLY_LIMITS.get(self.reply_payload, DEFAULT_FRAME_LIMIT)
            return omx(limit, generation, frame_limit_known=False)
        if self.reply_payload:
            return omx(_limit(self.reply_payload + PULL_REPLY_DATA_OFFSET), generation)
        if 0 < self.fragment_payload < _MXOE_REPLY and self.longest_fragment <= self.fragment_payload:
            return omx(_limit(self.fragment_payload + MEDIUM_DATA_OFFSET), generation)
        return omx(DEFAULT_FRAME_LIMIT, generation, frame_limit_known=False)


def _limit(frame_limit: int) -> int:
    return min(max(frame_limit, SMALLEST_FRAME_LIMIT), LARGEST_FRAME_LIMIT)


@dataclass(frozen=True)
class Assignment:
    """What the frames of a batch are to be decoded as."""

    dialects: tuple[Dialect, ...]
    which: NDArray[np.intp]
    """Shape (n,): the place in ``dialects`` of each frame's."""
    decided: NDArray[np.bool_]
    """Shape (n,): False where nothing decides and the frame is read as mxoe."""
    swapped: NDArray[np.bool_] | None
    """Shape (n,), or None where no sender is swapped."""
    source: NDArray[np.intp]
    """Shape (n,): the number of each frame's sender among :attr:`Detector.hosts`."""
    destination: NDArray[np.intp]
    """Shape (n,): likewise where it was going."""


@dataclass(frozen=True)
class Seen:
    """Who the frames of a batch are between; arrays of shape (n,)."""

    source: NDArray[np.intp]
    destination: NDArray[np.intp]
    pair: NDArray[np.intp]


class Detector:
    """Watches the traffic of all pairs of hosts, batch by batch, and answers for each frame.

    With ``by_sender`` it answers for each sender alone instead: two hosts that do not speak alike show it so. Its
    detections then name the sender twice.
    """

    def __init__(self, *, by_sender: bool = False) -> None:
        self._by_sender = by_sender
        self.hosts = CodeTable()
        """The addresses seen so far, numbered in order of appearance."""
        self._pairs = CodeTable()
        self._known: dict[int, _Pair] = {}
        self._changed: set[int] = set()
        self._dialects: dict[Dialect, int] = {MXOE: 0}
        self._which = np.zeros(0, np.intp)
        self._decided = np.zeros(0, np.bool_)
        self._orders = ByteOrderDetector()

    def observe(self, located: Located) -> Assignment:
        """Take the frames of a batch into account and say what they are."""
        return self.assign(self.learn(located))

    def learn(self, located: Located) -> Seen:
        """Take the frames of a batch into account; :meth:`assign` says later what they are."""
        destination_address = located.source if self._by_sender else located.destination
        ends = self.hosts.codes(np.stack([located.source, destination_address], axis=1).ravel())
        source, destination = ends[0::2], ends[1::2]
        low, high = np.minimum(source, destination), np.maximum(source, destination)
        pair = self._pairs.codes(low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64))
        swapped = self._orders.observe(located, source, len(self.hosts))
        self._collect(located, pair, swapped)
        return Seen(source, destination, pair)

    def assign(self, seen: Seen) -> Assignment:
        """What the frames of a batch are, by all that was learnt until now."""
        self._answer()
        swapped = self._orders.swapped[seen.source]
        return Assignment(
            tuple(self._dialects),
            self._which[seen.pair],
            self._decided[seen.pair],
            swapped if swapped.any() else None,
            seen.source,
            seen.destination,
        )

    def detections(self) -> list[Detection]:
        """The answer for every pair of hosts that has exchanged frames, in order of appearance."""
        answers = []
        for code, key in enumerate(self._pairs.keys[: CodeTable.others]):
            pair = self._known.get(code, _Pair())
            dialect, confidence = pair.dialect()
            evidence = tuple(
                Evidence(HINTS[hint].text, HINTS[hint].supports, int(pair.counts[hint]), pair.first[hint])
                for hint in sorted(pair.first, key=lambda each: (-HINTS[each].strength, pair.first[each], each))
            )
            hosts = self.hosts.keys[key >> 32], self.hosts.keys[key & 0xFFFFFFFF]
            answers.append(Detection(hosts, dialect, confidence, evidence))
        return answers

    def swapped_hosts(self) -> list[int]:
        """Addresses of the hosts whose integers are in little-endian order."""
        return [self.hosts.keys[code] for code in np.flatnonzero(self._orders.swapped)]

    def _answer(self) -> None:
        """Judge again the pairs that have shown something new."""
        missing = len(self._pairs) - len(self._which)
        self._which = np.concatenate([self._which, np.zeros(missing, np.intp)])
        self._decided = np.concatenate([self._decided, np.zeros(missing, np.bool_)])
        for code in self._changed:
            dialect, _ = self._known[code].dialect()
            self._decided[code] = dialect is not None
            self._which[code] = self._dialects.setdefault(dialect or MXOE, len(self._dialects))
        self._changed.clear()

    def _collect(self, located: Located, pair: NDArray[np.intp], swapped: NDArray[np.bool_] | None) -> None:
        types = located.row_bytes[:, TYPE_OFFSET]
        for packet_type, collect in (
            (PacketType.PULL, self._pulls),
            (PacketType.MEDIUM, self._mediums),
            (PacketType.PULL_REPLY, self._replies),
        ):
            found = types == packet_type
            for order in (False, True):
                if order and swapped is None:
                    continue
                chosen = found if swapped is None else found & (swapped == order)
                place = np.flatnonzero(chosen)
                if len(place):
                    collect(located, pair, place, order)

    def _pulls(self, located: Located, pair: NDArray[np.intp], place: NDArray[np.intp], swapped: bool) -> None:
        narrow = _read(located, place, swapped, PULL_MXOE)
        wide = _read(located, place, swapped, PULL_OMX)
        in_mxoe = (narrow["src_magic"] >> 8 == PULL_MAGIC_PREFIX) & _reaches(located, place, PULL_MXOE)
        in_omx = (wide["src_magic"] >> 8 == PULL_MAGIC_PREFIX) & _reaches(located, place, PULL_OMX)
        self._note(located, pair, place, in_mxoe & ~in_omx, Hint.PULL_MXOE)
        self._note(located, pair, place, in_omx & ~in_mxoe, Hint.PULL_OMX)
        first = in_omx & ~in_mxoe & (wide["frame_index"] == 0) & (wide["pulled_rdma_offset"] == 0)
        frames = omx().frames_per_block
        length = wide["block_length"].astype(np.int64)
        first &= (length < wide["total_length"]) & (length % frames == 0)
        self._measure(pair[place], length // frames, first, "reply_payload")

    def _mediums(self, located: Located, pair: NDArray[np.intp], place: NDArray[np.intp], swapped: bool) -> None:
        place = place[_reaches(located, place, MEDIUM_MXOE)]
        narrow = _read(located, place, swapped, MEDIUM_MXOE)
        wide = _read(located, place, swapped, MEDIUM_OMX)
        fragment = narrow["frag_length"].astype(np.int64)
        number = narrow["frag_seqnum"].astype(np.int64)
        pipeline = narrow["frag_pipeline"].astype(np.int64)
        short, long = narrow["length"].astype(np.int64), wide["length"].astype(np.int64)
        holds_data = (fragment > 0) & (fragment + MEDIUM_DATA_OFFSET <= located.wire_length[place])
        fits_short = holds_data & (short >= fragment)
        start = number << np.minimum(pipeline, 16)
        piped = fits_short & (pipeline >= _PIPELINES.start) & (pipeline < _PIPELINES.stop)
        piped &= (start + fragment == short) | (
            (start + fragment < short) & (fragment == 1 << np.minimum(pipeline, 16))
        )
        # In little-endian order the 16 bits at the length's place are the lower ones of a 32-bit length.
        wide_length = holds_data & ~piped & (long >= fragment) & (long <= _LONGEST_MEDIUM)
        self._note(located, pair, place, piped & (pipeline == _OPEN_MX_PIPELINE), Hint.MEDIUM_PIPELINE_12)
        self._note(located, pair, place, piped & (pipeline != _OPEN_MX_PIPELINE), Hint.MEDIUM_PIPELINE)
        self._note(located, pair, place, wide_length, Hint.MEDIUM_LENGTH_32)
        self._note(located, pair, place, fits_short & ~piped & ~wide_length, Hint.MEDIUM_NO_PIPELINE)
        # Only the first fragment tells F for sure: a short last one may look like one in the middle.
        self._measure(pair[place], fragment, wide_length & (number == 0) & (fragment < long), "fragment_payload")
        self._measure(pair[place], fragment, wide_length, "longest_fragment")

    def _replies(self, located: Located, pair: NDArray[np.intp], place: NDArray[np.intp], swapped: bool) -> None:
        place = place[_reaches(located, place, PULL_REPLY)]
        reply = _read(located, place, swapped, PULL_REPLY)
        length, offset = reply["frame_length"].astype(np.int64), reply["msg_offset"].astype(np.int64)
        fits = length + PULL_REPLY_DATA_OFFSET <= located.wire_length[place]
        later = fits & (offset > 0) & (length > 0)
        by_4096 = later & (length <= _MXOE_REPLY) & _numbered(offset, reply["frame_seqnum"], _MXOE_REPLY)
        by_own = later & (length != _MXOE_REPLY) & ~by_4096 & _numbered(offset, reply["frame_seqnum"], length)
        self._note(located, pair, place, by_4096, Hint.REPLY_4096)
        self._note(located, pair, place, by_own, Hint.REPLY_FULL)
        self._note(located, pair, place, fits & (length > _MXOE_REPLY), Hint.REPLY_LARGE)
        self._measure(pair[place], length, by_own, "reply_payload")

    def _note(
        self,
        located: Located,
        pair: NDArray[np.intp],
        place: NDArray[np.intp],
        mask: NDArray[np.bool_],
        hint: Hint,
    ) -> None:
        """Count the frames of a mask for their pairs."""
        chosen = place[mask]
        for code, members in _by_pair(pair[chosen]):
            known = self._pair(code)
            known.counts[hint] += len(members)
            number = int(located.batch.number[chosen[members[0]]])
            known.first[hint] = min(number, known.first.get(hint, number))

    def _measure(self, pair: NDArray[np.intp], values: NDArray[np.int64], mask: NDArray[np.bool_], name: str) -> None:
        """Keep the largest value that each pair has shown of a size."""
        chosen = values[mask]
        for code, members in _by_pair(pair[mask]):
            known = self._pair(code)
            setattr(known, name, max(getattr(known, name), int(chosen[members].max())))

    def _pair(self, code: int) -> _Pair:
        """What is known of a pair; about to change."""
        self._changed.add(code)
        return self._known.setdefault(code, _Pair())


def _by_pair(codes: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each pair's code among ``codes`` with the places where it stands, in order."""
    if not len(codes):
        return
    if (codes == codes[0]).all():
        yield int(codes[0]), np.arange(len(codes))
        return
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for members in np.split(order, starts[1:]):
        yield int(codes[members[0]]), members


def _read(located: Located, place: NDArray[np.intp], swapped: bool, packet_format: PacketFormat) -> NDArray[np.void]:
    """The headers of some frames as if they had a layout."""
    return located.rows[place].view(row_type(layout_of(packet_format), swapped))


def _reaches(located: Located, place: NDArray[np.intp], packet_format: PacketFormat) -> NDArray[np.bool_]:
    """Which of some frames were captured as far as a layout's header goes."""
    complete: NDArray[np.bool_] = located.captured[place] >= layout_of(packet_format).header_end
    return complete


def _numbered(offset: NDArray[np.int64], number: NDArray[np.uint8], size: NDArray[np.int64] | int) -> NDArray[np.bool_]:
    """Which replies have the frame number that their offset gives in frames of a size (rule R-PUL-13)."""
    frames = offset // np.maximum(size, 1)
    right: NDArray[np.bool_] = (frames * size == offset) & (frames % 256 == number)
    return right
