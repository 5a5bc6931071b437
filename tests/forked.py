"""Real processes of mxwire that start quickly: forked from one that has imported it already.

Importing takes several times as long as most commands do. In every other respect it is a separate process: it has its
own streams, signals, exit code and memory.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).parents[1]
CLI = ROOT / "cli.py"
_PR_SET_CHILD_SUBREAPER = 36
_SECONDS = 240
"""Bound on a command that is waited for: several times what the slowest takes on a busy machine."""
_MARGIN = 60
"""Seconds after this bound within which the server must have answered."""
_POSSIBLE = {"stdin", "stdout", "stderr", "text", "encoding", "cwd", "env", "pass_fds", "bufsize", "start_new_session"}
"""Options of :class:`subprocess.Popen` that a fork obeys."""


@dataclass(frozen=True)
class Program:
    """A Python program as the fork server runs it."""

    name: str
    """A file, a module, or the text of a program."""
    option: str
    """The option of Python before the name: none, ``-m`` or ``-c``."""
    arguments: tuple[str, ...]
    unbuffered: bool

    @classmethod
    def of(cls, words: Sequence[object]) -> Program | None:
        """Return the program of a command line, or None if this Python does not run it, or with other options."""
        texts = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in words]
        if not texts or texts[0] != sys.executable:
            return None
        rest = texts[1:]
        unbuffered = rest[:1] == ["-u"]
        rest = rest[unbuffered:]
        rest = rest[rest[:1] == ["-P"] :]
        option = rest.pop(0) if rest[:1] in (["-m"], ["-c"]) else ""
        if not rest or rest[0].startswith("-"):
            return None
        return cls(rest[0], option, tuple(rest[1:]), unbuffered)


class ForkServer:
    """The process that forks one for each command."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(_SECONDS + _MARGIN)
        command = [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(theirs.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self._lock = Lock()
        if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError("this process cannot adopt those that the fork server starts")

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        streams: Sequence[int],
        environment: Mapping[str, str] | None = None,
        constants: Mapping[str, object] | None = None,
    ) -> int:
        """Run mxwire to its end and return the exit code; negative for a signal.

        ``constants`` are replaced in the new process, by their dotted names. Raises :class:`TimeoutError` if the
        command does not end in time.
        """
        program = Program(str(CLI), "", tuple(arguments), False)
        code = self._request(program, folder, dict(enumerate(streams)), environment, constants=dict(constants or {}))
        if code == -signal.SIGKILL:
            raise TimeoutError(f"{' '.join(arguments)} has not ended within {_SECONDS} s, or was killed")
        return code

    def start(
        self,
        program: Program,
        folder: Path,
        streams: Mapping[int, int],
        environment: Mapping[str, str] | None,
        namespace: str | None,
        constants: Mapping[str, object],
        session: bool,
    ) -> int:
        """Start a program and return its process id; ``streams`` are its descriptors and those of this process."""
        return self._request(
            program,
            folder,
            streams,
            environment,
            namespace=namespace,
            detached=True,
            constants=constants,
            session=session,
        )

    def _request(
        self,
        program: Program,
        folder: Path,
        streams: Mapping[int, int],
        environment: Mapping[str, str] | None,
        *,
        namespace: str | None = None,
        detached: bool = False,
        session: bool = False,
        constants: Mapping[str, object] | None = None,
    ) -> int:
        request = {
            "program": program.name,
            "option": program.option,
            "arguments": program.arguments,
            "unbuffered": program.unbuffered,
            "folder": str(folder),
            "environment": dict(os.environ if environment is None else environment),
            "namespace": namespace,
            "detached": detached,
            "session": session,
            "processors": sorted(os.sched_getaffinity(0)),
            "numbers": list(streams),
            "constants": dict(constants or {}),
            "seconds": _SECONDS,
        }
        with self._lock:
            try:
                socket.send_fds(self.channel, [json.dumps(request).encode()], list(streams.values()))
                return int(self.channel.recv(100))
            except TimeoutError:
                # The next request would take the answer to this one for its own.
                _server.cache_clear()
                self.process.kill()
                self.process.wait()
                raise


@cache
def _server(process: int) -> ForkServer:
    """Start the server of this process; one that was forked from it has its own."""
    server = ForkServer()
    atexit.register(server.channel.close)
    return server


def fork_server() -> ForkServer:
    """Return what runs commands for this process."""
    return _server(os.getpid())


class ForkedProcess(subprocess.Popen[str]):
    """A process of a :class:`Program`, which the fork server starts in a network namespace."""

    def __init__(
        self, program: Program, namespace: str | None, constants: Mapping[str, object], **options: Any
    ) -> None:
        self._program = program
        self._namespace = namespace
        self._constants = constants
        super().__init__([program.name, *program.arguments], **options)

    def _execute_child(self, *words: Any) -> None:
        """Start the program where the base class forks and executes it."""
        pass_fds, folder, environment = words[4:7]
        reading, _, _, writing, _, complaining = pipes = words[10:16]
        start_new_session = bool(words[21])
        standard = {
            number: number if mine == -1 else mine for number, mine in enumerate((reading, writing, complaining))
        }
        self.pid = fork_server().start(
            self._program,
            Path(folder or Path.cwd()),
            standard | {each: each for each in pass_fds},
            environment,
            self._namespace,
            self._constants,
            start_new_session,
        )
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def start(
    words: Sequence[object],
    namespace: str | None = None,
    constants: Mapping[str, object] = MappingProxyType({}),
    **options: Any,
) -> subprocess.Popen[str] | None:
    """Start a command line as a fork, or return None if it is not a Python program or has unusual options.

    ``constants`` are replaced in the new process, by their dotted names.
    """
    program = Program.of(words)
    if program is None or not options.keys() <= _POSSIBLE:
        return None
    return ForkedProcess(program, namespace, constants, **options)


@contextmanager
def program(text: str, *words: object, namespace: str | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the text of a program, and has printed that it is ready; its input ends with the ``with``."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    process = start([sys.executable, "-c", text, *words], namespace, **pipes)
    assert process is not None and process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
