"""The application on one of mxwire's own hosts: the verbs of the language as calls to the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mxwire.protocol import ALL_BITS, EngineEndpoint, Event, LocalProtocolError, Node, Partner, Request, Status
from mxwire.scenarios.actions import Invocation, Query
from mxwire.scenarios.expression import Value, pattern
from mxwire.scenarios.processes import FIRST
from mxwire.scenarios.tester import Tester
from mxwire.scenarios.vocabulary import COUNTERS, EVENTS, VERBS
from mxwire.wire.numbers import NO_PEER_INDEX

LONGEST: Final = 1 << 24
"""Maximum length of a message or a buffer in bytes."""
PENDING: Final = -1
"""Status reported for a request that has not completed."""


class PostedReceive:
    """A posted receive with its buffer."""

    def __init__(self, request: Request, pieces: list[bytearray]) -> None:
        self.request = request
        self.pieces = pieces
        self.taken: Status | None = None
        """Status at the first query after completion; later changes are not reported to the application (R-MEA-18)."""


class NodeApplication:
    """Calls on a node with one default endpoint and any endpoints that a scenario opens by name."""

    def __init__(self, node: Node, endpoint: EngineEndpoint | None) -> None:
        self.node = node
        self.endpoint = endpoint
        self.events: list[Event] = []
        # Scenarios count from their first step, but a host may have sent queries and announcements before.
        self._before = dict(node.counters)

    # Calls.

    def call(self, action: Invocation) -> Any:
        """Make a call; raise :class:`~mxwire.protocol.LocalProtocolError` if it is refused."""
        return _CALLS[action.verb](self, action)

    def _on(self, action: Invocation) -> EngineEndpoint:
        target = action.target if isinstance(action.target, EngineEndpoint) else self.endpoint
        if target is None:
            raise LocalProtocolError(Status.BAD_ENDPOINT, "no endpoint is open")
        return target

    def _partner(self, action: Invocation) -> Partner:
        endpoint = self._on(action)
        address, number = _remote(action)
        partner = endpoint.partners.get((self.node.peer(address).index, number))
        if partner is None:
            raise LocalProtocolError(Status.BAD_REQUEST, f"{endpoint!r} has no partner to send to")
        return partner

    def _open(self, action: Invocation) -> EngineEndpoint:
        options: dict[str, Any] = dict(action.arguments)
        number = options.pop("endpoint", action.tester.target.endpoint)
        if options.pop("process", FIRST) != FIRST:
            raise LocalProtocolError(Status.BAD_REQUEST, "this host has a single process")
        return self.open(number, options.pop("key", action.tester.target.key), **options)

    def open(self, number: int, key: int, **options: Any) -> EngineEndpoint:
        """Open an endpoint; the first one is the default of all calls."""
        endpoint = self._open_endpoint(number, key, **options)
        if self.endpoint is None:
            self.endpoint = endpoint
        return endpoint

    def _open_endpoint(self, number: int, key: int, **options: Any) -> EngineEndpoint:
        return self.node.open_endpoint(number, key, **options)

    def _close_endpoint(self, endpoint: EngineEndpoint) -> None:
        endpoint.close()

    def _connect(self, action: Invocation) -> Request:
        tester, arguments = action.tester, action.arguments
        address, number = _remote(action)
        return self._on(action).connect(
            address,
            _number(arguments, "endpoint", number),
            _number(arguments, "key", tester.target.key),
            resend_maximum=_optional(arguments, "resend_maximum"),
        )

    def _connect_self(self, action: Invocation) -> Request:
        endpoint = self._on(action)
        return endpoint.connect(action.tester.target.mac, endpoint.number, endpoint.key)

    def _send(self, action: Invocation) -> Request:
        arguments = action.arguments
        data = arguments.get("data", pattern(_length(arguments, 5), _number(arguments, "seed", 0)))
        return self._on(action).send(
            self._partner(action),
            _pieces(bytearray(data) if isinstance(data, bytes) else bytearray(), arguments),
            _number(arguments, "match", 7),
            synchronous="synchronous" in action.flags,
            resend_maximum=_optional(arguments, "resend_maximum"),
        )

    def _receive(self, action: Invocation) -> PostedReceive:
        arguments = action.arguments
        pieces = _pieces(bytearray(_length(arguments, 1 << 20)), arguments)
        match = _number(arguments, "match", 7)
        return PostedReceive(self._on(action).receive(pieces, match, _number(arguments, "mask", ALL_BITS)), pieces)

    def _probe(self, action: Invocation) -> dict[str, Value]:
        arguments = action.arguments
        message = self._on(action).probe(_number(arguments, "match", 7), _number(arguments, "mask", ALL_BITS))
        return {"found": 0} if message is None else {"found": 1, "length": message.length, "match": message.match_info}

    def _cancel(self, action: Invocation) -> dict[str, Value]:
        target = action.target
        if isinstance(target, PostedReceive):
            target = target.request
        owner = target.endpoint if isinstance(target, Request) else None
        if self.endpoint is None or not isinstance(target, Request) or not isinstance(owner, EngineEndpoint):
            raise LocalProtocolError(Status.BAD_REQUEST, f"{target!r} is not a request that can be cancelled")
        return {"value": int(owner.cancel(target))}

    def _disconnect(self, action: Invocation) -> None:
        self._on(action).disconnect(self._partner(action))

    def _close(self, action: Invocation) -> None:
        self._close_endpoint(self._on(action))

    def _kill(self, action: Invocation) -> None:
        raise LocalProtocolError(Status.BAD_REQUEST, "this host has a single process")

    def _reopen(self, action: Invocation) -> EngineEndpoint:
        old = self._on(action)
        self._close_endpoint(old)
        endpoint = self._open_endpoint(old.number, old.key)
        # Later calls without an endpoint refer to its replacement.
        if old is self.endpoint:
            self.endpoint = endpoint
        return endpoint

    def _stop(self, action: Invocation) -> None:
        self._on(action).progressing = False

    def _go(self, action: Invocation) -> None:
        self._on(action).progressing = True

    def _consume(self, action: Invocation) -> None:
        self._on(action).handle_unexpected(lambda message: True)

    def _keep(self, action: Invocation) -> None:
        self._on(action).handle_unexpected(None)

    def _forget_names(self, action: Invocation) -> None:
        self.node.forget_names()

    def _add_peer(self, action: Invocation) -> None:
        self.node.add_peer(action.tester.station.mac)

    # Queries.

    def ask(self, action: Query) -> Mapping[str, Value]:
        """Return the values of the action's subject."""
        if action.subject == "counters":
            now = self.node.counters
            return {name: now[each] - self._before.get(each, 0) for name, each in COUNTERS.items()}
        if action.subject == "events":
            self.events += self._new_events()
            return {name: sum(each.kind is kind for each in self.events) for name, kind in EVENTS.items()}
        if action.subject == "peer":
            return self._peer(action.tester)
        target = action.target
        if isinstance(target, PostedReceive) and target.taken is None:
            target.taken = target.request.status
        return _result(target)

    def _new_events(self) -> list[Event]:
        return self.node.events()

    def _peer(self, tester: Tester) -> Mapping[str, Value]:
        peer = self.node.peers.by_address(tester.station.mac)
        if peer is None:
            return {"name": b"", "index": NO_PEER_INDEX}
        return {"name": (peer.name or "").encode(), "index": peer.index_for(0)}


