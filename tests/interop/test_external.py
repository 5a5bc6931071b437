"""Programs on external hosts: started, waited for, and ended with all that they have started."""

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from mxwire.interop.configuration import ExternalHost, ProgramDescription
from mxwire.interop.external_programs import ExternalPrograms, ProgramError, started
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.roles import EndpointAddress, UnplayableCase
from mxwire.wire.numbers import DEFAULT_KEY
from tests.waiting import until

PYTHON = sys.executable


def external(*programs: ProgramDescription) -> ExternalHost:
    ours = implementation_by_name("open-mx-1.5")
    return ExternalHost(ours, ours, "x:0", None, {each.role: each for each in programs})


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] == "Z"
    except OSError:
        return True


def script(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    return f"{PYTHON} -u {path}"


def test_a_program_is_ready_when_it_prints_so_and_ends_with_its_children(tmp_path):
    start = script(
        tmp_path,
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        "print('child', child.pid)\n"
        "print('ready to go', end='', flush=True)\n"
        "time.sleep(1000)\n",
    )
    programs = ExternalPrograms(external(ProgramDescription("echo", "command", start, ready="ready to go", endpoint=3)))
    assert programs.start("echo") == EndpointAddress("x:0", 3, DEFAULT_KEY)
    running = programs._running["echo"]
    assert programs.start("echo") == EndpointAddress("x:0", 3, DEFAULT_KEY)
    assert programs._running["echo"] is running, "it was started twice"
    child = int(next(line for line in running._output if line.startswith("child")).split()[1])
    assert not gone(child)
    programs.close()
    until(lambda: gone(child))
    assert running._child.process.returncode == -signal.SIGINT or running._child.process.returncode == 1
    with pytest.raises(UnplayableCase, match=r"no program of open-mx-1\.5 is configured for 'perf'"):
        programs.start("perf")


def test_one_program_at_an_endpoint_makes_room_for_another(tmp_path):
    start = script(tmp_path, "import time\ntime.sleep(1000)\n")
    programs = ExternalPrograms(
        external(*(ProgramDescription(role, "command", start, settle=0) for role in ("echo", "perf")))
    )
    try:
        programs.start("echo")
        first = programs._running["echo"]
        programs.start("perf")
        assert not first.alive and set(programs._running) == {"perf"}
    finally:
        programs.close()


def test_a_program_is_restarted_before_it_is_used_again_after_a_failure(tmp_path):
    start = script(tmp_path, "import time\ntime.sleep(1000)\n")
    roles = ("echo", "perf", "sink")
    described = (
        ProgramDescription(role, "command", start, settle=0, endpoint=number) for number, role in enumerate(roles)
    )
    programs = ExternalPrograms(external(*described))
    said = []
    try:
        for role in roles[:2]:
            programs.start(role, said.append)
        first, other = programs._running["echo"], programs._running["perf"]
        # The sink does not run, so there is nothing to restart.
        programs.suspect(("echo", "sink"), "a/b/size-tiny/none did not succeed")
        assert not first.alive, "it would repeat its unfinished transfers during the next cells"
        assert other.alive and "echo" not in programs._running, "it is restarted only when a case wants it"
        assert programs.start("echo", said.append) == EndpointAddress("x:0", 0, DEFAULT_KEY)
        assert not first.alive and programs._running["echo"].alive
        programs.start("perf", said.append)
        assert programs._running["perf"] is other
        programs.start("sink", said.append)
        again = programs._running["echo"]
        programs.start("echo", said.append)
        assert programs._running["echo"] is again, "it was restarted twice"
    finally:
        programs.close()
    assert said == [f"open-mx-1.5: {start!r} was restarted: a/b/size-tiny/none did not succeed"]


def test_a_program_that_has_ended_by_itself_is_restarted_and_reported():
    programs = ExternalPrograms(external(ProgramDescription("perf", "command", "sleep 1000", settle=0)))
    said = []
    try:
        programs.start("perf", said.append)
        first = programs._running["perf"]
        os.killpg(first._child.process.pid, signal.SIGKILL)
        until(lambda: not first.alive)
        programs.start("perf", said.append)
        assert programs._running["perf"].alive
    finally:
        programs.close()
    assert said == ["open-mx-1.5: 'sleep 1000' was restarted: it had ended by itself"]


def test_a_restart_is_tried_again_where_the_host_is_still_busy_with_the_one_before(tmp_path):
    """Over ssh it is not visible when the endpoint of the program before is closed."""
    count = tmp_path / "count"
    start = script(
        tmp_path,
        "import pathlib, sys, time\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "count.write_text(count.read_text() + 'x' if count.exists() else 'x')\n"
        "if count.read_text() == 'xx': sys.exit('the endpoint is busy')\n"
        "print('ready', flush=True)\n"
        "time.sleep(1000)\n",
    )
    programs = ExternalPrograms(external(ProgramDescription("perf", "command", start, ready="ready")))
    try:
        programs.start("perf")
        programs.restart("perf", "it was asked for")
        assert programs._running["perf"].alive
        assert count.read_text() == "xxx"
    finally:
        programs.close()


def test_the_command_that_stops_it_is_run(tmp_path):
    mark = tmp_path / "stopped"
    start = script(
        tmp_path, f"import time, pathlib\nwhile not pathlib.Path({str(mark)!r}).exists(): time.sleep(0.01)\n"
    )
    running = started(ProgramDescription("echo", "command", start, stop=f"touch {mark}", settle=0), "x")
    running.end()
    assert mark.exists()


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (
            ProgramDescription("echo", "command", "/no/such/program"),
            "x: /no/such/program: cannot be started: No such file",
        ),
        (ProgramDescription("echo", "command", "'"), 'x: "\'": No closing quotation'),
        (
            ProgramDescription("echo", "command", "sh -c 'echo alas; exit 3'", settle=30),
            "ended at once with status 3: alas",
        ),
        (
            ProgramDescription("echo", "command", "true", settle=30),
            "'true' ended at once with status 0: without output",
        ),
        (
            ProgramDescription("echo", "command", "sh -c 'echo hello; sleep 100'", ready="never", patience=2),
            "did not print 'never' within 2 s, only 'hello'",
        ),
        (
            ProgramDescription("echo", "hand", "press the button"),
            "must be done by hand, but there is no terminal to ask on",
        ),
        (
            ProgramDescription("echo", "serial", "x", target="/no/such/tty"),
            "x: /no/such/tty: cannot be opened: No such file",
        ),
    ],
)
def test_a_program_that_does_not_start_is_reported(program, why, monkeypatch):
    with open(os.devnull) as nobody:  # noqa: PTH123 - a stream for standard input
        monkeypatch.setattr(sys, "stdin", nobody)
        with pytest.raises(ProgramError) as error:
            started(program, "x")
    assert why in str(error.value)


