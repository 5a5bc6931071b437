"""Durations in a capture (round trips, transfers, acknowledgements, gaps), bytes in flight, and statistics per pair.

``timing.py`` follows a capture, and sorts its messages by number. ``measured_messages.py`` turns them into columns:
small messages that the follower returns as rows never become objects. Totals (``pairs.py``), round trips
(``round_trips.py``) and samples of durations (``samples.py``) are taken from these columns; only what large and
retransmitted messages have besides is taken message by message.
"""

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
