"""The receiver of a measurement: waits for parameters, says that it is ready, and answers every message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from mxwire.errors import MxwireError
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostTimeoutError
from mxwire.host.message import Message
from mxwire.host.perf.buffers import buffer
from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, Parameters
from mxwire.host.perf.waiting import Waiting
from mxwire.host.request import Request
from mxwire.protocol import Partner, Status

KEY: Final = 0x12345678
SETTLE: Final = 0.5
"""Seconds that a slave waits before it forgets a sender, so that its last answer is acked."""
CONNECT_BACK: Final = 10.0
_SLICE: Final = 1.0


class Wish(NamedTuple):
    """Somebody wants to measure."""

    partner: Partner
    parameters: Parameters


class Receiver:
    """Serves one measurement after the other; senders that come meanwhile have to wait for their turn."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._endpoint: Endpoint = waiting.endpoint
        self._queue: deque[Message] = deque()
        self.ignored = 0
        """Messages that were neither parameters nor part of the measurement that was going on."""

    def wait(self, idle: Callable[[], object] = lambda: None) -> Wish:
        """Wait for parameters, for ever; ``idle`` is called each second.

        Raises :class:`~mxwire.errors.MxwireError` for parameters that cannot be served: then it may be called again.
        """
        message = self._queue.popleft() if self._queue else self._first_message(idle)
        assert message.source is not None
        parameters = Parameters.unpack(bytes(message.data))
        parameters.check()
        return Wish(message.source, parameters)

    def _first_message(self, idle: Callable[[], object]) -> Message:
        # Whatever comes is taken, as omx_perf does it.
        request = self._endpoint.ireceive(maximum=PARAMETERS_LENGTH)
        try:
            while True:
                try:
                    return self._endpoint.wait(request, _SLICE)
                except HostTimeoutError:
                    idle()
        finally:
            if not request.done and not self._endpoint.closed:
                self._endpoint.cancel(request)

    def serve(self, wish: Wish) -> Iterator[int]:
        """Take part in a measurement; gives each length when it is done.

        Raises :class:`~mxwire.host.errors.HostError` where the sender goes, or something is cut short.
        """
        partner, parameters = wish
        self._endpoint.connect(partner.peer, partner.number, KEY, timeout=CONNECT_BACK)
        self._waiting(self._endpoint.issend(partner, b"", 0), partner)
        send = self._endpoint.issend if parameters.synchronous else self._endpoint.isend
        for length in parameters.lengths():
            # Parameters of somebody else must fit too.
            here = buffer(max(length, PARAMETERS_LENGTH), aligned=parameters.aligned)
            back = here[: parameters.answer_length(length)]
            for _ in range(parameters.warmup + parameters.iterations):
                self._round(send, partner, here, back)
            yield length

    def _round(
        self, send: Callable[..., Request[Status]], partner: Partner, here: memoryview, back: memoryview
    ) -> None:
        message = self._waiting(self._endpoint.ireceive(MATCH, buffer=here), partner)
        while message.source is not partner:
            self._put_off(message)
            message = self._waiting(self._endpoint.ireceive(MATCH, buffer=here), partner)
        sent = send(partner, back, MATCH)
        if not sent.done:
            self._waiting(sent, partner)

    def _put_off(self, message: Message) -> None:
        """Somebody else: his parameters are kept until it is his turn."""
        if message.length == PARAMETERS_LENGTH:
            self._queue.append(Message(memoryview(bytes(message.data)), *_rest(message)))
        else:
            self.ignored += 1

    def forget(self, partner: Partner) -> None:
        """The end of a measurement, as a slave has it."""
        # That it went without acking the last answer is its own affair.
        with suppress(MxwireError):
            self._endpoint.flush(SETTLE)
        self._queue = deque(each for each in self._queue if each.source is not partner)
        self._endpoint.disconnect(partner)


def _rest(message: Message) -> tuple[int, Partner | None, int, Status]:
    return message.match_info, message.source, message.length, message.status
