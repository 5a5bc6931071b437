"""Report of ``bench intranode``: tables with a row per mechanism, its suitability, and the fastest one by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from mxwire.bench.intranode.catalogue import FACTS, KINDS, MECHANISMS, PTRACE, mechanism_named
from mxwire.bench.intranode.memory import MEMORIES
from mxwire.bench.intranode.pair_starter import IN_C
from mxwire.bench.intranode.study import (
    ACCESS,
    AGENT_COPIES,
    COPY_SIZES,
    DISTURBANCES,
    LARGE,
    MISSING,
    REGISTRATION,
    SENDERS,
    SERVED,
    SERVING,
    SET_UP,
    SLOTS,
    SLOWDOWN,
    SLOWED,
    TEAR_DOWN,
    TRIP,
    copy_series,
    left_out,
    operation_series,
)
from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.report import PageFigure, SeriesFigure, curves_table, figure_of, numbers_table, series_blocks
from mxwire.protocol.corridor import SHARED_THRESHOLD
from mxwire.report.document import Block, Column, Heading, Paragraph, Row, Table, columns_of, number_columns
from mxwire.report.plot import number_text
from mxwire.words import size_text

_MIB: Final = 1 << 20
LOW, MEDIUM = 0.15, 0.4
"""Shares of lines below which a disturbance of a cache is low and medium."""
_FREE: Final = 0.5
"""Largest slowdown, as a share of the time of a message, with which the other side counts as free."""
_IN_PLACE: Final = "heap"


def intranode_blocks(recording: Recording) -> Iterator[Block]:
    """All tables."""
    yield Heading("Moving data within a machine")
    trips = recording.named(TRIP)
    if trips:
        yield Heading("Half round trip, µs", 3)
        yield curves_table("mechanism", trips)
        yield from _ratio_blocks(trips)
        yield from _processor_blocks(trips)
    for memory in MEMORIES:
        series = recording.named(operation_series(memory))
        if series:
            yield Heading(f"Rate of operations, {memory}, MiB/s", 3)
            yield curves_table("mechanism", series, _rate_text)
    for name in (SLOTS, SLOWDOWN, SLOWED, ACCESS, SERVED, SERVING, REGISTRATION, SENDERS, AGENT_COPIES):
        series = recording.named(name)
        if series and name in (SLOTS, REGISTRATION, SENDERS, AGENT_COPIES):
            yield from series_blocks(series)
        elif series:
            yield Heading(f"{name[:1].upper()}{name[1:]}, {series.unit}", 3)
            yield curves_table("mechanism", series)
    yield from _copy_blocks(recording)
    yield from suitability_blocks(recording)


def _copy_blocks(recording: Recording) -> Iterator[Block]:
    """Rates of copies within a process, and the length from which those past the caches are faster."""
    for memory in MEMORIES:
        series = recording.named(copy_series(memory))
        if not series:
            continue
        yield Heading(f"Rate of copies within a process, {memory}, MiB/s", 3)
        yield curves_table("mechanism", series, _rate_text)
        found = _crossover(series, "past-caches" + IN_C, "string" + IN_C, COPY_SIZES)
        if found is not None:
            place = f"from {size_text(found)}" if found else "at no measured length"
            yield Paragraph(
                f"{memory}: copies past the caches are faster than those by the string instruction {place}."
            )


def _crossover(series: Series, faster: str, slower: str, sizes: Sequence[int]) -> int | None:
    """The least of some ascending ``sizes`` from which ``faster`` always is; 0 if there is none, and None if either was
    not measured.
    """
    found = None
    for size in reversed(sizes):
        one, other = series.median(faster, size), series.median(slower, size)
        if one is None or other is None:
            continue
        if one >= other:
            return found or 0
        found = size
    return found


def _rate_text(point: Measurement) -> str:
    """Rate in MiB/s of a time in µs."""
    return number_text(point.parameters["size"] / _MIB / point.median * 1e6)


def _ratio_blocks(trips: Series) -> Iterator[Block]:
    """The time of a message in Python as a multiple of that in C."""
    twins = [name for name in trips.contestants() if name + IN_C in trips.contestants()]
    if not twins:
        return
    values, rows = trips.places(), []
    for name in twins:
        pairs = [(trips.median(name, value), trips.median(name + IN_C, value)) for value in values]
        rows.append((name, *(f"{one / other:.2f}" if one and other else "" for one, other in pairs)))
    yield Heading("Time in Python as a multiple of that in C", 3)
    yield numbers_table("mechanism", map(size_text, values), rows)


def _processor_blocks(trips: Series) -> Iterator[Block]:
    """Processor time of both sides per GiB, of the longest message of each mechanism in round trips."""
    rows = []
    for name in trips.contestants():
        point = trips.curve(name)[-1]
        scale = (1 << 30) / point.parameters["size"] / 1e6
        both = [point.details.get(f"{kind} {side}", 0.0) for side in ("near", "far") for kind in ("user", "system")]
        rows.append((name, size_text(point.parameters["size"]), *(f"{each * scale:.2f}" for each in both)))
    yield Heading("Processor time of the longest messages, s per GiB", 3)
    columns = ("message", "user, side 0", "system, side 0", "user, side 1", "system, side 1")
    yield numbers_table("mechanism", columns, rows)


def suitability_blocks(recording: Recording) -> Iterator[Block]:
    """The table of properties, measured and known, and the fastest mechanism by size."""
    yield Heading("Suitability", 3)
    missing = recording.facts.get(MISSING, {})
    measured = {name.partition(", ")[0] for series in recording.series for name in series.contestants()}
    known = [each for each in MECHANISMS if each in missing or each in measured]
    rows = [_suitability_row(recording, name, missing) for name in known]
    yield Table(_SUITABILITY, (*rows, _REMAPPING), divisible=True)
    yield Paragraph(
        "caches: share of half a second-level cache that a message drives out, at source and destination: low below "
        "15 %, medium below 40 %, high above. free: the other side's processor computes while data moves; undecided: "
        "the rounds disagree, or other programs ran in all of them. passive: the target of a one-sided access does "
        "nothing. n/a: the agent has no processor of its own, so that it would disturb the caches of the side "
        "beside it."
    )
    fastest = tuple(_fastest_rows(recording))
    if fastest:
        yield Heading("The fastest by size", 3)
        yield Table(columns_of("use, ~mechanisms"), fastest)
    local_path = _local_path_text(recording)
    if local_path:
        yield Paragraph(local_path)


_SUITABILITY: Final = (
    Column("mechanism"),
    *number_columns("1 B, µs", "4 MiB, MiB/s", "set-up, µs", "tear-down, µs", "copies"),
    *columns_of("copied by, free, active, passive, caches, permission, Yama 1, containers"),
)

_REMAPPING: Final = Row(
    ("page remapping", *[""] * 4, "0", "both", *[""] * 4, "excluded by the paper: buffers must be whole pages", "", "")
)


def _suitability_row(recording: Recording, name: str, missing: dict[str, str]) -> Row:
    facts, one_sided = FACTS[name], mechanism_named(name).one_sided
    if name in missing:
        return Row((name, *[""] * 4, facts.copies, facts.actor, *[""] * 4, f"missing: {missing[name]}", "", ""))
    latency, large = (recording.named(TRIP).median(name, size) for size in (1, LARGE))
    set_up, down = (recording.named(series).median(name, 1) for series in (SET_UP, TEAR_DOWN))
    numbers = (latency, None if large is None else LARGE / _MIB / large * 1e6, set_up, down)
    return Row(
        (
            name,
            *("" if each is None else number_text(each) for each in numbers),
            facts.copies,
            facts.actor,
            _free(recording, name),
            "/".join(one_sided) or "with both",
            "yes" if one_sided else "with a thread",
            _caches(recording, name),
            facts.permission,
            *["no" if facts.permission == PTRACE else "yes"] * 2,
        )
    )


def _free(recording: Recording, name: str) -> str:
    """The answer to whether the other side of a mechanism computes while messages move."""
    facts = FACTS[name]
    slowdown, trips = recording.named(SLOWDOWN), recording.named(TRIP)
    if facts.actor == "both" or facts.freezes:
        return "no"
    pairs = [(point, trips.point(name, point.parameters["message"])) for point in slowdown.curve(name)]
    bounds = [(point.interval(), _FREE * trip.median) for point, trip in pairs if trip is not None]
    if any(low > most for (low, _), most in bounds):
        return "no"
    disturbed = any(each.startswith(left_out(name, "")) for each in recording.remarks) and not bounds
    return "undecided" if disturbed or any(high > most for (_, high), most in bounds) else "yes"


def _caches(recording: Recording, name: str) -> str:
    series = recording.named(DISTURBANCES[0])
    if not series:
        return ""
    if FACTS[name].actor == "agent" and not series.curve(f"{name}, source"):
        return "n/a"
    texts = []
    for side in ("source", "destination"):
        curve = series.curve(f"{name}, {side}")
        if curve:
            share = curve[-1].median
            texts.append("low" if share < LOW else "medium" if share < MEDIUM else "high")
    return ", ".join(texts)


def _fastest_rows(recording: Recording) -> Iterator[Row]:
    """The fastest mechanism per range of sizes, by use."""
    trips, accesses = recording.named(TRIP), recording.named(ACCESS)
    if trips:
        two_sided = [each for each in trips.contestants() if IN_C not in each]
        yield Row(("two-sided", _ranges(trips, [each for each in two_sided if each != _IN_PLACE])))
        if _IN_PLACE in two_sided:
            yield Row(("two-sided, built in shared memory", _ranges(trips, [_IN_PLACE])))
    for use in ("active", "passive"):
        names = [each for each in accesses.contestants() if each.endswith(f", {use}")]
        if names:
            yield Row((f"one-sided, {use}", _ranges(accesses, names)))


def _ranges(series: Series, names: Sequence[str]) -> str:
    """The fastest of some contestants at each size, one range per mechanism."""
    best: list[tuple[str, int, int]] = []
    for value in series.places():
        points = [point for name in names if (point := series.point(name, value)) is not None]
        if not points:
            continue
        name = min(points, key=lambda each: each.median).name.partition(", ")[0]
        if best and best[-1][0] == name:
            best[-1] = name, best[-1][1], value
        else:
            best.append((name, value, value))
    parts = []
    for name, least, most in best:
        reach = f"at {size_text(least)}" if least == most else f"from {size_text(least)} to {size_text(most)}"
        parts.append(f"{name} {reach}")
    return "; ".join(parts)


def _local_path_text(recording: Recording) -> str:
    """The size from which one copy is faster than two on mxwire's local path."""
    series = recording.named(TRIP)
    sizes = [size for each in series.curve("mx-local") if (size := each.parameters["size"]) > SHARED_THRESHOLD]
    size = _crossover(series, "mx-local-one-copy", "mx-local", sizes)
    if size is None:
        return ""
    found = f"faster than two from {size_text(size)}" if size else f"not faster than two at {size_text(sizes[-1])}"
    return (
        f"mxwire's local path: one copy is {found} (measured above {SHARED_THRESHOLD:,} bytes, up to which rule "
        "R-LOC-02 demands two)."
    )


def intranode_figures(recording: Recording) -> Iterator[PageFigure]:
    """Times and rates over size, the sizes of buffers, and accesses to windows."""
    figures = (
        ([TRIP], "Half round trips", "Dashed: the same mechanism in C."),
        ([operation_series(each) for each in MEMORIES], "Operations", "The paper's method."),
        ([copy_series(each) for each in MEMORIES], "Copies within a process", "Slices and NumPy call the C library."),
        ([SLOTS], "Sizes of buffers and cells", "Rate of one long message."),
        ([ACCESS], "Accesses to a window", "Active: between fences. Passive: under a lock, while the target computes."),
    )
    for names, title, caption in figures:
        for each in figure_of(map(recording.named, names), title, caption):
            assert isinstance(each.figure, SeriesFigure)
            curves = [name for series in each.figure.shown for name in series.contestants()]
            groups = {
                kind: [name for name in curves if name.partition(", ")[0] in mechanisms]
                for kind, mechanisms in KINDS.items()
            }
            yield replace(each, figure=each.figure.grouped(groups))
