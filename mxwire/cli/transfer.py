"""What ``mxwire send`` and ``mxwire receive`` do, and what they say."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import click

from mxwire.cli.live import Live, end_like_interrupt
from mxwire.cli.notes import counted, note
from mxwire.cli.pieces import pieces, size_of
from mxwire.cli.progress import Bar, bar
from mxwire.errors import OutputError
from mxwire.host import Endpoint, HostClosedError, HostError, HostRequest, HostTimeoutError, Message, WaitingMessage
from mxwire.host.base_endpoint import PendingAcks
from mxwire.host.requests import place_of
from mxwire.host.stall import SLICE, DialectMonitor, wait_observed
from mxwire.protocol import Partner, Status
from mxwire.report.json_line import json_line

WINDOW: Final = 8
"""Messages that are under way at a time."""
LINGER: Final = 2.0
STANDSTILL: Final = 30.0
_NAME_TIME: Final = 0.2


@dataclass(frozen=True, slots=True)
class Sending:
    """What is to be sent how."""

    host: str
    endpoint: int
    key: int
    match: int
    synchronous: bool
    chunk: int | None
    timeout: float
    as_json: bool


@dataclass(slots=True)
class _Sent:
    """A message under way."""

    name: str
    request: HostRequest[Status]
    began: float


@dataclass(slots=True)
class _Tally:
    """What has been done so far."""

    as_json: bool
    began: float = field(default_factory=time.monotonic)
    messages: int = 0
    bytes: int = 0
    short: int = 0
    """Messages of which something is missing."""

    def say(self, text: str, to_stderr: bool = False) -> None:
        if not self.as_json:
            click.echo(text, err=to_stderr)

    def tell(self, event: str, **what: Any) -> None:
        if self.as_json:
            click.echo(json_line({"event": event, **what}))

    def failed(self, what: str, error: HostError) -> None:
        seconds = time.monotonic() - self.began
        self.tell("failed", status=error.status.text, reason=str(error), seconds=round(seconds, 3))
        note(f"{what} after {seconds:.1f} s: {error} ({error.status.text})")

    def summary(self, verb: str, status: str, to_stderr: bool = False) -> None:
        seconds = time.monotonic() - self.began
        rate = self.bytes / seconds / 1e6 if seconds else 0.0
        self.tell(
            "summary",
            messages=self.messages,
            bytes=self.bytes,
            short=self.short,
            seconds=round(seconds, 6),
            status=status,
        )
        self.say(
            f"{verb} {counted(self.messages, 'message')}, {counted(self.bytes, 'byte')} in {seconds:.3f} s "
            f"({rate:,.1f} MB/s)",
            to_stderr,
        )


# Sending.


def send(live: Live, wanted: Sending, files: Sequence[str]) -> bool:
    """Send all files; returns whether the receiver has taken all of it."""
    end_like_interrupt()
    messages = pieces(files, wanted.chunk)
    with live.open(spin=0.001) as host:
        endpoint = host.open_endpoint()
        partner = connect(endpoint, wanted.host, wanted.endpoint, wanted.key, wanted.timeout)
        tally = _Tally(wanted.as_json)
        with bar("", size_of(files), "bytes", streams=wanted.as_json) as shown:
            try:
                _send_all(endpoint, partner, wanted, messages, tally, shown)
            except HostClosedError:
                raise
            except HostError as error:
                tally.failed("the transfer ended", error)
                tally.summary("sent", error.status.text)
                return False
    tally.summary(f"sent to {place_of(partner)}:", "truncated" if tally.short else "success")
    return not tally.short


def connect(
    endpoint: Endpoint, host: str, number: int, key: int, timeout: float | None, *, other_key: str = "see --key"
) -> Partner:
    """Connect, and say what to do where that is refused; ``other_key`` is the advice where the key is another."""
    try:
        return endpoint.connect(host, number, key, timeout=timeout)
    except HostError as error:
        hints = {
            Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY: f"the endpoint has another key than {key:#x}: {other_key}",
            Status.REMOTE_ENDPOINT_CLOSED: f"nobody has opened endpoint {number} there",
            Status.REMOTE_ENDPOINT_BAD_ID: f"that host has no endpoint {number}",
        }
        hint = hints.get(error.status)
        if hint is None:
            raise
        raise HostError(error.status, f"{host} refuses the connection ({error.status.text}): {hint}") from None


def _send_all(
    endpoint: Endpoint,
    partner: Partner,
    wanted: Sending,
    messages: Iterator[tuple[str, bytearray]],
    tally: _Tally,
    shown: Bar,
) -> None:
    post = endpoint.issend if wanted.synchronous else endpoint.isend
    under_way: deque[_Sent] = deque()

    def tick() -> None:
        shown.update(tally.bytes + sum(_asked(each.request) for each in under_way))

    def finish_oldest() -> None:
        sent = under_way[0]
        status = wait_observed(endpoint, sent.request, partner, wanted.timeout, tick)
        under_way.popleft()
        tally.messages += 1
        tally.bytes += sent.request.transferred
        _told(tally, sent, status)
        tick()

    for name, data in messages:
        under_way.append(_Sent(name, post(partner, data, wanted.match), time.monotonic()))
        while len(under_way) >= (1 if wanted.synchronous else WINDOW):
            finish_oldest()
    while under_way:
        finish_oldest()
    wait_observed(endpoint, PendingAcks(endpoint), partner, wanted.timeout, tick)


def _asked(request: HostRequest[Status]) -> int:
    """How much of a large message the receiver has asked for."""
    packet = getattr(request.inner, "packet", None)
    region = None if packet is None else packet.region
    return 0 if region is None else min(region.asked, request.length)


def _told(tally: _Tally, sent: _Sent, status: Status) -> None:
    request = sent.request
    seconds = time.monotonic() - sent.began
    tally.tell(
        "sent",
        name=sent.name,
        bytes=request.transferred,
        length=request.length,
        match=request.match_info,
        status=status.text,
        seconds=round(seconds, 6),
    )
    if status is Status.MESSAGE_TRUNCATED:
        tally.short += 1
        note(
            f"{sent.name}: the receiver took {request.transferred:,} of "
            f"{counted(request.length, 'byte')} ({status.text})"
        )


# Receiving.


@dataclass(frozen=True, slots=True)
class Receiving:
    """What is to be received how."""

    output: str
    endpoint: int
    key: int
    match: int | None
    mask: int
    count: int
    maximum: int
    timeout: float | None
    as_json: bool


def receive(live: Live, wanted: Receiving) -> bool:
    """Receive messages; returns whether all of them are whole."""
    end_like_interrupt()
    to_stdout = wanted.output == "-" and not wanted.as_json
    with live.open(spin=0.001) as host, _Outputs(wanted) as outputs:
        endpoint = host.open_endpoint(wanted.endpoint, wanted.key)
        note(f"waiting for messages as {host.name} endpoint {wanted.endpoint}")
        tally, strangers = _Tally(wanted.as_json), DialectMonitor(host.core)
        try:
            while not wanted.count or tally.messages < wanted.count:
                with bar("", None, "bytes") as shown:
                    message = _one(endpoint, wanted, strangers, shown)
                tally.messages += 1
                outputs.write(tally.messages, message.data)
                _told_received(tally, message, to_stdout)
            endpoint.close(LINGER)
        except HostClosedError:
            raise
        except HostError as error:
            tally.failed("ended", error)
            tally.short += 1
        except MemoryError:
            tally.short += 1
            raise
        finally:
            tally.summary("received", "incomplete" if tally.short else "success", to_stdout)
    return not tally.short


def _first(endpoint: Endpoint, wanted: Receiving, strangers: DialectMonitor) -> WaitingMessage:
    """Wait for a message, and say why none may come."""
    until = None if wanted.timeout is None else time.monotonic() + wanted.timeout
    while True:
        left = SLICE if until is None else min(SLICE, until - time.monotonic())
        try:
            return endpoint.probe(wanted.match, wanted.mask, timeout=max(left, 0.0))
        except HostTimeoutError:
            if until is not None and time.monotonic() >= until:
                raise HostTimeoutError(f"no message came within {wanted.timeout:g} s") from None
        for text in strangers.found():
            note(text)


def _one(endpoint: Endpoint, wanted: Receiving, strangers: DialectMonitor, shown: Bar) -> Message:
    waiting = _first(endpoint, wanted, strangers)
    # Only to be told later: a host that does not give its name in time is called by its address.
    with suppress(HostTimeoutError):
        endpoint.host.wait_for_peer(waiting.partner.peer.address, _NAME_TIME)
    size = min(waiting.length, wanted.maximum)
    try:
        request = endpoint.ireceive(wanted.match, wanted.mask, maximum=size)
    except MemoryError:
        raise MemoryError(
            f"a message of {counted(waiting.length, 'byte')} finds no room in memory: see --maximum"
        ) from None

    def tick() -> None:
        arrived = sum(each.asked for each in endpoint.engine.card.pulls.values() if each.context is request.inner)
        shown.update(arrived, size)

    return wait_observed(endpoint, request, waiting.partner, wanted.timeout or STANDSTILL, tick)


def _told_received(tally: _Tally, message: Message, to_stderr: bool) -> None:
    assert message.partner is not None
    tally.bytes += len(message)
    tally.short += message.truncated
    source = message.partner
    tally.tell(
        "message",
        number=tally.messages,
        host=source.peer.name,
        address=source.peer.address.hex(":"),
        endpoint=source.number,
        match=message.match_info,
        bytes=len(message),
        length=message.length,
        status=message.status.text,
    )
    cut = f" of {message.length:,}, the rest is cut off (message truncated: see --maximum)" * message.truncated
    tally.say(
        f"message {tally.messages} from {place_of(source)}, match {message.match_info:#x}: "
        f"{counted(len(message), 'byte')}{cut}",
        to_stderr,
    )


class _Outputs:
    """Where messages go."""

    def __init__(self, wanted: Receiving) -> None:
        self._name = wanted.output
        self._silent = wanted.as_json and wanted.output == "-"
        self._each = "{}" in wanted.output
        self._stack = ExitStack()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> _Outputs:
        if self._silent or self._each:
            return self
        self._file = sys.stdout.buffer if self._name == "-" else self._stack.enter_context(self._open(self._name))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self, name: str) -> IO[bytes]:
        try:
            return Path(name).open("wb")
        except OSError as error:
            raise _not_written(name, error) from None

    def write(self, number: int, data: memoryview) -> None:
        """Write a message."""
        if self._silent:
            return
        if self._each:
            name = self._name.replace("{}", str(number))
            with self._open(name) as file:
                _put(name, file, data)
            return
        assert self._file is not None
        if self._name == "-":
            self._file.write(data)
            self._file.flush()
        else:
            _put(self._name, self._file, data)


def _put(name: str, file: IO[bytes], data: memoryview) -> None:
    try:
        file.write(data)
        file.flush()
    except OSError as error:
        raise _not_written(name, error) from None


def _not_written(name: str, error: OSError) -> OutputError:
    return OutputError(f"{name}: cannot be written: {error.strerror or error}")
