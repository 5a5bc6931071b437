"""The captures of a command: one analysis for one capture and for thousands, in this process or by workers.

An analysis takes an open capture, or interface, and yields results (:class:`~mxwire.report.result.Result`). The command
iterates over those of all captures (:meth:`CaptureSet.run`), and prints them as they are found. Without ``--on`` each
capture is analysed in this process. With ``--on`` each capture, or ring of files, is analysed by one of many workers,
which returns its results; a large one may be divided among them (:mod:`mxwire.analysis.capture_parts`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from mxwire.cli import notes
from mxwire.cli.filters import FilterOptions
from mxwire.cli.notes import Note, print_records
from mxwire.cli.option_groups import DecodingOptions, Inputs, WorkerOptions
from mxwire.cli.progress import bar, hidden
from mxwire.cli.reading import BatchSource, note_frames, part_of, ring_of, selection_of
from mxwire.errors import MxwireError, OptionError, OutputError
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.words import count_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mxwire.analysis.capture_parts import CapturePart, DividedCapture, RangeSurvey
    from mxwire.analysis.host_names import HostNames
    from mxwire.analysis.selection import Selection
    from mxwire.campaign import Campaign, FatalPiece
    from mxwire.capture.division import ByteRange
    from mxwire.report.result import Result
    from mxwire.wire.decoder import DecodedBatch, Decoder

_Found = TypeVar("_Found")
Files = tuple[str, ...]
"""A capture: one file, or the consecutive files of a ring."""
ALONE: Final = WorkerOptions()
"""No workers: each capture is analysed in this process."""
_UNDIVIDED: Final = "it ends within a record, is damaged, or its sections or interfaces change on the way"


@dataclass(frozen=True, slots=True)
class OpenCapture:
    """A capture or an interface while it is analysed."""

    source: BatchSource
    decoder: Decoder
    selection: Selection
    """The filter of the user, with the addresses of named hosts."""
    part: CapturePart | None = None
    """The part of the capture that is read; None for all of it."""

    @property
    def name(self) -> str:
        """The file, the first file of a ring, or the interface."""
        return self.source.name

    @property
    def start_ns(self) -> int | None:
        """Time of the first frame; None before it is read."""
        return self.decoder.start_ns

    @property
    def names(self) -> HostNames:
        """The names of hosts that are known so far."""
        self.selection.names.add_all(self.source.names)
        return self.selection.names

    def place_of(self, number: int) -> tuple[str, int]:
        """Return the file of a frame, and the number of frames in earlier files of a ring."""
        from mxwire.capture.ring import CaptureRing

        return self.source.place_of(number) if isinstance(self.source, CaptureRing) else (self.name, 0)

    def located(self, frames: Sequence[int]) -> tuple[str, list[int]]:
        """Return the file of the first of ``frames``, and their numbers in it.

        Numbers beyond the last frame of that file refer to the next files of the ring.
        """
        file, before = self.place_of(frames[0]) if frames else (self.name, 0)
        return file, [each - before for each in frames]

    def own(self, decoded: DecodedBatch, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the ``places`` in a batch of frames that no other part of the capture has."""
        part = self.part
        return places if part is None or part.range is not None else places[part.own(decoded.located)[places]]


class Origin(Protocol):
    """The origin of results: a capture, or many."""

    @property
    def start_ns(self) -> int | None:
        """Time of the first frame; None if unknown, and of many captures."""

    @property
    def names(self) -> HostNames:
        """The names of hosts that are known so far."""


Analysis = Callable[[OpenCapture], Iterable[_Found]]


@dataclass(frozen=True, slots=True)
class _SetAnswer:
    """The results of a capture from a worker."""

    start_ns: int | None
    names: HostNames
    found: list[Any]
    notes: list[Note]
    failed: bool

    def packed(self) -> list[Any]:
        """Return the answer as values of JSON."""
        from mxwire.report.result import packed

        return [self.start_ns, [*self.names.items()], packed(self.found), self.notes, self.failed]

    @classmethod
    def unpacked(cls, values: list[Any], _part: CapturePart) -> _SetAnswer:
        """Undo :meth:`packed`."""
        from mxwire.analysis.host_names import HostNames
        from mxwire.report.result import unpacked

        start_ns, named, found, noted, failed = values
        names = HostNames()
        for address, name in named:
            names.add(address, name)
        return cls(start_ns, names, unpacked(found), [Note(*each) for each in noted], failed)


