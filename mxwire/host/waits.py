"""Conditions that the calls of hosts and endpoints wait for: a peer, a connect, a message, a request, acks."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex

from mxwire.ethernet import mac_text
from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError
from mxwire.host.peer_names import peer_key
from mxwire.host.requests import HostConnect, HostReceive, HostRequest, Pending, WaitingMessage, place_of
from mxwire.protocol import ALL_BITS, Counter, EngineEndpoint, Partner, Peer, Status
from mxwire.units import SECOND
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.host.base_endpoint import BaseEndpoint
    from mxwire.host.base_host import BaseHost

_SHOWN = 8
_QUERY_INTERVAL = SECOND
"""Nanoseconds between host queries while a call waits for a name."""


class _NameQuerier:
    """Queries names more often than the engine does by itself: every second, and as soon as a frame of a host shows
    that it has this host in its peer table. A host does not answer queries of hosts that are not in its table
    (R-HOST-04)."""

    __slots__ = ("_host", "_known", "_queried")

    def __init__(self, host: BaseHost) -> None:
        self._host = host
        self._queried = host.core.now
        self._known: set[Peer] = set()

    def query(self) -> None:
        """Query names if a query is due; call this at each check of the wait."""
        core = self._host.core
        known = {each for each in core.node.peers if each.name is None and each.reverse}
        # A host answers only once it has this host in its table, which the index in its frame shows.
        news, self._known = known - self._known, known
        if news or core.now - self._queried >= _QUERY_INTERVAL:
            self._queried = core.now
            core.node.ask_names()


class PendingPeer(Pending[Peer]):
    """Waits until the name of a host is known."""

    __slots__ = ("_host", "_querier", "_which")

    def __init__(self, host: BaseHost, which: str | bytes) -> None:
        self._host = host
        self._which = which
        self._querier = _NameQuerier(host)

    def ready(self) -> bool:
        """Return whether the name is known."""
        peer = self._host.find_peer(self._which)
        if peer is not None and peer.name is not None:
            return True
        self._querier.query()
        return False

    def result(self) -> Peer:
        """The peer."""
        peer = self._host.find_peer(self._which)
        assert peer is not None
        return peer

    def late(self, seconds: float) -> HostError:
        """Error with the hosts seen instead."""
        return _not_found(self._host, self._which, seconds)


class PendingConnect(Pending[Partner]):
    """Waits until a host is discovered, connects to it, and waits for the reply."""

    __slots__ = ("_endpoint", "_host", "_key", "_number", "_querier", "_request", "_which")

    def __init__(
        self, endpoint: BaseEndpoint, which: Peer | str | bytes, number: SupportsIndex, key: SupportsIndex
    ) -> None:
        self._endpoint = endpoint
        self._host = endpoint._owner
        self._which = which if isinstance(which, Peer) else peer_key(which)
        self._number: Any = number  # checked by the engine
        self._key = key
        self._request: HostConnect | None = None
        self._querier = _NameQuerier(self._host)

    def ready(self) -> bool:
        """Return whether the connect has ended; post it once the host is known."""
        if self._request is None:
            peer = self._host.find_peer(self._which)
            if peer is None:
                self._querier.query()
                return False
            self._request = HostConnect(self._endpoint.engine.connect(peer, self._number, self._key))
            # The blocking call itself reports the end to its caller.
            self._endpoint.engine.forget(self._request.inner)
        return self._request.done

    def result(self) -> Partner:
        """The partner.

        Raises :class:`~mxwire.host.errors.HostTimeoutError` at the resend limit: a blocking connect ends with that
        status, one that does not block ends as unreachable (R-RTX-05, R-MEA-19).
        """
        assert self._request is not None
        inner = self._request.inner
        if inner.status is Status.REMOTE_ENDPOINT_UNREACHABLE and getattr(inner, "exhausted", False):
            raise self._unanswered(self._request, "")
        return self._request.result()

    def late(self, seconds: float) -> HostError:
        """Error with the hosts seen if the host was not found, otherwise with the requests sent."""
        if self._request is None:
            assert not isinstance(self._which, Peer)
            return _not_found(self._host, self._which, seconds)
        return self._unanswered(self._request, f" within {seconds:g} s")

    def _unanswered(self, request: HostConnect, when: str) -> HostTimeoutError:
        """Error with the number of unanswered requests, and possible reasons."""
        partner = request.inner.partner
        assert partner is not None
        own = mac_text(self._endpoint.engine.card.port.address)
        peer = partner.peer
        transmissions = getattr(request.inner, "transmissions", 0)
        host = f"{mac_text(peer.address)} ({peer.name or 'of unknown name'})"
        return HostTimeoutError(
            f"{host} has not answered {transmissions} connect requests for endpoint {self._number}{when}: "
            f"it is down, or does not know this host ({own}), or is busy",
            request,
        )

    def abandon(self) -> None:
        """Cancel the connect."""
        request = self._request
        if request is not None and not request.done and self._endpoint.engine.open:
            self._endpoint.engine.cancel(request.inner)


def _not_found(host: BaseHost, which: str | bytes, seconds: float) -> HostTimeoutError:
    """Error for a host that was not discovered, with the hosts seen instead and the frames sent to find it."""
    name = mac_text(which) if isinstance(which, bytes) else which
    return HostTimeoutError(
        f"{name} was not found within {seconds:g} s: {_seen(host)}; sent {_sent(host, Counter.SEND_RAW)} and "
        f"{_sent(host, Counter.SEND_HOST_QUERY)}"
    )


_QUERIES = {Counter.SEND_RAW: ("announcement", ""), Counter.SEND_HOST_QUERY: ("host query", "host queries")}


def _sent(host: BaseHost, counter: Counter) -> str:
    return count_of(sum(each.counters[counter] for each in host.core.node.interfaces), *_QUERIES[counter])


def _seen(host: BaseHost) -> str:
    others = host.heard_peers()
    heard = sum(each.statistics().received for each in host.core.links)
    where = ", ".join(each.name for each in host.core.links)
    if not others:
        return f"no other host was seen on {where} ({count_of(heard, 'frame')} heard)"
    named = [f"{each.name or 'nameless'} ({mac_text(each.address)})" for each in others[:_SHOWN]]
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f"hosts seen on {where}: {', '.join(named)}{more}"


# Messages, requests and acks


def criteria(match_info: SupportsIndex | None, mask: SupportsIndex) -> tuple[SupportsIndex, SupportsIndex]:
    """Value and mask of a receive; match info None takes any message."""
    return (0, 0) if match_info is None else (match_info, mask)


def probe(engine: EngineEndpoint, value: SupportsIndex, mask: SupportsIndex) -> WaitingMessage | None:
    """The message that a receive with ``value`` and ``mask`` would take, or None."""
    found = engine.probe(value, mask)
    return None if found is None else WaitingMessage(found.match_info, found.partner, found.length)


def _criteria_text(value: SupportsIndex, mask: SupportsIndex) -> str:
    if not index(mask):
        return "arrived"
    under = "" if index(mask) == ALL_BITS else f" under mask {index(mask):#x}"
    return f"with match info {index(value):#x}{under} arrived"


class PendingProbe(Pending[WaitingMessage]):
    """Waits for a message that no posted receive has taken."""

    __slots__ = ("_engine", "_found", "_mask", "_value")

    def __init__(self, endpoint: BaseEndpoint, match_info: SupportsIndex | None, mask: SupportsIndex) -> None:
        self._engine = endpoint.engine
        self._value, self._mask = criteria(match_info, mask)
        self._found: WaitingMessage | None = None

    def ready(self) -> bool:
        """Return whether there is one, or the endpoint was closed."""
        if self._found is None and self._engine.open:
            self._found = probe(self._engine, self._value, self._mask)
        return self._found is not None or not self._engine.open

    def result(self) -> WaitingMessage:
        """The message."""
        if self._found is None:
            raise HostError(Status.CANCELLED, f"a probe ended because endpoint {self._engine.number} was closed")
        return self._found

    def late(self, seconds: float) -> HostError:
        """Error with the criteria."""
        return HostTimeoutError(f"no message {_criteria_text(self._value, self._mask)} within {seconds:g} s")


class PendingNext(Pending[HostRequest[Any]]):
    """Waits for a completed request, and takes it or leaves it in the queue."""

    __slots__ = ("_endpoint", "_found", "_mask", "_take", "_value")

    def __init__(self, endpoint: BaseEndpoint, value: SupportsIndex, mask: SupportsIndex, *, take: bool) -> None:
        self._endpoint = endpoint
        self._value, self._mask = value, mask
        self._take = take
        self._found: HostRequest[Any] | None = None

    def ready(self) -> bool:
        """Return whether there is one, or the endpoint was closed."""
        if self._found is None and self._endpoint.engine.open:
            self._found = self._endpoint._next(self._value, self._mask, take=self._take)
        return self._found is not None or not self._endpoint.engine.open

    def result(self) -> HostRequest[Any]:
        """The request."""
        if self._found is None:
            number = self._endpoint.number
            raise HostClosedError(Status.CANCELLED, f"a wait ended because endpoint {number} was closed")
        return self._found

    def late(self, seconds: float) -> HostError:
        """Error with the criteria."""
        wanted = "" if not index(self._mask) else f" {_criteria_text(self._value, self._mask)}"
        return HostTimeoutError(f"no request{wanted} has ended within {seconds:g} s")

    def abandon(self) -> None:
        """Put a request that was taken, but not returned, into the queue again."""
        found = self._found
        if found is not None and self._take and self._endpoint.engine.open:
            self._endpoint._restore(found)


class PendingReceive(HostReceive):
    """A receive that belongs to a single wait, and is cancelled when the wait is abandoned."""

    __slots__ = ()

    def late(self, seconds: float) -> HostError:
        """Error with the criteria, or, once a message is being transferred, with the request, which continues."""
        inner: Any = self.inner
        if not inner.is_matched():
            return HostTimeoutError(f"no message {_criteria_text(inner.value, inner.mask)} within {seconds:g} s")
        return HostTimeoutError(f"the {self} has not ended within {seconds:g} s", HostReceive(self._posted, self._view))

    def abandon(self) -> None:
        """Cancel the receive if it is not matched; if it has ended, keep its message for another receive."""
        inner: Any = self.inner
        if not inner.endpoint.open:
            return
        if not self.done:
            inner.cancel()
            self.cancelled()
        else:
            inner.give_back()


class PendingAcks(Pending[None]):
    """Waits until partners have acknowledged all messages sent so far."""

    __slots__ = ("_endpoint", "_lost")

    def __init__(self, endpoint: BaseEndpoint) -> None:
        self._endpoint = endpoint
        self._lost = endpoint.undelivered

    def ready(self) -> bool:
        """Return whether no message is unacknowledged."""
        engine = self._endpoint.engine
        return not engine.open or engine.settled()

    def result(self) -> None:
        """Raise :class:`~mxwire.host.errors.HostError` if messages were lost since the wait began."""
        lost = self._endpoint.undelivered - self._lost
        if lost:
            raise HostError(
                Status.REMOTE_ENDPOINT_UNREACHABLE,
                f"not delivered: {count_of(lost, 'message')}, as the receiver has gone",
            )

    def late(self, seconds: float) -> HostError:
        """Error with the number of unacknowledged messages per partner."""
        missing = [f"{count} by {place_of(each)}" for each, count in self._endpoint.engine.unacked()]
        return HostTimeoutError(f"not acknowledged within {seconds:g} s: {', '.join(missing)}")
