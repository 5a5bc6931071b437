"""An application played again: the calls of its program, one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxwire.protocol import EngineEndpoint, Event, EventKind, Node, Partner, Request, Status
from tests.conformance.outbox import Difference
from tests.conformance.words import AT_ONCE, programs


class Application:
    """The programs of one host, call by call."""

    def __init__(self, node: Node, texts: Sequence[str], sessions: Callable[[int], int | None], payload: Any) -> None:
        self.node = node
        self.programs = deque(programs(texts))
        self.sessions = sessions
        self.payload = payload
        """Function for contents without a pattern: called with the match information and the length of a message."""
        self.calls: deque[str] = deque()
        self.endpoint: EngineEndpoint | None = None
        self.partner: Partner | None = None
        self.requests: list[Request] = []
        self.waits_for: Request | None = None
        self.buffers: dict[Request, list[bytearray]] = {}
        """The segments that each receive writes to."""
        self.reported: dict[Request, Status | None] = {}
        """The result of each request; its status may be another one later (R-MEA-18)."""
        node.on_event = self._hear
        self.results: list[Request] = []
        """The receives that were waited for, in order."""

    @property
    def next(self) -> str:
        """The next call, without its arguments; empty at the end."""
        if not self.calls:
            return "end" if self.endpoint is not None else "begin" if self.programs else ""
        return self.calls[0].split(":")[0]

    @property
    def blocked(self) -> bool:
        """True if the last call has not returned yet."""
        if self.waits_for is not None:
            return not self.waits_for.done
        return self.next == "waitall" and not all(each.done for each in self.requests)

    def _hear(self, event: Event) -> None:
        if event.kind is EventKind.COMPLETED and event.request is not None:
            self.reported[event.request] = event.request.status

    def data_of(self, received: Request) -> bytes:
        """The data of a receive."""
        return b"".join(self.buffers[received])[: received.length]

    def begin(self) -> None:
        """Start the next program."""
        program = self.programs.popleft()
        self.calls = deque(program.calls)
        session = self.sessions(program.endpoint)
        self.endpoint = self.node.open_endpoint(program.endpoint, program.key, session=session)
        self.endpoint.progressing = False
        self.key = program.key
        self.go_on()

    def go_on(self) -> None:
        """Make the calls whose time no frame shows; an application that does not wait makes them at once."""
        while not self.blocked and self.next in AT_ONCE:
            self.waits_for = None
            self._make()

    def call(self) -> None:
        """Make the next call."""
        if self.endpoint is None:
            self.begin()
            return
        if self.blocked:
            raise Difference(f"{self.next} is called while {self.waits_for} is waited for")
        self.waits_for = None
        if self.calls:
            self._make()
            self.go_on()
        else:
            self._close()

    def _make(self) -> None:
        name, *arguments = self.calls.popleft().split(":")
        getattr(self, f"_{name}")(*arguments)

    def _close(self) -> None:
        if self.endpoint is not None:
            self.endpoint.close()
        self.endpoint = None
        self.requests.clear()
        self.calls.clear()

    def _end(self) -> None:
        self._close()

    def _connect(self, host: str, endpoint: str, key: str, _timeout: str = "") -> None:
        assert self.endpoint is not None
        request = self.endpoint.connect(host.replace("/", ":"), int(endpoint), int(key, 16))
        self.waits_for = request
        self.partner = request.partner

    def _iconnect(self, host: str, endpoint: str, key: str) -> None:
        assert self.endpoint is not None
        self.requests.append(self.endpoint.connect(host.replace("/", ":"), int(endpoint), int(key, 16)))

    def _cancelconnect(self) -> None:
        self._cancel()

    def _connectback(self) -> None:
        assert self.endpoint is not None
        source = self.results[-1].partner
        assert source is not None
        self.waits_for = request = self.endpoint.connect(source.peer, source.number, self.key)
        self.partner = request.partner

    def _disconnect(self) -> None:
        assert self.endpoint is not None and self.partner is not None
        self.endpoint.disconnect(self.partner)

    def _post(self, length: int, match: int, mask: int) -> Request:
        assert self.endpoint is not None
        buffer = bytearray(length)
        request = self.endpoint.receive(buffer, match, mask)
        self.buffers[request] = [buffer]
        return request

    def _irecv(self, length: str, match: str, mask: str) -> None:
        self.requests.append(self._post(int(length), int(match, 16), int(mask, 16)))

    def _ivrecv(self, lengths: str, match: str, mask: str) -> None:
        assert self.endpoint is not None
        segments = [bytearray(int(each)) for each in lengths.split(",")]
        self.requests.append(self.endpoint.receive(segments, int(match, 16), int(mask, 16)))
        self.buffers[self.requests[-1]] = segments

    def _recv(self, length: str, match: str, mask: str) -> None:
        self.waits_for = self._post(int(length), int(match, 16), int(mask, 16))
        self.results.append(self.waits_for)

    def _start(self, data: Any, match: str, synchronous: bool = False) -> Request:
        assert self.endpoint is not None and self.partner is not None
        return self.endpoint.send(self.partner, data, int(match, 16), synchronous=synchronous)

    def _isend(self, length: str, match: str) -> None:
        self.requests.append(self._start(self.payload(int(match, 16), int(length)), match))

    def _issend(self, length: str, match: str) -> None:
        self.requests.append(self._start(self.payload(int(match, 16), int(length)), match, True))

    def _send(self, length: str, match: str) -> None:
        self.waits_for = self._start(self.payload(int(match, 16), int(length)), match)

    def _ssend(self, length: str, match: str) -> None:
        self.waits_for = self._start(self.payload(int(match, 16), int(length)), match, True)

    def _vsend(self, lengths: str, match: str) -> None:
        cuts = np.cumsum([int(each) for each in lengths.split(",")])
        whole = self.payload(int(match, 16), int(cuts[-1]))
        pieces = [bytes(each) for each in np.split(np.frombuffer(whole, np.uint8), cuts[:-1])]
        self.waits_for = self._start(pieces, match)

    def _echo(self) -> None:
        """Return the last received message to its sender."""
        received = self.results[-1]
        assert self.endpoint is not None and received.partner is not None
        data = self.data_of(received)
        self.waits_for = self.endpoint.send(received.partner, data, received.match_info)

    def _cancel(self) -> None:
        """Cancel what was begun last."""
        assert self.endpoint is not None
        assert self.endpoint.cancel(self.requests.pop())

    def _waitall(self) -> None:
        self.results += [each for each in self.requests if each in self.buffers]
        self.requests.clear()

    def _progress(self, _duration: str) -> None:
        """Time passes of itself."""

    _sleep = _progress