def _surveyed(decoding: DecodingOptions, bytes_: ByteRange) -> RangeSurvey | None:
    """Survey a range of a file; runs in a worker."""
    from mxwire.analysis.capture_parts import survey

    return survey(decoding.decoder(), bytes_)


def _analysed(
    analysis: Analysis[Any], filters: FilterOptions, decoding: DecodingOptions, part: CapturePart
) -> _SetAnswer:
    """Analyse a capture, or a part of it; runs in a worker."""
    from mxwire.analysis.host_names import HostNames

    found: list[Any] = []
    decoder, names, failed = decoding.decoder(part.known), HostNames(), False
    decoder.start_ns = part.start_ns
    with notes.collected() as collected, hidden():
        try:
            selection = selection_of(filters.selection(), filters.host_names(), part.files, decoding)
            whole = part.known is None
            opened = ring_of(part.files, decoding.skip_damage) if whole else part_of(part, decoder.ethertypes)
            with opened as ring:
                capture = OpenCapture(ring, decoder, selection, None if whole else part)
                found += analysis(capture)
                names = capture.names
        except MxwireError as error:
            notes.note(str(error))
            failed = True
        failed |= notes.note_damage()
    # Conversations form reference cycles, and commands collect cycles rarely, so the conversations of many captures
    # would stay in memory.
    gc.collect(1)
    return _SetAnswer(decoder.start_ns, names, found, collected, failed)


