"""The claims: how they are judged, and that the page of documentation is that of its recording."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import click
import pytest

from mxwire.bench.claims import page as page_module
from mxwire.bench.claims.claim import (
    OUTCOMES,
    Check,
    Claim,
    ClaimEvidence,
    ClaimVerdict,
    EvidenceError,
    FittedError,
    all_of,
    modelled,
    ratio,
    record_of,
)
from mxwire.bench.claims.claim import live as live_term
from mxwire.bench.claims.figures import claim_figures
from mxwire.bench.claims.library_study import CARD_SIZES, COMPARED_MODELS, measure_libraries
from mxwire.bench.claims.model_study import COLLECTIVE, SHARE, TABLE_1, TRIP, run_model
from mxwire.bench.claims.page import CLAIMS, judged, page, read_evidence
from mxwire.bench.cost.calibration import half_round_trip, refit, varied_costs
from mxwire.bench.cost.progress import PROGRESS
from mxwire.bench.cost.tables import CLOVERTOWN, MYRINET, FittedNumber
from mxwire.bench.imb.patterns import benchmark_by_name
from mxwire.bench.intranode.catalogue import MECHANISMS
from mxwire.bench.intranode.memory import MEMORIES
from mxwire.bench.intranode.study import EXPERIMENTS as INTRANODE_EXPERIMENTS
from mxwire.bench.models.facts import FACTS
from mxwire.bench.overlap import EXPERIMENTS as OVERLAP_EXPERIMENTS
from mxwire.bench.record import Conditions, Measurement, Recording, Series, read_recordings
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import MemoryTestbed
from mxwire.cli.bench import command as bench
from mxwire.errors import MxwireError
from mxwire.report.plot import rendered
from mxwire.texts import table_rows
from mxwire.wire.dialect import as_dialect

DOCS = Path(__file__).parents[2] / "docs"


def point(name: str, samples: tuple[float, ...], x: float = 64, key: str = "size") -> Measurement:
    return Measurement(name, "µs", samples, {key: x})


def live(study: str, series: str, *points: Measurement, quick: bool = False, x: str = "size") -> Recording:
    made = Series(series, "µs", x, measurements=list(points))
    return Recording(study, Conditions(testbed="namespaces", quick=quick), [made])


def verdict_of(number: str, *recordings: Recording) -> ClaimVerdict:
    return judged(ClaimEvidence(recordings), [number])[0][1]


def test_the_recording_names_no_folder_of_the_machine():
    texts = [
        text for each in read_recordings(DOCS / "studies.jsonl") for text in (*each.remarks, each.conditions.testbed)
    ]
    assert texts and not [each for each in texts if re.search(r"(?:^|[\s:])[/~]\w", each)]


def test_the_page_is_that_of_the_recording():
    """After `mxwire bench claims -w docs/studies.jsonl --markdown docs/studies.md`."""
    expected = page(read_evidence([DOCS / "studies.jsonl"]))
    assert (DOCS / "studies.md").read_text(encoding="utf-8") == expected
    assert max(map(len, expected.splitlines())) < 500


def test_every_refuted_claim_has_the_reason(recorded):
    refuted = [verdict for _, verdict in judged(recorded) if verdict.outcome == "refuted"]
    assert refuted and all(each.lines[-1].startswith("reason: ") for each in refuted)


@pytest.mark.parametrize(
    ("number", "numbers"),
    [
        ("S1-T1-a", "BIP-0.92 data loss, FM-2.02 prevented, FM-2.1 prevented, PM-1.2 tolerated, VMMC-2 impossible"),
        ("S1-T1-b", "AM-II 2,000, BIP-0.92 129"),
        ("S1-T1-c", "FM-2.02 no, FM-2.1 yes, PM-1.2 yes"),
        ("S1-T2-a", "AM-II 2 + 1, BIP-0.92 0 + 0"),
        ("S1-T2-b", "GAM 1, AM-II 2, VMMC-2 0"),
        ("S1-D-a", "VMMC-2 1, 1.5, 2.5, 4.5; PM-1.2 1, 1, 1, 1"),
        ("S1-D-b", "BIP-0.92 0 and 0, PM-1.2 0 and 2, VMMC-2 0 and 0"),
        ("S4-F5-a", "push 2, pull 1"),
        ("S4-D-b", "131,072 B leave, 262,144 B leave, 262,145 B wait, 524,288 B wait"),
    ],
)
def test_claims_on_calls_and_recovery_are_judged_by_the_models_without_a_recording(number, numbers):
    verdict = verdict_of(number)
    assert (verdict.outcome, verdict.how) == ("confirmed", "counted")
    assert numbers in verdict.numbers


COVERAGE = [cells for _, cells in table_rows(page_module.__file__, "coverage.md")]
COMMANDS = [command.strip("`") for _, command, _ in COVERAGE if command]
NAMES = {
    "--model": FACTS,
    "--mechanisms": MECHANISMS,
    "--buffers": MEMORIES,
    "--progress": PROGRESS,
    "--experiment": (*INTRANODE_EXPERIMENTS, *OVERLAP_EXPERIMENTS),
    "--over": ("mx", "tcp", "udp", "frames", "ring"),
}


def test_each_row_of_the_coverage_has_a_command_or_the_reason_for_none():
    assert len(COMMANDS) > 40
    assert all(command or remark for _, command, remark in COVERAGE)


@pytest.mark.parametrize("text", sorted(set(COMMANDS)))
def test_each_command_of_the_coverage_exists_with_its_options_and_names(text):
    program, group, name, *words = text.split()
    assert (program, group) == ("mxwire", "bench")
    command = bench.get_command(click.Context(bench), name)
    assert command is not None
    command.make_context(name, list(words))
    unknown = [
        each
        for option, values in pairwise(words)
        for each in (values.split(",") if option in NAMES else ())
        if each not in NAMES[option]
    ]
    assert unknown == []
    if name == "imb":
        for each in words[: words.index("--over")]:
            benchmark_by_name(each)


def test_every_claim_of_the_five_texts_is_there():
    numbers = [each.number for each in CLAIMS]
    count = {text: sum(each.startswith(f"{text}-") for each in numbers) for text in ("S0", "S1", "S2", "S3", "S4")}
    # Of the paper on Open-MX there are 26, and one of our own: TCP without segmentation offload.
    assert count == {"S0": 6, "S1": 40, "S2": 27, "S3": 28, "S4": 19} and len(set(numbers)) == len(numbers)
    assert next(each for each in CLAIMS if each.number == "S2-F12-d").derived


def test_without_recordings_only_counts_of_the_models_are_applicable():
    for claim, verdict in judged(ClaimEvidence([])):
        # Its result is a list of parameters.
        counted = verdict.how == "counted" or claim.number == "S1-T3-a"
        assert verdict.outcome == "not applicable" or counted, claim.number
        assert verdict.numbers


def judged_ratio(low: Measurement, high: Measurement, most: float = 1.0) -> ClaimVerdict:
    """The verdict on the ratio of two live measurements."""
    evidence = ClaimEvidence([live("path", "half round trip", low, high)])
    terms = [live_term("path", "half round trip", each.name, 64) for each in (low, high)]
    return Check(ratio(*terms), most=most).verdict(evidence)


def test_orderings_need_eight_of_nine_rounds():
    low, high = point("a", (1.0,) * 9), point("b", (2.0,) * 9)
    mixed = point("c", (0.5,) * 4 + (2.0,) * 5)
    assert judged_ratio(low, high).outcome == "confirmed"
    assert judged_ratio(high, low).outcome == "refuted"
    assert judged_ratio(low, mixed).outcome == "undecided"
    assert judged_ratio(low, high, 0.4).outcome == "refuted"
    outcomes = [judged_ratio(low, high), judged_ratio(low, mixed)]
    assert all_of(outcomes).outcome == "undecided"
    assert all_of([*outcomes, judged_ratio(high, low)]).outcome == "refuted"
    assert judged_ratio(low, high).numbers == "a at 64 B 1 µs / b at 64 B 2 µs: 0.5 (at most 1)"


@pytest.mark.parametrize(("tcp", "outcome"), [((20.0,) * 9, "confirmed"), ((5.0,) * 9, "refuted")])
def test_latency_is_judged_live(tcp, outcome):
    points = [
        point(f"{rung}, {how}", tcp if rung == "tcp" else (10.0,) * 9)
        for rung in ("tcp", "mxoe")
        for how in ("spinning", "blocking")
    ]
    found = verdict_of("S2-F9-a", live("path", "half round trip", *points))
    assert (found.outcome, found.how) == (outcome, "live")


def test_a_disturbed_measurement_leaves_a_claim_undecided():
    low, high = point("a", (1.0,) * 9), replace(point("b", (2.0,) * 9), marks=("disturbed",))
    found = judged_ratio(low, high)
    assert (found.outcome, found.disturbed) == ("undecided", ("b",))
    assert all_of([found] * 2).lines[-1] == "disturbed: b"
    shaken = replace(point("frames", (-0.5,) * 9, 4096), marks=("disturbed",))
    assert verdict_of("S1-D-d", live("logp", "L", shaken)).outcome == "undecided"


def test_a_quick_recording_is_not_evidence():
    points = [point(f"{rung}, {how}", (10.0,) * 9) for rung in ("tcp", "mxoe") for how in ("spinning", "blocking")]
    found = verdict_of("S2-F9-a", live("path", "half round trip", *points, quick=True))
    assert found.outcome == "not applicable" and "quick" in found.numbers
    # In virtual time, too, a quick study of MTUs has shorter messages than the claim is about.
    found = verdict_of("S2-F14-b", Recording("mtu", Conditions(testbed="virtual time", quick=True)))
    assert found.outcome == "not applicable" and "quick" in found.numbers


RUNGS = {"xdp": 2.0, "frames in C": 2.2, "frames": 3.0, "udp": 3.5, "tcp": 4.0}


def rungs(**changes: float) -> Recording:
    """Half round trips of 64 bytes, with and without steering; 15 µs more with it."""
    points = [point("mxoe over local, spinning", (9.0,) * 9)]
    for name, value in RUNGS.items():
        plain = changes.get(name, value)
        points += [
            point(f"{name}, spinning, not steered", (plain,) * 9),
            point(f"{name}, spinning", (changes.get(f"{name}_steered", plain + 15),) * 9),
        ]
    return live("path", "half round trip", *points)


def test_user_space_is_judged_with_and_without_steering_by_the_faster_of_its_paths():
    found = verdict_of("S0-b", rungs())
    assert found.outcome == "confirmed"
    # Steered, the local path is faster than AF_XDP, whose frames pass between processors.
    assert "mxoe over local at 64 B" in found.numbers and "xdp, not steered at 64 B" in found.numbers
    assert verdict_of("S0-b", rungs(udp=1.5)).outcome == "refuted"
    assert verdict_of("S0-b", rungs(tcp_steered=8.0)).outcome == "refuted"
    ring = live("path", "half round trip", *(point(f"{each}, spinning", (1.0,) * 9) for each in ("ring", "tcp")))
    assert verdict_of("S0-b", ring).outcome == "not applicable"


def test_the_share_of_tcp_is_that_above_bare_frames_in_c():
    # Steering hides it: both sides of a ratio have 15 µs more.
    assert verdict_of("S0-c", rungs()).outcome == "refuted"
    assert verdict_of("S0-c", rungs(tcp_steered=30.0)).outcome == "confirmed"


def test_tcp_is_judged_with_segmentation_offload_and_apart_from_that_without():
    rates = {("tcp", 1500): 100.0, ("tcp", 9000): 105.0}
    rates |= {("tcp, no segmentation offload", 1500): 90.0, ("tcp, no segmentation offload", 9000): 100.0}
    points = [point(name, (value,) * 9, mtu, "mtu") for (name, mtu), value in rates.items()]
    recording = live("mtu", "rate by frame limit", *points, x="mtu")
    assert verdict_of("S2-F12-b", recording).outcome == "confirmed"
    assert verdict_of("S2-F12-d", recording).outcome == "refuted"


def test_claims_about_logp_are_judged_by_its_recording():
    def curve(name: str, **values: float) -> Series:
        made = [
            point(each.replace("_", ", ").replace("ping, pong", "ping-pong"), (value,) * 9, 4096)
            for each, value in values.items()
        ]
        return Series(name, "µs", measurements=made)

    rates = {}
    for carrier in ("frames", "tcp"):
        rates |= {f"{carrier}_unidirectional": 409.6, f"{carrier}_ping_pong": 200.0, f"{carrier}_simultaneous": 420.0}
    recording = live("logp", "L", point("frames", (-0.5,) * 9, 4096), point("tcp", (2.0,) * 9, 4096))
    gaps = {"frames": 10.0, "tcp": 10.0, "frames_round trips": 10.0, "tcp_round trips": 10.5}
    recording.series += [
        curve("g", **gaps),
        curve("o_s", frames=1.5),
        curve("o_r", tcp=1.5),
        curve("bandwidth", **rates),
    ]
    assert verdict_of("S1-F11-a", recording).outcome == "confirmed"
    # A claim about libraries is not judged by the kernel, and one about engines not by a cable without any.
    for number in ("S1-F6-b", "S1-F7-b", "S1-F12-a"):
        assert verdict_of(number, recording).outcome == "not applicable"
    assert verdict_of("S1-D-d", recording).numbers.startswith("1 of 2 points")
    assert verdict_of("S1-D-e", recording).numbers.startswith("4 of 4 points agree")
    for name, mark in (("o_s", "methods differ"), ("o_r", "undecided")):
        measurements = recording.named(name).measurements
        measurements[:] = [replace(each, marks=(mark,)) for each in measurements]
    found = verdict_of("S1-D-e", recording)
    assert found.outcome == "refuted" and found.numbers.startswith("2 of 4 points agree, 1 differ, 1 undecided")


def model_of(series: str, *points: Measurement, fitted: list[FittedNumber], study: str = "model") -> Recording:
    facts = {"fitted": [asdict(each) for each in fitted]}
    return Recording(
        study, Conditions(testbed="virtual time, x"), [Series(series, "µs", measurements=list(points))], facts=facts
    )


def test_numbers_to_which_a_table_was_fitted_are_refused_as_evidence():
    free, fitted = (point(name, (value,), 0) for name, value in (("mixed", 4.7), ("mx", 2.0)))
    evidence = ClaimEvidence([model_of(TRIP, free, fitted, fitted=[FittedNumber(TRIP, "mx", 0, 2.1)])])
    assert modelled(TRIP, "mixed", 0)(evidence).value == 4.7
    with pytest.raises(FittedError, match=r"half round trip at 0 B: mx 2.1 µs \(model: 2\)"):
        modelled(TRIP, "mx", 0)(evidence)
    with pytest.raises(FittedError):
        ratio(modelled(TRIP, "mixed", 0), modelled(TRIP, "mx", 0))(evidence)
    assert modelled(TRIP, "mx", 0, premise=True)(evidence).value == 2.0


def test_a_verdict_that_a_guess_decides_is_undecided_and_names_the_guess(tmp_path):
    recording = model_of(TRIP, point("mx", (2.0,), 0), fitted=[])
    claim = Claim("S9-F1-a", "It is at most 3 µs.", checks=(Check(modelled(TRIP, "mx", 0), most=3),))
    assert claim.verdict(ClaimEvidence([recording])).outcome == "confirmed"
    recording.facts["varied"] = [
        {"guess": f"pio_word {change}", "points": [[TRIP, "mx", 0, value]]}
        for change, value in (("-25%", 1.5), ("+25%", 3.5))
    ]
    recording.write(tmp_path / "model.jsonl")
    found = claim.verdict(read_evidence([tmp_path / "model.jsonl"]))
    assert (found.outcome, found.deciding) == ("undecided", ("pio_word +25%",))
    assert found.lines[-1] == "decided by a guess: pio_word +25%"
    built = replace(claim, built="it is a constant")
    assert built.verdict(ClaimEvidence([recording])).outcome == "by construction"


def test_the_recorded_models_vary_every_guess(recorded):
    assert {each.study for each in recorded.recordings if each.facts.get("varied")} == {
        *("model", "libraries", "mtu", "overlap")
    }
    tables = {"libraries": MYRINET, "model": CLOVERTOWN, "mtu": CLOVERTOWN, "overlap": CLOVERTOWN}
    # Only hosts of the study of overlap have signals.
    left_out = {"libraries": {"pio_read", "dma_start_host"}, "overlap": set()}
    for study, table in tables.items():
        guesses = {name for name, source in table.sources.items() if source == "guess"}
        guesses -= left_out.get(study, {"signal"})
        varied = recorded.recording(study, modelled=True).facts["varied"]
        names = {f"{name} {sign}25%" for name in guesses for sign in "+-"}
        names |= {f"that the table is not fitted to {each.text}" for each in table.contradicted}
        assert {each["guess"] for each in varied} == names


def test_a_table_with_another_guess_predicts_the_numbers_of_the_table():
    # Only one is taken: each is fitted when it is.
    name, varied = next(varied_costs(CLOVERTOWN, partial(refit, numbers=CLOVERTOWN)))
    assert name == "tcp_frame -25%" and varied.tcp_frame == 0.75 * CLOVERTOWN.tcp_frame
    for length in (0, 4 << 20):
        wanted = half_round_trip(CLOVERTOWN, length, as_dialect("omx:9000"))
        assert half_round_trip(varied, length, as_dialect("omx:9000")) == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("number", ["S1-F2-a", "S1-F4-d", "S1-F8-b", "S2-F10-b", "S2-F13-a"])
def test_constants_of_the_model_are_confirmed_by_construction_only(recorded, number):
    found = judged(recorded, [number])[0][1]
    assert (found.outcome, found.how) == ("by construction", "modelled")


def test_a_recording_in_virtual_time_must_name_the_fitted_numbers():
    recording = model_of(TRIP, point("mx", (2.0,), 0), fitted=[])
    recording.facts.clear()
    with pytest.raises(EvidenceError, match="does not name the numbers"):
        modelled(TRIP, "mx", 0)(ClaimEvidence([recording]))


LATENCIES = {"gam": 17.0, "bip": 6.1, "fm2": 9.0, "pm": 9.1, "vmmc2": 13.0}
RATES = {"gam": 50.0, "bip": 125.0, "fm2": 65.0, "pm": 118.0, "vmmc2": 100.0}


def compared(**changed: float) -> Recording:
    """A comparison on this machine with the paper's numbers; ``changed`` are other latencies, or ``NAME_rate``."""
    trips = [point(name, (changed.get(name, time),) * 9, 4) for name, time in LATENCIES.items()]
    made = live("models", "RTT/2", *trips)
    rates = {name: changed.get(f"{name}_rate", rate) for name, rate in RATES.items()}
    points = [point(f"{name}, unidirectional", (rate,) * 9, 1 << 20) for name, rate in rates.items()]
    made.series.append(Series("bandwidth", "MB/s", measurements=points))
    return made


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        ("S1-F4-a", {"fm2": 5.0}),
        ("S1-F4-b", {"vmmc2": 8.0}),
        ("S1-F4-c", {"gam": 22.0}),
        ("S1-F4-e", {"pm": 10.0}),
        ("S1-F10-a", {"fm2_rate": 101.0}),
        ("S1-F10-b", {"gam_rate": 90.0}),
        ("S1-D-c", {"vmmc2": 4.0}),
    ],
)
def test_claims_on_latencies_and_rates_hold_for_the_papers_numbers(number, changed):
    """And not if one of them is another."""
    found = verdict_of(number, compared())
    assert (found.outcome, found.how) == ("confirmed", "live")
    found = verdict_of(number, compared(**changed))
    assert found.outcome == "refuted" and found.lines[-1].startswith("reason: ")


