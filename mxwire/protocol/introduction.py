"""The introduction of a host without an engine, such as the tester of scenarios and replays: it announces itself, and
exchanges names as a host with an engine does (behaviour, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mxwire.ethernet import DESTINATION, SOURCE
from mxwire.protocol.discovery import announcement
from mxwire.protocol.name_search import answer, query
from mxwire.units import MILLISECOND
from mxwire.wire.codec import build, parse
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import hostname_text
from mxwire.wire.packets import Frame, HostQuery, HostReply

EVERY: Final = 250 * MILLISECOND
"""Interval between two announcements of an ``Introduction``."""
_HEARD_MAXIMUM: Final = 1024
"""Maximum number of sources that an ``Introduction`` queries."""


class Introduction:
    """Introduce a host to all hosts that transmit, and learn their names; frames and the time go in, frames come out.

    The host at ``address`` is announced every ``every`` ns, with the ``serial`` of this start, and queries for its
    ``name`` are answered. Sources of frames and ``known`` addresses are queried until they reply. All of them receive
    the same ``index``, since only one conversation follows. These packets are the same in all dialects.
    """

    def __init__(
        self, address: bytes, name: str, *, index: int, serial: int, every: int = EVERY, known: Iterable[bytes] = ()
    ) -> None:
        self.deadline = 0
        """Time of the next announcement, in ns of any monotonic clock."""
        self.heard: dict[bytes, None] = {}
        """The source addresses of all frames, in the order of their first frames."""
        self.names: dict[bytes, str] = {}
        """The names of the hosts that have replied, by address, in the order of their replies."""
        self.magics: dict[bytes, int] = {}
        """The magic of the last query of each host that has sent one."""
        self._address = address
        self._name = name
        self._index = index
        self._serial = serial
        self._every = every
        self._known = tuple(known)
        self._outgoing: list[Frame] = []

    def transmit(self, now: int) -> list[bytes]:
        """The frames to transmit at time ``now``."""
        if now >= self.deadline:
            self.deadline = now + self._every
            self._outgoing.append(announcement(self._address, self._serial))
            for each in dict.fromkeys((*self._known, *self.heard)):
                self._ask(each)
        outgoing, self._outgoing = self._outgoing, []
        return [build(each, MXOE) for each in outgoing]

    def receive(self, raw: bytes) -> None:
        """Take any frame from the wire."""
        to, source = raw[: DESTINATION.stop], raw[SOURCE.start : SOURCE.stop]
        unknown = source not in self.heard and source not in self._known
        if source == self._address or (unknown and len(self.heard) >= _HEARD_MAXIMUM and not self._forget_one()):
            return
        frame = parse(raw, MXOE)
        queried = isinstance(frame, HostQuery) and to == self._address
        if isinstance(frame, HostReply) and to == self._address:
            self.names[source] = hostname_text(frame.hostname)
        if isinstance(frame, HostQuery) and queried:
            self.magics[source] = frame.magic
            self._outgoing.append(answer(frame, self._address, self._index, self._name))
        if queried or source not in self.heard:
            # The source of a query may have learnt of this host only now; before, it would not reply (R-HOST-04).
            self._ask(source)
        self.heard[source] = None

    def _forget_one(self) -> bool:
        """Forget the oldest source that has no name, since frames can have any source; return False if all have one."""
        for each in self.heard:
            if each not in self.names:
                del self.heard[each]
                self.magics.pop(each, None)
                return True
        return False

    def _ask(self, other: bytes) -> None:
        if other not in self.names and len(self._outgoing) < 2 * _HEARD_MAXIMUM:
            self._outgoing.append(query(self._address, other, self._index))

    def found(self, wanted: str | bytes | None) -> bytes | None:
        """The address of the host ``wanted``, a name or an address, if it has replied; if None, of the first host that
        has replied."""
        for address, name in self.names.items():
            if wanted is None or wanted in (address, name):
                return address
        return None
