"""Programs on external hosts: started when a case needs them, and ended whatever happens."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.interop.casting import Role, Unsuitable, Where
from mxwire.interop.configuration import External, Program

_INTERRUPT: Final = b"\x03"
_END_SECONDS: Final = 5.0
_KEPT: Final = 20
"""Lines that a program has said last, for when it ends too soon."""
_SSH: Final = ("ssh", "-tt", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")


class ProgramError(MxwireError):
    """A program on an external host cannot be started, or does not become ready."""


class Programs:
    """The programs of one external host; of several roles at one endpoint only one runs at a time."""

    def __init__(self, external: External) -> None:
        self._external = external
        self._running: dict[Role, Running] = {}

    def start(self, role: Role) -> Where:
        """See to it that a program with a role runs, and say where.

        Raises :class:`~mxwire.interop.stage.Unsuitable` where none is described, :class:`ProgramError` where it does
        not run.
        """
        program = self._external.programs.get(role)
        if program is None:
            raise Unsuitable(f"no program of {self._external.implementation.name} is described for {role!r}")
        running = self._running.get(role)
        if running is not None and not running.alive:
            running.end()
            running = None
        if running is None:
            for other in [each for each, found in self._running.items() if found.program.endpoint == program.endpoint]:
                self._running.pop(other).end()
            running = self._running[role] = started(program, self._external.implementation.name)
        external = self._external
        host = external.address if external.address is not None else external.host
        assert host is not None
        return Where(host, program.endpoint, program.key)

    @property
    def several(self) -> bool:
        """Whether more than one runs; a program of mxwire is a host of its own, at the same address."""
        return len(self._running) > 1

    def restart(self, role: Role) -> Where:
        """End a program if it runs, and start it; else like :meth:`start`."""
        running = self._running.pop(role, None)
        if running is not None:
            running.end()
        return self.start(role)

    def close(self) -> None:
        """End them all."""
        while self._running:
            self._running.popitem()[1].end()


class Running:
    """A program that runs somewhere."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @property
    def alive(self) -> bool:
        """Whether it still runs, as far as is known."""
        return True

    def end(self) -> None:
        """End it."""


class RunningProcess(Running):
    """A process here: the program, or the ssh that leads to it."""

    def __init__(self, program: Program, words: list[str], name: str) -> None:
        super().__init__(program)
        self._name = name
        self._said: deque[str] = deque(maxlen=_KEPT)
        self._rest = b""
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramError(f"{name}: {words[0]}: cannot be started: {error.strerror or error}") from None
        try:
            self._wait_until_ready()
        except BaseException:
            self.end()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        if self._process.poll() is not None:
            return False
        self._hear(0.0)
        return True

    def _wait_until_ready(self) -> None:
        program = self.program
        limit = time.monotonic() + (program.settle if program.ready is None else program.patience)
        while (left := limit - time.monotonic()) > 0:
            self._hear(min(left, 0.1))
            if program.ready is not None and any(program.ready in line for line in [*self._said, self._pending]):
                return
            if self._process.poll() is not None:
                self._hear(0.0)
                code = self._process.returncode
                said = self._said[-1] if self._said else "it said nothing"
                raise ProgramError(f"{self._name}: {program.start!r} has ended at once, with {code}: {said}")
        if program.ready is not None:
            said = f", only {self._said[-1]!r}" if self._said else ""
            raise ProgramError(
                f"{self._name}: {program.start!r} has not said {program.ready!r} within {program.patience:g} s{said}"
            )

    @property
    def _pending(self) -> str:
        return self._rest.decode(errors="replace")

    def _hear(self, timeout: float) -> None:
        """Read what it says, so that it never waits for us."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while select.select([descriptor], [], [], timeout)[0]:
            data = os.read(descriptor, 65536)
            if not data:
                time.sleep(min(timeout, 0.01))
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._said += [each.decode(errors="replace").strip() for each in lines if each.strip()]
            timeout = 0.0

    def end(self) -> None:
        """Run the command that stops it, or interrupt it; then make sure."""
        if self.program.stop is not None:
            # A line that is no command line must not keep the program running.
            with suppress(OSError, subprocess.TimeoutExpired, ValueError):
                by_ssh = [*_SSH, str(self.program.target), self.program.stop]
                words = by_ssh if self.program.by == "ssh" else shlex.split(self.program.stop)
                subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_END_SECONDS, check=False)
        for way in (signal.SIGINT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, way)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
                break
        # What it has started itself goes with it.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        assert self._process.stdout is not None
        self._process.stdout.close()


class RunningOnConsole(Running):
    """A program that was typed into a serial console."""

    def __init__(self, program: Program, name: str) -> None:
        super().__init__(program)
        self._path = Path(str(program.target))
        try:
            self._console = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise ProgramError(f"{name}: {self._path}: cannot be opened: {error.strerror or error}") from None
        try:
            self._type(program.start.encode() + b"\r")
            self._wait_until_ready(name)
        except BaseException:
            self.end()
            raise

    def _type(self, data: bytes) -> None:
        try:
            while data:
                if not select.select([], [self._console], [], self.program.patience)[1]:
                    raise ProgramError(f"{self._path}: takes nothing: is something connected?")
                data = data[os.write(self._console, data) :]
        except OSError as error:
            raise ProgramError(f"{self._path}: {error.strerror or error}") from None

    def _wait_until_ready(self, name: str) -> None:
        program, said = self.program, b""
        limit = time.monotonic() + (program.settle if program.ready is None else program.patience)
        while (left := limit - time.monotonic()) > 0:
            if not select.select([self._console], [], [], left)[0]:
                break
            with suppress(OSError):
                said = (said + os.read(self._console, 65536))[-65536:]
            # The console repeats what is typed, which is not what the program says.
            answer = said.replace(program.start.encode(), b"", 1)
            if program.ready is not None and program.ready.encode() in answer:
                return
        if program.ready is not None:
            raise ProgramError(
                f"{name}: the console {self._path} has not said {program.ready!r} within {program.patience:g} s"
            )

    def end(self) -> None:
        """Type what stops it, or Ctrl-C."""
        stop = self.program.stop
        with suppress(ProgramError):
            self._type(_INTERRUPT if stop is None else stop.encode() + b"\r")
        os.close(self._console)


class RunningByHand(Running):
    """A program that a person has started."""

    def __init__(self, program: Program, name: str) -> None:
        super().__init__(program)
        self._name = name
        if not sys.stdin.isatty():
            raise ProgramError(f"{name}: {program.start!r} is to be done by hand, and nobody is there: no terminal")
        self._ask(f"{name}: please {program.start}, then press Enter: ")

    def _ask(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
        sys.stdin.readline()

    def end(self) -> None:
        """Ask the person to end it."""
        if self.program.stop is not None:
            self._ask(f"{self._name}: please {self.program.stop}, then press Enter: ")


def started(program: Program, name: str) -> Running:
    """Start a program, and wait until it is ready.

    Raises :class:`ProgramError` where that does not happen.
    """
    if program.by == "hand":
        return RunningByHand(program, name)
    if program.by == "serial":
        return RunningOnConsole(program, name)
    if program.by == "ssh":
        return RunningProcess(program, [*_SSH, str(program.target), program.start], name)
    try:
        words = shlex.split(program.start)
    except ValueError as error:
        raise ProgramError(f"{name}: {program.start!r}: {error}") from None
    return RunningProcess(program, words, name)
