"""Sets of captures: each capture, or ring of files, is analysed by one of many workers, and the answers are merged."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.capture.ring import CaptureRing, expanded, rings_of
from mxwire.cli import notes
from mxwire.cli.progress import bar, hidden
from mxwire.errors import MxwireError, OptionError
from mxwire.report.document import show
from mxwire.report.json_line import json_line
from mxwire.report.merged_records import MergedRecords, Record
from mxwire.report.merged_timing import SAMPLES
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.campaign import FatalPiece
    from mxwire.cli.options import WorkerOptions

Files = tuple[str, ...]
"""A capture: one file, or the consecutive files of a ring."""
Analysis = Callable[[Files], Iterable[Record]]
"""Analyses a capture in a worker."""


def _analysed(analysis: Analysis, files: Files) -> Record:
    """Analyse a capture, and return its records and notes; runs in a worker."""
    records: list[Record] = []
    failed = False
    with notes.collected() as collected, hidden():
        try:
            records += analysis(files)
        except MxwireError as error:
            notes.note(str(error))
            failed = True
        failed |= notes.note_damage()
    # Conversations form reference cycles, and commands collect cycles rarely, so the conversations of many captures
    # would stay in memory.
    gc.collect(1)
    return {"records": records, "notes": collected, "failed": failed}


class CaptureSet:
    """The captures of a command, analysed by workers.

    ``joined`` is False if each file of a ring is a separate capture, because nothing is followed across files. Raises
    :class:`~mxwire.errors.MxwireError` for a pattern without files, and for standard input.
    """

    def __init__(self, names: Sequence[str], workers: WorkerOptions, *, joined: bool = True) -> None:
        if "-" in names:
            raise OptionError("--on reads files, in several processes: save standard input to a file first")
        files = expanded(names)
        self.captures = rings_of(files) if joined else [(each,) for each in files]
        self.failed = 0
        """Number of captures that could not be analysed, or not completely."""
        self._workers = workers

    def records(self, analysis: Analysis, *, streams: bool = False) -> Iterator[list[Record]]:
        """Yield the records of each capture, in order; notes of the workers are printed."""
        with (
            bar("captures", len(self.captures), streams=streams) as shown,
            self._workers.campaign(len(self.captures)) as campaign,
        ):
            answers = campaign.play(partial(_analysed, analysis), self.captures, finished=shown.update)
            for files, answer in zip(self.captures, answers, strict=True):
                yield self._taken(files, answer)

    def _taken(self, files: Files, answer: Record | FatalPiece) -> list[Record]:
        if not isinstance(answer, dict):
            notes.note(f"{files[0]}: not analysed: {answer}")
            self.failed += 1
            return []
        for text in answer["notes"]:
            notes.note(text)
        self.failed += answer["failed"]
        records: list[Record] = answer["records"]
        return records

    @property
    def title(self) -> str:
        """The number of captures, as a heading."""
        return count_of(len(self.captures), "capture")

    def merge(self, analysis: Analysis, merged: MergedRecords, as_json: bool) -> None:
        """Print the records of all captures and then the merged ones, or the merged ones as blocks, and exit."""
        for records in self.records(analysis, streams=as_json):
            merged.add(records)
            if as_json:
                _print_records(each for each in records if each["record"] != SAMPLES)
        if as_json:
            _print_records(merged.merged())
        else:
            show(merged.blocks(self.title))
        self.end(bool(merged.problems))

    def end(self, problems: bool = False) -> None:
        """Exit with code 2 if a capture could not be analysed, otherwise with 1 if there are ``problems``."""
        if self.failed:
            sys.exit(2)
        if problems:
            sys.exit(1)


def _print_records(records: Iterable[Record]) -> None:
    for each in records:
        click.echo(json_line(each))


def located(ring: CaptureRing, frames: Sequence[int]) -> tuple[str, list[int]]:
    """Return the file of the first of ``frames``, and their numbers in it.

    Numbers beyond the last frame of that file refer to the next files of the ring.
    """
    if not frames:
        return ring.name, []
    file, before = ring.place_of(frames[0])
    return file, [each - before for each in frames]


def prepare_dataset(target: Path | None, command: str, workers: WorkerOptions) -> Path:
    """Return the folder of ``--to``, created.

    Raises :class:`~mxwire.errors.MxwireError` if it is missing, a file, or has tables that this command did not begin.
    """
    from mxwire.analysis.dataset import check_dataset

    if target is None:
        raise OptionError(f"mxwire {command} --on writes a table: name a folder with --to DIR")
    check_dataset(target)
    begun = workers.checkpoint is not None and workers.checkpoint.exists()
    if any(target.iterdir()) and not begun:
        raise MxwireError(f"{target}: is not empty: name another folder, so that no rows are mixed")
    return target.absolute()
