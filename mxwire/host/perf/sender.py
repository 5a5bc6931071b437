"""The sender of a measurement: connects, tells the parameters, sends and is answered, and measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError
from mxwire.host.message import Message
from mxwire.host.perf.buffers import buffer
from mxwire.host.perf.parameters import MATCH, Parameters
from mxwire.host.perf.result import Result
from mxwire.host.perf.waiting import Waiting
from mxwire.host.request import Request, place_of
from mxwire.host.watching import restarted
from mxwire.protocol import Partner, Status

PAUSE: Final = 0.1
"""Seconds between two lengths, unless told otherwise."""
_ROOM_FOR_ANSWER: Final = 64


class Sender:
    """Measures against one partner, which is connected already."""

    def __init__(self, waiting: Waiting, partner: Partner, parameters: Parameters) -> None:
        self._waiting = waiting
        self._endpoint: Endpoint = waiting.endpoint
        self._partner = partner
        self._epoch = partner.epoch
        self._parameters = parameters
        self._send: Callable[..., Request[Status]] = (
            self._endpoint.issend if parameters.synchronous else self._endpoint.isend
        )

    def agree(self) -> None:
        """Tell the receiver the parameters, and wait until it is ready.

        Raises :class:`~mxwire.host.errors.HostError` where the receiver is gone or silent, or answers otherwise.
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

    def measure(self, pause: float = PAUSE) -> Iterator[Result]:
        """The results, length by length; between two lengths it waits ``pause`` seconds.

        Raises :class:`~mxwire.host.errors.HostError` where the receiver goes, or an answer is not what it must be.
        """
        for number, length in enumerate(self._parameters.lengths()):
            if number:
                self._waiting.pause(pause)
            yield self._one_length(length)

    def _one_length(self, length: int) -> Result:
        parameters = self._parameters
        out = buffer(length, aligned=parameters.aligned)
        back = buffer(parameters.answer_length(length), aligned=parameters.aligned)
        for _ in range(parameters.warmup):
            self._round(out, back)
        clock, times = time.perf_counter_ns, []
        before = clock()
        for _ in range(parameters.iterations):
            self._round(out, back)
            now = clock()
            times.append(now - before)
            before = now
        return Result.of(length, times, unidirectional=parameters.unidirectional)

    def _round(self, out: memoryview, back: memoryview) -> None:
        """One message there, and one back; the receive is posted while the message is on its way."""
        sent = self._send(self._partner, out, MATCH)
        answer = self._endpoint.ireceive(MATCH, buffer=back)
        if not sent.done:
            self._sent(sent, answer)
        message = self._answered(answer, MATCH, back)
        if message.length != len(back):
            raise self._wrong(f"has answered {len(out)} bytes with {message.length} instead of {len(back)}")
        if self._partner.epoch != self._epoch:
            raise restarted(self._partner)

    def _answered(self, answer: Request[Message], match: int | None, room: memoryview) -> Message:
        """What the receiver answers; what somebody else sends meanwhile is none of our business."""
        message = self._waiting(answer, self._partner, self._epoch)
        while message.partner is not self._partner:
            message = self._waiting(self._endpoint.ireceive(match, buffer=room), self._partner, self._epoch)
        return message

    def _sent(self, sent: Request[Status], answer: Request[Message]) -> None:
        """Wait for a send; where that fails, nobody waits for the answer any more."""
        try:
            self._waiting(sent, self._partner, self._epoch)
        except HostError:
            self._waiting.take_back(answer)
            raise

    def _wrong(self, what: str) -> HostError:
        return HostError(
            Status.BAD_REQUEST,
            f"{place_of(self._partner)} {what}: it measures something else, or is no receiver of omx_perf",
        )