@pytest.mark.parametrize("number", ["S2-F9-c", "S2-F11-a"])
def test_claims_on_numbers_that_the_table_of_2010_was_derived_from_are_not_applicable(recorded, number):
    found = judged(recorded, [number])[0][1]
    assert found.outcome == "not applicable" and "fitted to the paper's" in found.numbers


@pytest.fixture(scope="module")
def recorded():
    return read_evidence([DOCS / "studies.jsonl"])


def test_the_steps_between_kinds_of_messages_are_judged_live():
    values = {32: 10.0, 33: 11.0, 128: 11.0, 129: 12.0, 32768: 100.0, 32769: 120.0}
    points = [point("mxoe, spinning, not steered", (value,) * 9, size) for size, value in values.items()]
    assert verdict_of("S2-F9-f", live("path", TRIP, *points)).outcome == "confirmed"
    points[-1] = point("mxoe, spinning, not steered", (105.0,) * 9, 32769)
    assert verdict_of("S2-F9-f", live("path", TRIP, *points)).outcome == "refuted"


def transfers(**changed: float) -> Recording:
    """A recording of mechanisms as the paper of 2006 found them, in µs at 1 B; ``changed`` are other values."""
    times = {"shared-buffer": 1.5, "cell-queue": 3.3, "cma-get": 2.1, "cma-put": 2.1, "ptrace": 20.2, "tcp": 14.3}
    times |= {"veth": 11.6} | {name.replace("_", "-"): value for name, value in changed.items()}
    return live("intranode", "half round trip", *(point(f"{name}, C", (time,) * 9, 1) for name, time in times.items()))


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        ("S3-T2-a", {"cma_get": 1.0}),
        ("S3-T2-b", {"cma_put": 3.5}),
        ("S3-T2-c", {"cell_queue": 1.9}),
        ("S3-T2-d", {"ptrace": 12.0}),
        ("S3-T2-e", {"veth": 6.0}),
    ],
)
def test_claims_on_transfers_within_a_node_hold_for_the_papers_numbers(number, changed):
    """And not if one of them is another."""
    assert verdict_of(number, transfers()).outcome == "confirmed"
    assert verdict_of(number, transfers(**changed)).outcome == "refuted"


