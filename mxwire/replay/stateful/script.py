"""Script: a capture as the conversation of two hosts, one to be played and one to be replaced by a live host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from mxwire.errors import MxwireError
from mxwire.ethernet import BROADCAST, mac_text
from mxwire.frames import FrameBatch
from mxwire.replay.stateful.records import Record, read
from mxwire.wire.codec import Malformed
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.packets import Announcement, ConnectReply, ConnectRequest, HostQuery, HostReply, Raw

DISCOVERY = (Announcement, Raw, HostQuery, HostReply)
"""Packets of discovery, which every host sends by itself; they are not replayed."""


@dataclass(frozen=True)
class ReplayScript:
    """The recorded conversation between the played host and the replaced one."""

    played: bytes
    """Ethernet address of the played host in the capture."""
    met: bytes
    """Ethernet address of the host that the live one replaces."""
    dialect: Dialect
    records: list[Record]
    """Their frames except those of discovery, numbered from 1; ``is_played`` marks those of the played host."""
    places: list[int]
    """Number of each record in the capture."""
    name: str = ""
    """Host name of the played host, if the capture contains it."""
    malformed: int = 0
    """Malformed frames between the two hosts, which are left out."""
    endpoints: frozenset[int] = field(default_factory=frozenset)
    """Endpoints of the replaced host that accepted or requested a connect."""
    keys: frozenset[int] = field(default_factory=frozenset)
    """Keys that these accepted."""

    def place(self, record: Record) -> int:
        """Return the number of a record in the capture."""
        return self.places[record.number - 1]

    def mirrored(self) -> ReplayScript:
        """Return the script with the roles of the hosts exchanged."""
        batch = FrameBatch.from_frames([each.data for each in self.records], [each.time for each in self.records])
        batch.wire_length[:] = [each.length for each in self.records]
        turned = read(batch, self.dialect, self.met)
        return ReplayScript(self.met, self.played, self.dialect, turned, self.places)


def script_of(
    batches: Iterable[DecodedBatch], name: str, played: bytes, met: bytes | None = None, dialect: Dialect | None = None
) -> ReplayScript:
    """Return the conversation of a host with another in a capture.

    ``name`` is that of the capture, for errors; ``met`` is optional if there is only one other host. Raises
    :class:`~mxwire.errors.MxwireError` if the host is not in the capture, or there is nothing to play.
    """
    chosen = [each for each in batches if len(each)]
    met = met or _partner(chosen, name, played)
    raw: list[bytes] = []
    lengths: list[int] = []
    times: list[int] = []
    places: list[int] = []
    found, malformed, hostname = dialect, 0, ""
    for decoded in chosen:
        for index in _between(decoded, played, met):
            frame = decoded.frame(index)
            if isinstance(frame, Malformed):
                malformed += 1
                continue
            if isinstance(frame, HostReply) and frame.src_mac == played:
                hostname = frame.hostname.rstrip(b"\0").decode("latin-1")
            if isinstance(frame, DISCOVERY):
                continue
            if decoded.is_swapped(index):
                raise MxwireError(f"{name}: {mac_text(played)} and {mac_text(met)} use the wrong byte order")
            if found is None and decoded.dialect_name(index) is not None:
                found = decoded.dialect(index)
            raw.append(decoded.located.frame(index))
            lengths.append(int(decoded.located.wire_length[index]))
            times.append(int(decoded.batch.timestamp_ns[index]))
            places.append(int(decoded.batch.number[index]))
    if not raw:
        raise MxwireError(
            f"{name}: between {mac_text(played)} and {mac_text(met)} there is only discovery, which every host does "
            f"by itself; there is nothing to play"
        )
    found = found or MXOE
    batch = FrameBatch.from_frames(raw, times)
    batch.wire_length[:] = lengths
    records = read(batch, found, played)
    if not any(each.is_played for each in records):
        raise MxwireError(f"{name}: {mac_text(played)} sent nothing to {mac_text(met)}: there is nothing to play")
    if not any(isinstance(each.frame, ConnectRequest) for each in records):
        raise MxwireError(
            f"{name}: {mac_text(played)} and {mac_text(met)} had connected before it begins, so their sessions are "
            f"unknown; record the connect too"
        )
    endpoints, keys = _meeting(records)
    return ReplayScript(played, met, found, records, places, hostname, malformed, endpoints, keys)


def _between(decoded: DecodedBatch, one: bytes, other: bytes) -> list[int]:
    first, second = np.uint64(int.from_bytes(one, "big")), np.uint64(int.from_bytes(other, "big"))
    located = decoded.located
    there = (located.source == first) & (located.destination == second)
    back = (located.source == second) & (located.destination == first)
    places: list[int] = np.flatnonzero(there | back).tolist()
    return places


def _partner(batches: list[DecodedBatch], name: str, played: bytes) -> bytes:
    """Return the only partner of a host."""
    own = np.uint64(int.from_bytes(played, "big"))
    everybody = np.uint64(int.from_bytes(BROADCAST, "big"))
    partners: Counter[int] = Counter()
    hosts: set[int] = set()
    for decoded in batches:
        located = decoded.located
        if not located.has_destination:
            raise MxwireError(f"{name}: was recorded with Linux cooked headers, which do not contain destinations")
        partners.update(located.destination[located.source == own].tolist())
        partners.update(located.source[located.destination == own].tolist())
        hosts.update(located.source.tolist())
    partners.pop(int(everybody), None)
    if int(own) not in hosts:
        raise MxwireError(f"{name}: it has no frame of {mac_text(played)}{_offer(hosts)}")
    if not partners:
        raise MxwireError(
            f"{name}: {mac_text(played)} had no partner: there is only discovery, which every host does by itself"
        )
    if len(partners) > 1:
        several = ", ".join(mac_text(each) for each, _ in partners.most_common())
        raise MxwireError(f"{name}: {mac_text(played)} had several partners: choose with --against one of {several}")
    return next(iter(partners)).to_bytes(6, "big")


def _offer(hosts: set[int]) -> str:
    return f"; there are {', '.join(mac_text(each) for each in sorted(hosts))}" if hosts else ""


def _meeting(records: list[Record]) -> tuple[frozenset[int], frozenset[int]]:
    """Return the participating endpoints of the replaced host, and the keys that opened them."""
    requested: dict[tuple[int, int, int, int], ConnectRequest] = {}
    endpoints: set[int] = set()
    keys: set[int] = set()
    for record in records:
        frame = record.frame
        if isinstance(frame, ConnectRequest):
            if record.is_played:
                requested[frame.src_endpoint, frame.dst_endpoint, frame.src_session_id, frame.connect_seqnum] = frame
            else:
                endpoints.add(frame.src_endpoint)
        elif isinstance(frame, ConnectReply) and not record.is_played and not frame.connect_status_code:
            request = requested.get(
                (frame.dst_endpoint, frame.src_endpoint, frame.src_session_id, frame.connect_seqnum)
            )
            if request is not None:
                endpoints.add(frame.src_endpoint)
                keys.add(request.app_key)
    return frozenset(endpoints), frozenset(keys)
