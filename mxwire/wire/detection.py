"""Detection of the dialect that each pair of hosts uses.

Theory of operation
===================

Two hosts communicate only if both were built for the same family (`mxoe` or `omx`), generation of the format (N1 to N4)
and frame limit M. No field announces these, so they are inferred from the frames, by the hints of the wire format,
section 1, and of the differences document, section 4.4. The result is per pair of hosts, not per capture: a switch may
carry pairs of both families, and one host may even serve partners of both.

Evidence. Only PULL and MEDIUM have a layout that depends on the dialect, and a frame of either type is also its own
evidence: both layouts are tried, and usually only one gives plausible values. So one pass over the capture is enough.
TINY, SMALL, RNDV, CONNECT and the others are identical in both families: a pair that exchanges nothing else stays
undetermined, and is decoded as `mxoe` without harm.

* PULL: `src_magic` of Open-MX has 24 known bits, at different offsets in the two layouts. Practically certain.
* MEDIUM: `mxoe` has a 16-bit length and a pipeline, the logarithm of the fragment size, which must agree with fragment
  number, fragment length and length. `omx` has a 32-bit length in the same place and no pipeline. The pipeline is
  tried first, because the length of a little-endian sender may be valid in both widths.
* PULL_REPLY: the layout is common, but frame numbers count in units of P, the data of a full reply (R-PUL-13). P is
  4096 in `mxoe`, and in `omx` follows from M.

Decision. Each pair counts its frames per hint. The weight of a family is the sum, over its hints, of the number of
frames times the strength of the hint; the family with the larger weight is chosen. Confidence is the strength of the
best hint of this family, times its share of the total weight: many weak hints never become certainty, and contradicting
frames lower it.

Generation. Releases with N1 and N2 combine the PULL of `omx` with the MEDIUM of `mxoe`. Hence a majority of PULLs in
the layout of `omx` overrules MEDIUMs: with old reply sizes, the hints that otherwise support `mxoe` count for `omx`.
N1 and N2 differ only in the limit of 31 or 32 frames per block, which no frame has to reach: both are reported as N2.
N3 has a 16-bit length and no pipeline.

Frame limit. N3 and N4 fill replies up to M, so P gives M exactly. Without a full reply, the first fragment of a MEDIUM
gives M if it is shorter than 4096 bytes (from 4096 on, F is 4096 or 8192 for a whole range of M). Otherwise the default
of 9000 is assumed, and ``frame_limit_known`` is False.

Byte order is a property of the sender rather than the pair. It is settled first (:mod:`mxwire.wire.byteorder`), because
all hints read integers.

A capture that is divided among workers is examined by byte ranges first: each yields its :meth:`Detector.evidence`, the
sum of all becomes :class:`KnownDialects`, and a detector that begins with them does not examine frames any more.

Batches. :meth:`Detector.learn` adds the evidence of a batch with array operations, :meth:`Detector.assign` returns the
dialects known so far. They are separate so that :class:`~mxwire.wire.decoder.Decoder` can learn from the first
megabytes of a capture before it decodes their first frame. Only pairs with new evidence are decided again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.byteorder import PULL_MAGIC_PREFIX, ByteOrderDetector
from mxwire.wire.codes import CodeTable, groups_of
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
from mxwire.wire.encapsulation import ROW, Located
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import MEDIUM_MXOE, MEDIUM_OMX, PULL_MXOE, PULL_OMX, PULL_REPLY, PacketFormat
from mxwire.wire.layout import TYPE_OFFSET, header_type, layout_of


class Hint(IntEnum):
    """A kind of evidence."""

    supports: str
    """The family, or family and generation, that it supports."""
    strength: float
    """Confidence in the family after many such frames, from 0 to 1."""
    text: str

    def __new__(cls, value: int, supports: str, strength: float, text: str) -> Hint:
        """Create a member with its meaning."""
        hint = int.__new__(cls, value)
        hint._value_, hint.supports, hint.strength, hint.text = value, supports, strength, text
        return hint

    PULL_MXOE = 0, "mxoe", 0.99, "PULL with an Open-MX magic at the offset of mxoe"
    PULL_OMX = 1, "omx", 0.99, "PULL with an Open-MX magic at the offset of omx"
    MEDIUM_PIPELINE_12 = 2, "mxoe", 0.95, "MEDIUM with a 16-bit length and pipeline 12"
    MEDIUM_PIPELINE = 3, "mxoe", 0.85, "MEDIUM with a 16-bit length and another plausible pipeline"
    MEDIUM_LENGTH_32 = 4, "omx", 0.95, "MEDIUM with a 32-bit length"
    MEDIUM_NO_PIPELINE = 5, "omx N3", 0.6, "MEDIUM with a 16-bit length and no plausible pipeline"
    REPLY_4096 = 6, "mxoe", 0.8, "PULL_REPLY numbered in frames of 4096 bytes"
    REPLY_FULL = 7, "omx", 0.9, "PULL_REPLY numbered in frames of another size"
    REPLY_LARGE = 8, "omx", 0.99, "PULL_REPLY with more than 4096 bytes"

    @property
    def family(self) -> str:
        """The family that it supports."""
        return self.supports.partition(" ")[0]


_MXOE_REPLY: Final = MXOE.reply_payload
_OPEN_MX_PIPELINE: Final = 12
_PIPELINES: Final = range(7, 16)
"""Plausible pipelines of `mxoe`: fragments of 128 bytes to 32 KiB."""
_LONGEST_MEDIUM: Final = 255 * 8192
"""Maximum length of a MEDIUM of any build: the maximum number of fragments times the largest fragment (section 7)."""
_OLD_REPLY_LIMITS: Final = {1024: 1500, 2048: 2500, 4096: 4500, 8192: 9000}
"""A frame limit that results in P, by P, for generations N1 and N2."""
_N1_BLOCK_SHARE: Final = 31 * 8192 // 32
"""The P computed from a block of N1, which has 31 frames, as if it had 32."""


@dataclass(frozen=True, slots=True)
class DialectEvidence:
    """Number of frames that support a dialect, and the first such frame."""

    text: str
    supports: str
    frames: int
    first_frame: int


@dataclass(frozen=True, slots=True)
class Detection:
    """The dialect detected for one pair of hosts."""

    hosts: tuple[int, int]
    """Their addresses as integers."""
    dialect: Dialect | None
    """None if undetermined."""
    confidence: float
    """From 0 to 1."""
    evidence: tuple[DialectEvidence, ...]


@dataclass
class _PairEvidence:
    """The evidence collected about one pair of hosts."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Hint), np.int64))
    first: dict[Hint, int] = field(default_factory=dict)
    reply_payload: int = 0
    """P, if a full reply or block has shown it; else 0."""
    fragment_payload: int = 0
    """F, if the first of several fragments has shown it; else 0."""
    longest_fragment: int = 0

    def dialect(self) -> tuple[Dialect | None, float]:
        """The most likely dialect and its confidence."""
        count = self.counts.tolist()
        if not any(count):
            return None, 0.0
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
        for hint in Hint:
            family = "omx" if hint in against else hint.family
            weight[family] += hint.strength * count[hint]
            if count[hint]:
                strongest[family] = max(strongest[family], hint.strength)
        # Of equal weights, the first: mxoe, as for a pair without any evidence.
        family = max(weight, key=lambda each: weight[each])
        confidence = strongest[family] * weight[family] / sum(weight.values())
        return (MXOE if family == "mxoe" else self._omx(generation)), confidence

    def _has_old_sizes(self, more_short_lengths: int) -> bool:
        """Return True if PULLs in the layout of omx are from N1 or N2, by the size of replies or else by MEDIUMs."""
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


