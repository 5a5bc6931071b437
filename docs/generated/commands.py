"""All commands, read from the program."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import takewhile

import click

from mxwire.cli.help_text import Topic, epilog, paragraphs
from mxwire.cli.main import cli
from mxwire.report.document import Column, Row, Table, markdown, markdown_text
from rendering.basics import PageError


def made() -> str:
    """Return all commands with their arguments, options and examples."""
    with click.Context(cli, info_name="mxwire", **cli.context_settings) as context:
        return "\n".join(_commands_of(cli, context))


def _commands_of(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield the commands of a group, and those of its subgroups."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise PageError(f"the command {name} is listed but does not exist")
        with click.Context(command, info_name=name, parent=context) as inner:
            yield _command(command, inner)
            if isinstance(command, click.Group):
                yield from _commands_of(command, inner)


def _command(command: click.Command, context: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    text = [f"## {context.command_path}\n", f"```text\n{context.command_path} {usage}\n```\n"]
    text += [
        markdown_text(paragraph.replace("\n", " ")) + "\n"
        for paragraph in paragraphs(inspect.cleandoc(command.help or ""))
    ]
    found = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    records = [record for record in found if record is not None and record[1]]
    text.append(options_table([each for each in records if not isinstance(each[0], Topic)]))
    shared = [f"{names} ([{topic}](topics.md#{topic}))" for topic, names in records if isinstance(topic, Topic)]
    text.append(f"Shared options: {'; '.join(shared)}.\n")
    text += map(paragraph_text, paragraphs(epilog(context)))
    return "\n".join(text)


def options_table(records: list[tuple[str, str]]) -> str:
    """Return a table of options from their records in the help."""
    columns = (Column("option", code=True), Column("meaning"), Column("default", code=True))
    return markdown([Table(columns, tuple(Row((names, *_without_default(meaning))) for names, meaning in records))])


def _without_default(meaning: str) -> tuple[str, str]:
    """Return the help of an option, and its default separately."""
    default = re.search(r"\s*\[default: ([^\]]+)\]", meaning)
    return (meaning.replace(default[0], ""), default[1]) if default else (meaning, "")


def paragraph_text(paragraph: str) -> str:
    """Return a paragraph after the options; the indented lines after its title become a block of examples."""
    lines = paragraph.split("\n")
    title = [*takewhile(lambda line: not line.startswith(" "), lines)]
    examples = "\n".join(line.removeprefix("  ") for line in lines[len(title) :])
    block = f"\n```text\n{examples}\n```\n" if examples else ""
    return f"{markdown_text(chr(10).join(title))}\n{block}"
