"""PerfReceiver: the answering role: waits for parameters, signals that it is ready, and answers each message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from mxwire.errors import MxwireError
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.perf.buffers import buffer
from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, SETTLE, PerfParameters, not_parameters
from mxwire.host.perf.waiter import PerfWaiter
from mxwire.host.requests import HostRequest, Message, place_of
from mxwire.host.stall import restarted
from mxwire.protocol import Partner, Status
from mxwire.wire.numbers import DEFAULT_KEY

CONNECT_BACK: Final = 10.0
"""Timeout in seconds of the connect to the sender."""
_SLICE: Final = 1.0
_NOT_FAILED: Final = (None, Status.CANCELLED, Status.SUCCESS, Status.MESSAGE_TRUNCATED)
"""Statuses of a receive in which no message has failed."""


class PerfRequest(NamedTuple):
    """A sender's request for a measurement."""

    partner: Partner
    parameters: PerfParameters
    epoch: int
    """Epoch of the partner at its request; in another one it is another sender, or has lost its state."""


class _QueuedParameters(NamedTuple):
    """Parameters that are not decoded yet, with their sender and its epoch."""

    data: bytes
    partner: Partner
    epoch: int


class PerfReceiver:
    """Serves measurements one after the other; further senders wait for their turn."""

    def __init__(self, waiter: PerfWaiter) -> None:
        self._waiter = waiter
        self._endpoint: Endpoint = waiter.endpoint
        self._queue: deque[_QueuedParameters] = deque()
        self._served: Partner | None = None
        self.ignored = 0
        """Messages that were neither parameters nor part of the current measurement."""
        waiter.crowded = self._crowded

    def wait(self, idle: Callable[[], object] = lambda: None) -> PerfRequest:
        """Wait for parameters without limit; ``idle`` is called once per second.

        Raises :class:`~mxwire.host.errors.HostError` if a message fails, and other
        :class:`~mxwire.errors.MxwireError` for parameters that cannot be served; it may be called again then.
        """
        self._drop_the_gone()
        queued = self._queue.popleft() if self._queue else self._first_message(idle)
        parameters = PerfParameters.unpack(queued.data)
        parameters.check()
        return PerfRequest(queued.partner, parameters, queued.epoch)

    def _first_message(self, idle: Callable[[], object]) -> _QueuedParameters:
        # Any match information is accepted, as in omx_perf.
        request = self._endpoint.ireceive(maximum=PARAMETERS_LENGTH)
        try:
            while True:
                try:
                    message = self._endpoint.wait(request, _SLICE)
                    break
                except HostTimeoutError:
                    idle()
        finally:
            self._waiter.cancel_unmatched(request)
        if message.truncated:
            raise not_parameters(message.length)
        return _queued(message)

    def serve(self, asked: PerfRequest) -> Iterator[int]:
        """Take part in a measurement; yield each length when it is done.

        Raises :class:`~mxwire.host.errors.HostError` if the sender goes, or sends another length.
        """
        partner, parameters, _ = asked
        self._served = partner
        try:
            self._endpoint.connect(partner.peer, partner.number, DEFAULT_KEY, timeout=CONNECT_BACK)
            self._send(asked, self._endpoint.issend, b"", 0)
            send = self._endpoint.issend if parameters.synchronous else self._endpoint.isend
            for length in parameters.lengths():
                # Parameters of another sender must fit too.
                memory = buffer(max(length, PARAMETERS_LENGTH), aligned=parameters.aligned)
                back = memory[: parameters.answer_length(length)]
                for _ in range(parameters.warmup + parameters.iterations):
                    self._take(asked, memory, length)
                    self._send(asked, send, back, MATCH)
                yield length
        finally:
            self._served = None

    def _send(
        self, asked: PerfRequest, send: Callable[..., HostRequest[Status]], data: bytes | memoryview, match: int
    ) -> None:
        if _over(asked):
            # The partner that is there now has not requested this.
            raise restarted(asked.partner)
        sent = send(asked.partner, data, match)
        if not sent.done:
            self._waiter(sent, asked.partner, asked.epoch)

    def _take(self, asked: PerfRequest, memory: memoryview, length: int) -> None:
        """Receive the next message of this measurement; parameters of other senders are queued."""
        while True:
            message = self._receive(asked, memory)
            if message is None:
                continue
            own = message.partner is asked.partner and not _over(asked)
            if own and message.length == length:
                return
            self._put_off(message)
            if _over(asked):
                raise restarted(asked.partner)
            if own:
                raise HostError(
                    Status.BAD_REQUEST,
                    f"{place_of(asked.partner)} has sent {message.length} bytes instead of {length}",
                )

    def _receive(self, asked: PerfRequest, memory: memoryview) -> Message | None:
        """Receive the next message of any partner; None if one of another partner has failed."""
        request = self._endpoint.ireceive(MATCH, buffer=memory)
        try:
            return self._waiter(request, asked.partner, asked.epoch)
        except HostError:
            if request.status in (Status.SUCCESS, Status.MESSAGE_TRUNCATED):
                # It was completed at the moment of the error.
                self._put_off(request.result())
            if request.status in _NOT_FAILED or request.partner is asked.partner:
                raise
            self.ignored += 1
            return None

    def _put_off(self, message: Message) -> None:
        """Handle a message of another sender: queue parameters, and ignore all else."""
        if message.length == PARAMETERS_LENGTH:
            self._queue.append(_queued(message))
        else:
            self.ignored += 1

    def _crowded(self) -> bool:
        """True if another sender waits for its turn."""
        self._drop_the_gone()
        if self._queue:
            return True
        found = self._endpoint.iprobe(MATCH)
        return found is not None and found.length == PARAMETERS_LENGTH and found.partner is not self._served

    def _drop_the_gone(self) -> None:
        self._queue = deque(each for each in self._queue if each.partner.epoch == each.epoch)

    def forget(self, asked: PerfRequest) -> None:
        """Disconnect from the sender after a measurement, unless it has restarted or requested another one."""
        # A sender may go without acknowledging the last answer.
        with suppress(MxwireError):
            self._endpoint.flush(SETTLE)
        self._drop_the_gone()
        if not _over(asked) and all(each.partner is not asked.partner for each in self._queue):
            self._endpoint.disconnect(asked.partner)


def _over(asked: PerfRequest) -> bool:
    """True if the sender has gone; a partner in another epoch is another sender."""
    return asked.partner.epoch != asked.epoch


def _queued(message: Message) -> _QueuedParameters:
    assert message.partner is not None
    return _QueuedParameters(bytes(message.data), message.partner, message.partner.epoch)
