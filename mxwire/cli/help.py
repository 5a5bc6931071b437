"""``mxwire help``: the help of a command, or the list of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.options import json_option
from mxwire.report.json_line import json_line
from mxwire.words import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.shell_completion import CompletionItem

EPILOG = """\b
Examples:
  mxwire help                      all commands
  mxwire help decode               the same as mxwire decode --help
  mxwire help plugin install       a command of a group
  mxwire help --json | jq -r .command
"""


def _complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The commands that may follow the words typed so far."""
    from click.shell_completion import CompletionItem

    group = context.find_root().command
    for name in context.params.get("words") or ():
        found = group.get_command(context, name) if isinstance(group, click.Group) else None
        if found is None:
            return []
        group = found
    if not isinstance(group, click.Group):
        return []
    return [CompletionItem(name) for name in group.list_commands(context) if name.startswith(incomplete)]


@click.command("help", epilog=EPILOG)
@click.argument("words", metavar="[COMMAND]...", nargs=-1, shell_complete=_complete)
@json_option("JSON Lines: one object per command, with its parameters.")
@click.pass_context
def command(context: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """Explain a command; without one, list all commands."""
    at = context.find_root()
    for name in words:
        group = at.command
        found = group.get_command(at, name) if isinstance(group, click.Group) else None
        if found is None:
            known = group.list_commands(at) if isinstance(group, click.Group) else []
            raise click.UsageError(f"No such command {' '.join(words)!r}{suggestion(name, known)}", at)
        at = click.Context(found, info_name=name, parent=at, **found.context_settings)
    if as_json:
        for each in _commands_of(at):
            click.echo(json_line(_record(each)))
    else:
        click.echo(at.get_help())


def _commands_of(context: click.Context) -> Iterator[click.Context]:
    """A command, or all commands below a group."""
    group = context.command
    if not isinstance(group, click.Group):
        yield context
        return
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield from _commands_of(click.Context(found, info_name=name, parent=context, **found.context_settings))


def _record(context: click.Context) -> dict[str, Any]:
    """The JSON object of a command."""
    arguments = [each for each in context.command.params if isinstance(each, click.Argument)]
    options = [each for each in context.command.params if isinstance(each, click.Option) and not each.hidden]
    return {
        "command": context.command_path,
        "help": context.command.get_short_help_str(1000),
        "arguments": [each.make_metavar(context) for each in arguments],
        "options": [
            {"names": [*each.opts, *each.secondary_opts], "help": each.help, "repeatable": each.multiple}
            for each in options
        ],
    }
