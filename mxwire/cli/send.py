"""``mxwire send``: files, or standard input, as messages."""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import click

from mxwire.cli import options as shared
from mxwire.cli.group import command_with
from mxwire.cli.live_options import MEETING_POINT, LiveOptions, connect, end_like_interrupt
from mxwire.cli.notes import EventReport, counted, note
from mxwire.cli.option_class import argument, group, option, options_class
from mxwire.cli.progress import Bar, bar
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mxwire.analysis.host_names import HostChoice
    from mxwire.host import Endpoint, HostError, HostRequest
    from mxwire.protocol import Partner, Status

LONGEST: Final = (1 << 32) - 1
"""Maximum length of a message, in bytes."""
_READ_BYTES: Final = 1 << 20
"""Bytes per read, limited because Python reserves memory for all requested bytes, however few there are."""
_WINDOW: Final = 8
"""Messages in flight, enough to keep the link busy."""


@options_class
class SendOptions:
    """The options of mxwire send."""

    destination: HostChoice = argument(metavar="HOST", type=shared.host_type)
    files: tuple[str, ...] = argument(metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
    live: LiveOptions = group(LiveOptions)
    match: int = option("Match info, 64 bits.", "--match N", type=shared.number_type((1 << 64) - 1), default=0)
    endpoint: int | None = shared.endpoint_option(f"Endpoint of the receiver.  [default: {MEETING_POINT}]")
    key: int = shared.key_option
    synchronous: bool = shared.flag_option("Wait for each message until it is received.", "--sync")
    chunk: int | None = shared.integer_option("Send messages of this length.", "--chunk BYTES", least=1, most=LONGEST)
    timeout: float = shared.timeout_option(30.0, "Seconds without progress until the transfer is abandoned.")
    as_json: bool = shared.json_option("JSON Lines: one object per event.")


@command_with(SendOptions)
def command(options: SendOptions) -> None:
    """Send files, or standard input, to an endpoint of a host."""
    if not _send(options, options.files or ("-",)):
        sys.exit(1)


def _send(options: SendOptions, files: Sequence[str]) -> bool:
    """Send all files; return True if the receiver received all of them completely."""
    from mxwire.host import HostClosedError, HostError
    from mxwire.host.requests import place_of

    end_like_interrupt()
    messages = messages_of(files, options.chunk)
    receiver = options.destination
    number = next((each for each in (options.endpoint, receiver.endpoint) if each is not None), MEETING_POINT)
    with options.live.open(spin=0.001) as host:
        endpoint = host.open_endpoint()
        partner = connect(endpoint, receiver.host, number, options.key, options.timeout)
        report = TransferReport(options.as_json)
        with bar("", size_of(files), "bytes", streams=options.as_json) as shown:
            try:
                _send_all(endpoint, partner, options, messages, report, shown)
            except HostClosedError:
                raise
            except HostError as error:
                report.failed("the transfer ended", error)
                report.summary("sent", error.status.text)
                return False
    report.summary(f"sent to {place_of(partner)}:", "truncated" if report.short else "success")
    return not report.short


def _send_all(
    endpoint: Endpoint,
    partner: Partner,
    options: SendOptions,
    messages: Iterator[tuple[str, bytearray]],
    report: TransferReport,
    shown: Bar,
) -> None:
    from mxwire.host.stall import wait_observed
    from mxwire.host.waits import PendingAcks

    post = endpoint.issend if options.synchronous else endpoint.isend
    in_flight: deque[_SentMessage] = deque()

    def tick() -> None:
        shown.update(report.bytes + sum(_pulled(each.request) for each in in_flight))

    def finish_oldest() -> None:
        sent = in_flight[0]
        status = wait_observed(endpoint, sent.request, partner, options.timeout, tick)
        in_flight.popleft()
        report.messages += 1
        report.bytes += sent.request.transferred
        _report_sent(report, sent, status)
        tick()

    for name, data in messages:
        in_flight.append(_SentMessage(name, post(partner, data, options.match), time.monotonic()))
        while len(in_flight) >= (1 if options.synchronous else _WINDOW):
            finish_oldest()
    while in_flight:
        finish_oldest()
    wait_observed(endpoint, PendingAcks(endpoint), partner, options.timeout, tick)


def _pulled(request: HostRequest[Status]) -> int:
    """Bytes of a large message that the receiver has requested."""
    packet = getattr(request.inner, "packet", None)
    region = None if packet is None else packet.region
    return 0 if region is None else min(region.requested, request.length)


def _report_sent(report: TransferReport, sent: _SentMessage, status: Status) -> None:
    from mxwire.protocol import Status

    request = sent.request
    seconds = time.monotonic() - sent.began
    report.emit(
        "sent",
        name=sent.name,
        bytes=request.transferred,
        length=request.length,
        match=request.match_info,
        status=status.text,
        seconds=round(seconds, 6),
    )
    if status is Status.MESSAGE_TRUNCATED:
        report.short += 1
        note(
            f"{sent.name}: the receiver took {request.transferred:,} of "
            f"{counted(request.length, 'byte')} ({status.text})"
        )


# Reports, also those of mxwire receive


@dataclass(slots=True)
class _SentMessage:
    """A message in flight."""

    name: str
    request: HostRequest[Status]
    began: float


@dataclass(slots=True)
class TransferReport(EventReport):
    """Counts of a transfer, and its output as text or JSON Lines."""

    as_json: bool
    began: float = field(default_factory=time.monotonic)
    messages: int = 0
    bytes: int = 0
    short: int = 0
    """Messages that are incomplete."""

    def failed(self, what: str, error: HostError) -> None:
        """Report the error that ended the transfer."""
        seconds = time.monotonic() - self.began
        self.emit("failed", status=error.status.text, reason=str(error), seconds=round(seconds, 3))
        note(f"{what} after {seconds:.1f} s: {error} ({error.status.text})")

    def summary(self, verb: str, status: str, to_stderr: bool = False) -> None:
        """Report the totals."""
        seconds = time.monotonic() - self.began
        rate = self.bytes / seconds / 1e6 if seconds else 0.0
        self.emit(
            "summary",
            messages=self.messages,
            bytes=self.bytes,
            short=self.short,
            seconds=round(seconds, 6),
            status=status,
        )
        self.print(
            f"{verb} {counted(self.messages, 'message')}, {counted(self.bytes, 'byte')} in {seconds:.3f} s "
            f"({rate:,.1f} MB/s)",
            to_stderr,
        )


# Messages from files


def messages_of(files: Sequence[str], chunk: int | None) -> Iterator[tuple[str, bytearray]]:
    """The name and the bytes of each message: one per file (``-``: standard input), or per ``chunk`` bytes of one.

    Raises :class:`~mxwire.errors.MxwireError` at once for a missing file, and during the iteration for a file that
    cannot be read, is longer than a message can be, or does not fit into memory.
    """
    for name in files:
        if name != "-" and not Path(name).exists():
            raise MxwireError(f"{name}: no such file")
    return _read(files, chunk)


def size_of(files: Sequence[str]) -> int | None:
    """The total size in bytes, None if it is unknown."""
    if "-" in files:
        return None
    return sum(Path(each).stat().st_size for each in files)


def _read(files: Sequence[str], chunk: int | None) -> Iterator[tuple[str, bytearray]]:
    for name in files:
        called = "standard input" if name == "-" else name
        try:
            with ExitStack() as stack:
                source: IO[bytes] = sys.stdin.buffer if name == "-" else stack.enter_context(Path(name).open("rb"))
                yield from split(called, source, chunk)
        except OSError as error:
            raise MxwireError(f"{called}: cannot be read: {error.strerror or error}") from None
        except MemoryError:
            raise MxwireError(f"{called}: does not fit into memory: divide it with --chunk") from None


def split(name: str, source: IO[bytes], chunk: int | None) -> Iterator[tuple[str, bytearray]]:
    """The messages of one file; without ``chunk`` there is one, which may be empty."""
    if chunk is None:
        data = _up_to(source, LONGEST + 1)
        if len(data) > LONGEST:
            raise MxwireError(
                f"{name} is longer than a message can be ({LONGEST} bytes): send it in several messages, with --chunk"
            )
        yield name, data
        return
    number = 0
    while data := _up_to(source, chunk):
        number += 1
        yield f"{name} piece {number}", data


def _up_to(source: IO[bytes], most: int) -> bytearray:
    """Read at most ``most`` bytes; memory grows with the bytes read."""
    data = bytearray()
    while len(data) < most and (some := source.read(min(_READ_BYTES, most - len(data)))):
        data += some
    return data
