"""Scenarios: short readable scripts of the frames that a tester sends, and the frames expected back, with times.

``parser.py`` reads a script. ``scenario_run.py`` plays it as a state machine without clock or link, waits for frames,
and decides the verdict; ``conditions.py`` compares their fields, and ``tester.py`` is the endpoint that the scenario
plays.
``simulated_run.py`` and ``live_run.py`` are the testbeds. The scripts themselves are in ``replay/``.

The names below are imported on first use: completion needs only the names of the scripts.
"""

from typing import TYPE_CHECKING

from mxwire.first_use import import_on_first_use

if TYPE_CHECKING:
    from mxwire.scenarios.errors import ScriptError
    from mxwire.scenarios.files import library, load
    from mxwire.scenarios.live_run import LiveTarget, meet, run_live
    from mxwire.scenarios.outcome import FieldDifference, Remark, ScenarioOutcome, ScenarioVerdict
    from mxwire.scenarios.parser import parse
    from mxwire.scenarios.script import Script
    from mxwire.scenarios.simulated_run import run_simulated

__getattr__ = import_on_first_use(
    __name__,
    {
        "errors": ("ScriptError",),
        "files": ("library", "load"),
        "live_run": ("LiveTarget", "meet", "run_live"),
        "outcome": ("FieldDifference", "Remark", "ScenarioOutcome", "ScenarioVerdict"),
        "parser": ("parse",),
        "script": ("Script",),
        "simulated_run": ("run_simulated",),
    },
)

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
