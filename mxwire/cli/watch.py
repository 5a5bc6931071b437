"""``mxwire watch``: metrics of an interface for Prometheus."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from mxwire.cli import options as shared
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.notes import EventReport, note
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.option_groups import DecodingOptions, Inputs
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.analysis.snapshot import OpenFinding, TrafficSnapshot
    from mxwire.report.prometheus import TrafficCollector

_MAX_PAIRS = 1024
_DEFAULT_HOST = "127.0.0.1"


def _address(value: str) -> tuple[str, int]:
    """An option type: ``:9086``, ``9086``, ``127.0.0.1:9086`` or ``[::1]:9086``; no host stands for 127.0.0.1."""
    host, _, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise click.BadParameter(f"{value!r} is not an address: write :9086, or 127.0.0.1:9086")
    return host or _DEFAULT_HOST, int(port)


@options_class
class WatchOptions:
    """The options of mxwire watch."""

    interface: str = shared.interface_option(required=True)
    address: tuple[str, int] = option(
        "Serve metrics at http://HOST:PORT/metrics; without HOST on 127.0.0.1.",
        "--prometheus [HOST]:PORT",
        type=_address,
        required=True,
    )
    seconds: float | None = shared.duration_option(None, "End after S seconds.")
    pairs: int = shared.integer_option(
        "Maximum number of pairs of hosts with metrics of their own.",
        "--max-pairs",
        least=1,
        most=65536,
        default=_MAX_PAIRS,
    )
    filters: FilterOptions = group(FilterOptions, "messages", "frames", "between")
    as_json: bool = shared.json_option(
        "JSON Lines: one object when serving begins, and per finding that opens or closes."
    )
    decoding: DecodingOptions = group(DecodingOptions)


@command_with(WatchOptions)
def command(options: WatchOptions) -> None:
    """Serve metrics of the frames that pass an interface to Prometheus, until Ctrl-C.

    Findings of mxwire diagnose are printed when they open and close.
    """
    from mxwire.cli.observation import observation
    from mxwire.extras import import_extra

    import_extra("prometheus_client", "watch", "mxwire watch")
    inputs = Inputs((), options.interface, options.seconds)
    report = EventReport(options.as_json)
    with (
        _served(options.address) as (collector, port),
        observation(inputs, options.decoding, options.filters, interval=1.0, pairs=options.pairs) as observed,
    ):
        note(f"metrics at http://{options.address[0]}:{port}/metrics")
        report.emit("serving", interface=options.interface, host=options.address[0], port=port)
        news = _FindingNews(report)
        for snapshot in observed.run():
            collector.snapshot = snapshot
            news.report(snapshot)
            news.report_starvation(snapshot)


@contextmanager
def _served(address: tuple[str, int]) -> Iterator[tuple[TrafficCollector, int]]:
    """Serve metrics by a thread; yield their collector, and the port.

    Raises :class:`~mxwire.errors.MxwireError` if the address cannot be used.
    """
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest

    from mxwire.cli.metrics_server import served
    from mxwire.report.prometheus import TrafficCollector

    registry = CollectorRegistry()
    collector = TrafficCollector()
    registry.register(collector)
    ProcessCollector(registry=registry)
    # Generated once per snapshot, since any number of clients may request it.
    newest: tuple[TrafficSnapshot | None, bytes] = (None, generate_latest(registry))

    def page() -> bytes:
        nonlocal newest
        snapshot = collector.snapshot
        if newest[0] is not snapshot:
            newest = (snapshot, generate_latest(registry))
        return newest[1]

    host, port = address
    with ExitStack() as stack:
        try:
            port = stack.enter_context(served(host, port, page, CONTENT_TYPE_LATEST))
        except OSError as error:
            # Python adds the address to the text, except to that of unknown names, whose numbers are negative.
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or error
            raise MxwireError(f"{host}:{port}: metrics cannot be served: {reason}") from None
        yield collector, port


class _FindingNews:
    """Reports findings that open and close, each once."""

    def __init__(self, report: EventReport) -> None:
        self._report = report
        self._open: dict[object, OpenFinding] = {}
        self._starved_ns = 0

    def report(self, snapshot: TrafficSnapshot) -> None:
        """Compare with the findings of the previous snapshot."""
        now: dict[object, OpenFinding] = {(each.finding.id, each.finding.concerns): each for each in snapshot.findings}
        for key, each in now.items():
            if key not in self._open:
                self._print("opened", each, snapshot)
        for key, each in self._open.items():
            if key not in now:
                self._print("closed", each, snapshot)
        self._open = now

    def report_starvation(self, snapshot: TrafficSnapshot) -> None:
        """Report that this process has lacked the processor since the previous snapshot."""
        from mxwire.words import starvation_text

        more_ns = snapshot.starved_ns - self._starved_ns
        self._starved_ns = snapshot.starved_ns
        if more_ns > 0:
            self._report.print(f"{self._time(snapshot)} starved: {starvation_text(more_ns)}")
            self._report.emit("starved", time_ns=snapshot.time_ns, starved_ns=more_ns)

    @staticmethod
    def _time(snapshot: TrafficSnapshot) -> str:
        from mxwire.report.times import day_text

        return f"{day_text(snapshot.time_ns, 0)[:8]} UTC"

    def _print(self, event: str, found: OpenFinding, snapshot: TrafficSnapshot) -> None:
        from mxwire.report.traffic import finding_record, finding_text, labels_of

        self._report.print(f"{self._time(snapshot)} {event}: {finding_text(found, labels_of(snapshot))}")
        self._report.emit(event, time_ns=snapshot.time_ns, **finding_record(found, snapshot.names))
