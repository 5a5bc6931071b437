"""The machines for tests are real enough, and leave nothing behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mxwire.lab import namespaces

from .namespaces import Laboratory, Port

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


def test_remains_of_killed_runs_are_removed(_namespaces_work: None) -> None:
    program = (
        "import os; from tests.live.namespaces import Laboratory; lab = Laboratory(); "
        "print(lab.machine().name, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    left = killed.stdout.strip()
    assert left
    # Another process of the tests may remove it at the same time.
    namespaces.remove_leftovers()
    assert left not in names()


def test_only_namespaces_of_processes_that_have_ended_are_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait(60)
    monkeypatch.setattr(namespaces, "_FOLDER", tmp_path)
    monkeypatch.setattr(namespaces.Namespace, "remove", lambda namespace: (tmp_path / namespace.name).unlink())
    left = [f"mxwire-bench-{ended.pid}-1-a", f"mxwire-bench-{ended.pid}-1-b", f"mxwire-test-{ended.pid}-12"]
    locked = f"mxwire-bench-{ended.pid}-2-a"
    others = [f"mxwire-left-{ended.pid}", f"mxwire-bench-{ended.pid}-x", f"bench-{ended.pid}-1-a", "mxwire-left"]
    kept = {locked, f"mxwire-test-{os.getppid()}-1-a", *others}
    for name in (*left, *kept):
        (tmp_path / name).touch()
    with (tmp_path / locked).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        namespaces.remove_leftovers()
        assert {each.name for each in tmp_path.iterdir()} == kept
        assert caplog.messages == ["3 network namespaces of killed processes removed"]
    namespaces.remove_leftovers()
    assert {each.name for each in tmp_path.iterdir()} == kept - {locked}
    assert caplog.messages[1:] == ["1 network namespace of killed processes removed"]
    namespaces.remove_leftovers()
    assert len(caplog.messages) == 2
