"""Raw replay: retransmit the frames of a capture unchanged, at a chosen pace."""

from __future__ import annotations

from mxwire.replay.raw.pace import AsRecorded, AtBitRate, AtFrameRate, AtTopSpeed, Pace, pace_at
from mxwire.replay.raw.player import Player
from mxwire.replay.raw.preparing import Piece, Preparation
from mxwire.replay.raw.result import Result
from mxwire.replay.raw.rewriting import Rewriting

__all__ = [
    "AsRecorded",
    "AtBitRate",
    "AtFrameRate",
    "AtTopSpeed",
    "Pace",
    "Piece",
    "Player",
    "Preparation",
    "Result",
    "Rewriting",
    "pace_at",
]