_MEASURES: Final = ("reply_payload", "fragment_payload", "longest_fragment")
"""Attributes of the evidence that are maxima."""
_NO_EVIDENCE: Final = _PairEvidence()
"""That of most pairs in a crowd."""


def _limit(frame_limit: int) -> int:
    return min(max(frame_limit, SMALLEST_FRAME_LIMIT), LARGEST_FRAME_LIMIT)


@dataclass(frozen=True)
class Assignment:
    """The dialects to decode the frames of a batch with."""

    dialects: tuple[Dialect, ...]
    which: NDArray[np.intp]
    """Shape (n,): index of each frame's dialect in ``dialects``."""
    decided: NDArray[np.bool_]
    """Shape (n,): False for frames of undetermined pairs, which are decoded as mxoe."""
    swapped: NDArray[np.bool_] | None
    """Shape (n,): True for frames of little-endian senders; None if there are none."""
    source: NDArray[np.intp]
    """Shape (n,): code of each frame's sender in :attr:`Detector.hosts`."""
    destination: NDArray[np.intp]
    """Shape (n,): code of each frame's destination, likewise."""


@dataclass(frozen=True)
class BatchPairs:
    """Codes of the sender, destination and pair of each frame of a batch; arrays of shape (n,)."""

    source: NDArray[np.intp]
    destination: NDArray[np.intp]
    pair: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class KnownDialects:
    """The dialects of pairs of hosts, and the byte orders of hosts, by the evidence of a complete capture."""

    dialects: tuple[Dialect, ...]
    which: Mapping[tuple[int, int], int]
    """By the two addresses, the lower one first: index in ``dialects``; other pairs are undetermined."""
    swapped: frozenset[int]
    """Addresses of the hosts whose integers are in little-endian order."""