class CaptureSet:
    """The inputs of a command, with its filter, and its workers if there are any.

    With workers, ``joined`` is False if each file of a ring is a separate capture, because nothing is followed across
    files. Captures of more than ``piece`` bytes are divided among them: by pairs of hosts if ``joined``, otherwise by
    bytes. From an interface, frames of ``every_protocol`` are read, or those of MXoE only. Raises
    :class:`~mxwire.errors.MxwireError` for mistakes in the options, before anything is read: for a pattern without
    files, and for standard input or an interface with workers.
    """

    def __init__(
        self,
        inputs: Inputs,
        filters: FilterOptions,
        decoding: DecodingOptions,
        workers: WorkerOptions = ALONE,
        *,
        joined: bool = True,
        piece: int | None = None,
        every_protocol: bool = False,
    ) -> None:
        self.selection = filters.selection()
        """The filter, in which names of hosts are not resolved."""
        # Messages of a divided capture have other numbers.
        self._piece = piece if self.selection.messages is None else None
        self._joined = joined
        self.merges = workers.analyse_set(inputs.live)
        """True with workers: the results of all captures are reported together."""
        self.start_ns = None
        self.names = filters.host_names()
        """The names of hosts in all captures, from workers."""
        self._inputs = inputs
        self._filters = filters
        self._decoding = decoding
        # The kernel can filter for one EtherType only: with two, it passes all frames.
        self._ethertypes = (decoding.ethertypes or (ETHERTYPE_MXOE,)) * 2 if every_protocol else decoding.ethertypes
        self._workers = workers
        self.failed = 0
        """Number of captures that could not be analysed, or not completely."""
        self._noted: dict[Note, int] = {}
        """The notes of the parts of a capture so far, without their numbers, and the sums of these."""
        self._captures: list[Files] = []
        if self.merges:
            if "-" in inputs.files:
                raise OptionError("--on reads files, in several processes: save standard input to a file first")
            from mxwire.capture.ring import expanded, rings_of

            files = expanded(inputs.files)
            self._captures = rings_of(files) if joined else [(each,) for each in files]

    @property
    def title(self) -> str:
        """The number of captures, as a heading."""
        return count_of(len(self._captures), "capture")

    def run(
        self,
        analysis: Analysis[_Found],
        *,
        streams: bool = False,
        until: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[_Found, Origin]]:
        """Analyse the captures in order, and yield each result with its capture.

        Errors of single captures are noted. ``streams`` means that the caller prints results as they are found, see
        :func:`mxwire.cli.progress.bar`. Without workers, no capture is begun when ``until`` returns True.
        """
        if self.merges:
            yield from self._play(analysis, streams)
            return
        decoding = self._decoding
        for name in self._inputs.names:
            try:
                names = self._filters.host_names()
                selection = selection_of(self.selection, names, name, decoding, live=self._inputs.live)
                with self._inputs.open(name, self._ethertypes, decoding.skip_damage) as source:
                    capture = OpenCapture(source, decoding.decoder(), selection)
                    for each in analysis(capture):
                        yield each, capture
            except OutputError:
                raise
            except MxwireError as error:
                sys.stdout.flush()
                notes.note(str(error))
                self.failed += 1
            if until():
                break

    def _play(self, analysis: Analysis[_Found], streams: bool) -> Iterator[tuple[_Found, Origin]]:
        from mxwire.analysis.capture_parts import DividedCapture
        from mxwire.campaign.checkpoint import AnswerCodec

        decoding = self._decoding
        most = self._piece or sys.maxsize
        captures = [DividedCapture(each, most, decoding.decoder()) for each in self._captures]
        codec = AnswerCodec(_SetAnswer.packed, _SetAnswer.unpacked)
        function = partial(_analysed, analysis, self._filters, decoding)
        with self._workers.campaign(sum(max(each.ranges, 1) for each in captures)) as campaign:
            for number, capture in enumerate(captures):
                if capture.ranges:
                    self._divide(capture, campaign, number)
            parts = [part for each in captures for part in each.parts]
            what = "captures" if len(parts) == len(captures) else "parts of captures"
            with bar(what, len(parts), streams=streams) as shown:
                answers = campaign.play(function, parts, codec=codec, finished=shown.update)
                for part, answer in zip(parts, answers, strict=True):
                    yield from self._results(part, answer)

    def _divide(self, capture: DividedCapture, campaign: Campaign, number: int) -> None:
        """Divide a capture; ``number`` distinguishes it in the checkpoint."""
        from mxwire.analysis.capture_parts import RangeSurvey
        from mxwire.campaign import FatalPiece
        from mxwire.campaign.checkpoint import AnswerCodec

        codec = AnswerCodec(RangeSurvey.packed, RangeSurvey.unpacked)
        rounds = count()

        def surveyor(ranges: Sequence[ByteRange]) -> Iterator[RangeSurvey | None]:
            with bar("surveyed", len(ranges)) as shown:
                section = f"survey {number}.{next(rounds)}"
                found = campaign.play(
                    partial(_surveyed, self._decoding), ranges, section=section, codec=codec, finished=shown.update
                )
                yield from (None if isinstance(each, FatalPiece) else each for each in found)

        capture.examine(surveyor, by_pair=self._joined)
        file = capture.parts[0].files[0]
        if len(capture.parts) > 1:
            note_frames(file, capture.decoder)
        elif not capture.verified:
            notes.note(f"{file}: not divided among workers: {_UNDIVIDED}")

    def _results(self, part: CapturePart, answer: _SetAnswer | FatalPiece) -> Iterator[tuple[Any, Origin]]:
        """Note what a worker has noted, and yield its results."""
        if not isinstance(answer, _SetAnswer):
            self._note(part, [Note(f"{part.files[0]}: not analysed: {answer}")])
            self.failed += 1
            return
        self._note(part, answer.notes)
        self.failed += answer.failed
        for address, name in answer.names.items():
            self.names.add(address, name)
        for each in answer.found:
            yield each, answer

    def _note(self, part: CapturePart, found: list[Note]) -> None:
        """Add the notes of a part. After the last part, print each note of the capture once, with the sum of its
        numbers."""
        for each in found:
            same = each._replace(number=0)
            self._noted[same] = self._noted.get(same, 0) + each.number
        if part.number == part.parts - 1:
            for each, number in self._noted.items():
                notes.note(*each._replace(number=number))
            self._noted.clear()

    def end(self, problems: bool = False) -> None:
        """Exit with code 2 if a capture could not be analysed, otherwise with 1 if there are ``problems``."""
        if self.failed:
            sys.exit(2)
        if problems:
            sys.exit(1)


def print_results(found: Iterable[Result], start_ns: int | None = None, **before: Any) -> None:
    """Print results as JSON Lines, behind the keys ``before``."""
    print_records((before | each.record() for each in found), start_ns)


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
