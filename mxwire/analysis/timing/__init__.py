"""Durations in a capture (round trips, transfers, acknowledgements, gaps), bytes in flight, and statistics per pair."""

from mxwire.analysis.timing.line import Line, RateLine, TimeLine
from mxwire.analysis.timing.pairs import SORT_KEYS, DirectionTotals, PairStatistics, PairTable
from mxwire.analysis.timing.samples import DurationEstimate, DurationSketch, GapHistogram, Samples
from mxwire.analysis.timing.timing import Timing

__all__ = [
    "SORT_KEYS",
    "DirectionTotals",
    "DurationEstimate",
    "DurationSketch",
    "GapHistogram",
    "Line",
    "PairStatistics",
    "PairTable",
    "RateLine",
    "Samples",
    "TimeLine",
    "Timing",
]
