"""``mxwire interop diff``: what has changed from one report to another."""

from __future__ import annotations

import sys

import click

from mxwire.cli.options import FILE

EPILOG = """\b
Worse: the verdict has gone down (pass, info, non-strict, fail), what worked is now right to fail, or the cell could
not be run any more (missing). Reports of other seeds or versions may be held beside each other.

\b
Examples:
  mxwire interop diff before after                     two report folders
  mxwire interop diff before/report.jsonl after        or their files
  mxwire interop diff --json before after | jq -r 'select(.change == "worse") | .command'

\b
Exit code: 0 nothing is worse, 1 something is, 2 a report could not be read.
"""


@click.command(name="diff", epilog=EPILOG)
@click.argument("old", metavar="OLD", type=FILE)
@click.argument("new", metavar="NEW", type=FILE)
@click.option("--all", "everything", is_flag=True, help="All changes; else the first 20 of each kind but the worse.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: changes, then how many there are.")
def command(old: str, new: str, everything: bool, as_json: bool) -> None:
    """Compare two reports of mxwire interop: cells that are worse, better, new or gone."""
    from mxwire.interop.diff import compare
    from mxwire.interop.diff_text import blocks, json_lines
    from mxwire.interop.result import Report
    from mxwire.report.document import show

    difference = compare(Report.read(old), Report.read(new))
    if as_json:
        for line in json_lines(difference):
            click.echo(line)
    else:
        show(blocks(difference, everything=everything))
    if difference.is_worse:
        sys.exit(1)
