"""The peer table, and how hosts find each other: announcements, queries and replies (section 1 of the examples)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .frames import BROADCAST, UNKNOWN_INDEX, Frame
from .journal import Journal

SERIES = 8
SERIES_INTERVAL = 1.0
LONG_INTERVAL = 180.0
QUERY_INTERVAL = 5.0
LISTENING = 2.5
"""Seconds without an announcement, which others repeat once per second, until a host announces itself first."""
MAGIC = 0x13052008

MAY_BE_UNKNOWN = ("CONNECT_REQUEST", "CONNECT_REPLY", "NACK_LIB", "NACK_MCP")
"""Packets that need no valid peer index (section 5 of the wire format)."""

Send = Callable[..., None]
"""Called with the kind of the packet, the destination, its data, and its fields by name."""


@dataclass
class Neighbour:
    """Another host."""

    mac: bytes
    place: int
    """Its index in the local table, which this host announces to it."""
    name: str | None = None
    index: int = UNKNOWN_INDEX
    """Index of this host in its table, as announced by it."""
    serial: int | None = None
    queried_at: float | None = None
    has_asked: bool = False
    """True if it requested the name of this host."""
    taught: bool = False
    """True if it can know its place in the local table."""


@dataclass
class Neighbours:
    """The peer table, and the announcements of this host."""

    mac: bytes
    name: str
    serial: int
    first_place: int
    announcing: bool
    provoked: bool
    """True if queries may have another magic than hosts begin with, which is echoed all the same."""
    send: Send
    journal: Journal
    listening_first: bool = False
    """True if another host must be heard before the first announcement, or not be heard for a while: the query of a
    host that announces itself is not dropped then, which it would repeat only after 5 s."""
    table: dict[bytes, Neighbour] = field(default_factory=dict)
    _left: int = SERIES
    _announce_at: float = 0.0

    def add(self, mac: bytes, name: str | None = None) -> Neighbour:
        """The entry of a host, made if there is none."""
        if mac not in self.table:
            self.table[mac] = Neighbour(mac, self.first_place + len(self.table), name)
        return self.table[mac]

    def named(self, name: str) -> Neighbour | None:
        """The host of this name, if it has announced it; or of this address."""
        for each in self.table.values():
            if each.name == name or each.mac.hex(":") == name:
                return each
        return None

    def on_time(self, now: float) -> float:
        """Transmit due announcements and queries; return the next deadline."""
        if self.listening_first:
            self._announce_at = self._announce_at or now + LISTENING
        if self.announcing and now >= self._announce_at:
            self.listening_first = False
            self._announce()
            self._left -= 1
            self._announce_at = now + (SERIES_INTERVAL if self._left > 0 else LONG_INTERVAL)
        for each in self.table.values():
            if each.name is None and self.announcing and now >= _query_due(each):
                self._query(each, now)
        asking = [_query_due(each) for each in self.table.values() if each.name is None]
        return min([*asking, self._announce_at]) if self.announcing else float("inf")

    def on_announcement(self, frame: Frame, now: float) -> None:
        """R-DISC-03, R-DISC-04."""
        self.journal.expect("RAW.dst_mac", BROADCAST, frame["dst_mac"])
        mac = (frame["nic_id_hi"] << 32 | frame["nic_id_lo"]).to_bytes(8, "big")
        self.journal.expect("RAW.nic_id", bytes(2) + frame["src_mac"], mac)
        known = mac[2:] in self.table and self.table[mac[2:]].serial == frame["serial"]
        entry = self.add(mac[2:])
        entry.serial = frame["serial"]
        if self.listening_first:
            self.listening_first, self._announce_at = False, now
            self.on_time(now)
        if not known:
            self._left = SERIES
            self._announce_at = min(self._announce_at, now + SERIES_INTERVAL)
        if entry.name is None and entry.queried_at is None:
            self._query(entry, now)

    def on_query(self, frame: Frame) -> None:
        """R-HOST-04 to R-HOST-06."""
        self.journal.expect_fields(frame, dst_mac=self.mac)
        if not self.provoked:
            self.journal.expect_fields(frame, magic=MAGIC)
        entry = self.table.get(frame["src_mac"])
        if entry is None:
            self.journal.note("dropped", kind="HOST_QUERY", why="unknown host")
            return
        entry.has_asked = True
        self.learn(entry, frame)
        data = self.name.encode() + b"\0"
        place = self.teaching(entry)
        self.send("HOST_REPLY", entry.mac, data, length=len(data), src_dst_peer_index=place, magic=frame["magic"])

    def on_reply(self, frame: Frame) -> None:
        """R-HOST-07."""
        entry = self.table.get(frame["src_mac"])
        if entry is None or entry.queried_at is None:
            self.journal.deviation("HOST_REPLY", "an answer to a question", "nobody asked")
            return
        self.journal.expect_fields(frame, dst_mac=self.mac, magic=MAGIC)
        self.journal.expect("last byte of the host name", 0, frame.data[-1] if frame.data else None)
        self.journal.expect("NULs within the host name", 0, frame.data[:-1].count(0))
        self.journal.expect("length of the host name is 2..80", True, 2 <= len(frame.data) <= 80)
        entry.name = frame.data[:-1].decode()
        self.learn(entry, frame)

    def learn(self, entry: Neighbour, frame: Frame) -> None:
        """Take our place in its table from a packet that teaches it; it is always the same."""
        index = frame["src_dst_peer_index"]
        self.journal.expect(f"{frame.kind}.src_dst_peer_index is an index", True, index != UNKNOWN_INDEX)
        if entry.index != UNKNOWN_INDEX:
            self.journal.expect(f"{frame.kind}.src_dst_peer_index", entry.index, index)
        entry.index = index

    def check_head(self, frame: Frame) -> Neighbour | None:
        """The sender of a frame; None if it is unknown, in which case it gets no answer."""
        entry = self.table.get(frame["src_mac"])
        if entry is None:
            self.journal.deviation(f"{frame.kind}.src_mac", "a host that we know", frame["src_mac"].hex(":"))
            return None
        self.journal.expect(f"{frame.kind}.dst_mac", self.mac, frame["dst_mac"])
        allowed = [entry.place] if entry.taught else []
        if frame.kind in MAY_BE_UNKNOWN:
            allowed.append(UNKNOWN_INDEX)
        self.journal.expect_one_of(f"{frame.kind}.dst_src_peer_index", allowed, frame["dst_src_peer_index"])
        return entry

    def teaching(self, entry: Neighbour) -> int:
        """Its index in the local table, for a packet that announces it."""
        entry.taught = True
        return entry.place

    def _announce(self) -> None:
        self.send(
            "RAW",
            BROADCAST,
            nic_id_hi=int.from_bytes(self.mac[:2], "big"),
            nic_id_lo=int.from_bytes(self.mac[2:], "big"),
            serial=self.serial,
        )

    def _query(self, entry: Neighbour, now: float) -> None:
        entry.queried_at = now
        self.send("HOST_QUERY", entry.mac, src_dst_peer_index=self.teaching(entry), magic=MAGIC)


def _query_due(entry: Neighbour) -> float:
    return float("-inf") if entry.queried_at is None else entry.queried_at + QUERY_INTERVAL
