"""Durations in a capture: round trips, transfers, acknowledgements, repetitions, gaps, bytes in flight."""

from mxwire.analysis.timing.gaps import GapHistogram
from mxwire.analysis.timing.line import Line, TimeLine
from mxwire.analysis.timing.samples import Estimate, Samples
from mxwire.analysis.timing.timing import Timing

__all__ = ["Estimate", "GapHistogram", "Line", "Samples", "TimeLine", "Timing"]