class Detector:
    """Collects evidence on all pairs of hosts, batch by batch, and assigns a dialect to each frame.

    With ``by_sender`` it judges each sender separately, which reveals two hosts that use different dialects; both
    addresses of a detection are then that of the sender. With ``known`` dialects it collects no evidence.
    """

    def __init__(self, *, by_sender: bool = False, known: KnownDialects | None = None) -> None:
        self._by_sender = by_sender
        self._known = known
        self.hosts = CodeTable()
        """The addresses seen so far, by code in order of appearance."""
        self._pairs = CodeTable()
        self._evidence: dict[int, _PairEvidence] = {}
        self._changed: set[int] = set()
        self._dialects: dict[Dialect, int] = {MXOE: 0}
        if known is not None:
            self._dialects = {each: number for number, each in enumerate(known.dialects)}
        self._which = np.zeros(0, np.intp)
        self._decided = np.zeros(0, np.bool_)
        self._orders = ByteOrderDetector()

    def observe(self, located: Located) -> Assignment:
        """Add the evidence of a batch and return the dialects of its frames."""
        return self.assign(self.learn(located))

    def learn(self, located: Located) -> BatchPairs:
        """Add the evidence of a batch; pass the result to :meth:`assign` for the dialects of its frames."""
        destination_address = located.source if self._by_sender else located.destination
        # Interleaved, so that hosts are numbered in order of appearance, sender before destination.
        hosts = self.hosts.codes(np.stack([located.source, destination_address], axis=1).ravel())
        source, destination = hosts[0::2], hosts[1::2]
        low, high = np.minimum(source, destination), np.maximum(source, destination)
        pair = self._pairs.codes(low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64))
        if self._known is not None:
            fresh = self.hosts.keys[self._orders.senders :]
            self._orders.settle(np.array([each in self._known.swapped for each in fresh], np.bool_))
            return BatchPairs(source, destination, pair)
        swapped = self._orders.observe(located, source, len(self.hosts))
        self._collect(located, pair, swapped)
        return BatchPairs(source, destination, pair)

    def assign(self, pairs: BatchPairs) -> Assignment:
        """The dialects of the frames of a batch, by all evidence so far."""
        self._decide()
        swapped = self._orders.swapped[pairs.source]
        return Assignment(
            tuple(self._dialects),
            self._which[pairs.pair],
            self._decided[pairs.pair],
            swapped if swapped.any() else None,
            pairs.source,
            pairs.destination,
        )

    def is_undecided(self) -> bool:
        """Return whether no frame so far determines the dialect of a pair of hosts."""
        self._decide()
        return not self._decided.any()

    def detections(self) -> list[Detection]:
        """The detection for every pair of hosts, in order of appearance."""
        detections = []
        # Not the code that all pairs beyond the limit share.
        for code, key in enumerate(self._pairs.keys[: CodeTable.others]):
            pair = self._evidence.get(code, _NO_EVIDENCE)
            dialect, confidence = pair.dialect()
            evidence = tuple(
                DialectEvidence(hint.text, hint.supports, int(pair.counts[hint]), pair.first[hint])
                for hint in sorted(pair.first, key=lambda each: (-each.strength, pair.first[each], each))
            )
            hosts = self.hosts.keys[key >> 32], self.hosts.keys[key & 0xFFFFFFFF]
            detections.append(Detection(hosts, dialect, confidence, evidence))
        return detections

    def swapped_hosts(self) -> list[int]:
        """Addresses of the hosts whose integers are in little-endian order."""
        return [self.hosts.keys[code] for code in np.flatnonzero(self._orders.swapped)]

    def evidence(self) -> list[list[Any]]:
        """Return the evidence so far, as values of JSON: a row per host, and a row per pair with evidence."""
        orders = zip(self.hosts.keys[: CodeTable.others], *self._orders.votes(), strict=False)
        pairs = [
            [
                *self._hosts_of(self._pairs.keys[code]),
                each.counts.tolist(),
                *(getattr(each, name) for name in _MEASURES),
            ]
            for code, each in self._evidence.items()
            if code < CodeTable.others
        ]
        return [[list(each) for each in orders], pairs]

    def add(self, evidence: list[list[Any]]) -> None:
        """Add the evidence of another part of the capture, as :meth:`evidence` returns it."""
        orders, pairs = evidence
        if not orders:
            return
        hosts, network, swapped = (np.array(each, np.uint64) for each in zip(*orders, strict=True))
        self._orders.add(self.hosts.codes(hosts), network.astype(np.int64), swapped.astype(np.int64), len(self.hosts))
        for low, high, counts, *measures in pairs:
            codes = np.sort(self.hosts.codes(np.array([low, high], np.uint64))).astype(np.uint64)
            known = self._pair(int(self._pairs.codes(codes[:1] << np.uint64(32) | codes[1:])[0]))
            known.counts += np.array(counts, np.int64)
            for name, value in zip(_MEASURES, measures, strict=True):
                setattr(known, name, max(getattr(known, name), value))

    def known(self) -> KnownDialects:
        """Return the dialects by all evidence so far."""
        self._decide()
        decided = np.flatnonzero(self._decided[: CodeTable.others]).tolist()
        which = {self._hosts_of(self._pairs.keys[code]): int(self._which[code]) for code in decided}
        return KnownDialects(tuple(self._dialects), which, frozenset(self.swapped_hosts()))

    def _hosts_of(self, pair: int) -> tuple[int, int]:
        """Return the addresses of the key of a pair, the lower one first."""
        one, other = self.hosts.keys[pair >> 32], self.hosts.keys[pair & 0xFFFFFFFF]
        return min(one, other), max(one, other)

    def _decide(self) -> None:
        """Decide the pairs with new evidence again."""
        missing = len(self._pairs) - len(self._which)
        if missing:
            which = [-1] * missing
            if self._known is not None:
                which = [self._known.which.get(self._hosts_of(each), -1) for each in self._pairs.keys[-missing:]]
            found = np.array(which, np.intp)
            # Undetermined pairs are decoded as mxoe, which is the first of the dialects.
            self._which = np.concatenate([self._which, np.maximum(found, 0)])
            self._decided = np.concatenate([self._decided, found >= 0])
        for code in self._changed:
            dialect, _ = self._evidence[code].dialect()
            self._decided[code] = dialect is not None
            self._which[code] = self._dialects.setdefault(dialect or MXOE, len(self._dialects))
        self._changed.clear()

    def _collect(self, located: Located, pair: NDArray[np.intp], swapped: NDArray[np.bool_] | None) -> None:
        types = located.row_bytes[:, TYPE_OFFSET].copy()  # they are compared three times
        for packet_type, collect in (
            # As numbers, which numpy compares faster.
            (int(PacketType.PULL), self._pulls),
            (int(PacketType.MEDIUM), self._mediums),
            (int(PacketType.PULL_REPLY), self._replies),
        ):
            found = types == packet_type
            if not found.any():
                continue
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
        # Only the first block of a region without an offset, unless it is the last, has exactly P x B bytes (R-PUL-01).
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
        # Bounded, because NumPy does not define a shift by more bits than an integer has.
        start = number << np.minimum(pipeline, 16)
        piped = fits_short & (pipeline >= _PIPELINES.start) & (pipeline < _PIPELINES.stop)
        piped &= (start + fragment == short) | (
            (start + fragment < short) & (fragment == 1 << np.minimum(pipeline, 16))
        )
        # Of a 32-bit length in little-endian order, the 16 bits read as the short length are the lower ones.
        wide_length = holds_data & ~piped & (long >= fragment) & (long <= _LONGEST_MEDIUM)
        self._note(located, pair, place, piped & (pipeline == _OPEN_MX_PIPELINE), Hint.MEDIUM_PIPELINE_12)
        self._note(located, pair, place, piped & (pipeline != _OPEN_MX_PIPELINE), Hint.MEDIUM_PIPELINE)
        self._note(located, pair, place, wide_length, Hint.MEDIUM_LENGTH_32)
        self._note(located, pair, place, fits_short & ~piped & ~wide_length, Hint.MEDIUM_NO_PIPELINE)
        # Only the first of several fragments is certain to be full: a short last one may look like one in the middle.
        self._measure(pair[place], fragment, wide_length & (number == 0) & (fragment < long), "fragment_payload")
        self._measure(pair[place], fragment, wide_length, "longest_fragment")

    def _replies(self, located: Located, pair: NDArray[np.intp], place: NDArray[np.intp], swapped: bool) -> None:
        place = place[_reaches(located, place, PULL_REPLY)]
        reply = _read(located, place, swapped, PULL_REPLY)
        length, offset = reply["frame_length"].astype(np.int64), reply["msg_offset"].astype(np.int64)
        fits = length + PULL_REPLY_DATA_OFFSET <= located.wire_length[place]
        # The first frame has number 0, whatever P is.
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
        """Count the frames of ``mask`` as evidence for their pairs."""
        chosen = place[mask]
        for code, members in groups_of(pair[chosen]):
            known = self._pair(code)
            known.counts[hint] += len(members)
            number = int(located.batch.number[chosen[members[0]]])
            # Frames of little-endian senders are collected after all others of the batch.
            known.first[hint] = min(number, known.first.get(hint, number))

    def _measure(self, pair: NDArray[np.intp], values: NDArray[np.int64], mask: NDArray[np.bool_], name: str) -> None:
        """Update the maximum of the attribute ``name`` of each pair by the values of ``mask``."""
        chosen = values[mask]
        for code, members in groups_of(pair[mask]):
            known = self._pair(code)
            setattr(known, name, max(getattr(known, name), int(chosen[members].max())))

    def _pair(self, code: int) -> _PairEvidence:
        """The evidence on a pair, for modification."""
        self._changed.add(code)
        return self._evidence.setdefault(code, _PairEvidence())


def _read(located: Located, place: NDArray[np.intp], swapped: bool, packet_format: PacketFormat) -> NDArray[np.void]:
    """The headers of the frames at ``place``, read in the layout of ``packet_format``."""
    return located.rows[place].view(header_type(layout_of(packet_format), swapped=swapped, size=ROW))


def _reaches(located: Located, place: NDArray[np.intp], packet_format: PacketFormat) -> NDArray[np.bool_]:
    """Mask of the frames at ``place`` that were captured up to the end of a layout's header."""
    complete: NDArray[np.bool_] = located.captured[place] >= layout_of(packet_format).header_end
    return complete


def _numbered(offset: NDArray[np.int64], number: NDArray[np.uint8], size: NDArray[np.int64] | int) -> NDArray[np.bool_]:
    """Mask of replies whose frame number agrees with their offset in frames of ``size`` bytes (rule R-PUL-13)."""
    frames = offset // np.maximum(size, 1)
    right: NDArray[np.bool_] = (frames * size == offset) & (frames % 256 == number)
    return right