def test_the_best_sizes_of_buffers_and_cells_are_judged():
    def recording(name: str, rates: tuple[float, ...]) -> Recording:
        points = [
            replace(point(f"{name}, C", (rate,) * 9, 0), parameters={"slot": 512 << place})
            for place, rate in enumerate(rates)
        ]
        made = live("intranode", "rate by buffer size", *points)
        made.series[0] = replace(made.series[0], x="slot")
        return made

    inner, rising = (1.0, 5.0, 9.5, 10.0, 8.0), (1.0, 5.0, 9.5, 9.8, 10.0)
    found = verdict_of("S3-F3-a", recording("shared-buffer", inner))
    assert found.outcome == "confirmed" and found.numbers.startswith("best at 4 KiB, 90% of that from 2 KiB on")
    assert verdict_of("S3-F3-a", recording("shared-buffer", rising)).outcome == "refuted"
    assert verdict_of("S3-F3-b", recording("cell-queue", rising)).outcome == "confirmed"
    assert verdict_of("S3-F3-b", recording("cell-queue", inner)).outcome == "refuted"


def test_the_places_that_a_receiver_polls_are_counted():
    def recording(places: int) -> Recording:
        points = [
            replace(point(name, (1.0,) * 9), parameters={"senders": count}, counts={"places": polled, "memory": 2**20})
            for name, polls in (("cell-queue, C", places), ("shared-buffer", 8))
            for count, polled in ((1, 1), (8, polls))
        ]
        made = live("intranode", "messages of several senders", *points)
        made.series[0] = replace(made.series[0], x="senders")
        return made

    found = verdict_of("S3-T5-e", recording(1))
    assert (found.outcome, found.how) == ("confirmed", "counted")
    assert "cell-queue, C: 1 with 1 MiB and 1 with 1 MiB" in found.numbers
    assert verdict_of("S3-T5-e", recording(8)).outcome == "refuted"


