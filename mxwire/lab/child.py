"""Child processes: one with which this one speaks in lines, and one that runs to its end."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

_READ_BYTES: Final = 1 << 16
_PR_SET_PDEATHSIG: Final = 1
_REST_SECONDS: Final = 5.0
"""Longest wait for the output of programs that were killed: one that has left their session may keep the pipe open."""


class ChildEndedError(Exception):
    """The child has ended, or closed its end of the pipe."""


class ProgramLateError(Exception):
    """A program has not ended in time, and was killed; ``output`` is what it has printed, with its errors."""

    def __init__(self, output: str) -> None:
        super().__init__(output)
        self.output = output


class ChildProcess:
    """A program in a session of its own, so that Ctrl-C reaches this process only, which ends the child itself.

    ``environment`` is added to that of this process. ``stdin`` and ``stderr`` are those of :class:`subprocess.Popen`.
    Raises :class:`OSError` if the program cannot be started.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        stdin: int | None = subprocess.PIPE,
        stderr: int | IO[bytes] | None = None,
    ) -> None:
        # The environment is passed explicitly, since commands set variables of this process only.
        self.process = subprocess.Popen(
            list(words),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=os.environ | (environment or {}),
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self._output = self.process.stdout
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self.rest = b""
        """Output after the last line that was read."""

    @property
    def pid(self) -> int:
        """Process identifier."""
        return self.process.pid

    def write_line(self, line: bytes) -> None:
        """Write a line to its input; raise :class:`ChildEndedError` if it does not read any more."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        except (OSError, ValueError):  # the latter after its end
            raise ChildEndedError from None

    def read_line(self, timeout: float | None) -> bytes | None:
        """Return the next line of its output, or None if none is complete within ``timeout`` seconds.

        Raises :class:`ChildEndedError` at the end of the output; :attr:`rest` then has an incomplete last line.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self.rest:
            if not self._readable(None if end is None else end - time.monotonic()):
                return None
            data = os.read(self._output.fileno(), _READ_BYTES)
            if not data:
                raise ChildEndedError
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    @property
    def silent(self) -> bool:
        """True if there is nothing to read."""
        return b"\n" not in self.rest and not self._readable(0)

    def _readable(self, timeout: float | None) -> bool:
        return bool(self._poll.poll(None if timeout is None else max(timeout, 0) * 1000))

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to the child and the processes that it has started."""
        signal_group(self.pid, number)

    def end(self, first: signal.Signals | None = None, patience: float = 0.0) -> str:
        """Close the input, send the signal ``first``, and kill what still runs after ``patience`` seconds.

        The processes that it has started are killed too. Return the last line of its errors, if ``stderr`` is a pipe.
        Ending it again does nothing.
        """
        if self._output.closed:
            return ""
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        if first is not None:
            self.signal_all(first)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        self.signal_all(signal.SIGKILL)
        self.process.wait()
        self._output.close()
        if self.process.stderr is None:
            return ""
        with self.process.stderr as stream:
            return stream.read().decode(errors="replace").strip().rpartition("\n")[2]


def run_program(
    words: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    end_others: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, in a session of its own, and return it with its output.

    After ``timeout`` seconds, and if this process is interrupted, it is killed with all that it has started in its
    session; ``end_others`` ends the rest. Raises :class:`ProgramLateError` if it was late, and :class:`OSError` if it
    cannot be started.
    """
    with subprocess.Popen(
        list(words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=env,
        cwd=cwd,
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except BaseException as reason:
            signal_group(process.pid, signal.SIGKILL)
            if end_others is not None:
                end_others()
            if not isinstance(reason, subprocess.TimeoutExpired):
                raise
            try:
                printed = "".join(process.communicate(timeout=_REST_SECONDS))
            except subprocess.TimeoutExpired:
                printed = ""
            raise ProgramLateError(printed) from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to all processes of a group that still exist."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def end_with_parent(parent: int | None = None, number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when the thread that has started it ends.

    It is sent at once if that was the process ``parent``, and has already ended.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)


def forked(run: Callable[[], object]) -> int:
    """Run a function in a child process, and return its process id.

    The child ends with the function, or with the thread that has called this; its exit code is 1 if the function fails.
    """
    child = os.fork()
    if not child:
        code = 1
        try:
            end_with_parent()
            run()
            code = 0
        finally:
            # Without the exit handlers, which are those of the parent.
            os._exit(code)
    return child
