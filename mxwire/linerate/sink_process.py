"""SinkProcess: a sink on another interface of this machine, as a process of its own."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes

_PATIENCE: Final = 10.0
"""Seconds to wait for the end of the process."""
_SET_DEATH_SIGNAL: Final = 1
"""Option of prctl(2)."""


class SinkProcess:
    """Runs ``mxwire linerate sink`` on ``interface``, like ``veth1`` or ``NAMESPACE/veth1``, until it is closed.

    A process because both sides need a CPU each; it ends with this one, whatever the reason. ``more`` are further
    options of the command. Raises :class:`~mxwire.errors.MxwireError` with the error of the sink if it cannot start.
    """

    def __init__(self, interface: str, *, cpu: int | None = None, more: Sequence[str] = ()) -> None:
        namespace, slash, name = interface.rpartition("/")
        words = [sys.executable, "-m", "mxwire", "linerate", "sink", "-i", name, "--json"]
        words += ["--with-parent", str(os.getpid()), *more]
        words += ["--netns", namespace] if slash else []
        words += ["--cpu", str(cpu)] if cpu is not None else []
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH", ""))))
        # In a session of its own: Ctrl-C must not end the sink before the results were exchanged.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        try:
            assert self._process.stdout is not None
            self.about: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (ValueError, KeyboardInterrupt) as error:
            text = self._end()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise MxwireError(
                f"--to {interface}: {text.removeprefix('mxwire: ') or 'the sink did not start'}"
            ) from None

    @property
    def address(self) -> bytes:
        """Ethernet address of the sink."""
        return mac_bytes(self.about["address"])

    def _end(self) -> str:
        """End the process, and return its errors."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            _, errors = self._process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, errors = self._process.communicate()
        return errors.strip().rpartition("\n")[2]

    def close(self) -> None:
        """End the sink; closing it again does nothing."""
        self._end()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the sink."""
        self.close()


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process by SIGTERM when its parent, of that number, ends; or now, if it has ended."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
