"""The study ``models``: LogP, three bandwidths and two patterns of all models, beside the null model.

The series of :mod:`mxwire.bench.logp` have one curve per carrier: models, and mx, tcp and udp; messages above 4 KiB
have bandwidths only, as in the paper. A model runs within the calls of its side, which also do the adapter's work; a
carrier that ends with `` with card`` has the adapter's part in another process (``channels/cards.py``). The rate of the
null model, which has the same frames and no library, is the ceiling: the others' share of it is printed. Nothing keeps
a library without flow control from sending more than the rings of its partner hold, so at most a MiB is in flight at a
time. Further series:

* ``o_s, burst`` and ``o_r, knee`` (µs, over ``size``): the paper's own methods for Active Messages, all of whose
  requests are answered. o_s is the time per request of bursts that need no reply, since they are shorter than the
  tokens. The sender's work is raised until it decides the interval: up to this knee it fills the idle time, so o_r is
  the interval less o_s and the idle time.
* ``unidirectional by payload`` and so on (MB/s, over ``payload``), instead of all others if payloads are given: the
  bandwidths of messages of one size, in frames with more or less data.
* ``central queue by clients`` (µs per request, over ``clients``), likewise instead: one server and several clients, all
  of them within one process; the counts have the places at which the server looked per request.
* ``producer-consumer`` and ``central queue`` (µs per message, over ``size``): contestants are the models by name, in
  place, and with `` copied``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mxwire.bench import logp, report
from mxwire.bench.models.active_messages import TOKENS
from mxwire.bench.models.catalogue import (
    CARD,
    COPIED,
    MODELS,
    OTHERS,
    UNSYNCHRONISED,
    VARIANTS,
    WITHOUT_CODE,
    check_model,
    has_card,
    is_model,
    model_of,
)
from mxwire.bench.models.header import HEADER, PAYLOAD
from mxwire.bench.record import Measurement, Recording, Series
from mxwire.bench.roles.patterns import QUEUED
from mxwire.bench.study import StudyOptions, TestbedStudy, kept, round_marks
from mxwire.bench.testbed import StudyTestbed
from mxwire.errors import MxwireError
from mxwire.report.document import Block, Heading, Paragraph, Table
from mxwire.report.plot import number_text
from mxwire.words import size_text, suggestion

STUDY: Final = "models"
SIZES: Final = (4, 256, 4096, 65536, 1 << 20)
_QUICK_SIZES: Final = (4, 4096)
CEILING: Final = "null"
CARDS: Final = {"inline": "", "process": CARD}
"""Places of the adapter's part of a model, and what is appended to a carrier for them."""
PLACES: Final = "processors"
"""The fact of a recording with the processors of both sides, and of their cards."""
ACTIVE: Final = ("gam", "am2")
"""Models whose messages are all answered."""
BY_PAYLOAD: Final = " by payload"
"""Appended to a kind of bandwidth."""
BY_CLIENTS: Final = "central queue by clients"
LOOKS: Final = "places looked at per request"
MOST_CLIENTS: Final = 64
CLIENT_SIZES: Final = (4, 4096)
"""Lengths of the requests of several clients."""
PAYLOAD_SIZES: Final = (65536,)
"""Lengths of the messages whose bandwidth is measured by payload."""
BURST: Final = "o_s, burst"
KNEE: Final = "o_r, knee"
PATTERNS: Final = ("producer-consumer", "central queue")
KINDS: Final = {
    "libraries of the paper": ("gam", "am2", "bip", UNSYNCHRONISED, "fm2", "fm2.1", "pm", "vmmc2", CEILING),
    "other libraries": ("gm", "portals", "unet", CEILING, *logp.expanded(("mx", "tcp", "udp"))),
}
"""Carriers that share a panel of a figure."""
_WORKS: Final = (25, 50, 75, 100, 125, 150, 200)
"""Work of the floods that look for the knee, in hundredths of the interval without work."""
_AT_KNEE: Final = 1.1
"""Factor by which work may lengthen the interval and still count as idle time."""
_SHORTEST: Final = 4
_LONGEST: Final = 4096
"""Length of the longest message whose LogP is measured, and of the longest request."""
_WINDOW: Final = 64
"""Messages in flight of a flood: several times the tokens, credits and buffers of the libraries."""
_FLOOD: Final = 10 * TOKENS
_BURSTS: Final = 20
_SECTION_NS: Final = 5_000_000
"""Duration of each part of a point in a round, unless a few operations take longer."""
_MOST: Final = 100
_FEWEST: Final = 2
LIMIT: Final = 90.0
"""Time in seconds for the rounds of LogP, and again for those of the rest, unless one round takes longer."""


