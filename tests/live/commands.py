"""The commands as processes in namespaces: started, watched, ended."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .namespaces import Port

CLI = str(Path(__file__).parents[2] / "cli.py")
PROGRAM = (sys.executable, "-u", CLI)
"""This mxwire."""
LONGEST = 60.0
INTERRUPTED = 130


class Running:
    """A command that keeps running; its output is read as it arrives."""

    def __init__(self, port: Port, *arguments: str, program: Sequence[str] = PROGRAM) -> None:
        name, *rest = arguments
        self.process = port.namespace.start(*program, *name.split(), "-i", port.interface, *rest)
        self.output: list[str] = []
        self.complained: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        assert self.process.stdout is not None and self.process.stderr is not None
        self._readers = [
            self._reader(self.process.stdout, self.output),
            self._reader(self.process.stderr, self.complained),
        ]

    def _reader(self, stream: IO[str], kept: list[str]) -> threading.Thread:
        def read() -> None:
            for line in stream:
                kept.append(line)
                self._lines.put(line)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread

    def until(self, words: str) -> str:
        """Wait for a line with these words."""
        end = time.monotonic() + LONGEST
        while (left := end - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=min(left, 0.5))
            except queue.Empty:
                assert self.process.poll() is None or not self._lines.empty(), self._all()
                continue
            if words in line:
                return line
        raise AssertionError(f"{words!r} was not said: {self._all()}")

    def _all(self) -> str:
        return "".join([*self.output, *self.complained])

    def end(self, how: signal.Signals | None = signal.SIGINT) -> int:
        """Signal it, unless it ends by itself, and wait for its end; returns its exit code."""
        if how is not None and self.process.poll() is None:
            self.process.send_signal(how)
        try:
            code = self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end: {self._all()}") from None
        for each in self._readers:
            each.join(LONGEST)
        assert "Traceback" not in self._all(), self._all()
        return code

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Its output, as JSON."""
        return [json.loads(line) for line in self.output]


@contextmanager
def running(port: Port, *arguments: str, program: Sequence[str] = PROGRAM) -> Iterator[Running]:
    """A command that is there for a while; the interface is put behind its name."""
    command = Running(port, *arguments, program=program)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.kill()
        command.process.wait()


def mxwire(port: Port, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; the interface is put behind its name."""
    name, *rest = arguments
    return port.namespace.run(sys.executable, CLI, name, "-i", port.interface, *rest, timeout=LONGEST, **options)