def _result(target: Any) -> Mapping[str, Value]:
    if isinstance(target, dict):
        return target
    if isinstance(target, EngineEndpoint):
        return {"session": target.session, "value": target.number}
    pieces: list[bytearray] = []
    taken = None
    if isinstance(target, PostedReceive):
        target, pieces, taken = target.request, target.pieces, target.taken
    if not isinstance(target, Request):
        return {}
    whole = b"".join(pieces)
    status = target.status if taken is None else taken
    return {
        "status": PENDING if status is None else int(status),
        "done": int(target.done),
        "transferred": target.transferred,
        "length": target.length,
        "match": target.match_info,
        "data": whole[: target.transferred],
        "buffer": whole,
    }


def _remote(action: Invocation) -> tuple[bytes, int]:
    """Address and endpoint number of the other side of a call: a local endpoint if ``local`` is given, or a tester."""
    tester = action.tester
    if "local" in action.arguments:
        return tester.target.mac, _number(action.arguments, "local", 0)
    return tester.station.mac, tester.endpoint


def _number(given: Mapping[str, Value], name: str, default: int) -> int:
    value = given.get(name, default)
    if not isinstance(value, int):
        raise LocalProtocolError(Status.BAD_REQUEST, f"{name} must be a number")
    return value


def _length(given: Mapping[str, Value], default: int) -> int:
    length = _number(given, "length", default)
    if not 0 <= length <= LONGEST:
        raise LocalProtocolError(Status.BAD_REQUEST, f"length {length} is not between 0 and {LONGEST}")
    return length


def _optional(given: Mapping[str, Value], name: str) -> int | None:
    return _number(given, name, 0) if name in given else None


def _pieces(data: bytearray, given: Mapping[str, Value]) -> list[bytearray]:
    """Split the memory of ``data`` into the requested number of segments (``pieces``)."""
    count = max(1, _number(given, "pieces", 1))
    # An empty message still needs a step above 0.
    size = -(-len(data) // count) or 1
    return [data[at : at + size] for at in range(0, len(data), size)] or [bytearray()]


_CALLS: Final[dict[str, Callable[[NodeApplication, Invocation], Any]]] = {
    verb: getattr(NodeApplication, f"_{verb}") for verb in VERBS
}
"""The methods that make calls, by verb."""