@pytest.mark.parametrize(("share", "outcome"), [(0.1, "confirmed"), (0.7, "refuted")])
def test_cells_that_are_soon_reused_are_compared_with_others_in_turn(share, outcome):
    shares = {"cell-stack": share, "cell-queue": 0.4}
    points = [
        replace(point(f"{name}, destination", (each,) * 9), parameters={"message": 4 << 20})
        for name, each in shares.items()
    ]
    made = live("intranode", "cache disturbance, L2", *points)
    made.series[0] = replace(made.series[0], x="message")
    assert verdict_of("S3-T4-e", made).outcome == outcome


@pytest.mark.parametrize(("share", "outcome"), [(0.9, "confirmed"), (0.1, "refuted")])
def test_the_cost_of_a_polling_thread_is_judged(share, outcome):
    points = [
        replace(point(f"{each}, thread", (share,) * 9), parameters={"message": 1})
        for each in ("shared-buffer", "cell-queue")
    ]
    made = live("intranode", "slowdown by waiting for requests, share", *points)
    made.series[0] = replace(made.series[0], x="message")
    assert verdict_of("S3-T5-d", made).outcome == outcome


@pytest.mark.parametrize(("time", "outcome"), [(50.0, "confirmed"), (5.0, "refuted")])
def test_a_service_by_signals_is_compared_with_a_copy_by_the_kernel(time, outcome):
    made = live("intranode", "window access", point("cma-get, passive", (4.0,) * 9, 1))
    made.series.append(
        Series("access to a served window", "µs", measurements=[point("shared-buffer, signal, get", (time,) * 9, 1)])
    )
    assert verdict_of("S3-T5-f", made).outcome == outcome


