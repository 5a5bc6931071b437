"""Drop counters by place: the cards and queues of the kernel on both sides, and the ring of the receiver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_NET: Final = Path("/proc/thread-self/net")
_RECEIVE_DROPS: Final = (2, 3, 4)
"""Columns of /proc/net/dev after the name: receive errors, drops, and overruns of the card's queue."""
_TRANSMIT_DROPS: Final = (10, 11, 12)


@dataclass(frozen=True, slots=True)
class KernelDrops:
    """Frames that the kernel and the card of one interface dropped, since an arbitrary time."""

    received: int = 0
    """Dropped by the card or the driver while receiving."""
    transmitted: int = 0
    """Dropped by the card, the driver or the queue of the interface while transmitting."""
    backlog: int = 0
    """Dropped because the backlog of a processor was full; over all interfaces of the machine."""

    def __sub__(self, before: KernelDrops) -> KernelDrops:
        """Return the drops since ``before``."""
        return KernelDrops(
            self.received - before.received, self.transmitted - before.transmitted, self.backlog - before.backlog
        )


def read_drops(interface: str) -> KernelDrops:
    """Read the counters of an interface in the network namespace of this thread; 0 for those that are not reported."""
    received = transmitted = 0
    for line in _lines("dev"):
        name, colon, values = line.partition(":")
        if colon and name.strip() == interface:
            words = [int(each) for each in values.split()]
            received = sum(words[each] for each in _RECEIVE_DROPS)
            transmitted = sum(words[each] for each in _TRANSMIT_DROPS)
    backlog = sum(int(line.split()[1], 16) for line in _lines("softnet_stat"))
    return KernelDrops(received, transmitted, backlog)


def _lines(name: str) -> list[str]:
    try:
        return (_NET / name).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []


def drops_by_place(sent: int, received: int, sender: KernelDrops, sink: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of frames that were not received, by the place where they were lost.

    ``sender`` has the drops at the sending interface during the run, ``sink`` is the reply of the sink. The counters of
    cards include other frames, so they explain at most the frames that are missing. ``path`` is the rest: cables and
    switches, or an unknown place. ``application`` are frames that arrived, with altered bytes.
    """
    counted = {
        "receiver's ring": int(sink.get("ring", 0)),
        "sender's card": sender.transmitted,
        "receiver's card": int(sink.get("card", 0)) + int(sink.get("backlog", 0)),
    }
    places, missing = {}, max(sent - received, 0)
    for name, count in counted.items():
        places[name] = min(count, missing)
        missing -= places[name]
    return places | {"path": missing, "application": int(sink.get("altered", 0))}
