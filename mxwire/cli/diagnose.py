"""``mxwire diagnose``: faults of hosts and network, with evidence and advice."""

from __future__ import annotations

import functools
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli import options as shared
from mxwire.cli.conflicts import requires
from mxwire.cli.filters import FilterOptions, filter_options
from mxwire.cli.group import Command
from mxwire.ethernet import ETHERTYPE_MXOE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mxwire.analysis.diagnosis import Examination, Finding
    from mxwire.analysis.selection import FindingSelector
    from mxwire.cli.capture_set import Files
    from mxwire.cli.reading import BatchSource
    from mxwire.report.merged_records import Record
    from mxwire.wire.decoder import Decoder

_INTERVAL = 2.0
"""Seconds between two checks for new findings."""


def _catalogued(function: Callable[..., None]) -> Any:
    """Give a command ``--list`` and ``--explain``, which need no input and support ``--json``."""

    @click.option("--list", "listing", is_flag=True, help="List all diagnoses.")
    @shared.name_option("Explain a diagnosis.", "diagnosis", "--explain", "explained", metavar="ID")
    @functools.wraps(function)
    def wrapped(*, listing: bool, explained: str | None, as_json: bool, **rest: Any) -> None:
        if not listing and explained is None:
            function(as_json=as_json, **rest)
            return
        from mxwire.analysis.diagnosis import catalogue
        from mxwire.report.diagnosis import catalogue_table, diagnosis_line, explanation
        from mxwire.report.document import show

        diagnoses = catalogue() if explained is None else [_diagnosis(explained)]
        if as_json:
            for each in diagnoses:
                click.echo(diagnosis_line(each))
        else:
            show([catalogue_table()] if explained is None else explanation(diagnoses[0]))

    return wrapped


def _diagnosis(name: str) -> Any:
    from mxwire.analysis.diagnosis import CATALOGUE
    from mxwire.errors import MxwireError
    from mxwire.words import suggestion

    if name not in CATALOGUE:
        raise MxwireError(f"no diagnosis {name!r}{suggestion(name, CATALOGUE, lister='mxwire diagnose --list')}")
    return CATALOGUE[name]


@click.command(cls=Command)
@_catalogued
@shared.input_options
@shared.name_option("Report this diagnosis only; may be repeated.", "diagnosis", "--only", metavar="ID", multiple=True)
@click.option(
    "--all-protocols",
    is_flag=True,
    help="With -i: include frames of other protocols, for a changed or filtered EtherType.",
)
@requires(
    "--all-protocols", one_of=("-i",), error="--all-protocols is for -i: all frames of a file are analysed anyway"
)
@shared.worker_options
@shared.json_option("JSON Lines: findings, then one summary per file.")
@filter_options()
@shared.decoding_options
def command(
    inputs: shared.Inputs,
    only: tuple[str, ...],
    all_protocols: bool,
    workers: shared.WorkerOptions,
    as_json: bool,
    filters: FilterOptions,
    decoding: shared.DecodingOptions,
) -> None:
    """Find faults in captures: of the builds of hosts, the path, peers and connections, applications, the network, and
    the capture itself.

    Each finding reports its confidence, the affected hosts, the frames that show it, and what to do.

    All frames are analysed, as faults show in the whole capture; a filter limits the findings that are reported, to
    those that affect a selected host, and of which at least one frame listed as evidence is selected.

    With --on, many captures are analysed by several processes, and findings about the same hosts are merged, with the
    sum of their costs.
    """
    from mxwire.analysis.diagnosis import Examination
    from mxwire.analysis.selection import FindingSelector
    from mxwire.cli.reading import Failures, note_frames, refuse_empty, selection_of

    filters.selection()  # mistakes are reported before anything is read
    identifiers = {_diagnosis(each).id for each in only}
    if workers.analyse_set(inputs.live):
        from mxwire.cli.capture_set import CaptureSet
        from mxwire.report.merged_records import DiagnosedSet

        analysis = partial(_diagnose_files, identifiers, filters, decoding)
        CaptureSet(inputs.files, workers).merge(analysis, DiagnosedSet(), as_json)
        return
    failures = Failures()
    total = 0
    for name in inputs.names:
        # The kernel can filter for one EtherType only: with two, it passes all frames.
        given = decoding.ethertypes
        listened = (given or (ETHERTYPE_MXOE,)) * 2 if all_protocols else given
        with failures.noted(), inputs.open(name, listened, decoding.skip_damage) as reader:
            selector = FindingSelector(selection_of(filters, name, decoding, live=inputs.live))
            decoder = decoding.decoder()
            examination = Examination(decoder)
            _examine(examination, decoder, reader, selector, quiet=as_json)
            findings = [each for each in examination.findings() if not identifiers or each.id in identifiers]
            selector.left_out = 0
            findings = [each for each in findings if _takes(selector, each)]
            if not findings:
                refuse_empty(reader, decoder, selector.selection)
            total += sum(each.severity != "note" for each in findings)
            selector.selection.names.add_all(reader.names)
            try:
                _report(reader.name, examination, findings, selector, as_json=as_json, named=filters.by_name)
            except BrokenPipeError:
                # The reader of the pipe has ended (`| head`): findings still exit with 1, however many lines were read.
                sys.exit(min(total, 1))
            if not as_json and decoder.skipped and not examination.facts.follower.frames:
                note_frames(reader.name, decoder)
    failures.end()
    if total:
        sys.exit(1)


