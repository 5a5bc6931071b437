"""Build and settings of each host of a capture, with the frames that show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from mxwire.analysis.compatibility.builds import Build, HostEvidence, candidates
from mxwire.analysis.compatibility.judgement import MessageClass
from mxwire.analysis.conversations import CapturedMessage, Follower
from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.verification import Verification
from mxwire.rules import Violation
from mxwire.wire.codes import groups_of
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.detection import Detection, Detector
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET

_ETHERTYPE: Final = 12
_CLASS_OF: Final[dict[str, MessageClass]] = {"TINY": "tiny", "SMALL": "small", "MEDIUM": "medium", "RNDV": "large"}
Exchanged = dict[tuple[int, MessageClass], tuple[int, int]]
"""By direction (0: from the first host, 1: back) and class: the number of messages that arrived, and of all
messages."""
_HOSTS: Final = 4096
"""Maximum number of hosts that are examined, which bounds the memory that a hostile capture can use."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of a host, with its evidence."""

    what: str
    value: str
    frames: int = 0
    """Number of frames that show the property."""
    first_frame: int | None = None
    """Number of the first of these frames."""


@dataclass(frozen=True)
class Side:
    """One host, as shown by the frames in a capture."""

    label: str
    address: int
    candidates: tuple[Build, ...]
    """All builds that match the frames of the host."""
    unknown: tuple[str, ...]
    """The evidence that would distinguish the candidate builds."""
    facts: tuple[Fact, ...]

    @property
    def build(self) -> Build | None:
        """The build if all candidates agree, except in ``pipeline_ignored``, which is invisible on the wire; otherwise
        None.
        """
        return (
            self.candidates[0]
            if len({replace(each, pipeline_ignored=False) for each in self.candidates}) == 1
            else None
        )


