"""Hosts and their endpoints, as observed on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

PAST_SESSIONS: Final = 8
"""Sessions of former openings that are remembered per endpoint."""
ENDPOINTS: Final = 256


@dataclass(slots=True, eq=False)
class ObservedEndpoint:
    """A numbered endpoint of a host."""

    session: int | None = None
    """Session id of the present opening; None until a packet shows it."""
    fresh: bool = False
    """The present opening began under observation, so that all of its packets were seen."""
    epoch: int = 0
    """Number of openings that were seen."""
    reopened_ns: int = 0
    """Time at which the present opening was first seen, in nanoseconds."""
    past: list[int] = field(default_factory=list)
    """Sessions of former openings, the latest last."""
    key: int | None = None
    """The application key, once a connect with it has succeeded."""
    denied: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Sessions that the host has refused with a nack, with the frame and its time."""
    unseen: bool = False
    """A former opening began before the observation did, so that some of its messages may have been missed."""
    region_counters: dict[int, int] = field(default_factory=dict)
    """Use counter of the last announcement of each region (R-RDV-01)."""

    def open(self, session: int, time_ns: int) -> None:
        """Remember the session that a packet shows; another session than before is a new opening."""
        if session == self.session:
            return
        if self.session is not None:
            self.close()
            self.reopened_ns = time_ns
        elif not self.fresh:
            # It is uncertain whether the endpoint was reopened after its earlier packets.
            self.epoch += 1
        self.session = session

    def close(self) -> None:
        """Forget the present opening."""
        if self.session is not None:
            self.past = [*self.past[1 - PAST_SESSIONS :], self.session]
            self.unseen = self.unseen or not self.fresh
        self.session = None
        self.fresh = True
        self.epoch += 1
        self.key = None
        self.region_counters = {}


@dataclass(slots=True, eq=False)
class ObservedHost:
    """An interface, identified by its Ethernet address."""

    address: bytes
    fresh: bool = False
    """True if the endpoints of the host were opened under observation."""
    endpoints: dict[int, ObservedEndpoint] = field(default_factory=dict)
    limit_above: int = -1
    """The highest endpoint number known to be below the host's limit (R-EP-01)."""
    limit_at_most: int = ENDPOINTS
    """The lowest endpoint number that was refused as beyond the limit."""
    announced: AnnouncementSeries | None = None
    """The last announcement of its discovery daemon."""
    magic: int | None = None
    """Magic of its last HOST_QUERY."""

    def endpoint(self, number: int) -> ObservedEndpoint:
        """Return the endpoint with a number; create it if it is new."""
        endpoint = self.endpoints.get(number)
        if endpoint is None:
            endpoint = self.endpoints[number] = ObservedEndpoint(fresh=self.fresh)
        return endpoint


@dataclass(slots=True, eq=False)
class AnnouncementSeries:
    """The announcements of one run of a discovery daemon."""

    serial: int
    time_ns: int
    """Time of the last one."""
    number: int
    """Frame number of the last one."""
    provoked: bool = False
    """Another daemon has announced itself since, so that a new series may have begun (R-DISC-03)."""
