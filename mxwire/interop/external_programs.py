"""Programs on external hosts: started when a case needs them, and always ended."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.interop.configuration import ExternalHost, ProgramDescription
from mxwire.interop.roles import EndpointAddress, Role, UnplayableCase
from mxwire.lab.child import ChildEndedError, ChildProcess
from mxwire.lab.namespaces import inside

CASE: Final = "TESTCASE"
"""Variable with the name of the case; this one and ROLE have the names of the QUIC interop runner."""
UNSUPPORTED: Final = 127
"""Status of an entry point that does not support a case or role."""
_INTERRUPT: Final = b"\x03"
_END_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 1.0
"""Seconds before a failed restart is repeated.

A host takes some time to close the endpoint of an ended program (R-MEA-20), and its end cannot be observed over ssh.
"""
_LULL_SECONDS: Final = 0.3
"""Seconds of silence after which the output of a console counts as complete."""
_KEPT: Final = 20
"""Last lines of output kept for the error of a program that ends too soon."""
_SSH: Final = ("ssh", "-tt", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")


class ProgramError(MxwireError):
    """A program on an external host cannot be started, or does not become ready."""


def _unheard(_: str) -> None:
    """Ignore a line for the report."""


class ExternalPrograms:
    """The programs of one external host; of several roles at one endpoint only one runs at a time."""

    def __init__(self, external: ExternalHost) -> None:
        self._external = external
        self._running: dict[Role, RunningProgram] = {}
        self.starts = 0
        """Number of programs started."""
        self.is_entry = external.is_entry
        """True for an entry point, which is started for each case."""
        self._case: dict[str, str] = {}
        """Variables that describe the case to it."""
        self._silent: dict[Role, str] = {}
        """Roles whose entry point did not become ready, with the case."""
        self._suspects: dict[Role, str] = {}
        """Programs that were ended because of a failure, with the reason."""

    def begin(self, case: str, tester: bytes) -> None:
        """Describe the next case to entry points that are started from now on, and the address of the tester."""
        self._case = {CASE: case, "PEER": mac_text(tester)}

    def suspect(self, roles: Iterable[Role], why: str) -> None:
        """End programs that a failure left in an unknown state, perhaps in the middle of a transfer.

        Otherwise they would continue it during the next cells. ``why`` is for the report, and for the user who ends
        a program by hand.
        """
        for role in self._running.keys() & set(roles):
            self._end(role, why)
            self._suspects[role] = why

    def start(self, role: Role, note: Callable[[str], object] = _unheard) -> EndpointAddress:
        """Make sure that the program with a role runs; return its address.

        If it is restarted, ``note`` is called with a line for the report. Raises
        :class:`~mxwire.interop.roles.UnplayableCase` if there is no such program, and :class:`ProgramError` if it does
        not run.
        """
        program = self._external.programs.get(role)
        external = self._external
        name = external.implementation.name
        if program is None:
            raise UnplayableCase(f"no program of {name} is configured for {role!r}")
        if role in self._silent:
            raise UnplayableCase(f"{name} did not become ready as {role!r} in {self._silent[role]}")
        running = self._running.get(role)
        if running is not None and not running.alive:
            self.suspect((role,), "it had ended by itself")
        why = self._suspects.pop(role, None)
        if why is not None:
            self._start_again(role, program)
            note(f"{name}: {program.start!r} was restarted: {why}")
        elif running is None:
            # An endpoint is open in one program only.
            for other in [each for each, found in self._running.items() if found.program.endpoint == program.endpoint]:
                self._end(other)
            self._start(role, program)
        host = external.address if external.address is not None else external.host
        assert host is not None
        return EndpointAddress(host, program.endpoint, program.key, program.answer)

    @property
    def several(self) -> bool:
        """True if more than one program runs; each program of mxwire is a host of its own, at the same address."""
        return len(self._running) > 1

    def restart(self, role: Role, why: str) -> EndpointAddress:
        """End a program if it runs, and start it, as :meth:`start` does."""
        self.suspect((role,), why)
        return self.start(role)

    def _start_again(self, role: Role, program: ProgramDescription) -> None:
        try:
            self._start(role, program)
        except ProgramError:
            # A user has just done it by hand, and the end of an entry point was observed: nothing to wait for.
            if program.by in ("hand", "entry"):
                raise
            time.sleep(_AGAIN_SECONDS)
            self._start(role, program)

    def _start(self, role: Role, program: ProgramDescription) -> None:
        program = replace(program, environment=program.environment | self._case)
        try:
            self._running[role] = started(program, self._external.implementation.name)
        except SilentProgram:
            # It would most likely be silent in each case, for seconds.
            if program.by == "entry":
                self._silent[role] = self._case[CASE]
            raise
        self.starts += 1

    def crash(self) -> str | None:
        """Return a sentence about an entry point that ended by itself, if one did."""
        return next((text for each in self._running.values() if (text := each.crash())), None)

    def _end(self, role: Role, why: str = "") -> None:
        self._running.pop(role).end(why)

    def close(self) -> None:
        """End all programs."""
        while self._running:
            self._end(next(reversed(self._running)))


class RunningProgram:
    """A running program."""

    def __init__(self, program: ProgramDescription) -> None:
        self.program = program

    @property
    def alive(self) -> bool:
        """True if the program still runs, or if its state cannot be determined."""
        return True

    def crash(self) -> str | None:
        """Return a sentence about its end, if it ended by itself and this can be determined."""
        return None

    def end(self, why: str = "") -> None:
        """End the program; ``why`` is the reason for a restart, for a user who does it by hand; empty at the end."""


class SilentProgram(ProgramError):
    """A program did not print that it is ready."""


class LocalProcess(RunningProgram):
    """A local process: the program, or the ssh that leads to it."""

    def __init__(self, program: ProgramDescription, words: list[str], name: str) -> None:
        super().__init__(program)
        self._name = name
        self._output: deque[str] = deque(maxlen=_KEPT)
        try:
            with inside(program.namespace):
                self._child = ChildProcess(
                    words, environment=program.environment, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
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
        """True if the process still runs."""
        if self._child.process.poll() is not None:
            return False
        self._hear(0.0)
        return True

    def _wait_until_ready(self) -> None:
        program = self.program
        limit = time.monotonic() + (program.settle if program.ready is None else program.patience)
        while (left := limit - time.monotonic()) > 0:
            self._hear(min(left, 0.1))
            output = (each for each in (*self._output, self._pending) if each)
            # An incomplete line counts: a prompt has no newline.
            if program.ready is not None and any(program.ready in each for each in output):
                return
            if self._child.process.poll() is not None:
                if program.by == "entry" and self._child.process.returncode == UNSUPPORTED:
                    case, role = program.environment[CASE], program.role
                    raise UnplayableCase(f"{self._name} does not support {case} as {role!r} (status {UNSUPPORTED})")
                raise ProgramError(f"{self._name}: {program.start!r} ended at once {self._end_text()}")
        if program.ready is not None:
            last = f", only {self._output[-1]!r}" if self._output else ""
            raise SilentProgram(
                f"{self._name}: {program.start!r} did not print {repr(program.ready) if program.ready else 'a line'} "
                f"within {program.patience:g} s{last}"
            )

    def _end_text(self) -> str:
        """Describe the end of the process."""
        self._hear(0.0)
        code, output = self._child.process.returncode, self._output[-1] if self._output else "without output"
        how = f"by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"with status {code}"
        return f"{how}: {output}"

    def crash(self) -> str | None:
        """Return a sentence about its end, if it has ended."""
        if self._child.process.poll() is None:
            return None
        return f"{self._name} ended as {self.program.role!r} {self._end_text()}"

    @property
    def _pending(self) -> str:
        return self._child.rest.decode(errors="replace")

    def _hear(self, timeout: float) -> None:
        """Read its output, so that it never blocks on a full pipe."""
        try:
            while (line := self._child.read_line(timeout)) is not None:
                if line.strip():
                    self._output.append(line.decode(errors="replace").strip())
                timeout = 0.0
        except ChildEndedError:
            # At the end of its output the pipe is readable at once; without a pause this would spin until the process
            # ends.
            time.sleep(min(timeout, 0.01))

    def end(self, why: str = "") -> None:
        """Run the command that stops it, or interrupt it; kill it if it still runs."""
        if self.program.stop is not None:
            # If the stop command is invalid, the program must be ended nevertheless.
            with suppress(OSError, subprocess.TimeoutExpired, ValueError):
                by_ssh = [*_SSH, str(self.program.target), self.program.stop]
                words = by_ssh if self.program.by == "ssh" else shlex.split(self.program.stop)
                subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_END_SECONDS, check=False)
        # As Ctrl-C at a terminal, which programs expect to end them.
        self._child.end(signal.SIGINT, _END_SECONDS)


class ConsoleProgram(RunningProgram):
    """A program typed into a serial console."""

    def __init__(self, program: ProgramDescription, name: str) -> None:
        super().__init__(program)
        self._path = Path(str(program.target))
        try:
            self._console = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            raise ProgramError(f"{name}: {self._path}: cannot be opened: {error.strerror or error}") from None
        try:
            # Discard earlier output, which must not be mistaken for the readiness of this program.
            with suppress(termios.error):
                termios.tcflush(self._console, termios.TCIFLUSH)
            self._type(program.start.encode() + b"\r")
            self._wait_until_ready(name)
        except BaseException:
            self.end()
            raise

    def _type(self, data: bytes) -> None:
        try:
            while data:
                if not select.select([], [self._console], [], self.program.patience)[1]:
                    raise ProgramError(f"{self._path}: does not accept input: is a host connected?")
                data = data[os.write(self._console, data) :]
        except OSError as error:
            raise ProgramError(f"{self._path}: {error.strerror or error}") from None

    def _wait_until_ready(self, name: str) -> None:
        program, output = self.program, b""
        limit = time.monotonic() + (program.settle if program.ready is None else program.patience)
        while (left := limit - time.monotonic()) > 0:
            if not select.select([self._console], [], [], left)[0]:
                break
            with suppress(OSError):
                # A console may print without end before the program is ready.
                output = (output + os.read(self._console, 65536))[-65536:]
            # The console echoes typed input, which must not be mistaken for output.
            answer = output.replace(program.start.encode(), b"", 1)
            if program.ready is not None and program.ready.encode() in answer:
                return
        if program.ready is not None:
            raise ProgramError(
                f"{name}: the console {self._path} did not print {program.ready!r} within {program.patience:g} s"
            )

    def end(self, why: str = "") -> None:
        """Type the stop command, or Ctrl-C, and wait until the console has finished printing."""
        stop = self.program.stop
        with suppress(ProgramError):
            self._type(_INTERRUPT if stop is None else stop.encode() + b"\r")
        limit = time.monotonic() + _END_SECONDS
        with suppress(OSError):
            while time.monotonic() < limit and select.select([self._console], [], [], _LULL_SECONDS)[0]:
                # At the end of the file it is always readable.
                if not os.read(self._console, 65536):
                    break
        os.close(self._console)


class ManualProgram(RunningProgram):
    """A program started by the user."""

    def __init__(self, program: ProgramDescription, name: str) -> None:
        super().__init__(program)
        self._name = name
        if not sys.stdin.isatty():
            raise ProgramError(f"{name}: {program.start!r} must be done by hand, but there is no terminal to ask on")
        self._ask(f"{name}: please {program.start}, then press Enter: ")

    def _ask(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
        sys.stdin.readline()

    def end(self, why: str = "") -> None:
        """Ask the user to end it, if it is to be restarted or has a stop instruction."""
        stop = self.program.stop
        if why:
            stop = stop or f"end the program ({self.program.start})"
            self._ask(f"{self._name}: a program must be restarted, because {why}: please {stop}, then press Enter: ")
        elif stop is not None:
            self._ask(f"{self._name}: please {stop}, then press Enter: ")


def started(program: ProgramDescription, name: str) -> RunningProgram:
    """Start a program, and wait until it is ready.

    Raises :class:`ProgramError` if it does not become ready.
    """
    if program.by == "hand":
        return ManualProgram(program, name)
    if program.by == "serial":
        return ConsoleProgram(program, name)
    if program.by == "ssh":
        return LocalProcess(program, [*_SSH, str(program.target), program.start], name)
    try:
        words = shlex.split(program.start)
    except ValueError as error:
        raise ProgramError(f"{name}: {program.start!r}: {error}") from None
    return LocalProcess(program, words, name)
