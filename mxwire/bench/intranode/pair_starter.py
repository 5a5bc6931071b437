"""Programs that play the roles of a study of data moved within a machine, and how each is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from mxwire.bench.intranode.copies import PAST_CACHES
from mxwire.bench.intranode.mechanism import MechanismError
from mxwire.bench.roles.program import compile_program
from mxwire.errors import MxwireError
from mxwire.lab import machine
from mxwire.lab.child import ChildEndedError, ChildProcess
from mxwire.lab.namespaces import private_cable
from mxwire.link.runtime import RUNTIME_VARIABLE

IN_C: Final = ", C"
PAST: Final = ", past caches"
_PATIENCE: Final = 120.0
_END_PATIENCE: Final = 5.0


class RoleProgram:
    """A running program, such as a pair, which answers roles with values.

    Raises :class:`~.mechanism.MechanismError` if it cannot be used.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._child = ChildProcess(words, environment=environment, stderr=subprocess.DEVNULL)

    @property
    def pid(self) -> int:
        """Process id; of a pair that of side 0."""
        return self._child.pid

    def play(self, role: str, *numbers: int) -> Any:
        """Play a role; its values, of a pair those of both sides."""
        # A program that has ended has written its reason.
        with suppress(ChildEndedError):
            self._child.write_line(" ".join([role, *map(str, numbers)]).encode())
        try:
            line = self._child.read_line(_PATIENCE)
        except ChildEndedError:
            raise MechanismError("the program has ended without a reason") from None
        if line is None:
            raise MechanismError(f"the program does not answer within {_PATIENCE:g} s")
        answer: Any = json.loads(line)
        if "error" in answer:
            raise MechanismError(answer["error"])
        return answer

    def close(self) -> None:
        """End its processes: by the end of their input, so that they can remove what outlives them."""
        self._child.end(patience=_END_PATIENCE)


class PairStarter:
    """The pairs of a study, each started when it is first used, and ended with ``held``."""

    def __init__(self, held: ExitStack, package: Path | None = None) -> None:
        self._held = held
        self.processors = machine.placement()
        self.package = package
        """Folder with the compiled mxwire that pairs run; None: the one that runs here."""
        self._open: dict[tuple[str, ...], RoleProgram] = {}
        self._ports: list[str] = []
        self._folder = held.enter_context(tempfile.TemporaryDirectory(prefix="mxwire-bench-"))
        self._twins = str(Path(self._folder, "mechanisms"))

    @cached_property
    def refusal(self) -> str | None:
        """The reason why there are no twins in C; None if there are. They are compiled when this is read first."""
        source = files("mxwire.bench.intranode").joinpath("mechanisms.c").read_text(encoding="utf-8")
        try:
            compile_program(source, self._twins)
        except MxwireError as error:
            return str(error)
        return None

    @property
    def _program(self) -> str:
        """The program of the twins. Raises :class:`~.mechanism.MechanismError` if there is none."""
        if self.refusal is not None:
            raise MechanismError(self.refusal)
        return self._twins

    def pair(self, contestant: str, slot: int = 0) -> RoleProgram:
        """The pair of a contestant."""
        return self._program_of(tuple(self._words(contestant, slot)))

    def senders(self, contestant: str, senders: int, size: int, count: int) -> dict[str, float]:
        """Values of several senders; see ``senders.py``."""
        name, _, in_c = contestant.partition(", ")
        found: dict[str, float]
        if not in_c:
            program = self._program_of((*_module("senders"), name, *map(str, self.processors)))
            found = program.play("senders", senders, size, count)
            return found
        numbers = map(str, (senders, size, count, *self.processors))
        program = RoleProgram([self._program, "senders", *numbers], {})
        try:
            found = program.play("")
        finally:
            program.close()
        return found

    def copier(self, contestant: str) -> RoleProgram:
        """The program of a routine that copies; see ``copies.py``."""
        processor = str(self.processors[0])
        if contestant.endswith(IN_C):
            return self._program_of((self._program, "copies", processor))
        tunables = PAST_CACHES if contestant.endswith(PAST) else {}
        return self._program_of((*_module("copies"), processor), tunables)

    def close(self, programs: Collection[RoleProgram]) -> None:
        """End programs that are not needed any more."""
        for each in programs:
            each.close()
        self._open = {words: program for words, program in self._open.items() if program not in programs}

    def _program_of(self, words: tuple[str, ...], environment: Mapping[str, str] | None = None) -> RoleProgram:
        key = (*words, *(environment or {}))
        if key not in self._open:
            # Hosts of the machine share a table of peers, in which each interface of a pair would keep its entries.
            own = {} if RUNTIME_VARIABLE in os.environ else {RUNTIME_VARIABLE: self._folder}
            own |= {} if self.package is None else {"PYTHONPATH": str(self.package)}
            self._open[key] = RoleProgram(words, {**own, **(environment or {})})
            self._held.callback(self._open[key].close)
        return self._open[key]

    def _words(self, contestant: str, slot: int) -> list[str]:
        mechanism, _, in_c = contestant.partition(", ")
        place = [mechanism, str(slot), *map(str, self.processors)]
        if not in_c:
            return [*_module("pair"), *place]
        if mechanism == "veth" and not self._ports:
            ports = self._held.enter_context(private_cable("intranode", 9000))
            self._ports = [f"{port.namespace.name}/{port.interface}" for port in ports]
        return [self._program, *place, *(self._ports if mechanism == "veth" else [])]


def _module(name: str) -> tuple[str, ...]:
    # Run with -P, so that no file in the current folder replaces a module.
    return sys.executable, "-P", "-m", f"mxwire.bench.intranode.{name}"


def refusals(pairs: PairStarter, mechanisms: Sequence[str]) -> dict[str, str]:
    """The reason why each mechanism cannot be used here, found by a message of one byte; usable ones are left out."""
    found = {}
    for each in mechanisms:
        try:
            pairs.pair(each).play("trips", 1, 1, 0, 1)
        except MechanismError as error:
            found[each] = str(error)
    return found