def compared(names: Sequence[str], cards: Sequence[str] = ("inline",)) -> list[str]:
    """The carriers of a comparison, with the null model at the end; all if ``names`` are ``all``.

    ``cards`` are those of :data:`CARDS` with which models are measured. Raises :class:`~mxwire.errors.MxwireError` for
    unknown names, and for libraries without code.
    """
    for each in cards:
        if each not in CARDS:
            raise MxwireError(
                f"no place for a card is called {each!r}{suggestion(each, CARDS)}: use {', '.join(CARDS)}"
            )
    measured = [*MODELS, *(each for each in OTHERS if each not in WITHOUT_CODE)]
    chosen = measured if list(names) == ["all"] else list(names)
    for each in chosen:
        if each in WITHOUT_CODE:
            raise MxwireError(f"{each} has no code: it cannot be measured")
        if each not in VARIANTS:
            check_model(each)
    carriers = [each for each in logp.expanded(chosen) if each != CEILING] + [CEILING]
    models, others = [each for each in carriers if is_model(each)], [each for each in carriers if not is_model(each)]
    return others + [each + CARDS[card] for card in dict.fromkeys(cards) for each in models]


def compare_models(
    testbed: StudyTestbed,
    options: StudyOptions,
    names: Sequence[str] = ("all",),
    sizes: Sequence[int] | None = None,
    cards: Sequence[str] = ("inline",),
    payloads: Sequence[int] = (),
    clients: Sequence[int] = (),
) -> Recording:
    """Measure libraries on a testbed, their cards in places of :data:`CARDS`, and return the recording.

    With ``payloads`` only the bandwidths of models are measured, with frames of these payloads in bytes; with
    ``clients`` only the central queue of a server with these numbers of clients. Raises
    :class:`~mxwire.errors.MxwireError` if frames do not fit, or a carrier is named that cannot be measured so.
    """
    carriers = compared(names, cards)
    if payloads or clients:
        carried = max(payloads or sizes or CLIENT_SIZES)
        if clients:
            _check_requests(sizes or (), carriers)
        needed, mtu = carried + HEADER.size, testbed.conditions.mtu
        if needed > mtu:
            raise MxwireError(f"a payload of {carried:,} bytes needs an MTU of {needed:,}, not {mtu:,}")
        others = [each for each in carriers if not is_model(each)]
        if others and list(names) != ["all"]:
            raise MxwireError(f"{others[0]} is not a model: name models only")
        carriers = carriers[len(others) :]
    recording = options.begin(STUDY, testbed.conditions)
    if any(map(has_card, carriers)):
        recording.facts[PLACES] = {"sides": testbed.placement, "cards": testbed.cards}
    if payloads or clients:
        chosen = sizes or (PAYLOAD_SIZES if payloads else CLIENT_SIZES)
        ComparisonStudy(testbed, recording, options, chosen).run(carriers, payloads, clients)
        return recording
    sizes = tuple(sizes or (_QUICK_SIZES if options.quick else SIZES))
    # A study replaces the series of its recording when it ends.
    rest = Recording(STUDY, recording.conditions)
    try:
        short = tuple(each for each in sizes if each <= _LONGEST)
        if short:
            logp.LogpStudy(testbed, recording, options, short, _WINDOW).run(carriers)
        ComparisonStudy(testbed, rest, options, sizes).run(carriers)
    finally:
        recording.join(rest)
    return recording


