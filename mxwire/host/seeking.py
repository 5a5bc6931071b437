"""Waits that begin with a host that has still to be found: for a peer, and for a connection."""

from __future__ import annotations

from typing import Any, SupportsIndex

from mxwire.ethernet import mac_text
from mxwire.host import names
from mxwire.host.calls import EndpointCalls
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.opening import Hosting
from mxwire.host.pending import Pending
from mxwire.host.request import Connecting
from mxwire.protocol import Counter, Partner, Peer, Status
from mxwire.words import count_of

_SHOWN = 8
_PATIENCE = 1_000_000_000
"""Nanoseconds between queries for names that somebody waits for."""


class _Impatience:
    """Asks for names sooner than the engine would: when it is plain that a host knows us now, which it did not when it
    was asked (R-HOST-04), and every second."""

    __slots__ = ("_asked", "_hosting", "_known")

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting
        self._asked = hosting.core.now
        self._known: set[Peer] = set()

    def ask(self) -> None:
        """Somebody is still waiting."""
        core = self._hosting.core
        known = {each for each in core.node.peers if each.name is None and each.reverse}
        if known - self._known or core.now - self._asked >= _PATIENCE:
            self._known |= known
            self._asked = core.now
            core.node.ask_names()


class PeerAppears(Pending[Peer]):
    """Waits until a host has told its name."""

    __slots__ = ("_hosting", "_impatience", "_which")

    def __init__(self, hosting: Hosting, which: str | bytes) -> None:
        self._hosting = hosting
        self._which = which
        self._impatience = _Impatience(hosting)

    def ready(self) -> bool:
        """Whether it has."""
        peer = self._hosting.find(self._which)
        if peer is not None and peer.name is not None:
            return True
        self._impatience.ask()
        return False

    def result(self) -> Peer:
        """The peer."""
        peer = self._hosting.find(self._which)
        assert peer is not None
        return peer

    def late(self, seconds: float) -> HostError:
        """Whom we have seen instead."""
        return not_found(self._hosting, self._which, seconds)


class ConnectCall(Pending[Partner]):
    """Waits until a host is found, and until it has answered the connect."""

    __slots__ = ("_calls", "_hosting", "_impatience", "_key", "_number", "_request", "_which")

    def __init__(
        self, calls: EndpointCalls, which: Peer | str | bytes, number: SupportsIndex, key: SupportsIndex
    ) -> None:
        self._calls = calls
        self._hosting = calls._hosting
        self._which = which if isinstance(which, Peer) else names.who(which)
        self._number: Any = number  # judged by the engine
        self._key = key
        self._request: Connecting | None = None
        self._impatience = _Impatience(self._hosting)

    def ready(self) -> bool:
        """Whether it has."""
        if self._request is None:
            peer = self._hosting.find(self._which)
            if peer is None:
                self._impatience.ask()
                return False
            self._must_not_be_elsewhere(peer)
            self._request = Connecting(self._calls.engine.connect(peer, self._number, self._key))
        return self._request.done

    def result(self) -> Partner:
        """The partner.

        Raises :class:`~mxwire.host.errors.HostTimeoutError` at the resend limit: that is the status of a connect that
        blocks; one that does not block ends as unreachable (R-RTX-05, R-MEA-19).
        """
        assert self._request is not None
        inner = self._request.inner
        if inner.status is Status.REMOTE_ENDPOINT_UNREACHABLE and getattr(inner, "exhausted", False):
            raise self._unanswered(self._request, "")
        return self._request.result()

    def late(self, seconds: float) -> HostError:
        """How far it got."""
        if self._request is None:
            assert not isinstance(self._which, Peer)
            return not_found(self._hosting, self._which, seconds)
        return self._unanswered(self._request, f" within {seconds:g} s")

    def _unanswered(self, request: Connecting, when: str) -> HostTimeoutError:
        """How many requests the partner has not answered, and why that may be."""
        partner = request.inner.partner
        assert partner is not None
        own = mac_text(self._calls.engine.card.interface.address)
        peer = partner.peer
        asked = getattr(request.inner, "transmissions", 0)
        who = f"{mac_text(peer.address)} ({peer.name or 'which has not told its name'})"
        return HostTimeoutError(
            f"{who} has not answered {asked} connect requests for endpoint {self._number}{when}: "
            f"it is down, or does not know our address {own}, or is busy",
            request,
        )

    def _must_not_be_elsewhere(self, peer: Peer) -> None:
        """Endpoints of one host meet inside of it, and what is in another process is out of reach (R-LOC-02)."""
        sharing = self._hosting.sharing
        owner = None if peer.own is None or sharing is None else sharing.owner(peer.own, self._number)
        if owner is not None:
            raise HostError(
                Status.NOT_IMPLEMENTED,
                f"endpoint {self._number} of {peer.name} is our own host's, but belongs to {owner}: endpoints of one "
                f"interface in different processes cannot talk to each other",
            )

    def abandon(self) -> None:
        """Forget the connect."""
        request = self._request
        if request is not None and not request.done and self._calls.engine.open:
            self._calls.engine.cancel(request.inner)


def not_found(hosting: Hosting, which: str | bytes, seconds: float) -> HostTimeoutError:
    """What to say of a host that has not appeared: whom we have seen instead, and what we have sent to find it."""
    name = mac_text(which) if isinstance(which, bytes) else which
    return HostTimeoutError(
        f"{name} was not found within {seconds:g} s: {_seen(hosting)}; we sent {_sent(hosting, Counter.SEND_RAW)} and "
        f"{_sent(hosting, Counter.SEND_HOST_QUERY)}"
    )


_ASKED = {Counter.SEND_RAW: ("announcement", ""), Counter.SEND_HOST_QUERY: ("host query", "host queries")}


def _sent(hosting: Hosting, counter: Counter) -> str:
    return count_of(sum(each.counters[counter] for each in hosting.core.node.interfaces), *_ASKED[counter])


def _seen(hosting: Hosting) -> str:
    others = hosting.heard()
    heard = sum(each.statistics().received for each in hosting.core.links)
    where = ", ".join(each.name for each in hosting.core.links)
    if not others:
        return f"no other host was seen on {where} ({count_of(heard, 'frame')} heard)"
    named = [f"{each.name or 'nameless'} ({mac_text(each.address)})" for each in others[:_SHOWN]]
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f"seen on {where} were {', '.join(named)}{more}"
