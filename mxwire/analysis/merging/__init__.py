"""The merge of two captures of the two ends of a path: frames that both have, clocks, and the common order."""

from mxwire.analysis.merging.clocks import Alignment, Clock
from mxwire.analysis.merging.matching import Fingerprints
from mxwire.analysis.merging.merge import MergeCounts, MergedBatch, MergePlan, merged, plan
from mxwire.errors import MergeError

__all__ = [
    "Alignment",
    "Clock",
    "Fingerprints",
    "MergeCounts",
    "MergeError",
    "MergePlan",
    "MergedBatch",
    "merged",
    "plan",
]
