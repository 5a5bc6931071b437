"""``mxwire verify``: captures checked against the rules of the specification."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli import options as shared
from mxwire.cli.capture_set import CaptureSet, OpenCapture, Origin, print_results
from mxwire.cli.completion import offers, rule_numbers
from mxwire.cli.conflicts import conflicts
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.option_groups import DecodingOptions, Inputs, WorkerOptions
from mxwire.cli.reading import dropped_by, is_live, judged_batches, refuse_empty
from mxwire.errors import write_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mxwire.report.verification import BrokenRule, VerifiedCapture
    from mxwire.rules import Vantage, Violation

_PATIENCE_NS = 2_000_000_000
"""Time in which live frames may still show that the order was wrong, before a finding is reported."""


@conflicts("--on", "--junit", error="--junit has one suite per host of a capture: omit --on")
@options_class
class VerifyOptions:
    """The options of mxwire verify."""

    inputs: Inputs = group(Inputs)
    filters: FilterOptions = group(FilterOptions)
    rules: str | None = option(
        "Report on these rules only; prefixes of numbers (R-ACK) are allowed.",
        "--rules NUMBER,…",
        shell_complete=offers(rule_numbers, listed=True),
    )
    profile: str | None = shared.name_option(
        "Implementation of the hosts: sets their timers, limits and known defects.", "profile", "--profile"
    )
    from_start: bool = shared.flag_option(
        "The capture was started before any endpoint was opened: judge more.", "--from-start"
    )
    lossy: bool = shared.flag_option("The capture itself lost frames: judge single frames only.", "--lossy")
    reordered: bool = shared.flag_option(
        "The capture has frames in the wrong order: do not judge their order.  [default: detected]", "--reordered"
    )
    as_json: bool = shared.json_option("JSON Lines: findings, then hosts.")
    junit: Path | None = shared.junit_option("one suite per host, one case per rule")
    workers: WorkerOptions = group(WorkerOptions)
    decoding: DecodingOptions = group(DecodingOptions)


@command_with(VerifyOptions)
def command(options: VerifyOptions) -> None:
    """Check captures against the rules of the specification.

    Each finding names the rule, the host, the frames that show it, and the expected and actual values.

    All frames are checked, as the rules need the whole capture; a filter limits the findings that are reported and
    counted. --host and --pair limit the hosts, other filters select findings shown by at least one selected frame.

    With --on, many captures are checked by several processes, and the hosts and findings of all are merged.
    """
    from mxwire.report.document import show
    from mxwire.report.host_labels import labelled
    from mxwire.report.rules import select
    from mxwire.report.verification import BrokenRule, VerificationReport, junit_text

    vantage = _vantage(options.profile, options.from_start, options.lossy)
    captures = CaptureSet(options.inputs, options.filters, options.decoding, options.workers)
    numbers = [rule.number for rule in select(options.rules.split(","))] if options.rules is not None else None
    reports: list[VerificationReport] = []
    report = VerificationReport(captures.title, merged=captures.merges)
    violations = 0

    def print_report(origin: Origin) -> None:
        blocks = report.blocks()
        show([*labelled(blocks, origin.names)] if options.filters.by_name else blocks)

    analysis = partial(_verify, vantage, numbers, options.reordered, options.as_json or options.inputs.live)
    try:
        for found, origin in captures.run(analysis, streams=options.as_json):
            report.add(found)
            if isinstance(found, BrokenRule):
                violations += found.severity == "violation"
                if options.as_json:
                    print_results([found], origin.start_ns)
                elif options.inputs.live:
                    click.echo(str(found))
                continue
            if options.as_json:
                print_results(found.results())
            if not captures.merges:
                report.title = found.limits.file
                if not options.as_json:
                    print_report(origin)
                if options.junit is not None:
                    reports.append(report)
                report = VerificationReport("")
        if captures.merges and not options.as_json:
            print_report(captures)
    except BrokenPipeError:
        # The reader has ended (`| head`). With --json, violations after its last line are unknown.
        sys.exit(min(violations, 1))
    if options.junit is not None:
        write_file(options.junit, junit_text(reports))
    captures.end(violations > 0)


def _verify(
    vantage: Vantage, numbers: list[str] | None, reordered: bool, complete: bool, capture: OpenCapture
) -> Iterator[BrokenRule | VerifiedCapture]:
    """Check a capture, and yield its findings, the first of each kind unless ``complete``, then its verdicts."""
    from mxwire.analysis.marks import FrameMarker
    from mxwire.analysis.selection import FindingSelector
    from mxwire.analysis.verification import OrderedVerification
    from mxwire.report.verification import BrokenRule, FindingSample, VerifiedCapture

    selector, sample = FindingSelector(capture.selection), FindingSample()
    marker = FrameMarker(facts=selector.selection.uses_facts) if selector.needs_marks else None
    patience_ns = _PATIENCE_NS if is_live(capture.source) else None
    verification = OrderedVerification(
        vantage, selector=selector, rules=numbers, disordered=reordered, patience_ns=patience_ns
    )

    def described(found: Iterable[Violation]) -> Iterator[BrokenRule]:
        for each in found:
            if complete or sample.takes(each):
                yield BrokenRule.of(each, *capture.located(each.frames))

    for decoded in judged_batches(capture.decoder, capture.source, streams=complete):
        if dropped_by(capture.source):
            verification.lose()
        selector.observe(decoded, None if marker is None else marker.observe(decoded), capture.start_ns)
        yield from described(verification.observe(decoded))
    yield from described(verification.finish())
    refuse_empty(capture.source, capture.decoder, capture.selection)
    yield VerifiedCapture.of(verification, capture.name)


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
