"""What pages ask for by ``<!-- generated: NAME -->``: the function ``made`` of the module here with that name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

PARTS: dict[str, Callable[[], str]] = {
    each.name.replace("_", " "): importlib.import_module(f"generated.{each.name}").made
    for each in pkgutil.iter_modules(__path__)
}
"""What makes each part, by the name that pages call it."""
