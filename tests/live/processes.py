"""Peers and hosts as processes in namespaces, and their output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .namespaces import Port

TESTS = Path(__file__).parents[1]
LONGEST_S = 120


@dataclass
class Story:
    """The exit code of a process, and the lines that it has printed."""

    code: int
    entries: list[dict[str, Any]]
    complaints: str

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.entries if each.get("event") == event]

    @property
    def deviations(self) -> list[dict[str, Any]]:
        return [each for each in self.entries if "deviation" in each]


@dataclass
class PeerProcess:
    """A running peer or host."""

    process: subprocess.Popen[str]

    @property
    def ready(self) -> dict[str, Any]:
        """Its first line, printed when it listens."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate(timeout=LONGEST_S)[1]
        entry: dict[str, Any] = json.loads(line)
        return entry

    def story(self) -> Story:
        """Its output until it ends."""
        said, complaints = self.process.communicate(timeout=LONGEST_S)
        return Story(self.process.returncode, [json.loads(line) for line in said.splitlines()], complaints)


def start_peer(port: Port, *options: str) -> PeerProcess:
    """Start the peer with further options; it must be read until its end."""
    return start(port, "tests.live.independent.peer", *options)


def start_host(port: Port, *options: str) -> PeerProcess:
    """The same of a live host of mxwire."""
    return start(port, "tests.live.host_process", *options)


def run_mxwire(port: Port, *arguments: str) -> list[dict[str, Any]]:
    """The JSON output of a command, which must succeed."""
    done = port.namespace.run(sys.executable, str(TESTS.parent / "cli.py"), *arguments, timeout=LONGEST_S)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def start_mxwire(port: Port, *arguments: str) -> PeerProcess:
    """Start a command that runs until it is interrupted."""
    return PeerProcess(port.namespace.start(sys.executable, str(TESTS.parent / "cli.py"), *arguments))


def start(port: Port, module: str, *options: str, **how: Any) -> PeerProcess:
    """Start a module of the tests that takes the interface as an option; ``how`` is for ``subprocess.Popen``."""
    command = [sys.executable, "-m", module, "--interface", port.interface, *options]
    # The package need not be installed: the root of the repository is where it lies.
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent)}
    return PeerProcess(port.namespace.start(*command, cwd=TESTS.parent, env=environment, **how))
