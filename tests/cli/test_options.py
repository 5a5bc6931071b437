"""Options mean the same in every command."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mxwire.cli.catalogue import TOPICS
from mxwire.cli.help import TopicHelp
from mxwire.cli.main import cli
from mxwire.cli.options import SharedOption
from mxwire.report.terminal import COLOUR_CHOICES

TABLES = tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))
MEANINGS, LETTERS, OTHER_TYPES, OTHER_MEANINGS = (
    TABLES[each] for each in ("meanings", "letters", "other_types", "other_meanings")
)


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, with their names; also those that no help lists."""
    if not isinstance(command, click.Group):
        yield context.command_path, command
        return
    names = dict.fromkeys([*command.list_commands(context), *command.commands])
    for name in names:
        found = command.get_command(context, name)
        assert found is not None
        yield from commands(found, click.Context(found, parent=context, info_name=name))


def uses() -> dict[str, list[tuple[str, click.Option]]]:
    """All options of all commands by each of their names."""
    found = defaultdict(list)
    for name, command in commands(cli, click.Context(cli, info_name="mxwire")):
        for option in command.params:
            if isinstance(option, click.Option):
                for each in [*option.opts, *option.secondary_opts]:
                    found[each].append((name, option))
    return found


USES = uses()
SHARED = sorted(name for name, options in USES.items() if len({option.help for _, option in options}) > 1)


def kind(option: click.Option) -> tuple[object, ...]:
    parsed = option.type.name if isinstance(option.type, click.types.FuncParamType) else ""
    return option.is_flag, type(option.type), parsed, option.multiple


def test_there_are_options_of_several_commands():
    assert len(USES["--json"]) > 25 and {"--json", "--pair", "-w"} <= set(SHARED)
    assert len(USES["--color"]) > 25 and {option.metavar for _, option in USES["--color"]} == {"|".join(COLOUR_CHOICES)}


@pytest.mark.parametrize("name", [each for each in SHARED if each not in LETTERS and each not in OTHER_MEANINGS])
def test_an_option_of_several_commands_has_one_meaning(name):
    long = max((each for _, option in USES[name] for each in option.opts), key=len)
    assert long in MEANINGS, f"{name} has several help texts: {[option.help for _, option in USES[name]]}"
    for command, option in USES[name]:
        assert re.search(MEANINGS[long], option.help or ""), f"{command} {name}: {option.help}"
    if long not in OTHER_TYPES:
        assert len({kind(option) for _, option in USES[name]}) == 1, name


@pytest.mark.parametrize("letter", sorted(LETTERS))
def test_a_letter_with_several_meanings_has_a_long_name_for_each(letter):
    """Except those of omx_perf, which has letters only."""
    by_kind = defaultdict(set)
    for command, option in USES[letter]:
        if command != "mxwire perf":
            by_kind[kind(option)].add(max(option.opts, key=len))
    assert all(len(names) == 1 and letter not in names for names in by_kind.values())


def test_every_declaration_is_needed():
    assert set(MEANINGS) <= set(SHARED) and set(LETTERS) | set(OTHER_MEANINGS) <= set(SHARED)
    assert all(len({kind(option) for _, option in USES[name]}) > 1 for name in OTHER_TYPES)


@pytest.mark.parametrize("old", ["--time", "--quiet"])
def test_names_with_several_meanings_are_gone(old):
    assert old not in USES


def test_topics_explain_the_shared_options_of_all_commands():
    """In the words of the commands that have them."""
    context = click.Context(cli, info_name="mxwire")
    explained = {(name, each.help) for name in TOPICS for each in TopicHelp.read(name, context).options}
    shared = {
        (option.topic, option.help)
        for options in USES.values()
        for _, option in options
        if isinstance(option, SharedOption) and option.topic
    }
    missing = shared - explained
    assert not missing and len(explained) > 20, missing
