"""``mxwire agent``: a process that runs the endpoints of other programs on an interface."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from mxwire.cli.group import Command
from mxwire.cli.live_options import LiveOptions, end_like_interrupt
from mxwire.cli.notes import EventReport, counted
from mxwire.cli.option_class import takes
from mxwire.cli.options import amount_option, json_option

if TYPE_CHECKING:
    from mxwire.host.agent import AgentClient


@click.command(cls=Command)
@takes(LiveOptions, name="live")
@amount_option(
    "Seconds after the last frame or record for which the agent polls without sleeping.",
    "--spin",
    default=0.0,
    zero=True,
)
@json_option("JSON Lines: one object per event.")
def command(live: LiveOptions, spin: float, as_json: bool) -> None:
    """Own an interface, and run card and library of other programs' endpoints, until Ctrl-C."""
    from mxwire.host.agent import Agent

    end_like_interrupt()
    reporter = _AgentReporter(as_json)
    interrupted = False
    with (
        live.open(background=False) as host,
        Agent(host, spin=spin, dedicated=True, on_change=reporter.change) as agent,
    ):
        try:
            reporter.begin(live, host.name, agent)
            agent.run()
        except KeyboardInterrupt:
            # Ctrl-C is the usual way to end the command.
            interrupted = True
        reporter.end(len(agent.clients))
    if interrupted:
        sys.exit(130)


class _AgentReporter(EventReport):
    """Prints a line per program that attaches or leaves."""

    def __init__(self, as_json: bool) -> None:
        super().__init__(as_json)
        self._started = time.monotonic()
        self._served = 0

    def begin(self, live: LiveOptions, name: str, agent: object) -> None:
        """Print the interface."""
        dialect = live.dialect or "mxoe"
        self.emit("serving", what="agent", interface=live.interface, host=name, dialect=dialect)
        self.print(f"agent on {live.interface} as {name}, dialect {dialect}; Ctrl-C ends it")

    def change(self, client: AgentClient, attached: bool, reason: str) -> None:
        """Print a program that has attached, or its end."""
        self._served += attached
        who = f"process {client.process} ({client.program})"
        if attached:
            self.emit("attached", pid=client.process, program=client.program)
            self.print(f"{who} attached")
        else:
            self.emit("detached", pid=client.process, program=client.program, reason=reason)
            self.print(f"{who} {reason}")

    def end(self, left: int) -> None:
        """Print the summary."""
        seconds = time.monotonic() - self._started
        self.emit("summary", seconds=round(seconds, 3), programs=self._served, left=left)
        self.print(f"served {counted(self._served, 'program')} in {seconds:.1f} s")
