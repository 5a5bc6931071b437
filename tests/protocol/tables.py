"""All state tables of the engine, found by looking into every module."""

from __future__ import annotations

import importlib
import pkgutil

import mxwire.protocol
from mxwire.protocol.state_machine import TransitionTable


def tables() -> dict[str, TransitionTable]:
    """Every table by its name."""
    found = {}
    for module in pkgutil.walk_packages(mxwire.protocol.__path__, "mxwire.protocol."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, TransitionTable):
                found[value.name] = value
    return found
