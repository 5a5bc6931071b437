"""Durations in a capture: round trips, transfers, acknowledgements, repetitions, gaps, bytes in flight."""

from mxwire.analysis.timing.line import Line, TimeLine
from mxwire.analysis.timing.samples import DurationEstimate, GapHistogram, Samples
from mxwire.analysis.timing.timing import Timing

__all__ = ["DurationEstimate", "GapHistogram", "Line", "Samples", "TimeLine", "Timing"]
