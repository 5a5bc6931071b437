"""Programs in namespaces: commands of mxwire and modules of the tests, started, watched, ended."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from tests.cli.support import Run
from tests.forked import ROOT

from .namespaces import Port

CLI = str(ROOT / "cli.py")
PROGRAM = (sys.executable, "-u", CLI)
"""This mxwire."""
LONGEST = 120.0
"""Seconds: several times what any takes, as a slow machine must not fail a test."""
INTERRUPTED = 130


class Running:
    """A program that keeps running; its output is read as it arrives."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.output: list[str] = []
        self.complained: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        assert process.stderr is not None
        self._readers = [self._reader(process.stderr, self.complained)]
        if process.stdout is not None:
            self._readers.append(self._reader(process.stdout, self.output))

    def _reader(self, stream: IO[str], kept: list[str]) -> threading.Thread:
        def read() -> None:
            with stream:
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

    def finish(self, how: signal.Signals | None = None) -> Run:
        """Signal it, unless it ends by itself, and wait for its end."""
        if how is not None and self.process.poll() is None:
            self.process.send_signal(how)
        try:
            code = self.process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end: {self._all()}") from None
        for each in self._readers:
            each.join(LONGEST)
        assert "Traceback" not in self._all(), self._all()
        return Run(code, "".join(self.output), "".join(self.complained))

    def end(self, how: signal.Signals | None = signal.SIGINT) -> int:
        """The same; returns its exit code."""
        return self.finish(how).code

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Its output so far, as JSON."""
        return Run(0, "".join(self.output), "").objects


def start(port: Port, *arguments: object, program: Sequence[str] = PROGRAM, **options: Any) -> Running:
    """Start a command; the interface is put behind its name."""
    return Running(port.namespace.start(*program, *_words(port, *arguments), **options))


@contextmanager
def running(port: Port, *arguments: object, program: Sequence[str] = PROGRAM, **options: Any) -> Iterator[Running]:
    """The same command, which is there for a while."""
    command = start(port, *arguments, program=program, **options)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.kill()
        command.process.wait()


def mxwire(port: Port, *arguments: object, **options: Any) -> Run:
    """Run a command to its end; the interface is put behind its name. A traceback is always a failure."""
    done = port.namespace.run(sys.executable, CLI, *_words(port, *arguments), timeout=LONGEST, **options)
    assert "Traceback" not in done.stderr, done.stderr
    return Run(done.returncode, done.stdout, done.stderr)


def _words(port: Port, name: object, *rest: object) -> list[str]:
    return [*str(name).split(), "-i", port.interface, *map(str, rest)]


def start_peer(port: Port, *options: str) -> Running:
    """Start the independent peer."""
    return Running(start_module(port, "tests.live.independent.peer", *options))


def start_module(port: Port, module: str, *options: str, **how: Any) -> subprocess.Popen[str]:
    """Start a module of the tests that takes the interface as an option; ``how`` is for ``subprocess.Popen``."""
    command = [sys.executable, "-u", "-m", module, "--interface", port.interface, *options]
    # The package need not be installed: the root of the repository is where it lies.
    return port.namespace.start(*command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, **how)
