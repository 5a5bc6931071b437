"""Figures of the page of claims: what was measured or computed, with the papers' own numbers as crosses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any, Final

from mxwire.bench.claims.claim import ClaimEvidence
from mxwire.bench.claims.library_study import STUDY as LIBRARIES
from mxwire.bench.claims.library_study import TRANSFERS
from mxwire.bench.claims.model_study import COLLECTIVE, COLLECTIVE_SIZES, SHARE, SHARE_SIZES, SLOW, STUDY, TABLE_1, TRIP
from mxwire.bench.intranode.study import STUDY as INTRANODE
from mxwire.bench.intranode.study import operation_series
from mxwire.bench.logp import BANDWIDTH, BANDWIDTHS, PARAMETERS, ROUND_TRIPS
from mxwire.bench.models.comparison import STUDY as COMPARISON
from mxwire.bench.mtu import PACKETS_OF_MXOE
from mxwire.bench.overlap import STUDY as OVERLAP
from mxwire.bench.overlap_report import overlap_figures
from mxwire.bench.path_report import path_figures
from mxwire.bench.record import VIRTUAL_TIME, Measurement, Recording, Series
from mxwire.bench.report import Figure, PageFigure, SeriesFigure, draw_series, line_styles, plotted
from mxwire.report import plot
from mxwire.texts import table_rows
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

_MIB: Final = 1 << 20
_LARGE: Final = 4 << 20
_CROSS: Final[dict[str, Any]] = {"linestyle": "", "marker": "x", "markersize": 9, "markeredgewidth": 2}
_PAPER: Final = "the paper"
PaperPoints = Mapping[str, Sequence[tuple[int, float]]]
"""Numbers of a paper by curve, as places and values."""


def _read_points() -> dict[str, PaperPoints]:
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for series, (curve, place, value) in table_rows(__file__, "paper.md"):
        found.setdefault(series, {}).setdefault(curve, []).append((int(place), float(value)))
    return {**found}


_POINTS: Final = _read_points()
"""The papers' numbers by series."""
_MOVED: Final = ("shared-buffer, C", "cma-get, C", "tcp, C")
_LIBRARY_FIGURES: Final = {BANDWIDTHS[1]: 10, BANDWIDTHS[0]: 11, BANDWIDTHS[2]: 12}
"""The paper's figures of bandwidths."""


_TEXTS: Final = {
    "path": "S0",
    "logp": "S1",
    LIBRARIES: "S1",
    COMPARISON: "S1",
    STUDY: "S2",
    "mtu": "S2",
    INTRANODE: "S1 S3",
    OVERLAP: "S4",
}
"""The texts of whose claims a study has figures."""


def claim_figures(evidence: ClaimEvidence, texts: Collection[str]) -> Iterator[PageFigure]:
    """The figures of some texts for which there are recordings, in the order of the texts."""
    recordings = [
        each
        for each in evidence.recordings
        if not each.conditions.quick and any(text in _TEXTS.get(each.study, "") for text in texts)
    ]
    for each in recordings:
        if each.conditions.virtual:
            continue
        if each.study == "path":
            yield from path_figures(each)
        # A logarithmic axis cannot show an L that is negative everywhere, as it is if sends overlap the flight.
        named = [series for name in ("RTT/2", "o_s", "o_r", "L") if (series := each.named(name))]
        shown = [series for series in named if any(point.median > 0 for point in series.measurements)]
        if each.study == INTRANODE and (moved := each.named(operation_series("cold"))):
            yield PageFigure(
                SeriesFigure([_chosen(moved, _MOVED, unit="MiB/s")], "Transfers between two processes, live"),
                "Figure 2 on this machine: stores into memory that both map (shared-buffer), reads by the kernel "
                "(cma-get), and sends through a socket (tcp).",
            )
        if each.study == COMPARISON:
            yield from _library_figures(each)
        if each.study == "logp" and shown:
            yield PageFigure(SeriesFigure(shown, "LogP, live"), "Live, by carrier; both methods.")
    for each in recordings:
        if each.conditions.virtual:
            makers = {LIBRARIES: _library_figures, STUDY: _model_figures, OVERLAP: _offload_figures}
            yield from makers.get(each.study, _mtu_figures)(each)
    for each in recordings:
        if each.study == "mtu" and not each.conditions.virtual:
            yield from _mtu_figures(each)


def _offload_figures(recording: Recording) -> Iterator[PageFigure]:
    """Figures 8 and 11, and those of the other experiments."""
    for each in overlap_figures(recording):
        yield replace(each, caption=f"{VIRTUAL_TIME.capitalize()}. {each.caption}")


