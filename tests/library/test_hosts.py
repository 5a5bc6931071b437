"""Programs in C on two hosts: messages of all kinds, exits, kills, and what the rules say about their frames."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mxwire.myriexpress.build import Installation
from mxwire.myriexpress.launch import environment
from tests.cli.support import mxwire
from tests.live.namespaces import Port
from tests.live.recorder import Recorder

from .conftest import SOURCES, Compile
from .programs import ending, read_line

PAIR = SOURCES / "pair.c"
EXAMPLES = Path(__file__).parents[2] / "examples"
LONGEST = 60.0


class Machines:
    """Two machines joined by a cable, alpha and beta."""

    def __init__(self, ports: tuple[Port, Port], installation: Installation, pair: Path) -> None:
        self.ports = dict(zip(("alpha", "beta"), ports, strict=True))
        self.environment = environment(installation, os.environ)
        self.pair = pair

    def start(self, host: str, *words: str, **variables: str) -> subprocess.Popen[str]:
        port = self.ports[host]
        own = {"MXWIRE_INTERFACE": port.interface, "MXWIRE_NAME": host}
        return port.namespace.start(*words, env=self.environment | own | variables, stdin=subprocess.PIPE)

    @contextmanager
    def running(self, host: str, *words: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """A program that is killed at the end of the ``with`` block if it still runs: a Popen would wait for it."""
        with ending(self.start(host, *words, **variables)) as process:
            yield process

    @contextmanager
    def serving(self, part: str, count: int) -> Iterator[subprocess.Popen[str]]:
        """A program on alpha that is ready."""
        with self.running("alpha", str(self.pair), part, str(count)) as server:
            expect_line(server, "ready\n")
            yield server

    def play(self, part: str, *more: str, host: str = "beta", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        with self.running(host, str(self.pair), part, "alpha:0", *more, **variables) as client:
            out, errors = client.communicate(timeout=LONGEST)
            return subprocess.CompletedProcess(client.args, client.returncode, out, errors)


@pytest.fixture(scope="module")
def machines(cable: tuple[Port, Port], installation: Installation, compile_program: Compile) -> Machines:
    return Machines(cable, installation, compile_program(PAIR))


def expect_line(process: subprocess.Popen[str], line: str) -> None:
    assert read_line(process) == line


def ended(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=LONGEST)
    assert process.returncode == 0, out + errors
    return out


def all_ended(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Outputs of the processes. If one does not end in time, end them all, and fail with what each has printed."""
    limit = time.monotonic() + LONGEST
    late = []
    for number, each in enumerate(processes):
        try:
            each.wait(max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            late.append(number)
    for number in late:
        processes[number].terminate()
    results = []
    for each in processes:
        with each:
            try:
                results.append(each.communicate(timeout=5.0))
            except subprocess.TimeoutExpired:
                each.kill()
                results.append(each.communicate(timeout=LONGEST))
    report = "".join(f"process {place}: {out}{errors}\n" for place, (out, errors) in enumerate(results))
    assert not late, f"processes {late} did not end within {LONGEST:g} s\n{report}"
    assert not any(each.returncode for each in processes), report
    return [out for out, _ in results]


def outlives(client: subprocess.Popen[str], server: subprocess.Popen[str]) -> None:
    """Kill the server once the client is connected; the client must then exit with code 0."""
    expect_line(client, "connected\n")
    server.send_signal(signal.SIGKILL)
    server.wait()
    out, errors = client.communicate("\n", timeout=LONGEST)
    assert client.returncode == 0, out + errors


def succeeded(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_messages_of_all_kinds_follow_the_rules(machines: Machines, tmp_path: Path):
    """The frames of the run break no rule."""

    port = machines.ports["alpha"]
    capture = tmp_path / "run.pcap"
    with Recorder(port, capture), machines.serving("serve", 36) as server:
        succeeded(machines.play("talk"))
        ended(server)
    judged = mxwire("verify", capture)
    assert judged.code == 0, judged.out
    assert judged.out.count(" pass ") == 2 and "fail" not in judged.out


@pytest.fixture
def agent(machines: Machines) -> Iterator[None]:
    """An agent on alpha."""
    port = machines.ports["alpha"]
    words = (sys.executable, "-m", "mxwire", "agent", "-i", port.interface, "--name", "alpha")
    with ending(port.namespace.start(*words, cwd=Path(__file__).parents[2])) as process:
        try:
            expect_line(process, f"agent on {port.interface} as alpha:0, dialect mxoe; Ctrl-C ends it\n")
            yield
        finally:
            process.terminate()
            process.communicate(timeout=LONGEST)


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(("host", "progress"), [("alpha", "1"), ("beta", "1"), ("beta", "card")])
def test_a_program_that_is_attached_to_an_agent(machines: Machines, host: str, progress: str):
    """Messages of all kinds with a program on another host, and with one on the same host without the agent."""
    with machines.running("alpha", str(machines.pair), "serve", "36", MXWIRE_AGENT=progress) as server:
        expect_line(server, "ready\n")
        with machines.running(host, str(machines.pair), "talk", "alpha:0") as client:
            # Together, since a message that returns wrong may have arrived wrong, which the server reports.
            assert all_ended((client, server)) == ["", ""]


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ("1", "no agent of this user has the interface: start one (mxwire agent -i"),
        ("crad", "MXWIRE_AGENT: an agent has no progress 'crad' (did you mean card?): use match or card"),
    ],
)
def test_a_program_without_its_agent_ends_with_one_line(machines: Machines, progress: str, text: str):
    done = machines.play("talk", host="alpha", MXWIRE_AGENT=progress)
    assert done.returncode != 0 and text in done.stderr


