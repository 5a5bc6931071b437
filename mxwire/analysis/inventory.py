"""Inventory of a capture: hosts, endpoints, dialects, packets and messages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import numpy as np

from mxwire.analysis.first_keys import FirstKeys
from mxwire.analysis.message_counter import MessageCounter
from mxwire.ethernet import BROADCAST
from mxwire.wire.checks import Reason
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.detection import Detection
from mxwire.wire.enums import NackType, hostname_text, packet_type_name
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import ConnectReply, ConnectRequest, HostReply

_BROADCAST: Final = int.from_bytes(BROADCAST, "big")
_RARE: Final = ("host_reply", "connect_request", "connect_reply")
"""Layouts that are read one by one, through the scalar path."""
_T = TypeVar("_T")

MEMBERS_KEPT: Final = 1024
"""Maximum number of sessions, keys, names and indexes kept per host or endpoint, to bound memory."""
ENDPOINTS_KEPT: Final = 65536


@dataclass
class HostFacts:
    """One host, by its Ethernet address."""

    names: dict[str, None] = field(default_factory=dict)
    sent: int = 0
    received: int = 0
    known_as: FirstKeys[tuple[int, int], int] = field(default_factory=partial(FirstKeys, MEMBERS_KEPT, int))
    """Number of frames sent by the host, by peer (address) and the index of the host in that peer's table."""


@dataclass
class EndpointFacts:
    """One endpoint of a host."""

    sessions: dict[int, None] = field(default_factory=dict)
    """Session ids of the endpoint, in order of appearance."""
    keys: dict[int, None] = field(default_factory=dict)
    """Application keys in the connect requests to the endpoint."""
    sent: int = 0
    received: int = 0


@dataclass
class TypeFacts:
    """One packet type."""

    frames: int = 0
    bytes: int = 0


@dataclass
class Fault:
    """Malformed frames that share one reason."""

    frames: int = 0
    first_frame: int = 0


