"""SinkProcess: a sink on another interface of this machine, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.lab.child import ChildEndedError, ChildProcess

_PATIENCE: Final = 10.0
"""Seconds to wait for the end of the process."""


class SinkProcess:
    """Runs ``mxwire linerate sink`` on ``interface``, like ``veth1`` or ``NAMESPACE/veth1``, until it is closed.

    It is a separate process because each side needs a CPU; it ends with this process in any case. ``more`` are further
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
        self._child = ChildProcess(
            words, environment={"PYTHONPATH": path}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            self.about: dict[str, Any] = json.loads(self._child.read_line(None) or b"")
        except (ValueError, ChildEndedError):
            text = self._end().removeprefix("mxwire: ") or "the sink did not start"
            raise MxwireError(f"--to {interface}: {text}") from None
        except KeyboardInterrupt:
            self._end()
            raise

    @property
    def address(self) -> bytes:
        """Ethernet address of the sink."""
        return mac_bytes(self.about["address"])

    def _end(self) -> str:
        """End the process, and return its errors."""
        return self._child.end(signal.SIGTERM, _PATIENCE)

    def close(self) -> None:
        """End the sink; closing it again does nothing."""
        self._end()


def names_interface(target: str | None) -> bool:
    """Return True if the other side is an interface of this machine, not an Ethernet address."""
    if target is None:
        return False
    try:
        mac_bytes(target)
    except MxwireError:
        return True
    return False


def sink_address(
    target: str, interface: str, stack: ExitStack, *, cpu: int | None = None, more: Sequence[str] = ()
) -> bytes:
    """Return the address of the other side; a sink on an interface of this machine is started first, in ``stack``.

    ``cpu`` and ``more`` are those of :class:`SinkProcess`. Raises :class:`~mxwire.errors.MxwireError` if ``target`` is
    the ``interface`` that sends, or the sink cannot start.
    """
    if not names_interface(target):
        return mac_bytes(target)
    if target == interface:
        raise MxwireError(f"--to {target}: this is the interface that sends; name the one that receives")
    return stack.enter_context(closing(SinkProcess(target, cpu=cpu, more=more))).address


def two_processors(chosen: int | None) -> tuple[int | None, int | None]:
    """Return the CPUs of a generator and a sink on this machine: different ones, if there are two."""
    available = sorted(os.sched_getaffinity(0))
    near = available[0] if chosen is None and len(available) > 1 else chosen
    # On the generator's processor, a sink would lose frames whenever that one runs.
    others = [each for each in available if each != near]
    return near, (others[-1] if near is not None and others else None)
