"""``mxwire verify``: captures checked against the rules of the specification."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli import options as shared
from mxwire.cli.completion import offers, rule_numbers
from mxwire.cli.conflicts import conflicts
from mxwire.cli.filters import FilterOptions, filter_options
from mxwire.cli.group import Command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.analysis.selection import FindingSelector
    from mxwire.analysis.verification import OrderedVerification
    from mxwire.cli.capture_set import Files
    from mxwire.cli.reading import BatchSource
    from mxwire.report.merged_records import Record
    from mxwire.rules import Vantage, Violation
    from mxwire.wire.decoder import Decoder

_PATIENCE_NS = 2_000_000_000
"""Time in which live frames may still show that the order was wrong, before a finding is reported."""


@click.command(cls=Command)
@shared.input_options
@filter_options()
@click.option(
    "--rules",
    metavar="NUMBER,…",
    shell_complete=offers(rule_numbers, listed=True),
    help="Report on these rules only; prefixes of numbers (R-ACK) are allowed.",
)
@shared.name_option("Implementation of the hosts: sets their timers, limits and known defects.", "profile", "--profile")
@click.option("--from-start", is_flag=True, help="The capture was started before any endpoint was opened: judge more.")
@click.option("--lossy", is_flag=True, help="The capture itself lost frames: judge single frames only.")
@click.option(
    "--reordered",
    is_flag=True,
    help="The capture has frames in the wrong order: do not judge their order.  [default: detected]",
)
@shared.json_option("JSON Lines: findings, then hosts.")
@shared.junit_option("one suite per host, one case per rule")
@shared.worker_options
@conflicts("--on", "--junit", error="--junit has one suite per host of a capture: omit --on")
@shared.decoding_options
def command(
    inputs: shared.Inputs,
    filters: FilterOptions,
    rules: str | None,
    profile: str | None,
    from_start: bool,
    lossy: bool,
    reordered: bool,
    as_json: bool,
    junit: Path | None,
    workers: shared.WorkerOptions,
    decoding: shared.DecodingOptions,
) -> None:
    """Check captures against the rules of the specification.

    Each finding names the rule, the host, the frames that show it, and the expected and actual values.

    All frames are checked, as the rules need the whole capture; a filter limits the findings that are reported and
    counted. --host and --pair limit the hosts, other filters select findings shown by at least one selected frame.

    With --on, many captures are checked by several processes, and the hosts and findings of all are merged.
    """
    from mxwire.analysis.selection import FindingSelector
    from mxwire.analysis.verification import OrderedVerification
    from mxwire.cli.reading import Failures, refuse_empty, selection_of
    from mxwire.errors import write_file
    from mxwire.report.document import show
    from mxwire.report.host_labels import labelled
    from mxwire.report.rules import select
    from mxwire.report.verification import FindingSample, blocks, finding_line, host_lines, junit_text

    vantage = _vantage(profile, from_start, lossy)
    filters.selection()  # mistakes are reported before anything is read
    numbers = [rule.number for rule in select(rules.split(","))] if rules is not None else None
    if workers.analyse_set(inputs.live):
        from mxwire.cli.capture_set import CaptureSet
        from mxwire.report.merged_records import VerifiedSet

        analysis = partial(_verify_files, vantage, filters, numbers, reordered, decoding, as_json)
        CaptureSet(inputs.files, workers).merge(analysis, VerifiedSet(), as_json)
        return
    failures = Failures()
    verified: list[tuple[str, OrderedVerification, FindingSample]] = []
    violations = 0
    for name in inputs.names:
        with failures.noted(), inputs.open(name, decoding.ethertypes, decoding.skip_damage) as reader:
            decoder, findings = decoding.decoder(), FindingSample()
            selector = FindingSelector(selection_of(filters, name, decoding, live=inputs.live))
            verification = OrderedVerification(
                vantage,
                selector=selector,
                rules=numbers,
                disordered=reordered,
                patience_ns=_PATIENCE_NS if inputs.live else None,
            )
            try:
                for violation in _findings(verification, decoder, reader, streams=as_json, selector=selector):
                    findings.add(violation)
                    if as_json:
                        click.echo(finding_line(reader.name, violation, decoder.start_ns))
                    elif inputs.live:
                        click.echo(str(violation))
                refuse_empty(reader, decoder, selector.selection)
                violations += verification.violations
                if junit is not None:
                    verified.append((reader.name, verification, findings))
                if as_json:
                    for line in host_lines(reader.name, verification):
                        click.echo(line)
                else:
                    shown = blocks(reader.name, verification, findings)
                    selector.selection.names.add_all(reader.names)
                    show([*labelled(shown, selector.selection.names)] if filters.by_name else shown)
            except BrokenPipeError:
                # The reader has ended (`| head`). With --json, violations after its last line are unknown.
                sys.exit(min(violations + verification.violations, 1))
    if junit is not None:
        write_file(junit, junit_text(verified))
    failures.end()
    if violations:
        sys.exit(1)


def _verify_files(
    vantage: Vantage,
    filters: FilterOptions,
    numbers: list[str] | None,
    reordered: bool,
    decoding: shared.DecodingOptions,
    complete: bool,
    files: Files,
) -> Iterator[Record]:
    """Check a capture, and yield its findings, the first of each kind unless ``complete``, and its hosts."""
    from collections import Counter

    from mxwire.analysis.selection import FindingSelector
    from mxwire.analysis.verification import OrderedVerification
    from mxwire.cli.capture_set import located
    from mxwire.cli.reading import refuse_empty, ring_of, selection_of
    from mxwire.ethernet import mac_text
    from mxwire.report.merged_records import EXAMPLES
    from mxwire.report.verification import finding_line, host_lines

    selector = FindingSelector(selection_of(filters, files, decoding))
    decoder, counts = decoding.decoder(), Counter[tuple[str, str, bytes]]()
    verification = OrderedVerification(vantage, selector=selector, rules=numbers, disordered=reordered)
    with ring_of(files, decoding.skip_damage) as ring:
        for violation in _findings(verification, decoder, ring, streams=True, selector=selector):
            key = violation.rule, violation.severity, violation.host
            counts[key] += 1
            if complete or counts[key] <= EXAMPLES:
                file, frames = located(ring, violation.frames)
                yield json.loads(finding_line(file, replace(violation, frames=tuple(frames)), decoder.start_ns))
        refuse_empty(ring, decoder)
        for line in host_lines(ring.name, verification):
            record = json.loads(line)
            if record["record"] == "host":
                hosts = [
                    (rule, severity, count)
                    for (rule, severity, host), count in counts.items()
                    if mac_text(host) == record["host"]
                ]
                record["broken"] = hosts
            yield record


def _findings(
    verification: OrderedVerification,
    decoder: Decoder,
    source: BatchSource,
    *,
    streams: bool,
    selector: FindingSelector,
) -> Iterator[Violation]:
    """The selected findings of a capture, or of passing frames."""
    from mxwire.analysis.marks import FrameMarker
    from mxwire.cli.reading import dropped_by, judged_batches

    marker = FrameMarker(facts=selector.selection.uses_facts) if selector.needs_marks else None
    for decoded in judged_batches(decoder, source, streams=streams):
        if dropped_by(source):
            verification.lose()
        selector.observe(decoded, None if marker is None else marker.observe(decoded), decoder.start_ns)
        yield from verification.observe(decoded)
    yield from verification.finish()


def _vantage(profile: str | None, from_start: bool, lossy: bool) -> Vantage:
    """The vantage of the capture, and the properties of its hosts."""
    from mxwire.protocol import profile_by_name
    from mxwire.rules import CAPTURE

    vantage = replace(CAPTURE, complete=not lossy, from_start=from_start)
    if profile is None:
        return vantage
    host = profile_by_name(profile)
    return replace(
        vantage,
        hz=host.hz,
        resends_maximum=host.resend_maximum,
        query_interval_ns=host.query_interval,
        excused=frozenset(defect.value for defect in host.defects),
    )
