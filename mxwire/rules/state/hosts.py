"""Hosts and their endpoints, as far as the wire tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

PAST_SESSIONS: Final = 8
"""Sessions of former openings that are remembered of an endpoint."""
ENDPOINTS: Final = 256


@dataclass(slots=True, eq=False)
class Endpoint:
    """A numbered port of a host."""

    session: int | None = None
    """Session id of the present opening; None before it has shown it."""
    fresh: bool = False
    """The present opening began under observation, so that nothing about it was missed."""
    epoch: int = 0
    """Counts the openings that were seen."""
    reopened_ns: int = 0
    """When the present opening was first seen, in nanoseconds."""
    past: list[int] = field(default_factory=list)
    """Sessions of former openings, the latest last."""
    key: int | None = None
    """The application key, once a connect with it has succeeded."""
    denied: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Sessions that the host has refused with a nack, with the frame and its time."""
    unseen: bool = False
    """A former opening began before the observation did, so that its messages may have been missed."""
    region_counters: dict[int, int] = field(default_factory=dict)
    """Use counter that each region was last announced with (R-RDV-01)."""

    def open(self, session: int, time_ns: int) -> None:
        """Remember the endpoint's session as it shows it."""
        if session == self.session:
            return
        if self.session is not None:
            self.close()
            self.reopened_ns = time_ns
        elif not self.fresh:
            # It may have been opened anew since whatever was seen of it, or not.
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
class Host:
    """An interface, known by its Ethernet address."""

    address: bytes
    fresh: bool = False
    """Its endpoints were opened under observation."""
    endpoints: dict[int, Endpoint] = field(default_factory=dict)
    limit_above: int = -1
    """The highest endpoint number that was seen to be below the host's limit (R-EP-01)."""
    limit_at_most: int = ENDPOINTS
    """The lowest endpoint number that was refused as beyond the limit."""
    announced: Announced | None = None
    """The last announcement of its discovery daemon."""
    magic: int | None = None
    """Of its last HOST_QUERY."""

    def endpoint(self, number: int) -> Endpoint:
        """The endpoint with a number, known from now on."""
        found = self.endpoints.get(number)
        if found is None:
            found = self.endpoints[number] = Endpoint(fresh=self.fresh)
        return found


@dataclass(slots=True, eq=False)
class Announced:
    """The announcements of one run of a discovery daemon."""

    serial: int
    time_ns: int
    """When the last one was seen."""
    number: int
    """The frame of the last one."""
    provoked: bool = False
    """Somebody else has announced himself since, so that a new series may have begun (R-DISC-03)."""
