"""``mxwire rules``: the rules of the specification, and where mxwire implements, judges and tests them."""

from __future__ import annotations

import click

from mxwire.cli.completion import offers, rule_numbers
from mxwire.cli.group import Command
from mxwire.cli.notes import print_result
from mxwire.cli.option_class import option
from mxwire.cli.options import flag_option, json_option


@click.command("rules", cls=Command)
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, shell_complete=offers(rule_numbers))
@option("Only the rules of a chapter; a part of its title is enough.", "--chapter TITLE")
@flag_option("Also print the tests and scenarios of each NUMBER.", "-v", "--verbose")
@json_option("JSON Lines: one object per rule.")
def command(numbers: tuple[str, ...], chapter: str | None, verbose: bool, as_json: bool) -> None:
    """List the rules of the specification.

    NUMBER is the number of a rule (R-SEQ-05), of a defect of real hosts (D-1), of a section of the wire format
    (W-6.4), or the beginning of such numbers (R-SEQ). A rule given by its number is shown with the places
    where mxwire implements and judges it.
    """
    from mxwire.report.rules import details, overview, rule_records, select

    rules = select(numbers, chapter)
    print_result(as_json, rule_records(rules), lambda: details(rules, tests=verbose) if numbers else overview(rules))
