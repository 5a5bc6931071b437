"""``mxwire top``: pairs of hosts, their rates and findings, live on the whole screen."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from mxwire.cli import options as shared
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.notes import note, print_record
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.option_groups import DecodingOptions, Inputs
from mxwire.cli.reading import refuse_empty
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.analysis.snapshot import TrafficSnapshot
    from mxwire.cli.observation import Observation

SORTS = ("frames", "bytes", "messages", "retransmits", "flight", "oldest", "dialect")
_ONCE = 3.0
"""Seconds for which --once observes an interface: the time over which rates are averaged."""


@options_class
class TopOptions:
    """The options of mxwire top."""

    inputs: Inputs = group(Inputs)
    once: bool = shared.flag_option("Print one report: of a whole FILE, or of 3 seconds (--duration).", "--once")
    as_json: bool = shared.json_option("JSON Lines: one object per interval, or one with --once.")
    sort: str = option("Order of the pairs, largest first.", "--sort", type=click.Choice(SORTS), default="bytes")
    interval: float = shared.amount_option("Seconds between two updates.", "--refresh", default=1.0)
    filters: FilterOptions = group(FilterOptions, "messages")
    decoding: DecodingOptions = group(DecodingOptions)


@command_with(TopOptions)
def command(options: TopOptions) -> None:
    """Show pairs of hosts, hosts and findings live: rates, messages in flight, retransmissions, and the oldest
    unanswered message.

    FILE is played at its own pace. Findings are those of mxwire diagnose, as they appear.
    """
    from mxwire.cli.observation import observation

    inputs, interval = options.inputs, options.interval
    if options.once and inputs.live and inputs.seconds is None:
        inputs = replace(inputs, seconds=_ONCE)
    observed_by = partial(observation, inputs, options.decoding, options.filters, interval=interval)
    if options.once or options.as_json:
        with observed_by(paced=not options.once) as observed:
            _print(observed, options)
        return
    # Textual reads standard input and writes to standard error.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise MxwireError("top needs a terminal: use --once for one report, --json for objects")
    from mxwire.extras import import_extra

    import_extra("textual", "top", "the screen of mxwire top")
    with observed_by(quiet=True) as observed:
        _show(observed, inputs.names[0], options)


def _print(observed: Observation, options: TopOptions) -> None:
    from mxwire.report.document import show
    from mxwire.report.traffic import traffic_blocks, traffic_record

    def output(snapshot: TrafficSnapshot) -> None:
        if options.as_json:
            print_record(traffic_record(snapshot, options.sort), snapshot.first_ns)
        else:
            show(traffic_blocks(snapshot, options.sort))
        sys.stdout.flush()

    for snapshot in observed.run(empty=options.as_json and not options.once):
        if not options.once:
            output(snapshot)
    refuse_empty(observed.origin, observed.observer.decoder, observed.selection)
    if options.once and observed.latest is not None:
        output(observed.latest)


def _show(observed: Observation, name: str, options: TopOptions) -> None:
    from mxwire.report.top import TopApp

    def watch(pair: tuple[int, int] | None) -> None:
        observed.observer.watched = pair

    app = TopApp(
        name, lambda: observed.latest, watch, lambda: observed.state, interval=options.interval, sort=options.sort
    )
    worker = threading.Thread(target=observed.run_all, name="mxwire-observer", daemon=True)
    worker.start()
    try:
        app.run()
    finally:
        observed.stop()
        # At most 5 s: the thread may wait for a slow pipe, and ends with the process.
        worker.join(5.0)
    if observed.latest is None and observed.error is None:
        note(f"{name}: no MXoE frame passed")
