"""The topics of the help, read from the program."""

from __future__ import annotations

import click

from generated.commands import options_table, paragraph_text
from mxwire.cli.catalogue import TOPICS
from mxwire.cli.help import TopicHelp
from mxwire.cli.help_text import paragraphs
from mxwire.cli.main import cli


def made() -> str:
    """Return all topics except the list of commands, with the options that they explain."""
    with click.Context(cli, info_name="mxwire") as context:
        return "\n".join(_topic(TopicHelp.read(name, context), context) for name in TOPICS if name != "commands")


def _topic(topic: TopicHelp, context: click.Context) -> str:
    text = [f"## {topic.name}\n", f"{TOPICS[topic.name]}.\n"]
    if topic.options:
        text.append(options_table([each.explanation(context) for each in topic.options]))
    return "\n".join([*text, *map(paragraph_text, paragraphs(topic.body))])