def _check_requests(sizes: Sequence[int], carriers: Sequence[str]) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` for sizes and carriers that a server of several clients cannot have."""
    for each in sizes:
        if each > PAYLOAD or each % _SHORTEST:
            raise MxwireError(
                f"a request has whole numbers in one packet: up to {PAYLOAD:,} bytes in fours, not {each:,}"
            )
    if any(map(has_card, carriers)):
        raise MxwireError("the card of a server with several clients is not in another process: use --card inline")


class ComparisonStudy(TestbedStudy):
    """Bandwidths, requests and patterns: the part of the comparison beside LogP. Lengths are in bytes."""

    def __init__(
        self, testbed: StudyTestbed, recording: Recording, options: StudyOptions, sizes: Sequence[int]
    ) -> None:
        super().__init__(testbed, recording, options)
        self._sizes = sizes
        self._points.declare("MB/s", logp.BANDWIDTH)
        self._points.declare("MB/s", *(kind + BY_PAYLOAD for kind in logp.BANDWIDTHS), x="payload")
        self._points.declare("µs", BURST, KNEE, *PATTERNS)
        self._points.declare("µs", BY_CLIENTS, x="clients", x_unit="")
        self._spin = testbed.spins and not options.quick
        self._ns: dict[tuple[str, int], float] = {}
        """Time per operation in the warm-up, by carrier and size."""

    def run(self, carriers: Sequence[str], payloads: Sequence[int] = (), clients: Sequence[int] = ()) -> None:
        """Measure, and fill the recording: with ``payloads`` or numbers of ``clients`` what depends on them only."""
        contestants: dict[str, Callable[[int], None]] = {}
        long = [each for each in self._sizes if each > _LONGEST]
        short = [each for each in self._sizes if each <= _LONGEST]
        words = [each for each in self._sizes if each % _SHORTEST == 0]
        for name in [each for each in carriers if self._testbed.can_use(each) is None]:
            for payload in payloads:
                contestants[f"{name}, frames of {payload} bytes"] = partial(
                    self._bandwidths, name, self._sizes, payload=payload
                )
            for number in clients:
                for carrier in (name, name + COPIED):
                    contestants[f"{carrier}, {number} clients"] = partial(self._clients, carrier, number)
            if payloads or clients:
                continue
            if long:
                contestants[f"{name}, bandwidths"] = partial(self._bandwidths, name, long)
            if is_model(name) and model_of(name)[0].name in ACTIVE and short:
                contestants[f"{name}, requests"] = partial(self._requests, name, short)
            # No table has the costs of a program that uses its data.
            if is_model(name) and not self._testbed.virtual:
                for carrier in (name, name + COPIED):
                    contestants[f"{carrier}, patterns"] = partial(self._patterns, carrier, words)
        with kept(self._recording, self._points):
            self._take_turns(contestants)

    def _play(
        self, role: str, carrier: str, sizes: Sequence[int], **more: Any
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        active, passive = self._testbed.run(role, carrier=carrier, spin=self._spin, sizes=list(sizes), **more)
        polls = self._spin and self._testbed.passive_polls(carrier)
        marks = [*round_marks(active, spinning=self._spin), *round_marks(passive, spinning=polls)]
        return active["points"], tuple(dict.fromkeys((*self._testbed.marks, *marks)))

    def _count(self, carrier: str, size: int, least: int = _FEWEST) -> int:
        """The number of operations of a part: few, if one takes long or its time is not known yet."""
        ns = self._ns.get((carrier, size))
        return least if ns is None else max(least, min(int(_SECTION_NS / ns), _MOST))

    def _bandwidths(self, carrier: str, sizes: Sequence[int], number: int, payload: int = 0) -> None:
        key, add = f"{carrier}, {payload}", self._points.add
        windows = [logp.window_of(size) for size in sizes]
        counts = [self._count(key, size) for size in sizes]
        more = {"counts": counts, "windows": windows, "depth": max(windows), "payload": payload}
        found, marks = self._play("bandwidths", carrier, sizes, **more)
        for size in sizes:
            each = found[str(size)]
            self._ns[key, size] = each["both"]
            for kind, rate in logp.rates_of(size, each["gap"], each["trip"], each["both"]):
                if number >= 0 and payload:
                    name = f"{carrier}, {size_text(size)}"
                    add(kind + BY_PAYLOAD, name, rate, marks=marks, size=size, payload=payload)
                elif number >= 0:
                    add(logp.BANDWIDTH, f"{carrier}, {kind}", rate, marks=marks, size=size)

    def _clients(self, carrier: str, clients: int, number: int) -> None:
        for size in self._sizes:
            key = f"{carrier}, {clients} clients"
            count = self._count(key, size)
            more = {"carrier": carrier, "spin": self._spin, "size": size, "count": count, "clients": clients}
            active, passive = self._testbed.run("central queue", **more)
            self._ns[key, size] = active["request"] * clients
            if number >= 0:
                marks = dict.fromkeys((*self._testbed.marks, *round_marks(active, spinning=self._spin)))
                name, counts = f"{carrier}, {size_text(size)}", {LOOKS: passive["looks"]}
                took = active["request"] / 1e3
                self._points.add(BY_CLIENTS, name, took, marks=tuple(marks), counts=counts, size=size, clients=clients)

    def _patterns(self, carrier: str, sizes: list[int], number: int) -> None:
        queued = [min(QUEUED, logp.window_of(size)) for size in sizes]
        key = f"{carrier}, patterns"
        counts = [self._count(key, size, each) for size, each in zip(sizes, queued, strict=True)]
        found, marks = self._play("used data", carrier, sizes, counts=counts, numbers=queued, depth=max(queued))
        for size in sizes:
            each = found[str(size)]
            self._ns[key, size] = each[PATTERNS[-1]]
            for pattern in PATTERNS if number >= 0 else ():
                self._points.add(pattern, carrier, each[pattern] / 1e3, marks=marks, size=size)

    def _requests(self, carrier: str, sizes: list[int], number: int) -> None:
        more = {"number": TOKENS // 2, "repetitions": _BURSTS, "window": TOKENS, "count": _FLOOD, "depth": 2 * TOKENS}
        found, marks = self._play("requests", carrier, sizes, multiples=list(_WORKS), **more)
        for size in sizes if number >= 0 else ():
            each = found[str(size)]
            gap, sent = each["interval"], each["burst"]
            knee = gap - sent - idle_time(gap, dict(each["loaded"]))
            self._points.add(BURST, carrier, sent / 1e3, marks=marks, size=size)
            self._points.add(KNEE, carrier, knee / 1e3, marks=marks, size=size)


def idle_time(gap: float, loaded: dict[int, float]) -> int:
    """The longest work of a sender up to which its interval is ``gap``; ``loaded`` are intervals by work, in ns."""
    idle = 0
    for work, interval in sorted(loaded.items()):
        if interval > _AT_KNEE * gap:
            break
        idle = work
    return idle


# Report


def comparison_blocks(recording: Recording) -> Iterator[Block]:
    """LogP by size, the bandwidths with their share of the null model's, Active Messages' own methods, and patterns."""
    every = [each for series in recording.series for each in series.measurements]
    known = report.shared_marks(every)
    text = partial(report.spread, known=known, short=True)
    named = {series.name: series for series in recording.series}
    trips = named.get("RTT/2")
    if trips is not None:
        for size in _sizes(trips):
            yield Heading(", ".join([f"LogP at {size:,} bytes, µs", *known]))
            yield _table(
                trips.contestants(), {name: (named[name], "") for name in logp.PARAMETERS if name in named}, size, text
            )
        yield from report.marks_legend(every)
    rates = named.get(logp.BANDWIDTH)
    if rates is not None:
        yield Heading(f"Bandwidth, {rates.unit}, and its share of that of {CEILING}")
        names = dict.fromkeys(each.partition(", ")[0] for each in rates.contestants())
        yield report.numbers_table("library", ("size, bytes", *logp.BANDWIDTHS), _rates(rates, names))
    for series in recording.series:
        if series.name.endswith(BY_PAYLOAD):
            yield Heading(", ".join([f"Bandwidth, {series.name} of frames", series.unit, *known]))
            yield report.curves_table("library, size", series, text, "{:,}".format)
        if series.name == BY_CLIENTS:
            yield Heading(", ".join(["Central queue by number of clients, µs per request", *known]))
            yield report.curves_table("library, size", series, text, "{:,}".format)
            yield Heading(f"{LOOKS.capitalize()}, by number of clients", 3)
            yield report.curves_table("library, size", series, lambda each: f"{each.counts[LOOKS]:.1f}", "{:,}".format)
    if BURST in named:
        yield Heading("Active Messages by the methods of the paper, µs")
        columns = {name: (named[name], "") for name in ("o_s", BURST, "o_r", KNEE)}
        for size in _sizes(named[BURST]):
            yield Heading(f"{size:,} bytes", 3)
            yield _table(named[BURST].contestants(), columns, size, text)
    patterns = {
        f"{each}, {how}": (named[each], suffix)
        for each in PATTERNS
        if each in named
        for how, suffix in (("in place", ""), ("copied", COPIED))
    }
    if patterns:
        yield Heading("Data that are produced and consumed, µs per message")
        first = next(iter(patterns.values()))[0]
        models = [each for each in first.contestants() if not each.endswith(COPIED)]
        for size in _sizes(first):
            yield Heading(f"{size:,} bytes", 3)
            yield _table(models, patterns, size, text)
    if PLACES in recording.facts:
        yield Paragraph(_cards_text(recording.facts[PLACES]))
    subject = f"A library without{CARD.removeprefix(' with')}" if PLACES in recording.facts else "Each library"
    yield Paragraph(
        f"{subject} runs within the calls of its side, and does the adapter's work there: o_s and o_r contain it, also "
        "those of libraries whose receiver takes no part."
    )


def _cards_text(places: dict[str, Sequence[int]]) -> str:
    """The placement of cards that are processes of their own."""
    text = f"Of a library{CARD}, the adapter's part is a process of its own on each side, which shares memory with it"
    if not places["sides"]:
        return f"{text}. Each process has a processor of its machine."
    sides, cards = (" and ".join(map(str, places[each])) for each in ("sides", "cards"))
    text += f": the sides ran on the processors {sides}, their cards on {cards}."
    if set(places["sides"]) & set(places["cards"]):
        text += (
            " Cards that share a processor with the passive side are woken for each frame, and take its time: RTT/2, "
            "g and L contain this. o_s and o_r are those of the active side, whose processor is its own."
        )
    return text


def _sizes(series: Series) -> list[int]:
    return sorted({int(each.parameters["size"]) for each in series.measurements})


def _table(
    names: Sequence[str], columns: dict[str, tuple[Series, str]], size: int, text: Callable[[Measurement], str]
) -> Table:
    """One row per name; each column is a series and the end of the names of its curves."""
    lines = (
        (name, [series.point(name + end, size) for series, end in columns.values()])
        for name in names
        if not name.endswith(logp.ROUND_TRIPS)
    )
    return report.points_table("library", columns, lines, text)


def _rates(series: Series, names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    for name in names:
        for size in _sizes(series):
            ceiling = CEILING + (CARD if has_card(name) else "")
            curves = [(f"{name}, {kind}", f"{ceiling}, {kind}") for kind in logp.BANDWIDTHS]
            cells = [_share(series.point(one, size), series.point(ceiling, size)) for one, ceiling in curves]
            if any(cells):
                yield name, f"{size:,}", *cells


def _share(rate: Measurement | None, ceiling: Measurement | None) -> str:
    if rate is None:
        return ""
    share = "" if ceiling is None or not ceiling.median else f" ({rate.median / ceiling.median:.0%})"
    return number_text(rate.median) + share


def comparison_figures(recording: Recording) -> Iterator[report.PageFigure]:
    """The figures of LogP, in which the null model is the ceiling, and the patterns over size."""
    for each in logp.logp_figures(recording):
        caption = f"{each.caption} The curve of {CEILING} is the ceiling of the models."
        yield report.PageFigure(_grouped(each.figure), caption)
    rates = [
        each for each in recording.series if each.name.endswith(BY_PAYLOAD) and logp.BANDWIDTHS[-1] not in each.name
    ]
    more = f"{report.SERIES_CAPTION} Every frame has a header of {HEADER.size} bytes more."
    patterns = [_dashed(each) for each in recording.series if each.name in PATTERNS]
    figures = (
        *report.figure_of(rates, "Bandwidth by payload of frames", more),
        *_queue_figures(recording.named(BY_CLIENTS)),
        *report.figure_of(patterns, "Data that are produced and consumed", f"{report.SERIES_CAPTION} Dashed: copied."),
    )
    for each in figures:
        yield replace(each, figure=_grouped(each.figure))


def _queue_figures(queues: Series) -> Iterator[report.PageFigure]:
    """The shortest requests, in place and copied: they show what it costs to find one."""
    least = size_text(min((each.parameters["size"] for each in queues.measurements), default=0))
    found = queues.part(f", {least}")
    place = replace(found, measurements=[each for each in found.measurements if not each.name.endswith(COPIED)])
    for series, how in ((place, "in place"), (found.part(COPIED), "copied")):
        yield from report.figure_of([series], f"One server and its clients, requests of {least}, {how}")


def _dashed(series: Series) -> Series:
    """The series with names after which a model has one colour, in place and copied."""
    found = [replace(each, name=each.name.replace(COPIED, f", {COPIED.strip()}")) for each in series.measurements]
    return replace(series, measurements=found)


def _grouped(figure: report.Figure) -> report.Figure:
    """The figure with panels per kind of carrier and place of the card. The null model is in all of them."""
    if not isinstance(figure, report.SeriesFigure):
        return figure
    names = {name: name.partition(", ")[0] for each in figure.shown for name in each.contestants()}
    groups = {
        f"{kind}{card}": [name for name, carrier in names.items() if carrier in {each + card for each in members}]
        for card in CARDS.values()
        for kind, members in KINDS.items()
    }
    return figure.grouped(groups)
