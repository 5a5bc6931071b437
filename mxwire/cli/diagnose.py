"""``mxwire diagnose``: faults of hosts and network, with evidence and advice."""

from __future__ import annotations

import functools
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli import options as shared
from mxwire.cli.capture_set import CaptureSet, OpenCapture, print_results
from mxwire.cli.conflicts import requires
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import Command
from mxwire.cli.notes import print_result
from mxwire.cli.option_class import group, option, options_class, takes
from mxwire.cli.option_groups import DecodingOptions, Inputs, WorkerOptions
from mxwire.cli.reading import BatchSource, is_live, judged_batches, note_frames, refuse_empty
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mxwire.analysis.diagnosis import Examination, Finding
    from mxwire.analysis.selection import FindingSelector
    from mxwire.report.diagnosis import DiagnosedTrouble, ExaminedCapture
    from mxwire.wire.decoder import Decoder

_INTERVAL = 2.0
"""Seconds between two checks for new findings."""


def _catalogued(function: Callable[..., None]) -> Any:
    """Give a command ``--list`` and ``--explain``, which need no input and support ``--json``."""

    @option("List all diagnoses.", "--list", "listing", is_flag=True)
    @shared.name_option("Explain a diagnosis.", "diagnosis", "--explain ID", "explained")
    @functools.wraps(function)
    def wrapped(*, listing: bool, explained: str | None, as_json: bool, **rest: Any) -> None:
        if not listing and explained is None:
            function(as_json=as_json, **rest)
            return
        from mxwire.analysis.diagnosis import catalogue
        from mxwire.report.diagnosis import catalogue_table, diagnosis_record, explanation

        diagnoses = catalogue() if explained is None else [_diagnosis(explained)]
        print_result(
            as_json,
            map(diagnosis_record, diagnoses),
            lambda: [catalogue_table()] if explained is None else explanation(diagnoses[0]),
        )

    return wrapped


def _diagnosis(name: str) -> Any:
    from mxwire.analysis.diagnosis import CATALOGUE
    from mxwire.words import suggestion

    if name not in CATALOGUE:
        raise MxwireError(f"no diagnosis {name!r}{suggestion(name, CATALOGUE, lister='mxwire diagnose --list')}")
    return CATALOGUE[name]


@requires(
    "--all-protocols", one_of=("-i",), error="--all-protocols is for -i: all frames of a file are analysed anyway"
)
@options_class
class DiagnoseOptions:
    """The options of mxwire diagnose."""

    inputs: Inputs = group(Inputs)
    only: tuple[str, ...] = shared.name_option(
        "Report this diagnosis only; may be repeated.", "diagnosis", "--only ID", multiple=True
    )
    all_protocols: bool = shared.flag_option(
        "With -i: include frames of other protocols, for a changed or filtered EtherType.", "--all-protocols"
    )
    workers: WorkerOptions = group(WorkerOptions)
    as_json: bool = shared.json_option("JSON Lines: findings, then one summary per file.")
    filters: FilterOptions = group(FilterOptions)
    decoding: DecodingOptions = group(DecodingOptions)


@click.command(cls=Command)
@_catalogued
@takes(DiagnoseOptions)
def command(options: DiagnoseOptions) -> None:
    """Find faults in captures: of the builds of hosts, the path, peers and connections, applications, the network, and
    the capture itself.

    Each finding reports its confidence, the affected hosts, the frames that show it, and what to do.

    All frames are analysed, as faults show in the whole capture; a filter limits the findings that are reported, to
    those that affect a selected host, and of which at least one frame listed as evidence is selected.

    With --on, many captures are analysed by several processes, and findings about the same hosts are merged, with the
    sum of their costs.
    """
    from mxwire.report.diagnosis import blocks, merged_blocks, merged_troubles
    from mxwire.report.document import show
    from mxwire.report.host_labels import labelled

    captures = CaptureSet(
        options.inputs, options.filters, options.decoding, options.workers, every_protocol=options.all_protocols
    )
    identifiers = {_diagnosis(each).id for each in options.only}
    found: list[DiagnosedTrouble] = []
    problems = 0

    try:
        for examined, origin in captures.run(partial(_diagnose, identifiers, options.as_json), streams=options.as_json):
            problems += examined.problems
            if options.as_json:
                print_results((*examined.found, examined), origin.start_ns)
            if captures.merges:
                found += examined.found
            elif not options.as_json:
                shown = blocks(examined, named=options.filters.by_name)
                show([*labelled(shown, origin.names)] if options.filters.by_name else shown)
        if captures.merges:
            merged = merged_troubles(found)
            if options.as_json:
                print_results(merged)
            else:
                show(merged_blocks(captures.title, merged))
    except BrokenPipeError:
        # The reader of the pipe has ended (`| head`): findings still exit with 1, however many lines were read.
        sys.exit(min(problems, 1))
    captures.end(problems > 0)


def _diagnose(wanted: set[str], quiet: bool, capture: OpenCapture) -> Iterator[ExaminedCapture]:
    """Examine a capture; yield its findings and their scope."""
    from mxwire.analysis.diagnosis import Examination
    from mxwire.analysis.selection import FindingSelector
    from mxwire.report.diagnosis import ExaminedCapture

    selector = FindingSelector(capture.selection)
    examination = Examination(capture.decoder)
    _examine(examination, capture.decoder, capture.source, selector, quiet=quiet)
    selector.left_out = 0
    found = [each for each in examination.findings() if not wanted or each.id in wanted]
    found = [each for each in found if _takes(selector, each)]
    if not found:
        refuse_empty(capture.source, capture.decoder, capture.selection)
    yield ExaminedCapture.of(capture.name, examination, found, selector.left_out, capture.located)
    if not quiet and capture.decoder.skipped and not examination.facts.follower.frames:
        note_frames(capture.name, capture.decoder)


def _takes(selector: FindingSelector, found: Finding) -> bool:
    """Return True if the user's filter selects a finding."""
    concerns = ((each.address, each.endpoint) for each in found.concerns)
    return selector.takes(concerns, [frame for each in found.evidence for frame in each.frames])


def _examine(
    examination: Examination, decoder: Decoder, source: BatchSource, selector: FindingSelector, *, quiet: bool
) -> None:
    """Analyse a whole capture, or the frames that pass an interface until its end."""
    from mxwire.analysis.marks import FrameMarker

    report_notes = _live_notes(examination, selector) if is_live(source) and not quiet else None
    marker = FrameMarker(facts=selector.selection.uses_facts) if selector.needs_marks else None
    for decoded in judged_batches(decoder, source, examination.watch):
        examination.observe(decoded)
        selector.observe(decoded, None if marker is None else marker.observe(decoded), decoder.start_ns)
        if is_live(source):
            examination.lose(source.dropped)
            examination.starve(source.starvation.periods)
            examination.wait_until(source.quiet_until_ns)
            if report_notes is not None:
                report_notes()
    examination.lose(source.dropped)
    examination.finish()


def _live_notes(examination: Examination, selector: FindingSelector) -> Callable[[], None]:
    """A function that notes new findings on standard error, each once, every few seconds."""
    import time

    from mxwire.cli.notes import note
    from mxwire.report.diagnosis import headline

    noted: set[object] = set()
    due = time.monotonic() + _INTERVAL

    def key(found: Finding) -> object:
        return found.id, found.concerns

    def report_notes() -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        for each in examination.findings():
            if key(each) not in noted and _takes(selector, each):
                noted.add(key(each))
                note(headline(each))
        due = time.monotonic() + _INTERVAL

    return report_notes
