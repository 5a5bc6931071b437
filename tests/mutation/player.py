"""Plugin of pytest that runs mutants instead of tests: each in a process forked from this one (``-p``).

The fork has imported and collected everything; it replaces the code of the functions that the mutant changes. Further
processes of Python that a test starts load the changed module (``site/sitecustomize.py``).
"""

from __future__ import annotations

import gc
import json
import marshal
import os
import resource
import select
import shutil
import signal
import tempfile
import traceback
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from .operators import compiled, functions_in, mutants_of, tree_of
from .reach import import_rooms

MEMORY = 8 << 30
"""Address space of a mutant: one that allocates without limit ends."""
PATIENCE = 15, 20
"""Seconds after which a test hangs: a constant, and a multiple of what it takes without a mutant."""


@dataclass(frozen=True)
class ChangedModule:
    """A module with a mutant: the code of all its functions, before and after."""

    file: str
    name: str
    code: CodeType
    functions: dict[CodeType, CodeType]
    """Changed functions; empty if they cannot take the place of those of a loaded module."""

    @classmethod
    def of(cls, file: str, name: str) -> ChangedModule:
        """Return the module with the mutant of this name."""
        tree = tree_of(file)
        mutant = next(each for each in mutants_of(file, tree) if each.name == name)
        before = [*functions_in(compiled(file, tree_of(file)))]
        mutant.apply()
        code = compiled(file, tree)
        after = [*functions_in(code)]
        same = [each.co_freevars for each in before] == [each.co_freevars for each in after]
        pairs = zip(before, after, strict=True) if same else ()
        return cls(file, mutant.module, code, {old: new for old, new in pairs if old != new})

    def store(self, folder: Path) -> None:
        """Store the code where new processes look for it."""
        folder.mkdir(parents=True)
        (folder / self.name).write_bytes(marshal.dumps(self.code))


class Player:
    """Runs the mutants of a plan against the collected tests."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.functions: dict[str, list[FunctionType]] = defaultdict(list)
        """By module."""
        self.items: dict[str, pytest.Item] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Play in the place of pytest's loop."""
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        import_rooms()
        self.items = {each.nodeid: each for each in session.items}
        gc.unfreeze()
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                self.functions[each.__globals__.get("__name__", "")].append(each)
        gc.collect()
        gc.freeze()
        jobs = self.plan["jobs"]
        workers = [_forked(self._play, self.plan["mutants"][job::jobs]) for job in range(jobs)]
        for each in workers:
            os.waitpid(each, 0)
        return True

    def _play(self, mutants: list[dict[str, Any]]) -> None:
        for each in mutants:
            tests = [name for name in each["tests"] if name in self.items]
            line = each["line"] | {"killed_by": self._killers(each, tests)}
            with Path(self.plan["result"]).open("a") as file:
                file.write(json.dumps(line) + "\n")

    def _killers(self, mutant: dict[str, Any], tests: list[str]) -> list[list[str]]:
        """Return the tests that kill a mutant, and how; a test that hangs or ends its process is not the last."""
        killers: list[list[str]] = []
        while tests:
            base = Path(tempfile.mkdtemp(prefix="mutant"))
            reading, writing = os.pipe()
            child = _forked(self._run, mutant, tests, base, writing)
            os.close(writing)
            how = "ended"
            with open(reading, "rb", buffering=0) as results:  # noqa: PTH123
                if results.read(1) != b"+":
                    raise RuntimeError(f"{mutant['name']} cannot be made")
                while tests:
                    fixed, multiple = PATIENCE
                    bound = fixed + multiple * self.plan["seconds"].get(tests[0], 0)
                    if not select.select([results], [], [], bound)[0]:
                        how = "hangs"
                        break
                    if not (result := results.read(1)):
                        break
                    name = tests.pop(0)
                    if result == b"F":
                        killers.append([name, "fails"])
                        if self.plan["first"]:
                            tests = []
            _kill(child)
            shutil.rmtree(base, ignore_errors=True)
            if tests:
                killers.append([tests.pop(0), how])
                if self.plan["first"]:
                    break
        return killers

    def _run(self, mutant: dict[str, Any], tests: list[str], base: Path, writing: int) -> None:
        """Become the mutant, and run the tests."""
        os.setsid()
        if not mutant["loaded"]:
            module = ChangedModule.of(mutant["file"], mutant["name"])
            module.store(base / "module")
            os.environ["MXWIRE_MUTATION"] = str(base / "module")
            found = [each for each in self.functions[module.name] if each.__code__ in module.functions]
            if not found:
                raise LookupError(f"no function of {module.name} is changed")
            for each in found:
                each.__code__ = module.functions[each.__code__]
        with open(os.devnull, "r+") as null:  # noqa: PTH123
            for stream in (0, 1, 2):
                os.dup2(null.fileno(), stream)
        for limit, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 1 << 30), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(limit, (most, most))
        items = [self.items[name] for name in tests]
        items[0].config._tmp_path_factory._basetemp = base  # type: ignore[attr-defined]
        os.write(writing, b"+")
        for item, following in zip(items, [*items[1:], None], strict=True):
            reports = runtestprotocol(item, log=False, nextitem=following)
            os.write(writing, b"F" if any(each.failed for each in reports) else b".")


def _forked(function: Any, *arguments: Any) -> int:
    """Return the number of a process that calls a function."""
    child = os.fork()
    if not child:
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    return child


def _kill(child: int) -> None:
    """End a process and those that it has started."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def pytest_configure(config: pytest.Config) -> None:
    """Read the plan."""
    plan = json.loads(Path(os.environ["MXWIRE_MUTANTS"]).read_text())
    config.pluginmanager.register(Player(plan))
