"""The conformance rules that can be judged from frames, by their numbers in the specification; knows no engine.

``Judge`` takes decoded frames and hands out ``Violation`` values; ``CATALOGUE`` lists every rule of the specification.
The simulator, verifiers of captures and test harnesses of live hosts use the same judge with another ``Vantage``.
"""

from __future__ import annotations

from mxwire.rules.catalogue import CATALOGUE, Rule
from mxwire.rules.finding import Severity, Verdict, Violation
from mxwire.rules.judge import DialectLookup, Judge
from mxwire.rules.vantage import CAPTURE, DEFECTS, LOST, SENDERS, Vantage

__all__ = [
    "CAPTURE",
    "CATALOGUE",
    "DEFECTS",
    "LOST",
    "SENDERS",
    "DialectLookup",
    "Judge",
    "Rule",
    "Severity",
    "Vantage",
    "Verdict",
    "Violation",
]
