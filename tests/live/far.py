"""Hosts in another process, which a test uses as if they were its own: what is called here is done there."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from typing import Any

from mxwire.protocol import Status

from .commands import LONGEST, start_module
from .namespaces import Port


@dataclass(frozen=True)
class Place:
    """The name of an object of the other process that cannot be transferred."""

    number: int


@dataclass(frozen=True)
class Arrived:
    """A message that has arrived there."""

    content: bytes
    match_info: int
    status: Status
    partner: str
    """The host that sent it, like ``alpha:0``."""

    def __bytes__(self) -> bytes:
        return self.content


@dataclass(frozen=True)
class Found:
    """A message that waits there for a receive."""

    match_info: int
    length: int


@dataclass(frozen=True)
class Failed:
    """A call that has raised an error there."""

    traceback: str


class Far:
    """A host, endpoint, partner or request of the other process. It has the methods that it has there."""

    def __init__(self, process: FarProcess, place: Place) -> None:
        self.process = process
        self.place = place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self.process.call, self, name)

    def read(self, name: str) -> Any:
        """An attribute that is not a method."""
        return self.process.call(self, name)


class FarProcess:
    """A process in the namespace of a port that makes the calls requested of it, until it is closed."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._pipe, theirs = Pipe()
        with theirs:
            self._process = start_module(
                *(port, "tests.live.far_process", "--pipe", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdout=self._output,
                stderr=subprocess.STDOUT,
            )

    def open_host(self, name: str, **options: Any) -> Far:
        """A host on the port; see :func:`live.hosts.host_on`."""
        host: Far = self.call(None, "host_on", self.port.interface, name, **options)
        return host

    def call(self, target: Far | None, name: str, *arguments: Any, **options: Any) -> Any:
        """The result there of a method, an attribute, or without a target a function of ``live.hosts``."""
        place = None if target is None else target.place
        try:
            self._pipe.send((place, name, _sent(arguments), _sent(options)))
            if not self._pipe.poll(LONGEST):
                self._process.kill()
                self._process.wait()
                raise AssertionError(f"{name} has not ended within {LONGEST:g} s: {self._said()}")
            answer = self._pipe.recv()
        except (EOFError, OSError):
            code = self._process.wait(LONGEST)
            raise AssertionError(f"the other process ended with code {code} in {name}: {self._said()}") from None
        assert not isinstance(answer, Failed), f"in the other process: {answer.traceback}"
        return self._received(answer)

    def signal(self, which: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(which)

    def close(self) -> None:
        """End the process, which must not have printed any errors."""
        self._pipe.close()  # which ends it
        try:
            code = self._process.wait(LONGEST)
        finally:
            self._process.kill()
            self._process.wait()
        with self._output:
            output = self._said()
        assert not (code or output), f"the other process ended with code {code}: {output}"

    def _received(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._received(each) for each in value]
        return Far(self, value) if isinstance(value, Place) else value

    def _said(self) -> str:
        self._output.seek(0)
        return self._output.read()


def _sent(value: Any) -> Any:
    """Arguments as they go to the other process."""
    match value:
        case Far():
            return value.place
        case tuple() | list():
            return [_sent(each) for each in value]
        case dict():
            return {name: _sent(each) for name, each in value.items()}
    return value
