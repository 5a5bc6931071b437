"""Loads changed modules of mxwire in each Python that a run of ``tests.mutation`` starts.

``MXWIRE_MUTATION`` is a folder with the code of these modules. A probe in them calls ``reached_mutant``, which appends
the number of the mutant to ``MXWIRE_REACHED`` when this process reaches it for the first time.
"""

import builtins
import marshal
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

FOLDER = os.environ.get("MXWIRE_MUTATION")
known: set[int] = set()


class ChangedLoader(SourceFileLoader):
    """Takes the code of a module from the folder."""

    def get_code(self, fullname: str) -> CodeType:
        return marshal.loads(Path(FOLDER or "", fullname).read_bytes())


class ChangedFinder:
    """Finds the modules in the folder."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not fullname.startswith("mxwire.") or fullname not in changed:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            spec.loader = ChangedLoader(fullname, spec.origin)
        return spec


def reached_mutant(number: int) -> None:
    """Note a mutant that this process reaches."""
    if number not in known:
        known.add(number)
        with open(os.environ["MXWIRE_REACHED"], "a") as file:  # noqa: PTH123
            file.write(f"{number}\n")


if FOLDER:
    changed = set(os.listdir(FOLDER))  # noqa: PTH208
    sys.meta_path.insert(0, ChangedFinder())
    builtins.reached_mutant = reached_mutant
    os.register_at_fork(after_in_child=known.clear)