def _report(
    name: str,
    examination: Examination,
    findings: list[Finding],
    selector: FindingSelector,
    *,
    as_json: bool,
    named: bool,
) -> None:
    """Print the findings of one input."""
    from mxwire.report.diagnosis import blocks, finding_line, summary_line
    from mxwire.report.document import show
    from mxwire.report.host_labels import labelled

    if as_json:
        for each in findings:
            click.echo(finding_line(name, examination, each))
        click.echo(summary_line(name, examination, findings, selector.left_out))
        return
    shown = blocks(name, examination, findings, selector.left_out, named=named)
    show([*labelled(shown, selector.selection.names)] if named else shown)


def _diagnose_files(
    wanted: set[str], filters: FilterOptions, decoding: shared.DecodingOptions, files: Files
) -> Iterator[Record]:
    """Analyse a capture, and yield its findings and a summary."""
    from mxwire.analysis.diagnosis import Examination
    from mxwire.analysis.selection import FindingSelector
    from mxwire.cli.capture_set import located
    from mxwire.cli.reading import refuse_empty, ring_of, selection_of
    from mxwire.report.diagnosis import finding_line, summary_line

    selector, decoder = FindingSelector(selection_of(filters, files, decoding)), decoding.decoder()
    examination = Examination(decoder)
    with ring_of(files, decoding.skip_damage) as ring:
        _examine(examination, decoder, ring, selector, quiet=True)
        selector.left_out = 0
        findings = [each for each in examination.findings() if not wanted or each.id in wanted]
        findings = [each for each in findings if _takes(selector, each)]
        if not findings:
            refuse_empty(ring, decoder)
        for each in findings:
            frames = [number for evidence in each.evidence for number in evidence.frames]
            record = json.loads(finding_line(located(ring, frames)[0], examination, each))
            for evidence in record["evidence"]:
                evidence["file"], evidence["frames"] = located(ring, evidence["frames"])
            yield record
        yield json.loads(summary_line(ring.name, examination, findings, selector.left_out))


def _takes(selector: FindingSelector, found: Finding) -> bool:
    """Return True if the user's filter selects a finding."""
    concerns = ((each.address, each.endpoint) for each in found.concerns)
    return selector.takes(concerns, [frame for each in found.evidence for frame in each.frames])


def _examine(
    examination: Examination, decoder: Decoder, source: BatchSource, selector: FindingSelector, *, quiet: bool
) -> None:
    """Analyse a whole capture, or the frames that pass an interface until its end."""
    from mxwire.analysis.marks import FrameMarker
    from mxwire.capture import CaptureReader
    from mxwire.capture.ring import CaptureRing
    from mxwire.cli.reading import judged_batches
    from mxwire.link.live_source import LiveSource

    report_notes = _live_notes(examination, selector) if isinstance(source, LiveSource) and not quiet else None
    marker = FrameMarker(facts=selector.selection.uses_facts) if selector.needs_marks else None
    for decoded in judged_batches(decoder, source, examination.watch):
        examination.observe(decoded)
        selector.observe(decoded, None if marker is None else marker.observe(decoded), decoder.start_ns)
        if isinstance(source, LiveSource):
            examination.lose(source.dropped)
            examination.starve(source.starvation.periods)
            examination.wait_until(source.quiet_until_ns)
            if report_notes is not None:
                report_notes()
    if isinstance(source, (LiveSource, CaptureReader, CaptureRing)):
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
