"""The parts of pages that ``<!-- generated: NAME -->`` requests: ``made()`` of the module with that name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

PARTS: dict[str, Callable[[], str]] = {
    each.name.replace("_", " "): importlib.import_module(f"generated.{each.name}").made
    for each in pkgutil.iter_modules(__path__)
}
"""The function that makes each part, by the name used in pages."""
