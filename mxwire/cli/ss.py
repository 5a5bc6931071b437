"""``mxwire ss``: the state of mxwire's hosts on this machine."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from mxwire.cli.group import Command
from mxwire.cli.notes import end_interrupted_line, note, print_record
from mxwire.cli.options import amount_option, flag_option, json_option

_CLEAR = "\x1b[H\x1b[J"


@click.command(cls=Command)
@flag_option("Repeat until Ctrl-C.", "--watch")
@amount_option("Seconds between two updates.", "--refresh", "interval", default=1.0)
@json_option("JSON Lines: one object per host.")
def command(watch: bool, interval: float, as_json: bool) -> None:
    """Show the state of the hosts that mxwire runs on this machine: endpoints, partners, sequence numbers, windows,
    queues and timers.

    Each host of mxwire on an Ethernet interface reports its state through a Unix socket in the runtime folder of its
    user (/run/mxwire for root), which only that user can open.
    """
    try:
        found = _report(as_json, clear=watch)
        while watch:
            time.sleep(interval)
            _report(as_json, clear=True)
    except KeyboardInterrupt:
        end_interrupted_line()
        sys.exit(130)
    if not found:
        sys.exit(1)


def _report(as_json: bool, *, clear: bool) -> bool:
    """Print all states once; return whether there are any."""
    from mxwire.host.state_socket import read_states

    states = list(read_states())
    if clear and not as_json and sys.stdout.isatty():
        click.echo(_CLEAR, nl=False)
    for each in states:
        if as_json:
            print_record(each)
        elif "error" in each:
            note(f"process {each.get('pid')}: {each['error']}")
        else:
            _show(each)
    if not states:
        note("no host of this user is running on this machine (mxwire serve runs one)")
    sys.stdout.flush()
    return bool(states)


def _show(state: dict[str, Any]) -> None:
    from mxwire.report.document import show
    from mxwire.report.state import state_blocks

    try:
        blocks = state_blocks(state)
    except (KeyError, TypeError, ValueError):
        note(f"process {state.get('pid')}: its state has another form; does it run another version of mxwire?")
    else:
        show(blocks)
        click.echo()
