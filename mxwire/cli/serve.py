"""``mxwire serve``: endpoints that echo or consume messages, for tests and measurements."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from mxwire.cli.group import command_with
from mxwire.cli.live_options import MEETING_POINT, LiveOptions, end_like_interrupt
from mxwire.cli.notes import EventReport, counted, note
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.options import endpoint_option, every_option, json_option, key_option
from mxwire.cli.progress import LiveLine
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.host import Host
    from mxwire.host.service import Client, Service, ServiceCounts


_TURN: Final = 0.25
"""Seconds between two checks for news to print."""
_CLIENTS_A_TURN: Final = 5
_TURNS_FOR_A_NAME: Final = 6
"""Turns during which new clients may still send their names."""


@options_class
class ServeOptions:
    """The options of mxwire serve."""

    live: LiveOptions = group(LiveOptions)
    echo: bool = option("Send messages back, or only count them.  [default: echo]", "--echo/--sink", default=True)
    endpoints: tuple[int, ...] = endpoint_option(
        f"Endpoint to open; may be repeated.  [default: {MEETING_POINT}]", multiple=True
    )
    key: int = key_option
    every: float = every_option
    as_json: bool = json_option("JSON Lines: one object per event.")


@command_with(ServeOptions)
def command(options: ServeOptions) -> None:
    """Open endpoints that echo or consume the messages sent to them, until Ctrl-C."""
    twice = sorted(each for each in set(options.endpoints) if options.endpoints.count(each) > 1)
    if twice:
        raise MxwireError(f"--endpoint {twice[0]} is given twice: an endpoint can be opened only once")
    from mxwire.host import HostTimeoutError
    from mxwire.host.service import Service

    end_like_interrupt()
    endpoints = options.endpoints or (MEETING_POINT,)
    # A short poll catches the next message of an exchange without a sleep, and costs an idle server nothing.
    with options.live.open(spin=0.001) as host:
        service = Service([host.open_endpoint(each, options.key) for each in endpoints], echo=options.echo)
        reporter = _ServiceReporter(host, service, options)
        interrupted = False
        try:
            reporter.begin(endpoints)
            while True:
                with suppress(HostTimeoutError):
                    host.driver.wait(service, _TURN)
                reporter.turn()
        except KeyboardInterrupt:
            # Ctrl-C is the usual way to end the command.
            interrupted = True
        finally:
            reporter.end()
    if interrupted:
        sys.exit(130)


class _ServiceReporter(EventReport):
    """Prints new clients and the served amounts, at limited intervals."""

    def __init__(self, host: Host, service: Service, options: ServeOptions) -> None:
        from mxwire.host.service import ServiceCounts
        from mxwire.host.stall import DialectMonitor

        super().__init__(options.as_json)
        self._host = host
        self._service = service
        self._options = options
        self._line = LiveLine(not self.as_json)
        self._started = time.monotonic()
        self._reported = self._started
        self._last = ServiceCounts()
        self._introduced = self._turns = 0
        self._strangers = DialectMonitor(host.core)

    def begin(self, endpoints: tuple[int, ...]) -> None:
        what = "echo" if self._service.echo else "sink"
        live, key = self._options.live, self._options.key
        dialect = live.dialect or "mxoe"
        self.emit("serving", what=what, host=self._host.name, endpoints=list(endpoints), key=key, dialect=dialect)
        self.print(
            f"{what} on {live.interface} as {self._host.name}, endpoint{'s' * (len(endpoints) > 1)} "
            f"{', '.join(map(str, endpoints))}, key {key:#x}, dialect {dialect}; Ctrl-C ends it"
        )

    def turn(self) -> None:
        """Print news, if the interval has passed."""
        for text in self._strangers.found():
            note(text)
            self.emit("note", text=text)
        self._introduce()
        now = time.monotonic()
        counts = self._service.counts
        if self._line.shown:
            if counts != self._last:
                clients = counted(len(self._service.clients), "client")
                self._line.show(f"{_text(counts)} from {clients}")
                self._last = replace(counts)
        elif now - self._reported >= self._options.every and counts != self._last:
            self._progress(now)

    def _progress(self, now: float) -> None:
        counts, seconds = self._service.counts, now - self._reported
        rate = (counts.bytes - self._last.bytes) / seconds
        self.emit("progress", seconds=round(now - self._started, 3), bytes_per_second=round(rate), **asdict(counts))
        self.print(f"{now - self._started:.0f} s: {_text(counts)}, {rate / 1e6:,.1f} MB/s now")
        self._reported, self._last = now, replace(counts)

    def _introduce(self) -> None:
        """Print new clients: the first by name, the others as a number."""
        from mxwire.host.requests import place_of

        clients = self._service.clients
        if len(clients) == self._introduced:
            return
        new = list(clients.values())[self._introduced :]
        self._turns += 1
        if self._turns < _TURNS_FOR_A_NAME and any(each.partner.peer.name is None for each in new):
            return
        self._turns = 0
        self._introduced = len(clients)
        for client in new[:_CLIENTS_A_TURN]:
            self.emit("client", **_client_record(client))
            self.print(f"{place_of(client.partner)} connected")
        more = len(new) - _CLIENTS_A_TURN
        if more > 0:
            self.emit("clients", more=more)
            self.print(f"and {more} more")

    def end(self) -> None:
        """Print the summary."""
        self._strangers.close()
        self._turns = _TURNS_FOR_A_NAME
        self._introduce()
        seconds = time.monotonic() - self._started
        service = self._service
        if self.as_json:
            for client in service.clients.values():
                self.emit("served", **_client_record(client), **asdict(client.counts))
            self.emit("summary", seconds=round(seconds, 3), clients=len(service.clients), **asdict(service.counts))
        else:
            self.print(
                f"served {_text(service.counts)} from {counted(len(service.clients), 'client')} in {seconds:.1f} s"
            )

    def print(self, text: str, to_stderr: bool = False) -> None:
        """Print a line in place of the counts on the terminal, unless the output is JSON."""
        self._line.show()
        super().print(text, to_stderr)


def _client_record(client: Client) -> dict[str, Any]:
    peer = client.partner.peer
    return {"host": peer.name, "address": peer.address.hex(":"), "endpoint": client.partner.number}


def _text(counts: ServiceCounts) -> str:
    parts = [f"{counted(counts.messages, 'message')}, {counted(counts.bytes, 'byte')}"]
    flaws = {"truncated": counts.truncated, "refused": counts.refused, "failed": counts.failed}
    parts += [f"{count:,} {name}" for name, count in flaws.items() if count]
    return ", ".join(parts)