def test_copies_past_the_caches_are_judged_from_2_kib_on():
    def recording(long: float) -> Recording:
        sizes = (1024, 4096, 16384, 65536, 1 << 18, 1 << 20, 4 << 20)
        points = [point("string, C", (10.0,) * 9, size) for size in sizes]
        points += [point("past-caches, C", ((12.0 if size == 1024 else long),) * 9, size) for size in sizes]
        return live("intranode", "copy, cold", *points)

    assert verdict_of("S3-F2-a", recording(8.0)).outcome == "confirmed"
    assert verdict_of("S3-F2-a", recording(11.0)).outcome == "refuted"


@pytest.mark.parametrize("number", ["S4-F8-a", "S4-F8-b", "S4-F8-d", "S4-F8-e", "S4-F12-b", "S4-F13-a"])
def test_offload_is_judged_by_the_model_of_double_buffering(recorded, number):
    found = judged(recorded, [number])[0][1]
    assert (found.outcome, found.how) == ("confirmed", "modelled")


@pytest.mark.parametrize(
    ("number", "guess"), [("S4-F8-f", "pin +25%"), ("S4-F11-a", "pin -25%"), ("S4-F12-a", "pin -25%")]
)
def test_offload_that_depends_on_the_cost_of_pinning_is_undecided(recorded, number, guess):
    found = judged(recorded, [number])[0][1]
    assert (found.outcome, found.how, found.deciding) == ("undecided", "modelled", (guess,))


