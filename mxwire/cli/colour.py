"""``--color``: an option of the whole program, which every command takes as well."""

from __future__ import annotations

from typing import Final

import click

from mxwire.report.terminal import COLOUR_CHOICES, choose_colour, is_coloured


def _choose(context: click.Context, _option: click.Parameter, choice: str | None) -> None:
    if choice is not None:
        choose_colour(choice)
    # click.echo would take the colours out of what goes into a pipe.
    context.color = is_coloured()


_HELP: Final = "Colours: auto uses them on a terminal, always in pipes too.  [default: auto]"
colour_option = click.option(
    "--color",
    type=click.Choice(COLOUR_CHOICES),
    metavar="|".join(COLOUR_CHOICES),
    is_eager=True,
    expose_value=False,
    callback=_choose,
    help=_HELP,
)


def take_colour(command: click.Command) -> None:
    """Give a command, and all below it, the option unless it has it: it works before and after the command's name."""
    if not any("--color" in each.opts for each in command.params):
        colour_option(command)
    if isinstance(command, click.Group):
        for each in command.commands.values():
            take_colour(each)
