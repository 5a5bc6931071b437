"""Meeting: a tester makes itself known to a live host, and finds it by its name."""

from __future__ import annotations

import time
from typing import Final

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.link import Link
from mxwire.scenarios.live import LiveTarget
from mxwire.scenarios.tester import MAGIC
from mxwire.wire.address import BROADCAST, mac_text
from mxwire.wire.codec import build, parse
from mxwire.wire.dialect import MXOE, Dialect
from mxwire.wire.packets import Announcement, Frame, HostQuery, HostReply

NAME: Final = b"tester:0\0"
PLACE: Final = 0x0101
TIMEOUT: Final = 15.0
"""Seconds: a host that has never heard of us asks for our name at once, or 5 s later."""
_EVERY: Final = 1.0


class _Meeting:
    """What was heard so far."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.names: dict[bytes, str] = {}
        """Hosts that have answered a query, and so know us (R-HOST-04)."""
        self.seen: dict[bytes, None] = {}
        self._serial = time.time_ns() & 0xFFFF_FFFF

    def send(self, frame: Frame) -> None:
        self.link.send(FrameBatch.from_frames([build(frame, MXOE)]))

    def announce(self) -> None:
        number = int.from_bytes(self.link.address, "big")
        self.send(
            Announcement(
                dst_mac=BROADCAST,
                src_mac=self.link.address,
                nic_id_hi=number >> 32,
                nic_id_lo=number & 0xFFFF_FFFF,
                serial=self._serial,
            )
        )

    def ask(self, mac: bytes) -> None:
        self.send(HostQuery(dst_mac=mac, src_mac=self.link.address, src_dst_peer_index=PLACE, magic=MAGIC))

    def listen(self, timeout: float) -> None:
        batch = self.link.receive(timeout)
        for raw in [batch.frame(place) for place in range(len(batch))]:
            frame = parse(raw, MXOE)
            if raw[6:12] not in self.seen and raw[6:12] != self.link.address:
                self.seen[raw[6:12]] = None
                self.ask(raw[6:12])
            if isinstance(frame, HostQuery) and frame.dst_mac == self.link.address:
                self._tell(frame)
            elif isinstance(frame, HostReply) and frame.magic == MAGIC:
                self.names[frame.src_mac] = frame.hostname.partition(b"\0")[0].decode("ascii", "replace")

    def _tell(self, query: HostQuery) -> None:
        self.send(
            HostReply(
                dst_mac=query.src_mac,
                src_mac=self.link.address,
                length=len(NAME),
                src_dst_peer_index=PLACE,
                magic=query.magic,
                hostname=NAME,
            )
        )
        # It has learnt of us only now, and would not have answered before.
        self.ask(query.src_mac)


def meet(
    link: Link,
    host: str | bytes,
    dialect: Dialect = MXOE,
    *,
    endpoint: int = 1,
    key: int = 0x12345678,
    timeout: float = TIMEOUT,
) -> LiveTarget:
    """Announce ourselves, answer who asks for our name, and wait until a host, by name or address, answers us.

    Raises :class:`~mxwire.errors.MxwireError` with the hosts that were heard where it does not within ``timeout``
    seconds.
    """
    meeting = _Meeting(link)
    end = time.monotonic() + timeout
    due = 0.0
    while (now := time.monotonic()) < end:
        if now >= due:
            due = now + _EVERY
            meeting.announce()
            for mac in meeting.seen if isinstance(host, str) else {host: None, **meeting.seen}:
                if mac not in meeting.names:
                    meeting.ask(mac)
        meeting.listen(max(0.0, min(due, end) - now))
        for mac, name in meeting.names.items():
            if host in (mac, name):
                return LiveTarget(mac, dialect, endpoint, key, name=name)
    wanted = host if isinstance(host, str) else mac_text(host)
    heard = [f"{name} ({mac_text(mac)})" for mac, name in meeting.names.items()]
    heard += [mac_text(mac) for mac in meeting.seen if mac not in meeting.names]
    found = f"heard {', '.join(heard)}" if heard else "nobody was heard"
    raise MxwireError(
        f"{link.name}: {wanted} has not answered within {timeout:g} s; {found} (try: mxwire discover -i {link.name})"
    )
