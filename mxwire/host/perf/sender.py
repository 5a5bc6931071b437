"""PerfSender: the measuring role: sends the parameters, then messages, and measures the answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from mxwire.host.endpoint import Endpoint
from mxwire.host.errors import HostError
from mxwire.host.perf.buffers import buffer
from mxwire.host.perf.parameters import MATCH, PerfParameters
from mxwire.host.perf.result import PerfResult
from mxwire.host.perf.waiter import PerfWaiter
from mxwire.host.requests import HostRequest, Message, place_of
from mxwire.host.stall import restarted
from mxwire.protocol import Partner, Status

PAUSE: Final = 0.1
"""Default pause between two lengths in seconds."""
_ROOM_FOR_ANSWER: Final = 64
"""Bytes for the answer to the parameters, which is empty if the receiver is omx_perf."""


class PerfSender:
    """Measures round trips to one connected partner."""

    def __init__(self, waiter: PerfWaiter, partner: Partner, parameters: PerfParameters) -> None:
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

    def measure(self, pause: float = PAUSE) -> Iterator[PerfResult]:
        """Yield a result per length, with ``pause`` seconds between two lengths.

        Raises :class:`~mxwire.host.errors.HostError` if the receiver goes, or an answer has another length.
        """
        for number, length in enumerate(self._parameters.lengths()):
            if number:
                self._waiter.pause(pause)
            yield self._one_length(length)

    def _one_length(self, length: int) -> PerfResult:
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
        return PerfResult.of(length, times, unidirectional=parameters.unidirectional)

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