def test_a_program_is_typed_into_a_console_and_interrupted():
    ours, theirs = pty.openpty()
    import tty

    tty.setraw(theirs)
    heard = bytearray()
    leave = threading.Event()

    def console() -> None:
        while not leave.is_set():
            try:
                data = os.read(ours, 100)
            except OSError:
                return
            heard.extend(data)
            if data.endswith(b"\r"):
                os.write(ours, data + b"up and running\r\n")

    reader = threading.Thread(target=console, daemon=True)
    reader.start()
    program = ProgramDescription("perf", "serial", "omx_perf -s", target=os.ttyname(theirs), ready="running")
    running = started(program, "x")
    running.end()
    until(lambda: bytes(heard) == b"omx_perf -s\r\x03")
    leave.set()
    os.close(theirs)
    os.close(ours)


def test_a_console_that_only_echoes_its_input_is_not_ready():
    ours, theirs = pty.openpty()
    program = ProgramDescription("perf", "serial", "say ready", target=os.ttyname(theirs), ready="ready", patience=0.3)
    try:
        with pytest.raises(ProgramError, match=r"did not print 'ready' within 0\.3 s"):
            started(program, "x")
    finally:
        os.close(theirs)
        os.close(ours)


def test_a_person_is_asked(monkeypatch, capsys):
    class Terminal:
        asked = 0

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            self.asked += 1
            return "\n"

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", terminal)
    running = started(ProgramDescription("echo", "hand", "start the echo", stop="end the echo"), "node7")
    running.end()
    assert terminal.asked == 2
    assert "node7: please start the echo, then press Enter: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stop", "asked"), [("end the echo", "end the echo"), (None, "end the program (start the echo)")]
)
def test_the_user_is_prompted_to_restart_a_program_with_the_reason(monkeypatch, capsys, stop, asked):
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return "\n"

    monkeypatch.setattr(sys, "stdin", Terminal())
    programs = ExternalPrograms(external(ProgramDescription("echo", "hand", "start the echo", stop=stop)))
    said = []
    programs.start("echo")
    capsys.readouterr()
    programs.suspect(("echo",), "a/b/stream/none did not succeed")
    programs.start("echo", said.append)
    assert capsys.readouterr().err == (
        f"open-mx-1.5: a program must be restarted, because a/b/stream/none did not succeed: please {asked}, "
        "then press Enter: open-mx-1.5: please start the echo, then press Enter: "
    )
    assert len(said) == 1
    programs.close()


def test_a_console_gets_the_next_program_when_the_one_before_has_ended():
    """A host takes a while to end a program; what that prints is not taken for the readiness of the next one."""
    ours, theirs = pty.openpty()
    import tty

    tty.setraw(theirs)
    heard: list[tuple[bytes, float]] = []
    leave = threading.Event()

    def console() -> None:
        line = b""
        while not leave.is_set():
            try:
                line += os.read(ours, 100)
            except OSError:
                return
            if line.endswith((b"\r", b"\x03")):
                heard.append((line, time.monotonic()))
                if line == b"\x03":
                    time.sleep(0.2)
                    ended.append(time.monotonic())
                os.write(ours, b"measured, and now running\r\n# " if line == b"\x03" else b"up and running\r\n")
                line = b""

    ended: list[float] = []
    reader = threading.Thread(target=console, daemon=True)
    reader.start()
    described = ProgramDescription("perf", "serial", "omx_perf -s", target=os.ttyname(theirs), ready="running")
    programs = ExternalPrograms(external(described))
    programs.start("perf")
    programs.suspect(("perf",), "a/b/perf/none did not succeed")
    programs.start("perf")
    programs.close()
    assert [line for line, _ in heard] == [b"omx_perf -s\r", b"\x03"] * 2
    assert heard[2][1] > ended[0]
    leave.set()
    os.close(theirs)
    os.close(ours)


def test_ssh_is_called_without_asking_for_passwords(monkeypatch, tmp_path):
    fake = tmp_path / "ssh"
    fake.write_text('#!/bin/sh\necho "called $*"\nsleep 1000\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    running = started(ProgramDescription("perf", "ssh", "omx_perf -s", target="root@node7", ready="called"), "node7")
    try:
        assert running._output[-1] == "called -tt -o BatchMode=yes -o ConnectTimeout=10 root@node7 omx_perf -s"
    finally:
        running.end()
