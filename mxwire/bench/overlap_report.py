"""Report of ``bench overlap``: tables of its series, overlap over size, and phases of both sides above their frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mxwire.bench.overlap import OVERLAP, POLLED, RATE, TIMELINES, shown_phases
from mxwire.bench.record import Recording, Series
from mxwire.bench.report import (
    Figure,
    PageFigure,
    line_styles,
    plotted,
    series_figure,
    study_blocks,
)
from mxwire.report import plot
from mxwire.report.document import Block, Heading
from mxwire.wire.enums import PacketType

_PHASES: Final = {"fill": plot.COLOURS[0], "sum": plot.COLOURS[2], "wait": "#cfd4da"}
_SIDES: Final = ("producer", "consumer")
_DATA: Final = int(PacketType.PULL_REPLY)


def overlap_blocks(recording: Recording) -> Iterator[Block]:
    """All series."""
    yield Heading("Overlap of messages and work")
    yield from study_blocks(recording)


def overlap_figures(recording: Recording) -> Iterator[PageFigure]:
    """Rates of double buffering, overlap, and a timeline per way of progress."""
    rate, overlap = recording.named(RATE), recording.named(OVERLAP)
    if rate is not None:
        yield PageFigure(
            series_figure([rate], "Double buffering"),
            "The producer fills, the consumer sums; the slower of both has half of the network's rate.",
        )
    if overlap is not None:
        yield PageFigure(
            _overlap_figure(overlap), "1: a message and the work beside it take the time of the work alone."
        )
    polled = recording.named(POLLED)
    if polled is not None:
        shown = [each for each in recording.series if each.name in ("availability", POLLED)]
        yield PageFigure(series_figure(shown, "Polling"), "Work in slices, with a look at the library between them.")
    for way, timeline in recording.facts.get(TIMELINES, {}).items():
        yield PageFigure(
            _timeline_figure(way, timeline),
            f"Producer-bound, {timeline['size']:,} bytes: phases of both sides, and below them the frames that each "
            "handed to its link (data above, others below).",
        )


def _overlap_figure(series: Series) -> Figure:
    def figure(pyplot: Any) -> Any:
        drawing, (axes,) = plot.panels(pyplot, "Overlap of a message and work", (11.5, 4.4))
        for name, (colour, dashes) in line_styles(series.contestants()).items():
            curve = series.curve(name)
            places = [each.parameters["size"] for each in curve]
            axes.plot(places, [each.median for each in curve], color=colour, linestyle=dashes, marker=".", label=name)
        plot.length_axis(axes, [plotted(each.parameters["size"]) for each in series.measurements])
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xlabel("size, bytes")
        axes.set_ylabel("overlap")
        plot.legend_beside(drawing, axes, handlelength=2.6)
        return drawing

    return figure


def _timeline_figure(way: str, timeline: dict[str, Any]) -> Figure:
    """Bars of phases per side, and ticks of the frames that it sent."""

    def figure(pyplot: Any) -> Any:
        drawing, (axes,) = plot.panels(pyplot, f"Phases and frames, progress: {way}", (11.5, 2.6))
        begin = timeline["begin"]
        for each in shown_phases(timeline):
            place = -1.6 * each.rank
            known = axes.get_legend_handles_labels()[1]
            label = each.kind if each.kind not in known else "_nolegend_"
            width = (each.end - each.begin) / 1e6
            axes.barh(place, width, 0.6, left=(each.begin - begin) / 1e6, color=_PHASES[each.kind], label=label)
        for frame in timeline["frames"]:
            place, time = -1.6 * frame["rank"] - 0.6, (frame["time"] - begin) / 1e6
            data = frame["kind"] == _DATA
            axes.plot(
                [time, time],
                [place, place + (0.2 if data else -0.2)],
                color=plot.COLOURS[1 if data else 3],
                linewidth=0.6,
            )
        axes.set_yticks([0, -1.6], _SIDES)
        axes.set_xlim(0, (timeline["end"] - begin) / 1e6)
        axes.set_xlabel("ms")
        plot.legend_beside(drawing, axes)
        return drawing

    return figure