@pytest.mark.parametrize(("sent", "outcome"), [(1 << 15, "confirmed"), (1 << 20, "refuted")])
def test_the_copies_of_tcp_are_compared_with_those_of_the_local_path(sent, outcome):
    def counted(name: str, size: int, *counts: int) -> Measurement:
        names = "bytes to the kernel", "bytes copied, sent", "bytes from the kernel", "bytes copied, received"
        return replace(point(name, (1.0,) * 9, size), counts=dict(zip(names, map(float, counts), strict=True)))

    tcp = counted("tcp, blocking", 1 << 16, 1 << 16, 0, 1 << 16, 0)
    local = counted("mxoe over local (1 copy), spinning", 1 << 20, 0, sent, 1 << 20, 0)
    found = verdict_of("S0-e", live("path", TRIP, tcp, local))
    assert (found.outcome, found.how) == (outcome, "counted")
    assert "tcp 1.00 and 1.00 at 64 KiB" in found.numbers
    assert "not counted" in verdict_of("S0-e", live("path", TRIP, replace(tcp, counts={}))).numbers


def test_more_copies_and_one_of_the_kernel_are_judged_by_the_local_path():
    def halves(**times: float) -> Recording:
        names = {"plain": "", "once": " (1 copy)", "copied": " (copied)"}
        curves = {f"mxoe over local{names[each]}, spinning": (time,) * 9 for each, time in times.items()}
        return live("path", TRIP, *(point(*each, size) for each in curves.items() for size in (1 << 16, 1 << 20)))

    twins = live(
        "intranode",
        "operation, cold",
        *(point(f"{each}, C", (time,) * 9, 4 << 20) for each, time in (("shared-buffer", 9.0), ("cma-get", 6.0))),
    )
    assert verdict_of("S0-a", halves(plain=5.0, copied=6.0)).outcome == "confirmed"
    assert verdict_of("S0-a", halves(plain=5.0, copied=4.0)).outcome == "refuted"
    assert verdict_of("S2-I-a", halves(plain=5.0, once=4.0), twins).outcome == "confirmed"
    found = verdict_of("S2-I-a", halves(plain=5.0, once=6.0), twins)
    assert found.outcome == "refuted" and found.lines[-1].startswith("reason: two processors make two copies at")


