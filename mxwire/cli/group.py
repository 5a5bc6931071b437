"""Groups of commands: complete help, and suggestions for mistyped names."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from typing import Any, Final

import click

from mxwire.cli.conflicts import check_conflicts
from mxwire.cli.help_text import Topic, epilog, paragraphs
from mxwire.cli.option_class import takes
from mxwire.cli.options import colour_option, of_topic
from mxwire.words import suggestion


class WholeWordFormatter(click.HelpFormatter):
    """A formatter that breaks lines at spaces only: a user must be able to search for ``open-mx-1.5``, and copy it."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list of terms and their meanings; topics follow under a heading of their own."""
        unbroken = [(term, _unbroken(meaning)) for term, meaning in rows]
        topics = [row for row in unbroken if isinstance(row[0], Topic)]
        super().write_dl([row for row in unbroken if not isinstance(row[0], Topic)], col_max, col_spacing)
        if topics:
            self.dedent()
            with self.section("Shared options (mxwire help TOPIC)"):
                super().write_dl(topics, col_max, col_spacing)
            self.indent()

    def write_paragraphs(self, text: str) -> None:
        """Write a text of the package; without the mark, click would wrap its examples."""
        for each in paragraphs(text):
            self.write_paragraph()
            self.write_text(f"\b\n{each}")

    def write_text(self, text: str) -> None:
        """Write a description, or the text below the options, whose examples click leaves as wide as they are."""
        super().write_text(_unbroken("\n".join(narrowed(text, _columns() - self.current_indent))))

    def getvalue(self) -> str:
        """Return the text with the original hyphens restored."""
        return super().getvalue().replace(_UNBREAKABLE, "-")


click.Context.formatter_class = WholeWordFormatter
_UNBREAKABLE: Final = "\N{NON-BREAKING HYPHEN}"
"""Replaces hyphens while click wraps a text, because click would break lines after hyphens."""


def _columns() -> int:
    """Columns of the terminal; without a terminal, a number that no text exceeds."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 1000


def _unbroken(text: str) -> str:
    return text.replace("-", _UNBREAKABLE)


class Command(click.Command):
    """A command with ``--color``; the text below its options is a file, which is read when the help is shown."""

    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        # Groups have it too, so that it works before and after the name of a subcommand.
        if not any("--color" in each.opts for each in self.params):
            colour_option(**of_topic("output"))(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept ``--json=full`` where ``--json`` has this value.

        It cannot be an option that takes a value: without ``=`` that would be the next word.
        """
        if "--json=full" in args and any("--json-full" in each.opts for each in self.params):
            end = args.index("--") if "--" in args else len(args)
            words = [["--json", "--json-full"] if each == "--json=full" else [each] for each in args[:end]]
            args = [*chain.from_iterable(words), *args[end:]]
        left = super().parse_args(ctx, args)
        if ctx.params.pop("json_full", False):
            ctx.params["as_json"] = "full"
        return left

    def invoke(self, ctx: click.Context) -> Any:
        """Refuse options that contradict each other, and run the command."""
        check_conflicts(ctx)
        return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text of this command."""
        assert isinstance(formatter, WholeWordFormatter)
        with formatter.indentation():
            formatter.write_paragraphs(epilog(ctx))


def command_with(kind: type[Any]) -> Callable[[Callable[[Any], None]], Command]:
    """Make a function a command: its argument is an object of ``kind``, a class of options."""
    return lambda function: click.command(cls=Command)(takes(kind)(function))


class CommandGroup(Command, click.Group):
    """A group that prints its help without a subcommand, and suggests the nearest one for an unknown name."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help if there are no arguments; exit code 0, as for ``mxwire`` alone."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit(0)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand in the first argument; raise :class:`click.UsageError` with a suggestion."""
        name = args[0]
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        if not ctx.resilient_parsing and not name.startswith("-"):
            raise click.UsageError(f"No such command {name!r}{suggestion(name, self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands with their whole first sentences, wrapped instead of cut."""
        rows = []
        for name in self.list_commands(ctx):
            found = self.get_command(ctx, name)
            if found is not None and not found.hidden:
                rows.append((name, found.get_short_help_str(_NOTHING_CUT)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_NOTHING_CUT = 1000
"""Characters of a short help; click cuts longer ones."""


_PROSE: Final = 78
"""Width of sentences in columns: the width of click, which wraps descriptions at 80 columns including the indent, in
pipes too."""


_WITH_MEANING: Final = re.compile(r"( *\S(?:.*?\S)?  +)(\S.*)")
"""An example, or another indented line, with its meaning in a second column."""


def narrowed(text: str, columns: int) -> Iterator[str]:
    """Wrap sentences, and the second columns of indented lines; commands keep their lines."""
    for is_prose, lines in groupby(text.split("\n"), lambda line: line[:1] not in ("", " ", "\b") and line[-1] != ":"):
        if is_prose:
            yield from textwrap.wrap(" ".join(lines), min(columns, _PROSE), break_on_hyphens=False)
        else:
            for line in lines:
                yield from _wrapped(line, columns)


def _wrapped(line: str, columns: int) -> list[str]:
    """The second column of a line stays where it is, or moves below the first one if that is long.

    A line without one is not changed: a command that is copied must not have a line break in it.
    """
    match = _WITH_MEANING.fullmatch(line)
    if match is None or len(line) <= columns:
        return [line] if line[:1] in ("", " ") else textwrap.wrap(line, columns)
    first, meaning = match.groups()
    if 2 * len(first) <= columns:
        return textwrap.wrap(meaning, columns, initial_indent=first, subsequent_indent=" " * len(first))
    below = " " * (len(line) - len(line.lstrip()) + 4)
    return [first.rstrip(), *textwrap.wrap(meaning, columns, initial_indent=below, subsequent_indent=below)]