def _against(shown: Sequence[tuple[Series, PaperPoints]], title: str) -> Figure:
    """Curves over size, a panel per series, with the numbers of the paper."""

    def figure(pyplot: Any) -> Any:
        height = 1.0 + 2.9 * len(shown)
        drawing, panels = plot.panels(pyplot, title, (9.5, height), len(shown))
        for (series, paper), axes in zip(shown, panels, strict=True):
            styles = line_styles(series.contestants())
            known = {name: points for name, points in paper.items() if name in styles}
            if known:
                axes.plot([], [], color="black", label=_PAPER, **_CROSS)
            for name, points in known.items():
                places, values = zip(*((x or 0.5, y) for x, y in points), strict=True)
                axes.plot(places, values, color=styles[name][0], **_CROSS)
            draw_series(drawing, axes, series)
            crossed = [y for points in known.values() for _, y in points]
            if crossed:
                drawn = [each.median for each in series.measurements if each.median > 0]
                plot.vertical_axis(axes, min(drawn + crossed), max(drawn + crossed))
            plot.length_axis(axes, [plotted(each.parameters[series.x]) for each in series.measurements])
        panels[-1].set_xlabel("size, bytes")
        return drawing

    return figure


def _chosen(series: Series, names: Sequence[str], name: str = "", unit: str = "") -> Series:
    """Some curves of a series; with a unit of MiB/s as the rates of half round trips."""
    points = [each for each in series.measurements if each.name in names]
    if unit:
        points = [_rate(each, unit) for each in points if each.parameters["size"]]
    return Series(name or series.name, unit or series.unit, series.x, series.x_unit, points)


def _rate(point: Measurement, unit: str) -> Measurement:
    samples = tuple(point.parameters["size"] / _MIB / (each / 1e6) for each in point.samples)
    return Measurement(point.name, unit, samples, point.parameters, marks=point.marks)


def _library_figures(recording: Recording) -> Iterator[PageFigure]:
    """Figures 4 to 8, and figures 10 to 12, which have the rate of the null model as the ceiling."""
    live = "" if recording.conditions.virtual else ", live"
    paper = {} if live else _POINTS
    parameters = [_in_place(each) for name in PARAMETERS if (each := recording.named(name))]
    # A logarithmic axis cannot show an L that is negative everywhere.
    shown = [(each, paper.get(each.name, {})) for each in parameters if any(it.median > 0 for it in each.measurements)]
    if shown:
        yield PageFigure(
            _against(shown, f"Five libraries{live or ' on Myrinet, 1998'} (figures 4 to 8)"),
            "Models that run on this machine, the adapter's work in their calls; with card: in another process."
            if live
            else "The same models in virtual time, table myrinet-1998. Crosses: the paper's numbers; the table was "
            "fitted to all of them but the gap of AM at 4 KB. The paper prints no other values.",
        )
    transfers = recording.named(TRANSFERS)
    if transfers:
        yield PageFigure(
            SeriesFigure([transfers], "Transfers between memory and adapter, 1998 (figure 2): input of the model"),
            "Costs of the table myrinet-1998, which are fitted or guessed: no evidence. No verdict rests on reads "
            "by the processor, or on DMA that the host starts.",
        )
    rates = recording.named(BANDWIDTH)
    if not rates:
        return
    kinds = []
    for kind, number in _LIBRARY_FIGURES.items():
        curves = [each for each in rates.measurements if each.name.endswith(f", {kind}")]
        renamed = [replace(each, name=each.name.removesuffix(f", {kind}")) for each in curves]
        kinds.append((Series(f"{kind}, figure {number}", rates.unit, measurements=renamed), paper.get(kind, {})))
    yield PageFigure(
        _against(kinds, f"Bandwidths of five libraries{live or ' on Myrinet, 1998'} (figures 10 to 12)"),
        "The curve of null is the ceiling: the same frames without a library. Simultaneous: both directions together.",
    )


def _in_place(series: Series) -> Series:
    """The curves of a series without those of the second method for LogP."""
    return replace(series, measurements=[each for each in series.measurements if not each.name.endswith(ROUND_TRIPS)])


def _model_figures(recording: Recording) -> Iterator[PageFigure]:
    trips, slow = recording.named(TRIP), recording.named(SLOW)
    if trips:
        latencies = [(_chosen(trips, ("open-mx", "tcp", "mx", "mixed")), _POINTS[TRIP])]
        if slow:
            latencies.append((_chosen(slow, ("open-mx", "tcp")), _POINTS[SLOW]))
        yield PageFigure(
            _against(latencies, "Half a round trip (figures 9 and 13)"),
            "Virtual time, table clovertown-2010. Crosses: the paper's numbers. The table was fitted to all but that "
            "of the mixed pair.",
        )
        names = ("open-mx", "open-mx, engine", "open-mx, in place", "mx", "mixed", "tcp")
        yield PageFigure(
            _against(
                [(_chosen(trips, names, "rate", "MiB/s"), _POINTS["rate"])],
                "Rate of a ping-pong at 10 Gb/s (figure 10)",
            ),
            "Virtual time. engine: large messages are copied by I/OAT; in place: not copied. Crosses: the paper's "
            "numbers. The table was fitted to that of Open-MX without offload and to the rate of TCP.",
        )
    collectives = recording.named(COLLECTIVE)
    if collectives:
        yield PageFigure(_gain_figure(collectives), "Virtual time, 16 ranks on 2 hosts.")
    shares = recording.named(SHARE)
    if shares:
        yield PageFigure(
            _share_figure(shares),
            "Virtual time. Left bars: copies by the processor, right bars: by I/OAT. Crosses: the paper's totals.",
        )


