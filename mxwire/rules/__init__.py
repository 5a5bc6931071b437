"""Check decoded frames against the rules of the specification that the wire shows; independent of the engine.

``Judge`` takes decoded frames and returns ``Violation`` values; ``CATALOGUE`` lists every rule of the specification.
The simulator, ``verify`` and test harnesses of live hosts use the same judge, each with its own ``Vantage``.

Each rule that frames can show to be broken is a small function in ``chapters/``, such as R-PUL-03 in
``chapters/pulls.py``; the trackers in ``state/`` provide what was observed before a frame. ``mxwire rules NUMBER``
lists where a rule is implemented, judged and tested.

The names below are imported on first use: analyses that need only a vantage do not load the rules.
"""

from typing import TYPE_CHECKING

from mxwire.first_use import import_on_first_use

if TYPE_CHECKING:
    from mxwire.rules.catalogue import CATALOGUE, Rule
    from mxwire.rules.finding import Severity, Verdict, Violation
    from mxwire.rules.judge import DialectLookup, Judge
    from mxwire.rules.vantage import CAPTURE, DEFECTS, LOST, SENDERS, Vantage

__getattr__ = import_on_first_use(
    __name__,
    {
        "catalogue": ("CATALOGUE", "Rule"),
        "finding": ("Severity", "Verdict", "Violation"),
        "judge": ("DialectLookup", "Judge"),
        "vantage": ("CAPTURE", "DEFECTS", "LOST", "SENDERS", "Vantage"),
    },
)

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