def test_the_page_of_claims_has_a_figure_per_recorded_figure(recorded):
    every = claim_figures(recorded, ("S1", "S2", "S4"))
    figures = [each for each in every if "Virtual time" in each.caption or "myrinet" in each.caption]
    assert len(figures) == 11
    assert [len(list(claim_figures(recorded, (text,)))) for text in ("S0", "S4")] == [2, 3]
    assert sum("no evidence" in each.caption for each in figures) == 1
    (limits,) = [each for each in figures if "a ratio of" in each.caption]
    rates = [recorded.point("mtu", "rate by frame limit", "omx", mtu, modelled=True).median for mtu in (9000, 1500)]
    assert f"a ratio of {rates[0] / rates[1]:.2f} where the paper has 2" in limits.caption
    assert "virtual time, with I/OAT" in rendered(limits.figure, "svg").decode()
    (drawn,) = [rendered(each.figure, "svg").decode() for each in figures if "I/OAT; in place" in each.caption]
    assert "figure 10" in drawn and "the paper" in drawn


def test_unknown_claims_are_refused():
    with pytest.raises(MxwireError, match="no claim 'S2-F9-z' \\(did you mean S2-F9"):
        judged(ClaimEvidence([]), ["S2-F9-z"])
    with pytest.raises(MxwireError, match="no claim 'S7'"):
        judged(ClaimEvidence([]), ["S7"])
    assert [claim.number for claim, _ in judged(ClaimEvidence([]), ["s2-f12"])] == [f"S2-F12-{each}" for each in "abcd"]


def test_a_judged_claim_as_an_object():
    claim, verdict = judged(ClaimEvidence([]), ["S2-F9-b"])[0]
    record = record_of(claim, verdict)
    assert record["claim"] == "S2-F9-b" and record["derived"] is True
    assert record["verdict"] in OUTCOMES


