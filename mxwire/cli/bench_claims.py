"""``mxwire bench claims``: the claims of the papers, judged on this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mxwire.cli.bench_options import BenchOptions
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.group import command_with
from mxwire.cli.live_options import end_like_interrupt
from mxwire.cli.notes import note, print_result
from mxwire.cli.option_class import argument, option, options_class
from mxwire.cli.options import PATH, flag_option, integer_option, json_option
from mxwire.cli.progress import LiveLine
from mxwire.errors import MxwireError, check_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from mxwire.bench.claims.claim import Claim, ClaimEvidence, ClaimVerdict
    from mxwire.bench.record import Recording
    from mxwire.bench.study import StudyOptions
    from mxwire.bench.testbed import StudyTestbed

    _Study = Callable[[StudyOptions], object]

_LOGP_SIZES: Final = (64, 4096, 65536)
"""Sizes in bytes at which claims about LogP are judged."""
_TRANSFERS: Final = (1, 16384, 65536, 1 << 20, 4 << 20)
"""Sizes in bytes at which claims on transfers within a machine are judged."""
_MECHANISMS: Final = (
    *("shared-buffer", "cell-queue", "cell-stack", "ptrace", "process-file", "cma-get", "cma-put", "tcp", "veth"),
)
_DERIVED: Final = ("median", "least", "p99", "interval")


@requires("--resume", one_of=("-w",), error="--resume continues the recording of -w: add -w FILE")
@conflicts("--from", "--resume", error="{option}: not with --from, which measures nothing")
@options_class
class ClaimsOptions:
    """The options of mxwire bench claims."""

    names: tuple[str, ...] = argument(nargs=-1, metavar="[CLAIM]...")
    sources: tuple[Path, ...] = option(
        "Judge these recordings instead of measuring; may be repeated.",
        "--from FILE",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
    )
    model_only: bool = flag_option("Only the studies in virtual time.", "--model-only")
    rounds: int | None = integer_option("Rounds of the live studies.  [default: 9]", "--rounds", least=1, most=1000)
    quick: bool = flag_option("Short studies: shapes and counts are right, times are not judged.", "--quick")
    write: Path | None = option(
        "Write the recordings of all studies to FILE, as JSON Lines; after each study, so that a run can be resumed.",
        "-w",
        "--write FILE",
        type=PATH,
    )
    resume: bool = flag_option("Keep the studies that the FILE of -w has complete, and run the others.", "--resume")
    html: Path | None = option(
        "Write a site to DIR: a page with the claims.", "--html DIR", type=click.Path(file_okay=False, path_type=Path)
    )
    markdown: Path | None = option("Write it as Markdown.", "--markdown FILE", type=PATH)
    as_json: bool = json_option("JSON Lines: one object per claim.")


@command_with(ClaimsOptions)
def claims(options: ClaimsOptions) -> None:
    """Judge the claims of the papers on user-space communication by studies of this machine."""
    end_like_interrupt()
    from mxwire.bench.claims.claim import ClaimEvidence, record_of
    from mxwire.bench.claims.page import claim_blocks, conditions_blocks, judged, page, read_evidence, selected

    selected(options.names)
    bench = BenchOptions(options.rounds, options.quick, options.as_json, options.write, None, options.html)
    bench.check(live=not options.sources and not options.model_only)
    if options.markdown is not None:
        check_writable(options.markdown)
    interrupted = failed = False
    if options.sources:
        evidence = read_evidence(options.sources)
    else:
        recordings: list[Recording] = []
        before = _resumable(options.write, bench.study) if options.resume and options.write is not None else {}
        try:
            for study, virtual, measure in _studies(options.model_only):
                if (study, virtual) in before:
                    recordings.append(before[study, virtual])
                    note(f"{study}: kept from {recordings[-1].conditions.time}")
                    continue
                try:
                    measure(replace(bench.study, on_start=recordings.append))
                except MxwireError as error:
                    failed = True
                    note(f"{study}: not measured: {error}")
                if options.write is not None:
                    _write(options.write, [each for each in recordings if each.series])
        except KeyboardInterrupt:
            interrupted = True
        evidence = ClaimEvidence([each for each in recordings if each.series])
        LiveLine().show("")
    if options.write is not None:
        if evidence.recordings:
            _write(options.write, evidence.recordings)
        else:
            note(f"{options.write}: not written: nothing was measured")
    verdicts = judged(evidence, options.names)
    print_result(
        options.as_json,
        starmap(record_of, verdicts),
        lambda: chain(claim_blocks(verdicts), conditions_blocks(evidence.recordings)),
    )
    if options.markdown is not None:
        write_file(options.markdown, page(evidence))
    if options.html is not None:
        _page(options.html, evidence, verdicts)
    unfinished = [recording for recording in evidence.recordings if not recording.complete]
    for recording in unfinished:
        reason = recording.remarks[-1] if recording.remarks else "its recording has no end"
        note(f"{recording.study}: partial: {reason}")
    if interrupted:
        note("interrupted by Ctrl-C: studies that did not run, or not to their end, leave claims not applicable")
        sys.exit(130)
    if failed or unfinished:
        sys.exit(1)


def _resumable(path: Path, options: StudyOptions) -> dict[tuple[str, bool], Recording]:
    """The complete recordings of a file that this run would make likewise, by study, and by whether it is virtual."""
    from mxwire.bench.record import read_recordings
    from mxwire.lab.machine import software_record

    if not path.exists():
        return {}
    found = {}
    for each in read_recordings(path):
        own = asdict(each.conditions)
        same = all(own[name] == value for name, value in software_record().items())
        if same and each.complete and each.conditions.quick == options.quick:
            found[each.study, each.conditions.virtual] = each
    return found


def _studies(model_only: bool) -> Iterator[tuple[str, bool, _Study]]:
    """Yield the studies with their names, and whether they are virtual; one that fails does not prevent the next."""
    from mxwire.bench.claims.library_study import measure_libraries, run_libraries
    from mxwire.bench.claims.maccabe_2002 import run_offload
    from mxwire.bench.claims.model_study import run_model, run_model_mtu
    from mxwire.bench.imb.rank_testbed import RankSurroundings
    from mxwire.bench.intranode.study import IntranodeStudy, run_intranode
    from mxwire.bench.mtu import MtuStudy, run_mtu
    from mxwire.lab.machine import compiled_folder
    from mxwire.lab.namespaces import namespaces_refusal

    yield "model", True, run_model
    yield "libraries", True, run_libraries
    yield "mtu", True, run_model_mtu
    yield "overlap", True, run_offload
    refusal = None if not model_only else "--model-only"
    refusal = refusal or namespaces_refusal()
    if refusal is not None:
        if not model_only:
            note(f"only claims of the model are judged: {refusal}")
        return
    from mxwire.bench.logp import measure_logp
    from mxwire.bench.models.comparison import LIMIT
    from mxwire.bench.path import measure_path
    from mxwire.bench.testbed import TestbedOptions, open_testbed

    def opened(package: Path | None) -> AbstractContextManager[StudyTestbed]:
        return open_testbed(TestbedOptions(package=package))

    def logp(options: StudyOptions) -> None:
        with opened(compiled_folder()) as testbed:
            measure_logp(testbed, options, ("mxoe", "tcp", "frames"), _LOGP_SIZES)

    def models(options: StudyOptions) -> None:
        with opened(compiled_folder()) as testbed:
            measure_libraries(testbed, replace(options, limit=LIMIT))

    yield "path", False, partial(measure_path, opened)
    yield "logp", False, logp
    yield "models", False, models
    live = MtuStudy(mtus=(1500, 9000), blocks=(8,), delays=(), surroundings=RankSurroundings(package=compiled_folder()))
    yield "mtu", False, partial(run_mtu, live)
    yield "intranode", False, partial(run_intranode, IntranodeStudy(_MECHANISMS, _TRANSFERS, ("cold",)))


def _write(path: Path, recordings: list[Recording]) -> None:
    from json import dumps

    lines = []
    for each in recordings:
        for record in each.records():
            # Values that readers derive from the samples would double the size of the file.
            kept = {key: value for key, value in record.items() if key not in _DERIVED}
            lines.append(dumps(kept, separators=(",", ":")))
    write_file(path, "\n".join(lines) + "\n")


def _page(folder: Path, evidence: ClaimEvidence, found: list[tuple[Claim, ClaimVerdict]]) -> None:
    from mxwire.bench.claims.figures import claim_figures
    from mxwire.bench.claims.page import TEXTS, claim_blocks, conditions_blocks
    from mxwire.bench.record import Recording
    from mxwire.bench.report import write_page

    recordings = evidence.recordings
    if not recordings:
        note("no page: there are no recordings")
        return
    # Each recording has a testbed of its own.
    conditions = replace(recordings[-1].conditions, testbed="")
    joined = Recording("claims", conditions, complete=all(each.complete for each in recordings))
    texts = {claim.number.partition("-")[0] for claim, _ in found}
    title = TEXTS[min(texts)] if len(texts) == 1 else "Claims of the papers"
    figures = list(claim_figures(evidence, texts))
    last, first = list(conditions_blocks(recordings)), list(claim_blocks(found))
    note(f"wrote {write_page(folder, joined, title, last, figures, first)}")
