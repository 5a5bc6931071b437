"""The two roles of a measurement: the sender measures round trips, the receiver answers each message."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from mxwire.errors import MxwireError
from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError, HostTimeoutError
from mxwire.host.perf.intervals import PerfIntervals
from mxwire.host.perf.parameters import MATCH, PARAMETERS_LENGTH, SETTLE, PerfParameters, PerfResult, not_parameters
from mxwire.host.requests import HostReceive, HostRequest, Message, place_of
from mxwire.host.stall import SLICE, StallObserver, restarted, wait_observed
from mxwire.protocol import Partner, Status
from mxwire.protocol.status import SUCCEEDED
from mxwire.wire.numbers import DEFAULT_KEY

Result = TypeVar("Result")

MISALIGNED = 8
"""Offset in bytes of an unaligned buffer from the start of its page."""


def buffer(length: int, *, aligned: bool) -> memoryview:
    """Allocate ``length`` bytes, page-aligned or deliberately not.

    Raises :class:`~mxwire.host.errors.HostError` without memory for them.
    """
    start = 0 if aligned else MISALIGNED
    try:
        view = memoryview(mmap.mmap(-1, max(1, start + length)))
    except (OSError, MemoryError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "out of memory"
        raise HostError(
            Status.NO_SYSTEM_RESOURCES,
            f"there is no memory for a message of {length} bytes ({why}): end at a shorter length (-E)",
        ) from None
    return view[start : start + length]


CROWDED: Final = 5.0
"""Maximum time without a message in seconds while another sender waits for its turn."""
_CROWDED_SHARE: Final = 0.25
"""Limit as a share of the configured silence: the waiting sender must not have abandoned its request by then."""
_POLLS: Final = 64
"""Polls between two reads of the clock."""


class PerfWaiter:
    """Waits for requests of one endpoint.

    ``yielding`` yields the CPU between polls. ``silence`` is the number of seconds without progress after which a wait
    fails; None: without limit, as omx_perf itself.
    """

    def __init__(self, endpoint: Endpoint, *, yielding: bool = False, silence: float | None = None) -> None:
        self.endpoint = endpoint
        self.yielding = yielding
        self.silence = silence
        self.crowded: Callable[[], bool] = _alone
        """Called during silence; returns True if another sender waits for its turn, so that less silence is allowed."""

    def __call__(self, request: HostRequest[Result], partner: Partner, epoch: int | None = None) -> Result:
        """Wait for a request, and return its result; ``epoch`` is the partner's at the start of the measurement.

        Raises :class:`~mxwire.host.errors.HostError` if it fails, if the partner has restarted or was abandoned, and
        after too long a silence. An unmatched receive is cancelled then, so that it does not take a later message.
        """
        try:
            if self.yielding:
                return self._wait_yielding(request, partner, epoch)
            return wait_observed(self.endpoint, request, partner, self._allowed, epoch=epoch)
        except HostError:
            self.cancel_unmatched(request)
            raise

    def cancel_unmatched(self, request: HostRequest[Any]) -> None:
        """Cancel a request if it is a receive without a match."""
        if isinstance(request, HostReceive) and not request.done and not self.endpoint.closed:
            self.endpoint.cancel(request)

    def _allowed(self) -> float | None:
        if self.silence is None or not self.crowded():
            return self.silence
        return min(CROWDED, self.silence * _CROWDED_SHARE)

    def pause(self, seconds: float) -> None:
        """Run the host for ``seconds``."""
        self.endpoint.host.driver.pause(seconds)

    def _wait_yielding(self, request: HostRequest[Result], partner: Partner, epoch: int | None) -> Result:
        observer = StallObserver(self.endpoint, partner, self._allowed, epoch)
        try:
            while True:
                until = time.monotonic() + SLICE
                while time.monotonic() < until:
                    for _ in range(_POLLS):
                        if self.endpoint.test(request):
                            return request.result()
                        os.sched_yield()
                observer.check()
        finally:
            observer.close()


def _alone() -> bool:
    return False


PAUSE: Final = 0.1
"""Default pause between two lengths in seconds."""
_ROOM_FOR_ANSWER: Final = 64
"""Bytes for the answer to the parameters, which is empty if the receiver is omx_perf."""


class PerfSender:
    """Measures round trips to one connected partner.

    With a ``window`` above 1, that number of messages is in flight at once, and a result has the times of windows; the
    receiver answers each message as usual, and the numbers of iterations must be multiples of the window.
    """

    def __init__(self, waiter: PerfWaiter, partner: Partner, parameters: PerfParameters, window: int = 1) -> None:
        self._window = window
        self._waiter = waiter
        self._endpoint: Endpoint = waiter.endpoint
        self._partner = partner
        self._epoch = partner.epoch
        self._parameters = parameters
        self._send: Callable[..., HostRequest[Status]] = (
            self._endpoint.issend if parameters.synchronous else self._endpoint.isend
        )

    def agree(self) -> None:
        """Send the parameters to the receiver, and wait until it is ready.

        Raises :class:`~mxwire.host.errors.HostError` if the receiver has gone, is silent, or gives another answer.
        """
        room = memoryview(bytearray(_ROOM_FOR_ANSWER))
        answer = self._endpoint.ireceive(buffer=room)
        self._sent(self._endpoint.issend(self._partner, self._parameters.pack(), MATCH), answer)
        message = self._answered(answer, None, room)
        if message.length or message.match_info:
            raise self._wrong(
                f"has answered the parameters with {message.length} bytes and match info {message.match_info:#x} "
                "instead of an empty message and 0"
            )

    def measure(self, pause: float = PAUSE, intervals: PerfIntervals | None = None) -> Iterator[PerfResult]:
        """Yield a result per length, with ``pause`` seconds between two lengths; ``intervals`` report parts of it.

        Raises :class:`~mxwire.host.errors.HostError` if the receiver goes, or an answer has another length.
        """
        for number, length in enumerate(self._parameters.lengths()):
            if number:
                self._waiter.pause(pause)
            yield self._one_length(length, intervals)

    def _one_length(self, length: int, intervals: PerfIntervals | None) -> PerfResult:
        parameters = self._parameters
        out = buffer(length, aligned=parameters.aligned)
        back = buffer(parameters.answer_length(length), aligned=parameters.aligned)
        step = self._round if self._window == 1 else self._send_window
        for _ in range(parameters.warmup // self._window):
            step(out, back)
        clock, times = time.perf_counter_ns, []
        unidirectional = parameters.unidirectional
        before = now = clock()
        due = 0 if intervals is None else intervals.begin(now)
        for _ in range(parameters.iterations // self._window):
            step(out, back)
            now = clock()
            times.append(now - before)
            before = now
            if intervals is not None and now >= due:
                due = intervals.end(length, times, now, unidirectional=unidirectional)
                # The time of the output belongs to no iteration.
                before = clock()
        if intervals is not None:
            intervals.end(length, times, now, unidirectional=unidirectional, last=True)
        return PerfResult.of(length, times, unidirectional=unidirectional)

    def _round(self, out: memoryview, back: memoryview) -> None:
        """Send a message and receive its answer; the receive is posted while the message is in flight."""
        sent = self._send(self._partner, out, MATCH)
        answer = self._endpoint.ireceive(MATCH, buffer=back)
        if not sent.done:
            self._sent(sent, answer)
        message = self._answered(answer, MATCH, back)
        if message.length != len(back):
            raise self._wrong(f"has answered {len(out)} bytes with {message.length} instead of {len(back)}")
        if self._partner.epoch != self._epoch:
            raise restarted(self._partner)

    def _send_window(self, out: memoryview, back: memoryview) -> None:
        """Send a window of messages, and receive their answers."""
        answers = [self._endpoint.ireceive(MATCH, buffer=back) for _ in range(self._window)]
        sends = [self._send(self._partner, out, MATCH) for _ in range(self._window)]
        try:
            for answer in answers:
                message = self._answered(answer, MATCH, back)
                if message.length != len(back):
                    raise self._wrong(f"has answered {len(out)} bytes with {message.length} instead of {len(back)}")
            for sent in sends:
                self._waiter(sent, self._partner, self._epoch)
        except HostError:
            for answer in answers:
                self._waiter.cancel_unmatched(answer)
            raise
        if self._partner.epoch != self._epoch:
            raise restarted(self._partner)

    def _answered(self, answer: HostRequest[Message], match: int | None, room: memoryview) -> Message:
        """Wait for the answer; messages of other partners are ignored."""
        message = self._waiter(answer, self._partner, self._epoch)
        while message.partner is not self._partner:
            message = self._waiter(self._endpoint.ireceive(match, buffer=room), self._partner, self._epoch)
        return message

    def _sent(self, sent: HostRequest[Status], answer: HostRequest[Message]) -> None:
        """Wait for a send; if it fails, cancel the receive of the answer."""
        try:
            self._waiter(sent, self._partner, self._epoch)
        except HostError:
            self._waiter.cancel_unmatched(answer)
            raise

    def _wrong(self, what: str) -> HostError:
        return HostError(
            Status.BAD_REQUEST,
            f"{place_of(self._partner)} {what}: it measures something else, or is not an omx_perf receiver",
        )


CONNECT_BACK: Final = 10.0
"""Timeout in seconds of the connect to the sender."""
TRANSFER: Final = 10.0
"""Timeout in seconds of a message that another sender is transferring when a measurement ends."""
_SLICE: Final = 1.0
_NOT_FAILED: Final = (None, Status.CANCELLED, *SUCCEEDED)
"""Statuses of a receive in which no message has failed."""


class PerfRequest(NamedTuple):
    """A sender's request for a measurement."""

    partner: Partner
    parameters: PerfParameters
    epoch: int
    """Epoch of the partner at its request; in another epoch, the partner is another sender, or has lost its state."""


