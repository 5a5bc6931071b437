"""Texts of the help: each belongs to a command or a topic, and is complete when it is shown."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner

from mxwire.cli.catalogue import TOPICS
from mxwire.cli.help_text import EPILOG_FOLDER, TOPIC_FOLDER, epilog
from mxwire.cli.main import cli


def contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            yield from contexts(click.Context(command, info_name=name, parent=context))


def test_each_text_belongs_to_a_command_or_a_topic():
    paths = {each.command_path for each in contexts(click.Context(cli, info_name="mxwire"))}
    names = {path.partition(" ")[2].replace(" ", "-") or "mxwire" for path in paths}
    assert {each.name for each in EPILOG_FOLDER.iterdir()} <= {f"{name}.txt" for name in names}
    assert {each.name for each in TOPIC_FOLDER.iterdir()} == {f"{name}.txt" for name in TOPICS if name != "commands"}


def test_each_command_has_examples_or_is_below_a_group_with_examples():
    for context in contexts(click.Context(cli, info_name="mxwire")):
        assert "Examples:\n  " in epilog(context) or "Examples:\n  " in epilog(context.parent), context.command_path


def test_the_legend_replaces_its_mark():
    with click.Context(cli, info_name="mxwire") as root:
        text = epilog(click.Context(cli.get_command(root, "decode"), info_name="decode", parent=root))
    assert "{legend}" not in text and "\n  seq 7 " in text


def test_a_command_reads_only_the_texts_that_it_shows(monkeypatch):
    read = []
    monkeypatch.setattr("pathlib.Path.read_text", lambda path, **_: read.append(path.name) or "Read.")
    runner = CliRunner()
    assert runner.invoke(cli, ["formats", "PULL"]).exit_code == 0
    assert read == []
    assert runner.invoke(cli, ["formats", "--help"]).output.endswith("\n\n  Read.\n")
    assert read == ["formats.txt"]


def test_another_name_of_the_program_changes_no_text():
    assert epilog(click.Context(cli, info_name="mx")) == epilog(click.Context(cli, info_name="mxwire")) != ""
