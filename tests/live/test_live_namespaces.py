"""The machines for tests are real enough, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .namespaces import Laboratory, Port, sweep

ROOT = Path(__file__).parents[2]


def names() -> set[str]:
    """The namespaces that there are."""
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


def test_machines_see_only_their_own_interfaces(cable: tuple[Port, Port]) -> None:
    for port in cable:
        seen = port.namespace.run(sys.executable, "-c", "import socket; print(*dict(socket.if_nameindex()).values())")
        assert set(seen.stdout.split()) == {"lo", port.interface}


def test_programs_in_a_machine_end_with_it(laboratory: Laboratory) -> None:
    sleeper = laboratory.machine().start("sleep", "1000")
    assert sleeper.poll() is None
    # It is in its machine once ``ip`` has become it.
    while "sleep" not in Path(f"/proc/{sleeper.pid}/comm").read_text():
        assert sleeper.poll() is None
    laboratory.close()
    assert sleeper.wait(10) == -signal.SIGKILL
    sleeper.communicate()


def test_nothing_is_left_even_by_a_test_that_fails(_namespaces_work: None) -> None:
    with pytest.raises(RuntimeError, match="on purpose"), Laboratory() as laboratory:
        made = {port.namespace.name for port in laboratory.pair()}
        assert made <= names()
        raise RuntimeError("on purpose")
    assert not made & names()


def test_remains_of_killed_runs_are_swept_up(_namespaces_work: None) -> None:
    program = (
        "import os; from tests.live.namespaces import Laboratory; lab = Laboratory(); "
        "print(lab.machine().name, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    left = killed.stdout.strip()
    assert left in names()
    sweep()
    assert left not in names()
