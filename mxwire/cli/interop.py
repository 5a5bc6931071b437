"""``mxwire interop``: who can talk to whom, and where exactly not?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.completion import catalogued, cells, folders, offers
from mxwire.cli.group import CommandGroup
from mxwire.cli.interop_diff import command as diff

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EPILOG = """\b
Examples:
  mxwire interop                                          all simulated implementations, in under a minute
  mxwire interop --implementation native-mx --implementation open-mx-1.5      these two, both ways
  mxwire interop --case sizes --impairment heavy-loss     one group of cases, on a bad link
  mxwire interop --html report                            a site with a page a cell, and the captures
  mxwire interop --cell open-mx-1.5/native-mx/size-medium/loss --seed 3       one cell again
  sudo mxwire interop examples/two-namespaces.toml        live hosts, as the file describes them
  mxwire interop --json | jq -r 'select(.verdict == "fail") | .name'
  mxwire interop diff old-report report                   what has changed

\b
Verdicts: pass (as expected: it works, or fails in the documented way); info (the same, with known defects seen);
non-strict (the same, but what is only recommended was not done); fail; missing (not played, with the reason).
Exit code: 0 all as expected, 1 something is not, 2 it could not be played, 130 interrupted (what was played is told).
"""


class _Group(CommandGroup):
    """Runs the matrix, unless the first word is a subcommand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [each for each in super().list_commands(ctx) if each != "run"]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Those of the matrix, to be told of; it takes them itself."""
        own = super().get_params(ctx)
        known = {name for each in own for name in each.opts}
        options = [each for each in self.commands["run"].params if isinstance(each, click.Option)]
        return [each for each in options if known.isdisjoint(each.opts)] + own

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "[CONFIG.toml]"]


def _complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, and the subcommand: the group itself completes neither, as it takes the matrix for one."""
    from click.shell_completion import CompletionItem

    named = [
        CompletionItem(name) for name in command.list_commands(_context) if incomplete and name.startswith(incomplete)
    ]
    return [*named, CompletionItem(incomplete, type="file")]


class _Unnamed(click.Context):
    """What the group does without a subcommand is called as the group is."""

    @property
    def command_path(self) -> str:
        assert self.parent is not None
        return self.parent.command_path


class _Matrix(click.Command):
    context_class = _Unnamed


@click.group(cls=_Group, epilog=EPILOG)
def command(**_: Any) -> None:
    """Put implementations against each other: which cases work between them, which fail, and why.

    Without a file, all are simulated: releases of Open-MX in both formats, as they should be and as they are, and
    native MX. A file describes live hosts: interfaces of this machine, and external hosts with what is to be run there.
    """


@command.command("run", cls=_Matrix, hidden=True, epilog=EPILOG)
@click.argument("config", metavar="[CONFIG.toml]", required=False, shell_complete=_complete)
@click.option(
    "--implementation",
    "implementations",
    metavar="NAME",
    multiple=True,
    shell_complete=offers(catalogued("implementation")),
    help="Only these; repeat.",
)
@click.option(
    "--case",
    "cases",
    metavar="NAME",
    multiple=True,
    shell_complete=offers(catalogued("case")),
    help="Only these cases or groups of cases; repeat.",
)
@click.option(
    "--impairment",
    "impairments",
    metavar="NAME",
    multiple=True,
    shell_complete=offers(catalogued("impairment")),
    help="With these only, in all cases; repeat.",
)
@click.option(
    "--cell", "cells", metavar="L/R/CASE/IMP", multiple=True, shell_complete=cells, help="Only this cell; repeat."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, metavar="N", help="Of all randomness.  [default: 1]")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: one a processor]")
@click.option(
    "--html", metavar="DIR", shell_complete=folders, help="Write a site there: the matrix, a page a cell, captures."
)
@click.option(
    "--report", "folder", metavar="DIR", shell_complete=folders, help="Write report and captures there, without pages."
)
@click.option("--force", is_flag=True, help="Replace what is in DIR.")
@click.option("--list", "listing", is_flag=True, help="List implementations, cases and impairments, and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--junit", "as_junit", is_flag=True, help="JUnit XML: a suite a pair and impairment.")
def run(config: str | None, listing: bool, **options: Any) -> None:
    """Play the matrix."""
    from mxwire.cli import interoperating

    if listing:
        interoperating.show_list(options["as_json"])
        return
    sys.exit(interoperating.play(config, interoperating.Wishes(**options)))


command.add_command(diff)
