"""Two captures of the two ends of a way, reassembled: which frames are the same, how the clocks differ."""

from mxwire.analysis.merging.clocks import Alignment, Clock
from mxwire.analysis.merging.errors import MergeError
from mxwire.analysis.merging.fingerprints import Fingerprints
from mxwire.analysis.merging.merge import Merge, merged
from mxwire.analysis.merging.plan import Counts, Plan, plan

__all__ = ["Alignment", "Clock", "Counts", "Fingerprints", "Merge", "MergeError", "Plan", "merged", "plan"]
