"""Public names of a package that are imported on first use (PEP 562), so that a program loads only what it needs."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of ``package``, whose public names are given by the module that defines them."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        loaded = getattr(import_module(home), name)
        setattr(sys.modules[package], name, loaded)
        return loaded

    return load