def _gain_figure(series: Series) -> Figure:
    def figure(pyplot: Any) -> Any:
        title = "Collectives, Open-MX against TCP (table 1); dashed: means"
        drawing, panels = plot.panels(pyplot, title, (11, 4.4), 1, len(COLLECTIVE_SIZES), sharey=True)
        places = range(len(TABLE_1))
        for axes, size in zip(panels, COLLECTIVE_SIZES, strict=True):
            here = [_gain(series, name, size) for name in TABLE_1]
            paper = [dict(_POINTS["gain"][name])[size] for name in TABLE_1]
            axes.barh([each - 0.2 for each in places], paper, 0.38, color=plot.MARK, label=_PAPER)
            axes.barh([each + 0.2 for each in places], here, 0.38, color=plot.COLOURS[0], label="here, modelled")
            for values, colour in ((paper, plot.MARK), (here, plot.COLOURS[0])):
                axes.axvline(mean(values), color=colour, linestyle="--", linewidth=1)
            axes.axvline(0, color="black", linewidth=0.8)
            axes.set_title(f"{size:,} B" if size < _MIB else "4 MiB", fontsize=10)
            axes.set_xlabel("gain over TCP, %")
        panels[0].set_yticks(list(places), TABLE_1)
        panels[0].invert_yaxis()
        panels[-1].legend(fontsize=8, loc="lower right", **plot.OVER_LINES)
        return drawing

    return figure


def _gain(series: Series, name: str, size: int) -> float:
    own, tcp = (series.point(f"{name}, {each}", size) for each in ("open-mx", "tcp"))
    return 0.0 if own is None or tcp is None else (tcp.median / own.median - 1) * 100


def _share_figure(series: Series) -> Figure:
    kinds = ("bottom half", "driver", "library")

    def figure(pyplot: Any) -> Any:
        drawing, (axes,) = plot.panels(pyplot, "Use of the receiver's processor (figure 11)", (9, 4))
        for side, suffix in enumerate(("", ", engine")):
            for place, size in enumerate(SHARE_SIZES):
                bottom = 0.0
                for kind, colour in zip(kinds, plot.COLOURS, strict=False):
                    point = series.point(f"{kind}{suffix}", size)
                    value = 0.0 if point is None else point.median * 100
                    label = "_nolegend_" if side or place else kind
                    axes.bar(place + 0.4 * side - 0.2, value, 0.36, bottom=bottom, color=colour, label=label)
                    bottom += value
            for size, total in _POINTS["use of a core"][suffix]:
                place = 0 if size == RENDEZVOUS_THRESHOLD else SHARE_SIZES.index(size)
                label = "_nolegend_" if side or place else _PAPER
                axes.plot([place + 0.4 * side - 0.2], [total * 100], color="black", label=label, **_CROSS)
        axes.set_xticks(range(len(SHARE_SIZES)), [f"{each:,} B" for each in SHARE_SIZES])
        axes.set_ylabel("share of a core, %")
        axes.set_ylim(0, 108)
        axes.legend(fontsize=8, ncols=4, loc="upper center", **plot.OVER_LINES)
        return drawing

    return figure


_BLOCKS: Final = ("mxoe, 8 ", f"{PACKETS_OF_MXOE}, ")
"""Depths of blocks with packets of 4 KiB, whose bounds are within reach."""
_ENGINE: Final = (
    " Large messages are copied by I/OAT, as in the paper's tuned case. Both MTUs then reach the line, a ratio of "
    "{:.2f} where the paper has 2: the table's cost per packet at 1500 was derived as if the paper had measured "
    "without I/OAT. Most likely it measured with it, which is our inference."
)
_MTU_FIGURES: Final[Mapping[str, str]] = {
    "rate by frame limit": "Rate of 4 MiB by MTU (figure 12)",
    "rate by delay": "Rate of 4 MiB by delay and depth of blocks (figure 14)",
}


def _engine_remark(series: Series) -> str:
    """The reason why rates with I/OAT depend less on the MTU than in the paper; empty for rates over another axis."""
    long, short = (series.point("omx", mtu) for mtu in (9000, 1500))
    return "" if long is None or short is None else _ENGINE.format(long.median / short.median)


def _mtu_figures(recording: Recording) -> Iterator[PageFigure]:
    for name, title in _MTU_FIGURES.items():
        series = recording.named(name)
        # A live study may omit delays, which take long; then there is only one point.
        if len(series.places()) > 1:
            kind = VIRTUAL_TIME if recording.conditions.virtual else "live"
            names = [each for each in series.contestants() if each.removeprefix("bound: ").startswith(_BLOCKS)]
            shown = _chosen(series, names) if names else series
            remark = _engine_remark(series) if recording.conditions.virtual else ""
            drawn = f"{title}, {kind}{', with I/OAT' if remark else ''}"
            yield PageFigure(SeriesFigure([shown], drawn), f"{kind.capitalize()}.{remark}")
