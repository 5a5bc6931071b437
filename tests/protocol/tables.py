"""All state tables of the engine, found by looking into every module."""

from __future__ import annotations

import importlib
import pkgutil

import mxwire.protocol
from mxwire.protocol.machine import Row, Table


def tables() -> dict[str, Table]:
    """Every table by its name."""
    found = {}
    for module in pkgutil.walk_packages(mxwire.protocol.__path__, "mxwire.protocol."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Table):
                found[value.name] = value
    return found


class Recording(dict):
    """The rows that leave one state of a table, by event; notes which were taken."""

    def __init__(self, name: str, rows: dict, taken: set[str]) -> None:
        super().__init__(rows)
        self.name = name
        self.taken = taken

    def get(self, key, default=None):
        step = super().get(key, default)
        if step is not None:
            self.taken.add(line(self.name, step.row))
        return step


def line(name: str, row: Row) -> str:
    return f"{name}: {row.state} --{row.event}--> {row.next}"
