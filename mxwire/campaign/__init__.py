"""Campaigns: many independent pieces of work, played by processes on this machine or on a cluster.

Begin with ``campaign.py``, which plays the pieces in chunks; ``workers.py`` opens the processes.
"""

from mxwire.campaign.campaign import Campaign, FatalPiece
from mxwire.campaign.workers import WorkerPool, open_workers

__all__ = ["Campaign", "FatalPiece", "WorkerPool", "open_workers"]
