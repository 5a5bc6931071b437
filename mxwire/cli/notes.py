"""Notes to the user on standard error, and reports of events, in the same form for all commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from mxwire.cli import progress
from mxwire.errors import CaptureError
from mxwire.report.json_line import json_line
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.report.document import Block


class Note(NamedTuple):
    """A note, which may contain a number of items: parts of a capture have one note with the sum of their numbers."""

    text: str
    """The text before the number, or all of it."""
    number: int = 0
    noun: str = ""
    """The noun of the items; empty if there is no number."""
    rest: str = ""
    """The text behind the noun."""

    def __str__(self) -> str:
        """The whole text."""
        return self.text + count_of(self.number, self.noun) + self.rest if self.noun else self.text


damage: list[CaptureError] = []
"""Damage that ended captures, reported with exit code 2 after the frames before it have been analysed."""
_collected: list[Note] | None = None
"""The list that receives notes instead of standard error."""


@contextmanager
def collected() -> Iterator[list[Note]]:
    """Collect the notes of this process while the block runs, instead of printing them."""
    global _collected
    before, _collected = _collected, []
    try:
        yield _collected
    finally:
        _collected = before


def note(text: str, number: int = 0, noun: str = "", rest: str = "") -> None:
    """Print a note, which is not part of the output; a progress bar stays below it. See :class:`Note`."""
    found = Note(text, number, noun, rest)
    if _collected is not None:
        _collected.append(found)
        return
    if progress.current is not None:
        progress.current.above(f"mxwire: {found}")
    else:
        click.echo(f"mxwire: {found}", err=True)


def note_damage() -> bool:
    """Print the damage of captures, and return whether there was any."""
    found, damage[:] = [*damage], []
    for each in found:
        note(str(each))
    return bool(found)


def wrote(number: int, noun: str, target: object, *, what: str = "") -> None:
    """Report that a file is complete, with the number of its items; ``what`` precedes the number."""
    note(f"wrote {what}{counted(number, noun)} to {target}")


def counted(number: int, noun: str) -> str:
    """``1 frame``, ``1,234 frames``."""
    return count_of(number, noun, grouped=True)


def listening(interface: str, seconds: float | None = None, frames: int | None = None) -> None:
    """Report that an interface is being watched, and what ends that."""
    ends = [counted(frames, "frame")] if frames is not None else []
    ends += [f"{seconds:g} s"] if seconds is not None else []
    note(f"listening on {interface} " + (f"for {' or '.join(ends)}" if ends else "until Ctrl-C"))


def end_interrupted_line() -> None:
    """Start a new line after a ^C that the terminal has echoed."""
    if sys.stderr.isatty():
        click.echo(err=True)


def print_record(record: dict[str, Any], start_ns: int | None = None, *, err: bool = False) -> None:
    """Print a record as a line of JSON, with ``err`` to standard error."""
    click.echo(json_line(record, start_ns), err=err)


def print_records(records: Iterable[dict[str, Any]], start_ns: int | None = None) -> None:
    """Print records as JSON Lines."""
    for each in records:
        print_record(each, start_ns)


def print_result(as_json: bool, records: Iterable[dict[str, Any]], blocks: Callable[[], Iterable[Block]]) -> None:
    """Print a result as JSON Lines, or as the blocks of a document, which are only then made."""
    if as_json:
        print_records(records)
        return
    from mxwire.report.document import show

    show([*blocks()])


class EventReport:
    """Output of a live command, event by event: lines of text, or JSON Lines."""

    __slots__ = ("as_json",)

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def print(self, text: str, to_stderr: bool = False) -> None:
        """Print a line, unless the output is JSON."""
        if not self.as_json:
            click.echo(text, err=to_stderr)

    def emit(self, event: str, **what: Any) -> None:
        """Print an object, if the output is JSON."""
        if self.as_json:
            print_record({"event": event, **what})
