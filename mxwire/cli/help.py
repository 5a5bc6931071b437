"""``mxwire help``: the help of a command or of a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli.catalogue import ENTRIES, GROUPS, TOPICS
from mxwire.cli.group import Command, WholeWordFormatter
from mxwire.cli.help_text import topic_text
from mxwire.cli.notes import print_record, print_records
from mxwire.cli.options import SharedOption, json_option
from mxwire.words import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from click.shell_completion import CompletionItem

_EXPLAINED: Final = ("decode", "ping")
"""Commands that have all shared options."""


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
    topics = {} if context.params.get("words") else TOPICS
    offered = [CompletionItem(name) for name in group.list_commands(context)]
    offered += [CompletionItem(name, help=text) for name, text in topics.items()]
    return [each for each in offered if each.value.startswith(incomplete)]


@click.command("help", cls=Command)
@click.argument("words", metavar="[COMMAND...|TOPIC]", nargs=-1, shell_complete=_complete)
@json_option("JSON Lines: one object per command, with its parameters.")
@click.pass_context
def command(context: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """Explain a command or a topic; without one, list all commands and topics."""
    at = context.find_root()
    if len(words) == 1 and words[0] in TOPICS:
        topic = TopicHelp.read(words[0], at)
        if as_json:
            print_record(topic.record())
        else:
            click.echo(topic.write(at))
        return
    for name in words:
        group = at.command
        found = group.get_command(at, name) if isinstance(group, click.Group) else None
        if found is None:
            known = group.list_commands(at) if isinstance(group, click.Group) else []
            noun = "command" if at.parent else "command or topic"
            known += [] if at.parent else TOPICS
            raise click.UsageError(f"No such {noun} {' '.join(words)!r}{suggestion(name, known)}", at)
        at = found.context_class(found, info_name=name, parent=at, **found.context_settings)
    if as_json:
        print_records(map(_record, _commands_of(at)))
    else:
        click.echo(at.get_help())


@dataclass(frozen=True, slots=True)
class TopicHelp:
    """A topic of the help: the options that it explains, and its text."""

    name: str
    options: list[SharedOption]
    body: str

    @classmethod
    def read(cls, name: str, root: click.Context) -> TopicHelp:
        """Read a topic; ``root`` is the context of the whole program."""
        assert isinstance(root.command, click.Group)
        options: dict[tuple[str | None, str | None], SharedOption] = {}
        for each in _EXPLAINED:
            command = root.command.get_command(root, each)
            assert command is not None
            shared = [each for each in command.params if isinstance(each, SharedOption) and each.topic == name]
            options |= {(option.name, option.help): option for option in shared}
        body = _all_commands() if name == "commands" else topic_text(name)
        return cls(name, [*options.values()], body)

    def write(self, context: click.Context) -> str:
        """The text as a terminal shows it."""
        formatter = context.make_formatter()
        assert isinstance(formatter, WholeWordFormatter)
        formatter.write_text(f"{TOPICS[self.name]}.")
        if self.options:
            with formatter.section("Options"):
                formatter.write_dl([each.explanation(context) for each in self.options])
        formatter.write_paragraphs(self.body)
        return formatter.getvalue().rstrip()

    def record(self) -> dict[str, Any]:
        """The JSON object of the topic."""
        return {"topic": self.name, "help": TOPICS[self.name], "text": self.body, "options": _options(self.options)}


def _all_commands() -> str:
    """All commands by task, each with a typical call and one line of help."""
    calls = {entry.name: f"mxwire {entry.name} {entry.usage}".rstrip() for entry in ENTRIES.values()}
    width = max(map(len, calls.values())) + 2
    return "\n\n".join(
        f"{title}:\n" + "\n".join(f"  {calls[each.name]:{width}}{each.help}" for each in entries)
        for title, entries in GROUPS.items()
    )


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
    options = [each for each in context.command.params if isinstance(each, click.Option) and not each.hidden]
    return {
        "command": context.command_path,
        "help": context.command.get_short_help_str(1000),
        "arguments": context.command.collect_usage_pieces(context)[1:],
        "options": _options(options),
    }


def _options(options: Sequence[click.Option]) -> list[dict[str, Any]]:
    return [
        {"names": [*each.opts, *each.secondary_opts], "help": each.help, "repeatable": each.multiple}
        for each in options
    ]
