"""Scenarios: short readable scripts of the frames that a tester sends, and the frames expected back, with times.

``parser.py`` reads a script. ``run.py`` plays it as a step machine without clock or link, waits for frames, and decides
the verdict; ``conditions.py`` compares their fields, and ``tester.py`` is the endpoint that the scenario plays.
``simulated.py`` and ``live.py`` are the stages. The scripts themselves are in ``replay/``.
"""

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
