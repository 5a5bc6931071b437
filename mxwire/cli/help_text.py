"""Texts of the help: files of the package, read when they are shown.

A paragraph ends with an empty line. Its lines are prose, which is wrapped, or indented, and then examples.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click


class Topic(str):
    """A term in the options of a command: a topic of ``mxwire help``, whose meaning is the names of its options."""


_LEGEND: Final = "{legend}"
TOPIC_FOLDER: Final = Path(__file__).with_name("topics")
EPILOG_FOLDER: Final = Path(__file__).with_name("epilogs")
"""The folder of notes and examples that follow the options, in a file per command: ``bench-path.txt``."""


def topic_text(name: str) -> str:
    """Return the text of a topic."""
    return (TOPIC_FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def epilog(context: click.Context) -> str:
    """Return the text below the options of a command; empty if it has none."""
    # The name of the program is that of its caller.
    words = context.command_path.split(" ")[1:] or ["mxwire"]
    path = EPILOG_FOLDER / f"{'-'.join(words)}.txt"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if _LEGEND in text:
        from mxwire.report.legend import legend_text

        text = text.replace(_LEGEND, legend_text().rstrip("\n"))
    return text


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text."""
    return [each.strip("\n") for each in re.split(r"\n\s*\n", text) if each.strip()]
