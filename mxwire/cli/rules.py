"""``mxwire rules``: the rules of the specification, and where mxwire implements, judges and tests them."""

from __future__ import annotations

import click

from mxwire.cli.completion import offers, rule_numbers
from mxwire.cli.options import json_option

EPILOG = """\b
Examples:
  mxwire rules                         all rules, chapter by chapter
  mxwire rules R-SEQ-05                one rule: where it is judged and implemented
  mxwire rules R-ACK D-1               all rules on acknowledgements, and a defect of real hosts
  mxwire rules --chapter pull          the rules of a chapter
  mxwire rules --json | jq -r 'select(.judged == "wire") | .number'
"""


@click.command("rules", epilog=EPILOG)
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, shell_complete=offers(rule_numbers))
@click.option("--chapter", metavar="TITLE", help="Only the rules of a chapter; a part of its title is enough.")
@click.option("-v", "--verbose", is_flag=True, help="Also print the tests of each NUMBER.")
@json_option("JSON Lines: one object per rule.")
def command(numbers: tuple[str, ...], chapter: str | None, verbose: bool, as_json: bool) -> None:
    """List the rules of the specification.

    NUMBER is the number of a rule (R-SEQ-05), of a defect of real hosts (D-1), of a section of the wire format
    (W-6.4), or the beginning of such numbers (R-SEQ). A rule given by its number is shown with the places
    where mxwire implements and judges it.
    """
    from mxwire.report.document import show
    from mxwire.report.rules import details, json_lines, overview, select

    rules = select(numbers, chapter)
    if as_json:
        for line in json_lines(rules):
            click.echo(line)
    elif numbers:
        show(details(rules, tests=verbose))
    else:
        show(overview(rules))
