"""SinkStation: a sink on a link, which a generator controls by messages over the same link."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.ethernet import HEADER_SIZE, SOURCE
from mxwire.frames import FrameBatch
from mxwire.lab.machine import boot_id
from mxwire.linerate.accounting import StreamAccount
from mxwire.linerate.control import ControlMessage, decode_control
from mxwire.linerate.drops import KernelDrops, read_drops
from mxwire.linerate.sink import CheckLevel, FrameSink, SinkRun
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import template_of
from mxwire.link.link import Link

SILENCE: Final = 2.0
"""Seconds without a test frame after which a run has ended, although its generator has not announced the end."""
_REPLIES_KEPT: Final = 64
_LONGEST_NUMBER: Final = 1 << 53
_AT_ONCE: Final = 256


class BlockResponder:
    """The sending side of an incast test: a run of PULLs is answered with ``frames`` PULL_REPLYs per PULL.

    ``run`` has the requester's address and the number of the run, ``size`` is the length of a reply in bytes. ``clock``
    returns the time in ns that frames carry.
    """

    def __init__(self, run: tuple[bytes, int], own: bytes, *, size: int, frames: int, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._run = run
        self._frames = frames
        template = template_of("PULL_REPLY", run[0], own, size)
        self._slots = FrameSlots([template], run=run[1], least=min(max(frames, 64), _AT_ONCE))
        self._answered = 0
        self._sent = 0

    def respond(self, sink: FrameSink, link: Link) -> None:
        """Send a block for each PULL that ``sink`` has counted since the last call."""
        found = sink.runs.get(self._run)
        if found is None or found.frames == self._answered:
            return
        wanted = (found.frames - self._answered) * self._frames
        self._answered = found.frames
        while wanted:
            count = min(wanted, self._slots.room(self._sent))
            sent = link.send(self._slots.batch(self._sent, count, self._clock()))
            self._sent += sent
            wanted -= count


class SinkStation:
    """Receives from a link, counts test frames, and answers generators.

    ``via`` and ``mode`` describe the link to generators. ``on_run`` is called with each run that has ended, and the
    drops in the receive ring and the kernel during it. ``clock`` returns the time in ns since 1970, which replies to
    PULLs carry.
    """

    def __init__(
        self,
        link: Link,
        *,
        level: CheckLevel = CheckLevel.HEADER,
        via: str = "packet",
        mode: str | None = None,
        on_run: Callable[[SinkRun, dict[str, int]], object] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._clock = clock
        self._link = link
        self._via = via
        self._mode = mode
        self._on_run = on_run
        self._control_frames: list[bytes] = []
        self.sink = FrameSink(level, self._control_frames.append)
        self._replies: dict[tuple[bytes, int], bytes] = {}
        """The last replies by source and number of the request, for requests that arrive again."""
        self._outgoing: list[bytes] = []
        self._ring_before = link.statistics().dropped
        self._kernel_before = read_drops(link.name)
        self._responders: dict[tuple[bytes, int], BlockResponder] = {}
        self.ended_runs = 0

    def step(self, timeout: float) -> None:
        """Receive a batch, waiting up to ``timeout`` seconds, and answer the control messages in it.

        Raises :class:`~mxwire.link.errors.LinkError` if the interface is gone.
        """
        batch = self._link.receive(timeout)
        if len(batch):
            self.sink.take(batch)
            for responder in self._responders.values():
                responder.respond(self.sink, self._link)
        elif time.monotonic() - self.sink.active > SILENCE:
            self.end_runs()
        # After the frames of the batch were counted: a request for the result follows the last test frame.
        for frame in self._control_frames:
            self._control(frame)
        self._control_frames.clear()
        if self._outgoing:
            self._link.send(FrameBatch.from_frames(self._outgoing))
            self._outgoing.clear()

    def end_runs(self) -> None:
        """End the runs whose end was not announced."""
        for run in self.sink.runs.values():
            self._end(run)

    def drops(self) -> dict[str, int]:
        """Drops on this side since the last run began: in the receive ring, by the card, in the kernel's backlog."""
        kernel: KernelDrops = read_drops(self._link.name) - self._kernel_before
        ring = self._link.statistics().dropped - self._ring_before
        return {"ring": ring, "card": kernel.received, "backlog": kernel.backlog}

    def _end(self, run: SinkRun) -> None:
        if run.ended:
            return
        run.ended = True
        self.ended_runs += 1
        if self._on_run is not None:
            self._on_run(run, self.drops())

    # Control messages

    def _control(self, frame: bytes) -> None:
        message = decode_control(frame)
        if message is None:
            self.sink.foreign += 1
            return
        # Two stations would otherwise answer each other without end.
        if message.reply:
            return
        source = frame[SOURCE]
        key = source, message.number
        if key not in self._replies:
            # The oldest reply first: a request is repeated for some seconds at most.
            while len(self._replies) >= _REPLIES_KEPT:
                del self._replies[next(iter(self._replies))]
            self._replies[key] = self._answer(message, source).encode(source, self._link.address)
        self._outgoing.append(self._replies[key])

    def _answer(self, message: ControlMessage, source: bytes) -> ControlMessage:
        handler = {"hello": self._hello, "begin": self._begin, "end": self._announced, "respond": self._respond}.get(
            message.verb
        )
        try:
            fields = {"error": f"unknown request {message.verb!r}"} if handler is None else handler(message, source)
        except MxwireError as error:
            fields = {"error": str(error)}
        except (KeyError, TypeError, ValueError, OverflowError):
            fields = {"error": f"the request {message.verb!r} lacks a field, or one is not valid"}
        return ControlMessage(message.verb, message.number, fields, reply=True)

    def _hello(self, _message: ControlMessage, _source: bytes) -> dict[str, Any]:
        return {
            "host": socket.gethostname()[:64],
            "interface": self._link.name,
            "mtu": self._link.mtu,
            "boot": boot_id(),
            "via": self._via,
            "mode": self._mode,
            "check": self.sink.level,
        }

    def _begin(self, message: ControlMessage, source: bytes) -> dict[str, Any]:
        self.sink.begin(source, _number(message.fields, "run", 255))
        self._ring_before = self._link.statistics().dropped
        self._kernel_before = read_drops(self._link.name)
        return {"ready": True}

    def _announced(self, message: ControlMessage, source: bytes) -> dict[str, Any]:
        number, sent = _number(message.fields, "run", 255), _number(message.fields, "sent", _LONGEST_NUMBER)
        found = self.sink.runs.get((source, number))
        # The number of streams is unknown if no frame arrived; only the loss can be reported.
        run = found or SinkRun(source, number, 1, StreamAccount(1))
        run.sent = sent
        boot = message.fields.get("boot")
        run.boot = boot if isinstance(boot, str) else None
        record = run.record()
        for unneeded in ("source", "run", "streams", "sent", "bytes"):
            del record[unneeded]
        fields = {**record, **self.drops(), "foreign": self.sink.foreign}
        if found is not None:
            self._end(run)
        return fields

    def _respond(self, message: ControlMessage, source: bytes) -> dict[str, Any]:
        fields = message.fields
        key = source, _number(fields, "run", 255)
        self._responders.clear()
        self._responders[key] = BlockResponder(
            key,
            self._link.address,
            size=_number(fields, "size", self._link.mtu + HEADER_SIZE),
            frames=_number(fields, "frames", 1 << 16),
            clock=self._clock,
        )
        self.sink.begin(*key)
        return {"ready": True}


def _number(fields: Mapping[str, Any], name: str, most: int) -> int:
    """Return a field that must be an integer from 0 to ``most``; raise ValueError for any other value."""
    value = fields[name]
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(name)
    return value