class _QueuedParameters(NamedTuple):
    """Parameters that are not decoded yet, with their sender and its epoch."""

    data: bytes
    partner: Partner
    epoch: int


class PerfReceiver:
    """Serves measurements one after another; further senders wait for their turn."""

    def __init__(self, waiter: PerfWaiter) -> None:
        self._waiter = waiter
        self._endpoint: Endpoint = waiter.endpoint
        self._queue: dict[Partner, _QueuedParameters] = {}
        """The senders that wait for their turn, in the order of their requests; each has one request."""
        self._served: Partner | None = None
        self.ignored = 0
        """Messages that were neither parameters nor part of the current measurement."""
        waiter.crowded = self._crowded

    def wait(self, idle: Callable[[], object] = lambda: None) -> PerfRequest:
        """Wait for parameters without limit; ``idle`` is called once per second.

        Raises :class:`~mxwire.host.errors.HostError` if a message fails, and other :class:`~mxwire.errors.MxwireError`
        for parameters that cannot be served; it may be called again after either error.
        """
        self._drop_the_gone()
        queued = self._queue.pop(next(iter(self._queue))) if self._queue else self._first_message(idle)
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

    def serve(self, measurement: PerfRequest) -> Iterator[int]:
        """Take part in a measurement; yield each length when it is done.

        Raises :class:`~mxwire.host.errors.HostError` if the sender goes, or sends another length.
        """
        partner, parameters, _ = measurement
        self._served = partner
        try:
            self._endpoint.connect(partner.peer, partner.number, DEFAULT_KEY, timeout=CONNECT_BACK)
            self._send(measurement, self._endpoint.issend, b"", 0)
            send = self._endpoint.issend if parameters.synchronous else self._endpoint.isend
            for length in parameters.lengths():
                # Parameters of another sender must fit too.
                memory = buffer(max(length, PARAMETERS_LENGTH), aligned=parameters.aligned)
                back = memory[: parameters.answer_length(length)]
                for _ in range(parameters.warmup + parameters.iterations):
                    self._take(measurement, memory, length)
                    self._send(measurement, send, back, MATCH)
                yield length
        finally:
            self._served = None

    def _send(
        self, measurement: PerfRequest, send: Callable[..., HostRequest[Status]], data: bytes | memoryview, match: int
    ) -> None:
        if _over(measurement):
            # The partner has restarted since, and its new instance has not requested this measurement.
            raise restarted(measurement.partner)
        sent = send(measurement.partner, data, match)
        if not sent.done:
            self._waiter(sent, measurement.partner, measurement.epoch)

    def _take(self, measurement: PerfRequest, memory: memoryview, length: int) -> None:
        """Receive the next message of this measurement; parameters of other senders are queued."""
        while True:
            message = self._receive(measurement, memory)
            if message is None:
                continue
            own = message.partner is measurement.partner and not _over(measurement)
            if own and message.length == length:
                return
            self._put_off(message)
            if _over(measurement):
                raise restarted(measurement.partner)
            if own:
                raise HostError(
                    Status.BAD_REQUEST,
                    f"{place_of(measurement.partner)} has sent {message.length} bytes instead of {length}",
                )

    def _receive(self, measurement: PerfRequest, memory: memoryview) -> Message | None:
        """Receive the next message of any partner; None if a message of another partner has failed."""
        request = self._endpoint.ireceive(MATCH, buffer=memory)
        try:
            return self._waiter(request, measurement.partner, measurement.epoch)
        except HostError:
            if not request.done and (request.partner is not measurement.partner or _over(measurement)):
                # A message of another sender is being pulled into this memory: if the pull ended, that sender would
                # wait without an answer.
                with suppress(HostError):
                    self._endpoint.wait(request, TRANSFER)
            if request.status in SUCCEEDED:
                # The receive was completed at the moment of the error.
                self._put_off(request.result())
            if request.status in _NOT_FAILED or request.partner is measurement.partner:
                raise
            self.ignored += 1
            return None

    def _put_off(self, message: Message) -> None:
        """Handle a message of another sender: queue parameters, and ignore other messages."""
        queued = _queued(message) if message.length == PARAMETERS_LENGTH else None
        known = None if queued is None else self._queue.get(queued.partner)
        if queued is None or (known is not None and known.epoch == queued.epoch):
            self.ignored += 1
        else:
            self._queue[queued.partner] = queued

    def _crowded(self) -> bool:
        """True if another sender waits for its turn."""
        self._drop_the_gone()
        if self._queue:
            return True
        found = self._endpoint.iprobe(MATCH)
        return found is not None and found.length == PARAMETERS_LENGTH and found.partner is not self._served

    def _drop_the_gone(self) -> None:
        self._queue = {partner: each for partner, each in self._queue.items() if partner.epoch == each.epoch}

    def forget(self, measurement: PerfRequest) -> None:
        """Disconnect from the sender after a measurement, unless it has restarted or requested another one."""
        # A sender may go without acknowledging the last answer.
        with suppress(MxwireError):
            self._endpoint.flush(SETTLE)
        # The next sender from the same endpoint must not connect between the check and the end of the connection.
        with self._endpoint.host.core.section:
            self._drop_the_gone()
            if not _over(measurement) and measurement.partner not in self._queue:
                self._endpoint.disconnect(measurement.partner)


def _over(measurement: PerfRequest) -> bool:
    """True if the sender has gone; a partner in another epoch counts as another sender."""
    return measurement.partner.epoch != measurement.epoch


def _queued(message: Message) -> _QueuedParameters:
    assert message.partner is not None
    return _QueuedParameters(bytes(message.data), message.partner, message.partner.epoch)
