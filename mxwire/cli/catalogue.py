"""All commands by task, each with its usage and one line of help, and the topics of help: from ``catalogue.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mxwire.texts import file_text

_LINE: Final = re.compile(r"## (.*)|- `(\S+) ?(.*)`: (.*)")


class Entry(NamedTuple):
    """One command."""

    name: str
    usage: str
    """Arguments of a typical call."""
    help: str


def _read() -> Iterator[tuple[str, Entry]]:
    """Yield the entries with the headings above them."""
    group = ""
    for line in file_text(__file__, "catalogue.md").splitlines():
        found = _LINE.fullmatch(line)
        if found and found[1]:
            group = found[1]
        elif found:
            yield group, Entry(*found.groups()[1:])


_ALL: Final = list(_read())
GROUPS: Final = {
    title: tuple(each for group, each in _ALL if group == title)
    for title in dict.fromkeys(group for group, _ in _ALL)
    if title != "Topics"
}
"""The commands by task, in the order in which they are shown."""
FIRST: Final = ("info", "decode", "messages", "diagnose", "verify", "report", "capture", "perf")
"""The commands with which new users begin; ``--help`` describes these, and only names the others."""
ENTRIES: Final = {entry.name: entry for entries in GROUPS.values() for entry in entries}
"""All commands by name."""
MOVED: Final = {"conversations": "mxwire messages --by conversation"}
"""Former names of commands, and where they went."""
TOPICS: Final = {each.name: each.help for group, each in _ALL if group == "Topics"}
"""The topics of ``mxwire help``, each in one line. Their texts are in the folder ``topics``."""
