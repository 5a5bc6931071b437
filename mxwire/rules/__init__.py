"""Check decoded frames against the rules of the specification that the wire shows; independent of the engine.

``Judge`` takes decoded frames and returns ``Violation`` values; ``CATALOGUE`` lists every rule of the specification.
The simulator, ``verify`` and test harnesses of live hosts use the same judge, each with its own ``Vantage``.

Each rule that frames can show to be broken is a small function in ``chapters/``, such as R-PUL-03 in
``chapters/pulls.py``; the trackers in ``state/`` provide what was observed before a frame. ``mxwire rules NUMBER``
lists where a rule is implemented, judged and tested.

The names below are imported on first use: analyses that need only a vantage do not load the rules.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mxwire.rules.catalogue import CATALOGUE, Rule
    from mxwire.rules.finding import Severity, Verdict, Violation
    from mxwire.rules.judge import DialectLookup, Judge
    from mxwire.rules.vantage import CAPTURE, DEFECTS, LOST, SENDERS, Vantage

_HOMES = {
    "catalogue": ("CATALOGUE", "Rule"),
    "finding": ("Severity", "Verdict", "Violation"),
    "judge": ("DialectLookup", "Judge"),
    "vantage": ("CAPTURE", "DEFECTS", "LOST", "SENDERS", "Vantage"),
}
_HOME_OF = {name: f"mxwire.rules.{home}" for home, names in _HOMES.items() for name in names}

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


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(home), name)
    return found
