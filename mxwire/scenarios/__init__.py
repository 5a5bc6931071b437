"""Scenarios: short readable scripts of the frames that a tester sends, and the frames expected back, with times."""

from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.files import library, load
from mxwire.scenarios.live import LiveTarget, meet, run_live
from mxwire.scenarios.outcome import FieldDifference, Remark, ScenarioOutcome, ScenarioVerdict
from mxwire.scenarios.parser import parse
from mxwire.scenarios.script import Script
from mxwire.scenarios.simulated import run_simulated

__all__ = [
    "FieldDifference",
    "LiveTarget",
    "Remark",
    "ScenarioOutcome",
    "ScenarioVerdict",
    "Script",
    "ScriptError",
    "library",
    "load",
    "meet",
    "parse",
    "run_live",
    "run_simulated",
]