@dataclass(slots=True)
class _SideHost:
    """Evidence of one sender."""

    frames: int = 0
    longest: int = 0
    longest_frame: int = 0
    ethertypes: dict[int, int] = field(default_factory=dict)
    """By value: the first frame with it."""
    pipelines: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By value: the first frame with it, and the number of such frames."""
    offsets: tuple[int, int, int] = (0, 0, 0)
    """Offsets of regions: the largest, its first frame, and the number of offsets other than 0."""
    announcements: tuple[int, int] = (0, 0)
    """Number of announcements, and the first of them."""
    queries: tuple[int, int] = (0, 0)
    transmissions: int = 1
    """Maximum number of transmissions of a message."""
    abandoned: bool = False
    resend_delays: tuple[int, int, int] = (0, 0, 0)
    """Times between transmissions of a message: the shortest, the longest, and the number of times."""
    defects: dict[str, tuple[int, int]] = field(default_factory=dict)


class Sides:
    """Collector of evidence per host, batch by batch; memory grows only with hosts."""

    def __init__(self, *, follows: bool = True) -> None:
        self._hosts: FirstKeys[int, _SideHost] = FirstKeys(_HOSTS, _SideHost)
        self._detector = Detector(by_sender=True)
        self._follower = Follower() if follows else None
        self._verification = Verification() if follows else None
        self.exchanged: FirstKeys[tuple[int, int, MessageClass], tuple[int, int]] = FirstKeys(_HOSTS)
        """By source, destination and class: the number of messages that arrived, and of all messages."""

    def observe(self, decoded: DecodedBatch) -> None:
        """Process the next batch."""
        if not len(decoded):
            return
        self._detector.learn(decoded.located)
        self._count(decoded)
        self._mediums(decoded)
        self._regions(decoded)
        if self._follower is not None:
            self.take(self._follower.observe(decoded))
        if self._verification is not None:
            for violation in self._verification.observe(decoded):
                self._finding(violation)

    def take(self, messages: Iterable[CapturedMessage]) -> None:
        """Process messages, if the caller follows conversations."""
        for message in messages:
            self._message(message)

    def finish(self) -> None:
        """End the capture."""
        if self._follower is not None:
            self.take(self._follower.finish())

    @property
    def hosts(self) -> list[int]:
        """Return source addresses, in descending order of frames."""
        return sorted(self._hosts, key=lambda each: -self._hosts[each].frames)

    def between(self, one: int, other: int) -> Exchanged:
        """Return the traffic between two hosts."""
        directions = (one, other), (other, one)
        return {
            (directions.index(key[:2]), key[2]): count for key, count in self.exchanged.items() if key[:2] in directions
        }

    def side(self, address: int, label: str) -> Side:
        """Return the evidence of one host."""
        known = self._hosts[address]
        detection = next((each for each in self._detector.detections() if each.hosts[0] == address), None)
        shown = HostEvidence(
            detection=detection,
            longest=known.longest,
            pipelines=tuple(known.pipelines),
            region_offset=known.offsets[0],
            swapped=address in self._detector.swapped_hosts(),
            ethertype=next(iter(known.ethertypes)),
        )
        builds, unknown = candidates(shown)
        return Side(label, address, builds, unknown, tuple(_facts(known, shown, detection)))

    def _count(self, decoded: DecodedBatch) -> None:
        located = decoded.located
        rows = located.row_bytes
        types = rows[:, TYPE_OFFSET]
        ethertypes = rows[:, _ETHERTYPE].astype(np.int64) << 8 | rows[:, _ETHERTYPE + 1]
        numbers = located.batch.number
        lengths = located.wire_length
        for address, places in groups_of(located.source.astype(np.int64)):
            host = self._hosts[address]
            host.frames += len(places)
            longest = places[int(lengths[places].argmax())]
            if int(lengths[longest]) > host.longest:
                host.longest, host.longest_frame = int(lengths[longest]), int(numbers[longest])
            for ethertype in np.unique(ethertypes[places]).tolist():
                host.ethertypes.setdefault(int(ethertype), int(numbers[places[ethertypes[places] == ethertype][0]]))
            host.announcements = _more(host.announcements, numbers[places[types[places] == PacketType.RAW]])
            host.queries = _more(host.queries, numbers[places[types[places] == PacketType.HOST_QUERY]])

    def _mediums(self, decoded: DecodedBatch) -> None:
        numbers, source = decoded.batch.number, decoded.located.source.astype(np.int64)
        for block in decoded.columns.blocks:
            if "frag_pipeline" not in block.names:
                continue
            for address, places in groups_of(source[block.place]):
                host = self._hosts[address]
                values = block["frag_pipeline"][places]
                for value in np.unique(values).tolist():
                    which = block.place[places[values == value]]
                    first, count = host.pipelines.get(int(value), (int(numbers[which[0]]), 0))
                    host.pipelines[int(value)] = first, count + len(which)

    def _regions(self, decoded: DecodedBatch) -> None:
        numbers, source = decoded.batch.number, decoded.located.source.astype(np.int64)
        for block in decoded.columns.blocks:
            if block.layout.name != "rndv":
                continue
            for address, places in groups_of(source[block.place]):
                host = self._hosts[address]
                values = block["pulled_rdma_offset"][places]
                nonzero = np.flatnonzero(values)
                if not len(nonzero):
                    continue
                largest, first, count = host.offsets
                # Frames are numbered from 1: 0 stands for none.
                first = first or int(numbers[block.place[places[nonzero[0]]]])
                host.offsets = max(largest, int(values.max())), first, count + len(nonzero)

    def _message(self, message: CapturedMessage) -> None:
        source, destination = message.flow.address, message.flow.back.address
        # Not by subscript, which would make a host of a sender beyond the limit.
        host = self._hosts.get(source)
        if host is not None:
            host.transmissions = max(host.transmissions, message.transmissions)
            host.abandoned = host.abandoned or message.sender == "abandoned"
            for each in message.resends:
                shortest, longest, count = host.resend_delays
                least = min(shortest, each.after_ns) if count else each.after_ns
                host.resend_delays = least, max(longest, each.after_ns), count + 1
        key = source, destination, _CLASS_OF[message.kind]
        arrived, every = self.exchanged.get(key, (0, 0))
        self.exchanged[key] = arrived + (message.receiver in ("received", "truncated")), every + 1

    def _finding(self, found: Violation) -> None:
        if found.severity == "note" and found.rule.startswith("D-"):
            host = self._hosts.get(int.from_bytes(found.host, "big"))
            if host is not None:
                first, count = host.defects.get(found.rule, (found.frames[-1], 0))
                host.defects[found.rule] = first, count + 1


def _more(known: tuple[int, int], numbers: np.ndarray) -> tuple[int, int]:
    count, first = known
    return count + len(numbers), first or (int(numbers[0]) if len(numbers) else 0)


def _facts(host: _SideHost, shown: HostEvidence, detection: Detection | None) -> Iterator[Fact]:
    for each in detection.evidence if detection is not None else ():
        yield Fact(f"format {each.supports}", each.text, each.frames, each.first_frame)
    yield Fact("longest frame", f"{host.longest} bytes", 1, host.longest_frame)
    order = "little-endian (endian option off)" if shown.swapped else "network order"
    yield Fact("byte order", order)
    for ethertype, first in host.ethertypes.items():
        yield Fact("EtherType", f"0x{ethertype:04X}", 0, first)
    if shown.is_piped:
        for pipeline, (first, count) in sorted(host.pipelines.items()):
            yield Fact("fragments", f"of {1 << min(pipeline, 32)} bytes (pipeline {pipeline})", count, first)
    largest, first, count = host.offsets
    if count:
        yield Fact("regions", f"large messages start within their page, at {largest} for example", count, first)
    yield from _discovery(host)
    if host.transmissions > 1:
        end = ", then abandoned: its resend limit" if host.abandoned else ""
        yield Fact("resends", f"up to {host.transmissions} transmissions of a message{end}")
    shortest, longest, count = host.resend_delays
    if count:
        extent = f"{shortest / 1e6:.0f}" if count == 1 else f"{shortest / 1e6:.0f} to {longest / 1e6:.0f}"
        yield Fact("resend delay", f"{extent} ms ({count} resend{'s' if count > 1 else ''})")
    for defect, (first, count) in sorted(host.defects.items(), key=lambda each: int(each[0][2:])):
        yield Fact("defect", f"{defect} (mxwire rules {defect})", count, first)


def _discovery(host: _SideHost) -> Iterator[Fact]:
    count, first = host.announcements
    if count:
        yield Fact("discovery", "announces itself as omxoed and mxoed do", count, first)
    count, first = host.queries
    if count:
        yield Fact("discovery", "queries host names", count, first)
