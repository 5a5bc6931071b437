"""What ``mxwire serve`` does, and what it says."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

import click

from mxwire.cli.live import Live, end_like_interrupt
from mxwire.cli.notes import counted, note
from mxwire.host import Host, HostTimeoutError
from mxwire.host.requests import place_of
from mxwire.host.service import Client, Service, ServiceCounts
from mxwire.host.stall import DialectMonitor
from mxwire.report.json_line import json_line

_TURN: Final = 0.25
"""Seconds between looks whether there is something to say."""
_ERASED: Final = "\r\x1b[K"
"""Takes the line of counts off the terminal, and a ^C echoed into it."""
_INTERRUPTED: Final = 130
_CLIENTS_A_TURN: Final = 5
_TURNS_FOR_A_NAME: Final = 6
"""How long we wait for new clients to tell their names."""


def serve(live: Live, *, echo: bool, endpoints: tuple[int, ...], key: int, every: float, as_json: bool) -> None:
    """Serve until interrupted."""
    end_like_interrupt()
    with live.open(spin=0.001) as host:
        service = Service([host.open_endpoint(each, key) for each in endpoints], echo=echo)
        teller = _Teller(host, service, every, as_json)
        interrupted = False
        try:
            teller.begin(live, endpoints, key)
            while True:
                with suppress(HostTimeoutError):
                    host.driver.wait(service, _TURN)
                teller.turn()
        except KeyboardInterrupt:
            # The usual end of it, and no failure that it must report.
            interrupted = True
        finally:
            teller.end()
    if interrupted:
        sys.exit(_INTERRUPTED)


class _Teller:
    """Says who comes and how much is served, but not too often."""

    def __init__(self, host: Host, service: Service, every: float, as_json: bool) -> None:
        self._host = host
        self._service = service
        self._every = every
        self._as_json = as_json
        self._live_line = not as_json and sys.stderr.isatty()
        self._started = time.monotonic()
        self._said = self._started
        self._last = ServiceCounts()
        self._introduced = self._turns = 0
        self._strangers = DialectMonitor(host.core)

    def begin(self, live: Live, endpoints: tuple[int, ...], key: int) -> None:
        what = "echo" if self._service.echo else "sink"
        dialect = live.dialect or "mxoe"
        self._tell("serving", what=what, host=self._host.name, endpoints=list(endpoints), key=key, dialect=dialect)
        if not self._as_json:
            numbers = ", ".join(map(str, endpoints))
            click.echo(
                f"{what} on {live.interface} as {self._host.name}, endpoint{'s' * (len(endpoints) > 1)} {numbers}, "
                f"key {key:#x}, dialect {dialect}; Ctrl-C ends it"
            )
        sys.stdout.flush()

    def turn(self) -> None:
        """Say what is new, as far as it is time to."""
        for text in self._strangers.found():
            note(text)
            self._tell("note", text=text)
        self._introduce()
        now = time.monotonic()
        counts = self._service.counts
        if self._live_line:
            if counts != self._last:
                clients = counted(len(self._service.clients), "client")
                click.echo(f"{_ERASED}{_text(counts)} from {clients}", nl=False, err=True)
                self._last = replace(counts)
        elif now - self._said >= self._every and counts != self._last:
            self._progress(now)

    def _progress(self, now: float) -> None:
        counts, seconds = self._service.counts, now - self._said
        rate = (counts.bytes - self._last.bytes) / seconds
        self._tell("progress", seconds=round(now - self._started, 3), bytes_per_second=round(rate), **asdict(counts))
        if not self._as_json:
            click.echo(f"{now - self._started:.0f} s: {_text(counts)}, {rate / 1e6:,.1f} MB/s now")
        sys.stdout.flush()
        self._said, self._last = now, replace(counts)

    def _introduce(self) -> None:
        """Name the new clients; many at once only by their number."""
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
            self._tell("client", **_who(client))
            self._say(f"{place_of(client.partner)} has come")
        more = len(new) - _CLIENTS_A_TURN
        if more > 0:
            self._tell("clients", more=more)
            self._say(f"and {more} more")
        sys.stdout.flush()

    def end(self) -> None:
        """The summary."""
        self._strangers.close()
        self._turns = _TURNS_FOR_A_NAME
        self._introduce()
        seconds = time.monotonic() - self._started
        service = self._service
        if self._as_json:
            for client in service.clients.values():
                self._tell("served", **_who(client), **asdict(client.counts))
            self._tell("summary", seconds=round(seconds, 3), clients=len(service.clients), **asdict(service.counts))
        else:
            self._say(
                f"served {_text(service.counts)} from {counted(len(service.clients), 'client')} in {seconds:.1f} s"
            )
        sys.stdout.flush()

    def _say(self, text: str) -> None:
        if self._live_line:
            click.echo(_ERASED, nl=False, err=True)
        if not self._as_json:
            click.echo(text)

    def _tell(self, event: str, **what: Any) -> None:
        if self._as_json:
            click.echo(json_line({"event": event, **what}))


def _who(client: Client) -> dict[str, Any]:
    peer = client.partner.peer
    return {"host": peer.name, "address": peer.address.hex(":"), "endpoint": client.partner.number}


def _text(counts: ServiceCounts) -> str:
    parts = [f"{counted(counts.messages, 'message')}, {counted(counts.bytes, 'byte')}"]
    flaws = {"truncated": counts.truncated, "refused": counts.refused, "failed": counts.failed}
    parts += [f"{count:,} {name}" for name, count in flaws.items() if count]
    return ", ".join(parts)
