"""``mxwire top``: pairs of hosts, their rates and findings, live on the whole screen."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import click

from mxwire.cli import options as shared
from mxwire.cli.filters import FilterOptions, filter_options
from mxwire.cli.group import Command
from mxwire.cli.notes import note
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.analysis.snapshot import TrafficSnapshot
    from mxwire.cli.observation import Observation

SORTS = ("frames", "bytes", "messages", "retransmits", "flight", "oldest", "dialect")
_ONCE = 3.0
"""Seconds for which --once observes an interface: the time over which rates are averaged."""


@click.command(cls=Command)
@shared.input_options
@click.option("--once", is_flag=True, help="Print one report: of a whole FILE, or of 3 seconds (--duration).")
@shared.json_option("JSON Lines: one object per interval, or one with --once.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="bytes",
    show_default=True,
    help="Order of the pairs, largest first.",
)
@shared.amount_option("Seconds between two updates.", "--refresh", "interval", default=1.0)
@filter_options("messages")
@shared.decoding_options
def command(
    inputs: shared.Inputs,
    once: bool,
    as_json: bool,
    sort: str,
    interval: float,
    filters: FilterOptions,
    decoding: shared.DecodingOptions,
) -> None:
    """Show pairs of hosts, hosts and findings live: rates, messages in flight, retransmissions, and the oldest
    unanswered message.

    FILE is played at its own pace. Findings are those of mxwire diagnose, as they appear.
    """
    from mxwire.cli.observation import observation

    if once and inputs.live and inputs.seconds is None:
        inputs = shared.Inputs(inputs.files, inputs.interface, _ONCE)
    if once or as_json:
        with observation(inputs, decoding, filters, interval=interval, paced=not once) as observed:
            _print(observed, once=once, as_json=as_json, sort=sort)
        return
    # Textual reads standard input and writes to standard error.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise MxwireError("top needs a terminal: use --once for one report, --json for objects")
    from mxwire.extras import import_extra

    import_extra("textual", "top", "the screen of mxwire top")
    with observation(inputs, decoding, filters, interval=interval, quiet=True) as observed:
        _show(observed, inputs.names[0], interval, sort)


def _print(observed: Observation, *, once: bool, as_json: bool, sort: str) -> None:
    from mxwire.cli.reading import refuse_empty
    from mxwire.report.document import show
    from mxwire.report.json_line import json_line
    from mxwire.report.traffic import traffic_blocks, traffic_record

    def output(snapshot: TrafficSnapshot) -> None:
        if as_json:
            click.echo(json_line(traffic_record(snapshot, sort), snapshot.first_ns))
        else:
            show(traffic_blocks(snapshot, sort))
        sys.stdout.flush()

    for snapshot in observed.run(empty=as_json and not once):
        if not once:
            output(snapshot)
    refuse_empty(observed.origin, observed.observer.decoder, observed.selection)
    if once and observed.latest is not None:
        output(observed.latest)


def _show(observed: Observation, name: str, interval: float, sort: str) -> None:
    from mxwire.report.top import TopApp

    def watch(pair: tuple[int, int] | None) -> None:
        observed.observer.watched = pair

    app = TopApp(name, lambda: observed.latest, watch, lambda: observed.state, interval=interval, sort=sort)
    worker = threading.Thread(target=observed.run_all, name="mxwire-observer", daemon=True)
    worker.start()
    try:
        app.run()
    finally:
        observed.stop()
        worker.join(5.0)
    if observed.latest is None and observed.error is None:
        note(f"{name}: no MXoE frame passed")
