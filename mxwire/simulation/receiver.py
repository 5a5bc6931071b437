"""The receiving half of an application: posts receives of every kind, and checks their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Final

from mxwire.protocol import Defect, EngineEndpoint, Request, Status
from mxwire.protocol.library.inbound import Unexpected
from mxwire.simulation import workload
from mxwire.simulation.inventory import shares_handles
from mxwire.simulation.ledger import REFUSALS, MatchedReceive

if TYPE_CHECKING:
    from mxwire.simulation.application import SimulatedApplication

_EMPTY: Final = 0xE5
"""Content of a buffer before a receive."""
_USED: Final = 0x5E
"""Content of a buffer after its receive has ended: no byte of it may change from then on."""
_WATCHED_MAXIMUM: Final = 16 << 20


@dataclass(slots=True)
class PlannedReceive:
    """A receive that has not been posted yet."""

    value: int
    mask: int
    capacity: int


@dataclass(slots=True)
class LiveReceive:
    """A receive that was posted, kept in its request's ``context``."""

    wanted: PlannedReceive
    order: int
    pieces: list[bytearray]
    cancelled: bool = False
    spare: bool = False
    """No message is for it."""

    def content(self) -> bytes:
        """Return all bytes of the buffers."""
        return b"".join(self.pieces)


@dataclass(slots=True)
class Buffers:
    """Buffers of receives that have ended, which must not change any more."""

    held: list[bytearray] = field(default_factory=list)
    size: int = 0

    def watch(self, pieces: list[bytearray]) -> None:
        """Watch more buffers, up to a total of ``_WATCHED_MAXIMUM`` bytes."""
        for piece in pieces:
            if self.size + len(piece) <= _WATCHED_MAXIMUM:
                piece[:] = bytes([_USED]) * len(piece)
                self.held.append(piece)
                self.size += len(piece)

    def touched(self) -> int:
        """Return the number of buffers that have changed."""
        return sum(piece != bytes([_USED]) * len(piece) for piece in self.held)


