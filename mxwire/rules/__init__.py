"""Check decoded frames against the rules of the specification that the wire shows; independent of the engine.

``Judge`` takes decoded frames and returns ``Violation`` values; ``CATALOGUE`` lists every rule of the specification.
The simulator, ``verify`` and test harnesses of live hosts use the same judge, each with its own ``Vantage``.

Each rule is a small function in ``chapters/``, such as R-PUL-03 in ``chapters/pulls.py``; the trackers in ``state/``
provide what has been observed before a frame.
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
