"""Write the manual pages and the completions of shells: python tools/man_pages.py FOLDER

FOLDER becomes a folder such as /usr/share: it gets man/man1 with a page per command, man/man7 with a page per topic of
the help, and the scripts of bash, zsh and fish where these load them from. All is made from the help, which needs click
only, so that wheels are built with it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))
from mxwire import __version__
from mxwire.cli.catalogue import ENTRIES, TOPICS
from mxwire.cli.completion import Bash, Fish, Zsh
from mxwire.cli.group import narrowed
from mxwire.cli.help import TopicHelp
from mxwire.cli.help_text import Topic, epilog, paragraphs
from mxwire.cli.main import cli

_EXAMPLES = "Examples:\n"
COLUMNS = 66
"""Width of examples, so that they fit a terminal of 80 columns with the indents of a page."""
COMPLETIONS = {
    "bash-completion/completions/mxwire": Bash,
    "zsh/site-functions/_mxwire": Zsh,
    "fish/vendor_completions.d/mxwire.fish": Fish,
}
"""The files of the shells, and the kinds of their scripts."""


def files() -> dict[str, str]:
    """Return the text of each file by its path below ``share``."""
    with click.Context(cli, info_name="mxwire", **cli.context_settings) as context:
        pages = dict(_command_pages(context)) | {
            f"man/man7/mxwire-{name}.7": _topic_page(TopicHelp.read(name, context), context) for name in TOPICS
        }
    scripts = {path: kind(cli, {}, "mxwire", "_MXWIRE_COMPLETE") for path, kind in COMPLETIONS.items()}
    return pages | {
        # The source of bash would start it.
        path: each.script() if isinstance(each, Bash) else each.source()
        for path, each in scripts.items()
    }


def _command_pages(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the pages of a command and of its subcommands with their paths."""
    command, name = context.command, context.command_path.replace(" ", "-")
    below = list(_below(context))
    records = [
        record for each in command.get_params(context) if (record := each.get_help_record(context)) and record[1]
    ]
    entry = ENTRIES.get(name.removeprefix("mxwire-"))
    text = _head(name, 1, entry.help if entry else command.get_short_help_str(1000).rstrip("."))
    text += [".SH SYNOPSIS", rf"\fB{_escaped(context.command_path)}\fR"]
    text += [_escaped(" ".join(command.collect_usage_pieces(context))), ".SH DESCRIPTION"]
    text += _roff(paragraphs(inspect.cleandoc(command.help or "")))
    if below:
        text += [".SH COMMANDS", *_terms((_reference(each), _about(each)) for each in below)]
    if context.parent is None:
        text += [".SH TOPICS", *_terms((rf"\fBmxwire\-{_escaped(each)}\fR(7)", TOPICS[each]) for each in TOPICS)]
    text += _options([each for each in records if not isinstance(each[0], Topic)])
    shared = [(rf"\fBmxwire\-{_escaped(topic)}\fR(7)", names) for topic, names in records if isinstance(topic, Topic)]
    if shared:
        text += [".SH SHARED OPTIONS", *_terms(shared)]
    notes = paragraphs(epilog(context))
    examples = [each.removeprefix(_EXAMPLES) for each in notes if each.startswith(_EXAMPLES)]
    others = [each for each in notes if not each.startswith(_EXAMPLES)]
    text += [".SH NOTES", *_roff(others)] if others else []
    text += [".SH EXAMPLES", *_roff(examples)] if examples else []
    if context.parent is not None:
        text += [".SH SEE ALSO", _reference(context.parent)]
    yield f"man/man1/{name}.1", "\n".join(text) + "\n"
    for each in below:
        yield from _command_pages(each)


def _below(context: click.Context) -> Iterator[click.Context]:
    """Yield the subcommands that the help lists."""
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            found = context.command.get_command(context, name)
            assert found is not None
            if not found.hidden:
                yield click.Context(found, info_name=name, parent=context, **found.context_settings)


def _about(context: click.Context) -> str:
    entry = ENTRIES.get(context.info_name or "") if context.parent and context.parent.parent is None else None
    return entry.help if entry else context.command.get_short_help_str(1000)


def _reference(context: click.Context) -> str:
    return rf"\fB{_escaped(context.command_path.replace(' ', '-'))}\fR(1)"


def _topic_page(topic: TopicHelp, context: click.Context) -> str:
    text = _head(f"mxwire-{topic.name}", 7, TOPICS[topic.name])
    text += _options([each.explanation(context) for each in topic.options])
    text += [".SH DESCRIPTION", *_roff(paragraphs(topic.body)), ".SH SEE ALSO", r"\fBmxwire\fR(1)"]
    return "\n".join(text) + "\n"


def _head(name: str, section: int, about: str) -> list[str]:
    """Return the beginning of a page: lines are not adjusted, and words are not broken."""
    title = f'.TH {_escaped(name.upper())} {section} "" "mxwire {__version__}" "mxwire manual"'
    return [title, ".nh", ".ad l", ".SH NAME", rf"{_escaped(name)} \- {_escaped(about)}"]


def _options(records: list[tuple[str, str]]) -> list[str]:
    terms = ((rf"\fB{_escaped(names)}\fR", meaning) for names, meaning in records)
    return [".SH OPTIONS", *_terms(terms)] if records else []


def _terms(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, meaning in rows:
        yield from (".TP", term, _escaped(meaning))


def _roff(texts: Iterable[str]) -> Iterator[str]:
    """Yield paragraphs, whose indented lines are not filled."""
    for text in texts:
        lines = text.split("\n")
        prose = [*takewhile(lambda line: not line.startswith(" "), lines)]
        yield from (".PP", *map(_escaped, prose)) if prose else ()
        if len(prose) < len(lines):
            example = narrowed("\n".join(lines[len(prose) :]), COLUMNS)
            yield from (".RS 2", ".nf", *(_escaped(line.removeprefix("  ")) for line in example), ".fi", ".RE")


def _escaped(text: str) -> str:
    """Return a text in which roff finds neither escapes nor requests."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    return ("\\&" if escaped[:1] in (".", "'") else "") + escaped.replace("'", "\\(aq").replace("`", "\\(ga")


def write(folder: Path) -> None:
    """Write all files below ``folder``."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
