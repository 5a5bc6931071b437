"""``mxwire receive``: messages to files, or to standard output."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from mxwire.cli import options as shared
from mxwire.cli.conflicts import requires
from mxwire.cli.group import command_with
from mxwire.cli.live_options import MEETING_POINT, LiveOptions, end_like_interrupt
from mxwire.cli.notes import counted, note
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.progress import Bar, bar
from mxwire.cli.send import TransferReport
from mxwire.errors import MxwireError, OutputError

if TYPE_CHECKING:
    from mxwire.host import Endpoint, Message, WaitingMessage
    from mxwire.host.stall import DialectMonitor

_ALL: Final = (1 << 64) - 1
_LINGER: Final = 2.0
"""Seconds in which the last acknowledgements may still be sent."""
_STANDSTILL: Final = 30.0
"""Seconds without progress within a message, unless --timeout sets them."""
_NAME_TIME: Final = 0.2
"""Seconds to wait for the name of a sender, which is only for the report."""


@requires("--mask", one_of=("--match",), error="--mask selects bits of --match: give both")
@options_class
class ReceiveOptions:
    """The options of mxwire receive."""

    live: LiveOptions = group(LiveOptions)
    output: str = option(
        "The file for the data; - (the default) is standard output.",
        "-o FILE|-",
        default="-",
        type=shared.FILE,
        show_default=False,
    )
    endpoint: int = shared.endpoint_option("Endpoint to open.", default=MEETING_POINT)
    key: int = shared.key_option
    match: int | None = option(
        "Receive only messages with this match info.  [default: all]", "--match N", type=shared.number_type(_ALL)
    )
    given_mask: int | None = option(
        "The bits of --match to compare.  [default: all]", "--mask N", type=shared.number_type(_ALL)
    )
    count: int = shared.integer_option("Stop after N messages; 0: no limit.", "-c", "--count", default=1)
    maximum: int = shared.integer_option(
        "Longest message; longer ones are truncated.", "--maximum BYTES", most=(1 << 32) - 1, default=1 << 30
    )
    timeout: float | None = shared.timeout_option(
        None, "Seconds without a message or progress until it ends.  [default: no limit for a message, 30 within one]"
    )
    as_json: bool = shared.json_option("JSON Lines: one object per message; data only with -o.")

    @property
    def mask(self) -> int:
        """The bits of the match information to compare."""
        return _ALL if self.given_mask is None else self.given_mask


@command_with(ReceiveOptions)
def command(options: ReceiveOptions) -> None:
    """Receive messages, and write them to files or standard output."""
    if options.match is not None and options.match & ~options.mask:
        raise MxwireError(
            f"--match {options.match:#x} has bits outside of --mask {options.mask:#x}: no message would match"
        )
    if not _receive(options):
        sys.exit(1)


def _receive(options: ReceiveOptions) -> bool:
    """Receive messages; return True if all of them are complete."""
    from mxwire.host import HostClosedError, HostError
    from mxwire.host.stall import DialectMonitor

    end_like_interrupt()
    to_stdout = options.output == "-" and not options.as_json
    with options.live.open(spin=0.001) as host, _Outputs(options) as outputs:
        endpoint = host.open_endpoint(options.endpoint, options.key)
        note(f"waiting for messages as {host.name} endpoint {options.endpoint}")
        report, strangers = TransferReport(options.as_json), DialectMonitor(host.core)
        try:
            while not options.count or report.messages < options.count:
                with bar("", None, "bytes") as shown:
                    message = _one(endpoint, options, strangers, shown)
                report.messages += 1
                outputs.write(report.messages, message.data)
                _report_received(report, message, to_stdout)
            endpoint.close(_LINGER)
        except HostClosedError:
            raise
        except HostError as error:
            report.failed("ended", error)
            report.short += 1
        except MemoryError:
            report.short += 1
            raise
        finally:
            report.summary("received", "incomplete" if report.short else "success", to_stdout)
    return not report.short


def _first(endpoint: Endpoint, options: ReceiveOptions, strangers: DialectMonitor) -> WaitingMessage:
    """Wait for a message, and note possible reasons why none comes."""
    from mxwire.host import HostTimeoutError
    from mxwire.host.stall import SLICE

    until = None if options.timeout is None else time.monotonic() + options.timeout
    while True:
        left = SLICE if until is None else min(SLICE, until - time.monotonic())
        try:
            return endpoint.probe(options.match, options.mask, timeout=max(left, 0.0))
        except HostTimeoutError:
            if until is not None and time.monotonic() >= until:
                raise HostTimeoutError(f"no message arrived within {options.timeout:g} s") from None
        for text in strangers.found():
            note(text)


def _one(endpoint: Endpoint, options: ReceiveOptions, strangers: DialectMonitor, shown: Bar) -> Message:
    from mxwire.host import HostTimeoutError
    from mxwire.host.stall import wait_observed

    waiting = _first(endpoint, options, strangers)
    # The name is only for the report, which shows the address if no name arrives in time.
    with suppress(HostTimeoutError):
        endpoint.host.wait_for_peer(waiting.partner.peer.address, _NAME_TIME)
    size = min(waiting.length, options.maximum)
    try:
        # Pass a separate buffer, because the engine truncates a message if it has no memory for it.
        request = endpoint.ireceive(options.match, options.mask, buffer=bytearray(size))
    except MemoryError:
        raise MemoryError(
            f"a message of {counted(waiting.length, 'byte')} does not fit into memory: see --maximum"
        ) from None

    def tick() -> None:
        arrived = sum(each.requested for each in endpoint.engine.card.pulls.values() if each.context is request.inner)
        shown.update(arrived, size)

    return wait_observed(endpoint, request, waiting.partner, options.timeout or _STANDSTILL, tick)


def _report_received(report: TransferReport, message: Message, to_stderr: bool) -> None:
    from mxwire.host.requests import place_of

    assert message.partner is not None
    report.bytes += len(message)
    report.short += message.truncated
    source = message.partner
    report.emit(
        "message",
        number=report.messages,
        host=source.peer.name,
        address=source.peer.address.hex(":"),
        endpoint=source.number,
        match=message.match_info,
        bytes=len(message),
        length=message.length,
        status=message.status.text,
    )
    cut = f" of {message.length:,}, the rest was cut off (message truncated: see --maximum)" * message.truncated
    report.print(
        f"message {report.messages} from {place_of(source)}, match {message.match_info:#x}: "
        f"{counted(len(message), 'byte')}{cut}",
        to_stderr,
    )


class _Outputs:
    """The files of the messages, or standard output."""

    def __init__(self, options: ReceiveOptions) -> None:
        self._name = options.output
        self._silent = options.as_json and options.output == "-"
        self._each = "{}" in options.output
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
            raise OutputError.of(name, error) from None

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
        raise OutputError.of(name, error) from None
