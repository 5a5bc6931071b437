"""Raw replay: transmit the frames of a capture unchanged, at a chosen pace."""

from __future__ import annotations

from mxwire.replay.raw.pace import AsRecorded, AtBitRate, AtFrameRate, AtTopSpeed, Pace, pace_at
from mxwire.replay.raw.player import Player, RawReplayResult
from mxwire.replay.raw.preparation import FrameRewriter, PiecePreparer

__all__ = [
    "AsRecorded",
    "AtBitRate",
    "AtFrameRate",
    "AtTopSpeed",
    "FrameRewriter",
    "Pace",
    "PiecePreparer",
    "Player",
    "RawReplayResult",
    "pace_at",
]
