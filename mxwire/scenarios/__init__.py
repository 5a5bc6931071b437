"""Scenarios: what one side sends and what must come back, and when, as short readable texts."""

from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.live import LiveTarget, run_live
from mxwire.scenarios.loading import library, load
from mxwire.scenarios.meeting import meet
from mxwire.scenarios.outcome import Difference, Outcome, Remark, Verdict
from mxwire.scenarios.parser import parse
from mxwire.scenarios.script import Script
from mxwire.scenarios.simulated import run_simulated

__all__ = [
    "Difference",
    "LiveTarget",
    "Outcome",
    "Remark",
    "Script",
    "ScriptError",
    "Verdict",
    "library",
    "load",
    "meet",
    "parse",
    "run_live",
    "run_simulated",
]
