"""The sender of a measurement: connects, tells the parameters, sends and is answered, and measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from mxwire.host.endpoint import Endpoint
from mxwire.host.perf.buffers import buffer
from mxwire.host.perf.parameters import MATCH, Parameters
from mxwire.host.perf.result import Result
from mxwire.host.perf.waiting import Waiting
from mxwire.host.request import Request
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
        self._parameters = parameters
        self._send: Callable[..., Request[Status]] = (
            self._endpoint.issend if parameters.synchronous else self._endpoint.isend
        )

    def agree(self) -> None:
        """Tell the receiver the parameters, and wait until it is ready.

        Raises :class:`~mxwire.host.errors.HostError` where the receiver is gone or silent.
        """
        answer = self._endpoint.ireceive(maximum=_ROOM_FOR_ANSWER)
        self._waiting(self._endpoint.issend(self._partner, self._parameters.pack(), MATCH), self._partner)
        self._waiting(answer, self._partner)

    def measure(self, pause: float = PAUSE) -> Iterator[Result]:
        """The results, length by length; between two lengths it waits ``pause`` seconds.

        Raises :class:`~mxwire.host.errors.HostError` where the receiver goes, or something is cut short.
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
        endpoint, partner, waiting = self._endpoint, self._partner, self._waiting
        sent = self._send(partner, out, MATCH)
        answer = endpoint.ireceive(MATCH, buffer=back)
        if not sent.done:
            waiting(sent, partner)
        waiting(answer, partner)
