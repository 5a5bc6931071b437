"""The receiver of a measurement: waits for parameters, says that it is ready, and answers every message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from mxwire.errors import MxwireError
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.message import Message
from mxwire.host.perf.buffers import buffer
from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, SETTLE, Parameters, not_parameters
from mxwire.host.perf.waiting import Waiting
from mxwire.host.request import Request, place_of
from mxwire.host.watching import restarted
from mxwire.protocol import Partner, Status
from mxwire.wire.numbers import DEFAULT_KEY

CONNECT_BACK: Final = 10.0
_SLICE: Final = 1.0
_NOT_FAILED: Final = (None, Status.CANCELLED, Status.SUCCESS, Status.MESSAGE_TRUNCATED)
"""How a receive ends, or goes on, in which no message has failed."""


class Wish(NamedTuple):
    """Somebody wants to measure."""

    partner: Partner
    parameters: Parameters
    epoch: int
    """The epoch of the partner in which it asked; in another one it is another sender, or has forgotten us."""


class _Asked(NamedTuple):
    """Parameters, not looked at yet, and who sent them in which epoch."""

    data: bytes
    partner: Partner
    epoch: int


class Receiver:
    """Serves one measurement after the other; senders that come meanwhile have to wait for their turn."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._endpoint: Endpoint = waiting.endpoint
        self._queue: deque[_Asked] = deque()
        self._served: Partner | None = None
        self.ignored = 0
        """Messages that were neither parameters nor part of the measurement that was going on."""
        waiting.crowded = self._crowded

    def wait(self, idle: Callable[[], object] = lambda: None) -> Wish:
        """Wait for parameters, for ever; ``idle`` is called each second.

        Raises :class:`~mxwire.host.errors.HostError` where a message fails, and other
        :class:`~mxwire.errors.MxwireError` for parameters that cannot be served: then it may be called again.
        """
        self._drop_the_gone()
        asked = self._queue.popleft() if self._queue else self._first_message(idle)
        parameters = Parameters.unpack(asked.data)
        parameters.check()
        return Wish(asked.partner, parameters, asked.epoch)

    def _first_message(self, idle: Callable[[], object]) -> _Asked:
        # Whatever comes is taken, as omx_perf does it.
        request = self._endpoint.ireceive(maximum=PARAMETERS_LENGTH)
        try:
            while True:
                try:
                    message = self._endpoint.wait(request, _SLICE)
                    break
                except HostTimeoutError:
                    idle()
        finally:
            self._waiting.take_back(request)
        if message.truncated:
            raise not_parameters(message.length)
        return _asked(message)

    def serve(self, wish: Wish) -> Iterator[int]:
        """Take part in a measurement; gives each length when it is done.

        Raises :class:`~mxwire.host.errors.HostError` where the sender goes, or something is cut short.
        """
        partner, parameters, _ = wish
        self._served = partner
        try:
            self._endpoint.connect(partner.peer, partner.number, DEFAULT_KEY, timeout=CONNECT_BACK)
            self._send(wish, self._endpoint.issend, b"", 0)
            send = self._endpoint.issend if parameters.synchronous else self._endpoint.isend
            for length in parameters.lengths():
                # Parameters of somebody else must fit too.
                memory = buffer(max(length, PARAMETERS_LENGTH), aligned=parameters.aligned)
                back = memory[: parameters.answer_length(length)]
                for _ in range(parameters.warmup + parameters.iterations):
                    self._take(wish, memory, length)
                    self._send(wish, send, back, MATCH)
                yield length
        finally:
            self._served = None

    def _send(self, wish: Wish, send: Callable[..., Request[Status]], data: bytes | memoryview, match: int) -> None:
        if _over(wish):
            # Whoever is there now has not asked for this.
            raise restarted(wish.partner)
        sent = send(wish.partner, data, match)
        if not sent.done:
            self._waiting(sent, wish.partner, wish.epoch)

    def _take(self, wish: Wish, memory: memoryview, length: int) -> None:
        """Take the next message of this measurement; what others send meanwhile is put off."""
        while True:
            message = self._receive(wish, memory)
            if message is None:
                continue
            ours = message.partner is wish.partner and not _over(wish)
            if ours and message.length == length:
                return
            self._put_off(message)
            if _over(wish):
                raise restarted(wish.partner)
            if ours:
                raise HostError(
                    Status.BAD_REQUEST,
                    f"{place_of(wish.partner)} has sent {message.length} bytes where it was the turn of {length}",
                )

    def _receive(self, wish: Wish, memory: memoryview) -> Message | None:
        """The next message of anybody; None where one of somebody else has failed."""
        request = self._endpoint.ireceive(MATCH, buffer=memory)
        try:
            return self._waiting(request, wish.partner, wish.epoch)
        except HostError:
            if request.status in (Status.SUCCESS, Status.MESSAGE_TRUNCATED):
                # It has come in the moment in which we gave up.
                self._put_off(request.result())
            if request.status in _NOT_FAILED or request.partner is wish.partner:
                raise
            self.ignored += 1
            return None

    def _put_off(self, message: Message) -> None:
        """Not of this measurement: parameters are kept until it is their turn."""
        if message.length == PARAMETERS_LENGTH:
            self._queue.append(_asked(message))
        else:
            self.ignored += 1

    def _crowded(self) -> bool:
        """Whether somebody else waits for his turn."""
        self._drop_the_gone()
        if self._queue:
            return True
        found = self._endpoint.iprobe(MATCH)
        return found is not None and found.length == PARAMETERS_LENGTH and found.partner is not self._served

    def _drop_the_gone(self) -> None:
        self._queue = deque(each for each in self._queue if each.partner.epoch == each.epoch)

    def forget(self, wish: Wish) -> None:
        """The end of a measurement, as a slave has it; who has come in place of its sender is not touched."""
        # That it went without acking the last answer is its own affair.
        with suppress(MxwireError):
            self._endpoint.flush(SETTLE)
        self._drop_the_gone()
        if not _over(wish) and all(each.partner is not wish.partner for each in self._queue):
            self._endpoint.disconnect(wish.partner)


def _over(wish: Wish) -> bool:
    """Whether whoever asked has gone; another sender may have come in his place, as the same partner."""
    return wish.partner.epoch != wish.epoch


def _asked(message: Message) -> _Asked:
    assert message.partner is not None
    return _Asked(bytes(message.data), message.partner, message.partner.epoch)