def test_a_quick_model_has_all_series():
    recording = run_model(StudyOptions(quick=True))
    assert recording.complete
    names = [each.name for each in recording.series]
    assert TRIP in names and SHARE in names
    assert len(recording.named(COLLECTIVE).measurements) == 2 * (len(TABLE_1) + 1)
    for series in recording.series:
        assert all("modelled" in each.marks for each in series.measurements)


def overheads(**changed: float) -> Recording:
    """Overheads of libraries with a card in a process of its own, in µs; ``changed`` are other values at 4 KiB."""
    made = live("models", "o_s")
    made.series.clear()
    values = {
        "RTT/2": {"vmmc2": (200.0,) * 3},
        "o_s": {"pm": (7.0,) * 3, "vmmc2": (6.0, 7.0, changed.get("sent", 7.0))},
        "o_r": {
            "pm": (7.0,) * 3,
            "vmmc2": (5.0, 5.0, changed.get("taken", 5.0)),
            "fm2": (10.0, 10.0, 30.0),
            "gam": (10.0, 10.0, changed.get("copied", 20.0)),
        },
    }
    for name, curves in values.items():
        points = [
            point(f"{library} with card{' copied' if library == 'gam' else ''}", (value,) * 9, size)
            for library, curve in curves.items()
            for size, value in zip(CARD_SIZES, curve, strict=True)
        ]
        made.series.append(Series(name, "µs", measurements=points))
    return made


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        ("S1-F6-a", {"sent": 9.0}),
        ("S1-F7-a", {"taken": 11.0}),
        ("S1-F7-b", {"taken": 7.0}),
        ("S1-F7-b", {"copied": 11.0}),
    ],
)
def test_overheads_beside_a_card_are_judged_live(number, changed):
    found = verdict_of(number, overheads())
    assert (found.outcome, found.how) == ("confirmed", "live")
    found = verdict_of(number, overheads(**changed))
    assert found.outcome == "refuted" and found.lines[-1].startswith("reason: ")


def test_a_written_message_is_compared_with_a_described_one_of_the_same_library():
    found = verdict_of("S1-F6-c", overheads())
    assert found.outcome == "confirmed"
    assert found.lines[0] == "vmmc2 with card at 4 B 6 µs / vmmc2 with card at 256 B 7 µs: 0.857 (at most 1)"


@pytest.mark.parametrize(("copying", "outcome"), [(70.0, "confirmed"), (95.0, "refuted")])
def test_rates_beyond_the_cache_are_judged_by_library(copying, outcome):
    points = [
        point(f"{library}, unidirectional", (rate,) * 9, size)
        for library in COMPARED_MODELS
        for size, rate in ((65536, 100.0), (1 << 20, copying if library in ("gam", "fm2") else 95.0))
    ]
    assert verdict_of("S1-F10-d", live("models", "bandwidth", *points)).outcome == outcome


def test_the_step_of_active_messages_is_compared_with_those_of_other_libraries():
    def recording(step: float) -> Recording:
        curves = {"gam copied": (4, 16, 20, step), "bip unsynchronised": (64, 252, 256, -5.0), "vmmc2": (4, 64, 68, -1)}
        points = [
            point(name, (10 + 0.05 * size + (jump if size == after else 0),), size)
            for name, (first, last, after, jump) in curves.items()
            for size in (first, last, after)
        ]
        return model_of("RTT/2", *points, fitted=[], study="libraries")

    assert verdict_of("S1-F4-f", recording(0.5)).outcome == "confirmed"
    found = verdict_of("S1-F4-f", recording(2.0))
    assert found.outcome == "refuted"
    assert "step of gam copied behind 16 B 2 µs / step of vmmc2 behind 64 B 1 µs: 2 (at most 1)" in found.lines


def test_libraries_are_measured_and_compared_and_then_others_by_logp_only(monkeypatch):
    # A card is a process, which a testbed in memory has none of: a library without a card stands for those with one.
    monkeypatch.setattr("mxwire.bench.claims.library_study.COMPARED_MODELS", ("pm",))
    monkeypatch.setattr("mxwire.bench.claims.library_study.COMPARED_CARDS", ("vmmc2",))
    with MemoryTestbed() as testbed:
        recording = measure_libraries(testbed, StudyOptions.of(1, True))
    assert recording.complete and recording.study == "models" and "processors" in recording.facts
    overheads, patterns = recording.named("o_s"), recording.named("producer-consumer")
    assert [each.parameters["size"] for each in overheads.curve("pm")] == [4, 4096]
    assert [each.parameters["size"] for each in overheads.curve("vmmc2")] == list(CARD_SIZES)
    assert "pm" in patterns.contestants() and "vmmc2" not in patterns.contestants()