class Inventory:
    """Collector of the contents of a capture, batch by batch; memory grows only with hosts and endpoints.

    Without ``messages`` frames are counted but not followed, which takes a fraction of the time.
    """

    def __init__(self, *, messages: bool = True) -> None:
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.frames = 0
        self.bytes = 0
        """Bytes on the wire of all MXoE frames."""
        self.cut = 0
        """Number of MXoE frames that the capture truncated."""
        self.cooked = False
        """True if frames lack the addresses of their destinations."""
        self.types: dict[str, TypeFacts] = {}
        self.hosts: dict[int, HostFacts] = {}
        self.endpoints: FirstKeys[tuple[int, int], EndpointFacts] = FirstKeys(ENDPOINTS_KEPT, EndpointFacts)
        self.nacks: Counter[tuple[str, str]] = Counter()
        """Nacks by packet type and reason."""
        self.faults: dict[str, Fault] = {}
        self.vlans: Counter[int] = Counter()
        self.messages = MessageCounter() if messages else None
        """None if messages are not counted."""
        self.detections: list[Detection] = []
        self.swapped_hosts: list[int] = []
        self.skipped = 0
        self.requested_dialect: str | None = None
        """The dialect in which all frames were decoded, if the user specified one."""

    @property
    def duration_ns(self) -> int:
        """Time from the earliest to the latest frame."""
        return 0 if self.first_ns is None or self.last_ns is None else self.last_ns - self.first_ns

    def observe(self, decoded: DecodedBatch) -> None:
        """Process a batch."""
        if not len(decoded):
            return
        self._times_and_types(decoded)
        self._hosts(decoded)
        self._endpoints(decoded)
        self._single_packets(decoded)
        self._nacks(decoded)
        self._faults(decoded)
        if self.messages is not None:
            self.messages.observe(decoded)

    def finish(self, decoder: Decoder) -> None:
        """Copy the dialects that the decoder detected."""
        if self.messages is not None:
            self.messages.finish()
        self.detections = decoder.detections()
        self.swapped_hosts = decoder.swapped_hosts()
        self.skipped = decoder.skipped
        self.requested_dialect = decoder.dialect.name if decoder.dialect else None

    def _times_and_types(self, decoded: DecodedBatch) -> None:
        batch = decoded.batch
        first, last = int(batch.timestamp_ns.min()), int(batch.timestamp_ns.max())
        self.first_ns = first if self.first_ns is None else min(self.first_ns, first)
        self.last_ns = last if self.last_ns is None else max(self.last_ns, last)
        # A damaged record may claim fewer bytes on the wire than it holds.
        wire = np.maximum(batch.wire_length, batch.length)
        self.frames += len(batch)
        self.bytes += int(wire.sum())
        self.cut += int((batch.wire_length > batch.length).sum())
        types = decoded.columns.packet_type
        for value in np.unique(types).tolist():
            chosen = types == value
            facts = self.types.setdefault("none" if value < 0 else packet_type_name(value), TypeFacts())
            facts.frames += int(chosen.sum())
            facts.bytes += int(wire[chosen].sum())
        ids, counts = np.unique(decoded.located.vlan, return_counts=True)
        for vlan, count in zip(ids.tolist(), counts.tolist(), strict=True):
            if vlan >= 0:
                self.vlans[vlan] += count

    def _hosts(self, decoded: DecodedBatch) -> None:
        for codes, sending in ((decoded.assignment.source, True), (decoded.assignment.destination, False)):
            counts = np.bincount(codes)
            for code in np.flatnonzero(counts):
                address = decoded.hosts.keys[code]
                if sending:
                    self._host(address).sent += int(counts[code])
                elif decoded.located.has_destination and address != _BROADCAST:
                    self._host(address).received += int(counts[code])
        if not decoded.located.has_destination:
            self.cooked = True
            return
        index, present = decoded.columns.field("dst_src_peer_index")
        present &= decoded.columns.reason == Reason.NONE
        # These have zeros in place of an index (W-6.1).
        for block in decoded.columns.of("raw", "raw_omxoed"):
            present[block.place] = False
        triples = np.stack(
            [decoded.assignment.source[present], decoded.assignment.destination[present], index[present]], axis=1
        )
        for (source, destination, known), count in zip(*_distinct(triples), strict=True):
            host = self._host(decoded.hosts.keys[source])
            host.known_as[decoded.hosts.keys[destination], known] += count

    def _host(self, address: int) -> HostFacts:
        return self.hosts.setdefault(address, HostFacts())

    def _endpoints(self, decoded: DecodedBatch) -> None:
        """Collect endpoints and, from session fields, their sessions; skip nacks: their endpoints may not exist."""
        columns = decoded.columns
        for block in columns.blocks:
            names = block.names
            if "src_endpoint" not in names or block.layout.name.startswith("nack"):
                continue
            good = columns.reason[block.place] == Reason.NONE
            place = block.place[good]
            source = np.stack([decoded.assignment.source[place], block["src_endpoint"][good]], axis=1)
            for (code, number), count in zip(*_distinct(source), strict=True):
                self.endpoints[decoded.hosts.keys[code], number].sent += count
            if not decoded.located.has_destination:
                continue
            sessions = block["session"][good] if "session" in names else np.zeros(len(place), np.uint32)
            target = np.stack([decoded.assignment.destination[place], block["dst_endpoint"][good], sessions], axis=1)
            for (code, number, session), count in zip(*_distinct(target), strict=True):
                facts = self.endpoints[decoded.hosts.keys[code], number]
                facts.received += count
                if "session" in names and session != NO_SESSION:
                    _keep(facts.sessions, session)

    def _single_packets(self, decoded: DecodedBatch) -> None:
        """Collect names, sessions and keys from the rare packets that contain them."""
        for block in decoded.columns.of(*_RARE):
            for place in block.place.tolist():
                frame = decoded.frame(place)
                source = decoded.hosts.keys[decoded.assignment.source[place]]
                destination = decoded.hosts.keys[decoded.assignment.destination[place]]
                if isinstance(frame, HostReply):
                    _keep(self._host(source).names, hostname_text(frame.hostname))
                elif isinstance(frame, ConnectRequest):
                    _keep(self.endpoints[source, frame.src_endpoint].sessions, frame.src_session_id)
                    if decoded.located.has_destination:
                        _keep(self.endpoints[destination, frame.dst_endpoint].keys, frame.app_key)
                elif isinstance(frame, ConnectReply):
                    _keep(self.endpoints[source, frame.src_endpoint].sessions, frame.target_session_id)

    def _nacks(self, decoded: DecodedBatch) -> None:
        for block in decoded.columns.of("nack_lib", "nack_mcp"):
            values, counts = np.unique(block["nack_type"], return_counts=True)
            for value, count in zip(values.tolist(), counts.tolist(), strict=True):
                reason = NackType(value).name if value in tuple(NackType) else f"code {value}"
                self.nacks[block.layout.packet_type.name, reason] += count

    def _faults(self, decoded: DecodedBatch) -> None:
        reasons = decoded.columns.reason
        for value in np.unique(reasons[reasons != Reason.NONE]).tolist():
            chosen = np.flatnonzero(reasons == value)
            fault = self.faults.setdefault(Reason(value).text, Fault(0, int(decoded.batch.number[chosen[0]])))
            fault.frames += len(chosen)


def _distinct(rows: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> tuple[list[list[int]], list[int]]:
    """Return the distinct rows of an (n, k) array with their numbers of occurrences."""
    if not len(rows):
        return [], []
    values, counts = np.unique(rows.astype(np.int64), axis=0, return_counts=True)
    return values.tolist(), counts.tolist()


def _keep(kept: dict[_T, None], value: _T) -> None:
    if len(kept) < MEMBERS_KEPT:
        kept.setdefault(value)
