"""Declared conflicts of options: they name options that exist, and each refuses in one line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from mxwire.cli.conflicts import conflicts, conflicts_of, parameter_of, requires
from mxwire.cli.group import Command
from mxwire.cli.main import cli
from mxwire.errors import OptionError

from .test_help_text import contexts

DECLARED = [
    (context.command, each)
    for context in contexts(click.Context(cli, info_name="mxwire"))
    for each in conflicts_of(context.command)
]


def test_declarations_name_options_of_their_command_and_have_a_message_in_one_line():
    assert len(DECLARED) > 40
    for command, each in DECLARED:
        for name in (*each.causes, *each.refused, *each.needed):
            parameter_of(command, name)
        assert bool(each.refused) != bool(each.needed)
        text = each.error.format(option="--option", are="is")
        assert "\n" not in text and "{" not in text and not text.endswith("."), text


@click.command(cls=Command)
@click.argument("kind", metavar="[KIND]", required=False)
@click.option("-a", "--all", "everything", is_flag=True)
@click.option("--by", default="name")
@click.option("--size", default=1)
@click.option("--to")
@click.option("--via", default="file")
@conflicts("--all", "KIND", "--size", error="--all lists all: omit {option}")
@conflicts("--by size", "--size", error="ordered by size: omit {option}")
@requires("--size", "--by", one_of=("--to",), error="{option} {are} for a file: add --to FILE")
@requires("--to", one_of=("--via",), error="never, as --via has a default")
def example(**_: object) -> None:
    pass


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("", None),
        ("-a", None),
        ("a --to x", None),
        ("-a a", "--all lists all: omit KIND"),
        ("-a --size 1 a", "--all lists all: omit KIND, --size"),
        ("--by size --size 2", "ordered by size: omit --size"),
        ("--by name --size 2", "--size, --by are for a file: add --to FILE"),
        ("--size 1", "--size is for a file: add --to FILE"),
        ("--size 1 --to x", None),
    ],
)
def test_a_conflict_is_refused_before_the_command_runs(words, error):
    result = CliRunner().invoke(example, words.split())
    assert (str(result.exception) if result.exception else None) == error
    assert error is None or isinstance(result.exception, OptionError)