class SimulatedReceiver:
    """Posts receives for all expected messages, soon or late, exactly or with wildcards."""

    def __init__(self, application: SimulatedApplication, rng: Random, expected: list[workload.PlannedMessage]) -> None:
        self.application = application
        self.ledger = application.world.ledger
        self._rng = rng
        self._wanted = self._draw(expected)
        self._order = 0
        self._live: dict[Request, LiveReceive] = {}
        self._ended = False

    @property
    def _endpoint(self) -> EngineEndpoint:
        endpoint = self.application.endpoint
        assert endpoint is not None
        return endpoint

    @property
    def all_posted(self) -> bool:
        """Return whether every required receive was posted."""
        return not self._wanted

    # Planning.

    def _draw(self, expected: list[workload.PlannedMessage]) -> list[PlannedReceive]:
        rng = self._rng
        longest: dict[tuple[int, int], int] = {}
        for message in expected:
            key = _pattern(message)
            longest[key] = max(longest.get(key, 0), message.length)
        receives = [
            PlannedReceive(*self._matching(message), self._capacity(message, longest))
            for message in expected
            if message.kind != workload.HANDLED
        ]
        if rng.random() < 0.3:
            rng.shuffle(receives)
        receives.reverse()
        return receives

    def _matching(self, message: workload.PlannedMessage) -> tuple[int, int]:
        """Return value and mask of a receive for a message; if all messages are alike, wildcards overlap."""
        if message.kind == workload.ANY and self._rng.random() < 0.5:
            return workload.ANY << workload.CLASS_SHIFT, workload.CLASS_BITS
        return _pattern(message)

    def _capacity(self, message: workload.PlannedMessage, longest: dict[tuple[int, int], int]) -> int:
        """Return the size of the buffer in bytes: usually enough for any message that may match."""
        rng = self._rng
        enough = message.length if message.kind == workload.EXACT else longest[_pattern(message)]
        draw = rng.random()
        if draw < 0.15:
            return rng.choice((0, rng.randrange(enough + 1), max(0, enough - 1)))
        return enough if draw < 0.7 else enough + rng.choice((1, 100, 5000))

    # Posting.

    def start(self) -> None:
        """Post the first receives."""
        self._endpoint.handle_unexpected(self._handle)
        first = self._rng.choice((0, 1, 4, len(self._wanted)))
        for _ in range(min(first, len(self._wanted))):
            self._post(self._wanted.pop())
        self._continue()

    def _continue(self) -> None:
        if self._wanted:
            self.application.later(self._next)

    def _next(self) -> None:
        if self._wanted:
            self._post(self._wanted.pop())
        self._continue()

    def _post(self, wanted: PlannedReceive, *, spare: bool = False) -> None:
        rng, endpoint = self._rng, self._endpoint
        probed = rng.random() < 0.2
        seen = endpoint.probe(wanted.value, wanted.mask) if probed else None
        expected = None if seen is None else seen.match_info
        pieces = _cut(wanted.capacity, rng)
        request = endpoint.receive(pieces if len(pieces) > 1 else pieces[0], wanted.value, wanted.mask)
        posted = LiveReceive(wanted, self._order, pieces, spare=spare)
        request.context = posted
        self._order += 1
        self._live[request] = posted
        if probed:
            criterion = None if request.partner is None else request.match_info
            if criterion != expected:
                self.ledger.breach(
                    "order", f"probe found {_text(expected)}, the receive after it took {_text(criterion)}"
                )
        if not spare and rng.random() < 0.05:
            self.application.later(self._cancel, request)
        if rng.random() < 0.03:
            self._post(
                PlannedReceive(workload.NOBODY << workload.CLASS_SHIFT | rng.getrandbits(32), workload.ALL_BITS, 64),
                spare=True,
            )

    def _cancel(self, request: Request) -> None:
        posted = self._live.get(request)
        if posted is not None and not request.done:
            matched = request.partner is not None
            posted.cancelled = self._endpoint.cancel(request)
            if posted.cancelled == matched:
                self.ledger.breach("status", f"cancelling a receive that is{'' if matched else ' not'} matched")

    def wind_up(self) -> None:
        """Cancel all receives without a message."""
        self._ended = True
        for request in list(self._live):
            self._cancel(request)

    # Completions.

    def ended(self, request: Request) -> None:
        """Check a receive that has ended."""
        posted = self._live.pop(request, None)
        status = request.status
        assert status is not None
        if posted is None:
            self.ledger.breach("once", "a receive ended twice")
            return
        if status == Status.CANCELLED:
            if not posted.cancelled:
                self.ledger.breach("status", "a receive ended as cancelled, but was not cancelled")
            elif not posted.spare and not self._ended:
                self._wanted.append(posted.wanted)
                if len(self._wanted) == 1:
                    self._continue()
        else:
            self._check(request, posted, status)
        self.application.world.buffers.watch(posted.pieces)

    def _check(self, request: Request, posted: LiveReceive, status: Status) -> None:
        application, ledger, wanted = self.application, self.ledger, posted.wanted
        info = request.match_info
        number = workload.message_number(info)
        message = ledger.messages[number] if number < len(ledger.messages) else None
        if message is None or message.match_info != info or info & wanted.mask != wanted.value:
            ledger.breach("content", f"a receive for {_text(wanted.value)} took a message with {_text(info)}")
            return
        if status not in (Status.SUCCESS, Status.MESSAGE_TRUNCATED):
            ledger.aborted(message, application.number, status)
            return
        size = min(message.length, wanted.capacity)
        if request.length != message.length or request.transferred != size:
            ledger.breach(
                "status",
                f"message {number} of {message.length} bytes into a buffer of {wanted.capacity}: "
                f"reported {request.transferred} of {request.length}",
            )
        content = posted.content()
        # The send of a large message that is still being pulled may end by a late nack, or by the NOTIFY of a pull from
        # an earlier session of its sender (R-MEA-14); the region may then hold another message, because responders do
        # not check the counter (R-NAK-05, R-PUL-15).
        ended_early = message.status in REFUSALS or (message.status is not None and message.transferred < size)
        withdrawn = message.large and ended_early
        if content[:size] != ledger.data_of(message)[:size] and not withdrawn:
            if message.large and shares_handles(self._endpoint.card):
                # The replies to the pull of a closed endpoint are taken as data of this one (D-13).
                ledger.counts["unchecked"] += 1
            else:
                ledger.breach("content", f"message {number} of {message.length} bytes arrived with other bytes")
        elif content[size:] != bytes([_EMPTY]) * (len(content) - size):
            ledger.breach("memory", f"message {number} of {message.length} bytes was written beyond its end")
        matched = MatchedReceive(posted.order, wanted.value, wanted.mask, message)
        pulled = message.large and request.partner is not None and not request.partner.local
        ledger.received(
            message,
            application.number,
            self._endpoint.session,
            matched,
            status,
            request.transferred,
            late_report=pulled and self._endpoint.profile.has(Defect.TRUNCATION_REPORTED_LATE),
        )

    def _handle(self, unexpected: Unexpected) -> bool:
        """Take an unexpected message if it is meant for the handler; return whether it was taken."""
        info = unexpected.match_info
        if info >> workload.CLASS_SHIFT != workload.HANDLED:
            return False
        number = workload.message_number(info)
        message = self.ledger.messages[number] if number < len(self.ledger.messages) else None
        if message is None or message.match_info != info:
            self.ledger.breach("content", f"the handler received a message with {_text(info)}")
            return True
        if unexpected.data is not None and unexpected.data != self.ledger.data_of(message):
            self.ledger.breach("content", f"message {message.number} reached the handler with other bytes")
        if unexpected.length != message.length:
            self.ledger.breach("content", f"message {message.number} reached the handler with another length")
        self.ledger.consumed(message, self.application.number, self._endpoint.session)
        self.application.later(self.application.pump)
        return True

    def died(self) -> None:
        """Watch the buffers of an application that has died: they must not be written to any more."""
        for posted in self._live.values():
            self.application.world.buffers.watch(posted.pieces)
        self._live.clear()


def _pattern(message: workload.PlannedMessage) -> tuple[int, int]:
    """Return value and mask of a receive for a message."""
    mask = workload.MASKS.get(message.kind, workload.ALL_BITS)
    return message.match_info & mask, mask


def _cut(capacity: int, rng: Random) -> list[bytearray]:
    """Return memory of ``capacity`` bytes in one to five buffers."""
    count = rng.choice((1, 1, 1, 2, 5)) if capacity else 1
    return [bytearray([_EMPTY]) * (end - start) for start, end in cut_places(capacity, count, rng)]


def cut_places(length: int, count: int, rng: Random) -> Iterator[tuple[int, int]]:
    """Return start and end of the ``count`` parts of ``length`` bytes, cut at random places."""
    cuts = sorted(rng.randrange(length + 1) for _ in range(count - 1))
    return pairwise([0, *cuts, length])


def _text(info: int | None) -> str:
    return "nothing" if info is None else f"{info:#018x}"