def test_two_processes_of_one_host(machines: Machines):
    """Messages of all kinds, and those of a process that has exited."""
    with machines.serving("serve", 36) as server:
        succeeded(machines.play("talk", host="alpha"))
        ended(server)
    with machines.serving("receive", 200) as server:
        assert machines.play("leave", "200", host="alpha").returncode == 7
        assert ended(server).strip() == "200"


def test_a_killed_process_of_the_same_host(machines: Machines):
    with (
        machines.serving("serve", 1) as server,
        machines.running("alpha", str(machines.pair), "near", "alpha:0") as client,
    ):
        outlives(client, server)


def test_all_to_all(machines: Machines, compile_program: Compile):
    """Four processes on two hosts: the example."""
    program = str(compile_program(EXAMPLES / "mx_alltoall.c"))
    hosts = ("alpha", "alpha", "beta", "beta")
    names = ",".join(f"{each}:0" for each in hosts)
    processes = [machines.start(each, program, str(rank), names) for rank, each in enumerate(hosts)]
    for rank, out in enumerate(all_ended(processes)):
        assert out == f"process {rank} of 4: 0 wrong bytes of 4 messages\n"


def test_the_eleven_calls_of_netpipe(machines: Machines):
    with machines.serving("serve", 12) as server:
        succeeded(machines.play("eleven"))
        ended(server)


def test_no_message_is_lost_by_an_exit_without_finalize(machines: Machines):
    with machines.serving("receive", 200) as server:
        assert machines.play("leave", "200").returncode == 7
        assert ended(server).strip() == "200"


def test_connects_that_fail(machines: Machines):
    with machines.serving("serve", 1) as server:
        succeeded(machines.play("errors", MXWIRE_DISCOVERY="3"))
        ended(server)


def test_an_error_ends_the_program_by_default(machines: Machines):
    with machines.serving("serve", 1):
        done = machines.play("fatal")
        assert done.returncode == 255
        assert done.stderr == "MX: fatal error: mx_connect: The remote host has no endpoint of that number\n"


def test_a_killed_partner_is_abandoned(machines: Machines):
    with (
        machines.serving("serve", 1) as server,
        machines.running("beta", str(machines.pair), "lonely", "alpha:0") as client,
    ):
        outlives(client, server)


def test_an_interface_that_disappears_ends_requests(installation: Installation, compile_program: Compile, cable):
    namespace = cable[0].namespace
    namespace.ip("link", "add", "gone0", "mtu", "9000", "type", "veth", "peer", "name", "gone1")
    for name in ("gone0", "gone1"):
        namespace.ip("link", "set", name, "up")
    variables = environment(installation, os.environ) | {"MXWIRE_INTERFACE": "gone0"}
    with ending(namespace.start(str(compile_program(SOURCES / "gone.c")), env=variables)) as program:
        expect_line(program, "ready\n")
        namespace.ip("link", "del", "gone0")
        _, errors = program.communicate(timeout=LONGEST)
    assert program.returncode == 0, errors
    assert errors == "mxwire: gone0: the interface is gone\n"


def test_hello(machines: Machines, compile_program: Compile):
    """The example of the documentation, as its page shows it."""
    program = str(compile_program(EXAMPLES / "mx_hello.c"))
    with (
        machines.running("alpha", program, "alpha:0") as one,
        machines.running("beta", program, "--to", "alpha:0") as other,
    ):
        assert ended(other) == "alpha:0 answers beta:0\n"
        assert ended(one) == "beta:0: hello from beta:0\n"


@pytest.mark.parametrize(
    ("client", "placement"),
    [
        ("btl", ("alpha", "beta")),
        *((each, ("alpha", "beta", "alpha", "beta")) for each in ("btl", "mtl", "nemesis", "ch_mx", "netgauge")),
        ("bmi", ("alpha", "alpha", "beta")),
        ("netgauge", ("alpha", "alpha")),
        ("msg_loop", ("alpha",)),
    ],
)
def test_the_calls_of_a_client(
    machines: Machines, compile_program: Compile, tmp_path: Path, client: str, placement: tuple[str, ...]
):
    """In their patterns, with several ranks per host; the frames break no rule, and nothing within a host is one."""
    program = str(compile_program(SOURCES / "clients.c"))
    names = ",".join(f"{each}:0" for each in placement)
    port = machines.ports["alpha"]
    capture = tmp_path / "run.pcap"
    with Recorder(port, capture):
        ranks = [machines.start(each, program, client, str(rank), names) for rank, each in enumerate(placement)]
        outputs = [each.splitlines() for each in all_ended(ranks)]
    assert all(each[-1] == "done" for each in outputs)
    assert len({tuple(each) for each in outputs}) == 1, "the hosts report different networks"
    judged = mxwire("verify", capture)
    assert judged.code == 0, judged.out
    assert "fail" not in judged.out
