"""Two processes on one interface look like one host to another machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mxwire.host import Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.protocol.counters import Counter
from tests.forked import ROOT, program
from tests.host.agents import echo

from .commands import INTERRUPTED, mxwire, running, start
from .namespaces import Laboratory, Port

PATIENCE = 60.0


@pytest.fixture
def echoing(jumbo_cable: tuple[Port, Port]) -> Iterator[tuple[Callable[[int], subprocess.Popen[str]], Port]]:
    """Starts echoes as processes on the first end of a cable; gives them and the second end."""
    near, far = jumbo_cable
    with ExitStack() as stack:

        def start(number: int) -> subprocess.Popen[str]:
            return stack.enter_context(echo(near.interface, number, name="alpha", namespace=near.namespace.name))

        yield start, far


def test_both_serve_and_none_refuses_for_the_other(echoing):
    start, far = echoing
    processes = [start(number) for number in (1, 2)]
    content = bytes(range(256)) * 1000
    with far.namespace.inside():
        host = Host.open(far.interface, name="beta")
    with host:
        endpoint = host.open_endpoint()
        partners = [endpoint.connect("alpha", number, timeout=PATIENCE) for number in (1, 2)]
        for size in (0, 10, 5000, len(content)) * 3:
            for partner in partners:
                request = endpoint.isend(partner, content[:size], size)
                assert bytes(endpoint.receive(size, timeout=PATIENCE)) == content[:size]
                endpoint.wait(request, PATIENCE)
        counters = host.core.node.counters
        assert counters[Counter.RECV_NACK_LIB] == counters[Counter.DROP_BAD_PEER_INDEX] == 0
        with pytest.raises(HostError, match="endpoint closed"):
            endpoint.connect("alpha", 3, timeout=PATIENCE)
        # The first goes, and its endpoint with it; the second answers for the host from now on.
        processes[0].kill()
        processes[0].wait()
        time.sleep(0.3)
        with pytest.raises(HostError, match="endpoint closed"):
            endpoint.connect("alpha", 1, timeout=PATIENCE)
        with host.core.section:
            host.core.node.forget_names()
            host.core.transmit()
        host.wait_for_peer("alpha", PATIENCE)
        start(1)
        again = endpoint.connect("alpha", 1, timeout=PATIENCE)
        endpoint.send(again, b"back")
        assert bytes(endpoint.receive(timeout=PATIENCE)) == b"back"


def test_an_endpoint_is_taken(echoing):
    start, _ = echoing
    first = start(1)
    with pytest.raises(AssertionError):
        start(1)
    assert first.poll() is None


def test_endpoints_belong_to_the_network_namespace_of_their_interface(jumbo_cable):
    """R-LOC-03: also for a thread that has left it; the same interface name elsewhere is another interface."""
    near, far = jumbo_cable
    with near.namespace.inside(), Host.open(near.interface, name="alpha") as host:
        with far.namespace.inside():
            sharing = MachineSharing([near.interface])
            opened = host.open_endpoint(3)
            assert host.open_endpoint().number == 0
            sharing.claim(0, 3)
            sharing.close()
        other = MachineSharing([near.interface])
        try:
            assert other.elsewhere(0, 3) and other.owner(0, 3) == "another host of this process"
            with far.namespace.inside():
                assert other.path.reach(0, 3) is not None
                opened.close()
            other.claim(0, 3)
        finally:
            other.close()


@pytest.mark.rule("R-HOST-02")
def test_all_processes_query_a_nameless_host_as_one(jumbo_cable, tmp_path):
    """Otherwise each would query it every 5 s, and those that wait for a name every second."""
    near, far = jumbo_cable
    peers, recorded = tmp_path / "peers", tmp_path / "recorded.pcapng"
    silent = "02:00:00:00:00:77"
    peers.write_text(f"{silent}\n")
    options = ("--peers", str(peers), "--name", "alpha")
    with running(far, "capture", "-w", str(recorded)) as recorder:
        recorder.until("listening")
        with running(near, "serve", *options) as serving, running(near, "serve", "--endpoint", "5", *options) as other:
            for each in (serving, other):
                each.until("echo on")
            found = mxwire(near, "discover", "--duration", "6", *options)
            assert silent in found.out, found
        assert recorder.end() == INTERRUPTED
    judged = subprocess.run(
        [sys.executable, ROOT / "cli.py", "verify", recorded, "--json"], capture_output=True, text=True, check=False
    )
    (host,) = (each for each in map(json.loads, judged.stdout.splitlines()) if each["record"] == "host")
    assert "R-HOST-02" in host["rules"] and host["deviations"] == 0, judged


def test_hosts_of_another_interface_stay_there(laboratory: Laboratory):
    """Two networks of one machine have no hosts in common."""
    middle = laboratory.machine()
    near, left = laboratory.cable(middle, laboratory.machine(), ("mx0", "veth0"), 9000)
    other, right = laboratory.cable(middle, laboratory.machine(), ("mx1", "veth0"), 9000)
    with (
        running(left, "serve", "--name", "left") as one,
        running(right, "serve", "--name", "right") as two,
        running(near, "serve", "--name", "middle") as three,
    ):
        for each in (one, two, three):
            each.until("echo on")
        discovers = {each.interface: start(each, "discover", "--name", "middle") for each in (near, other)}
        shown = {interface: discover.finish().out for interface, discover in discovers.items()}
    assert "left:0" in shown["mx0"] and "right:0" not in shown["mx0"], shown
    assert "right:0" in shown["mx1"] and "left:0" not in shown["mx1"], shown


def test_an_interface_has_the_hosts_of_one_user(jumbo_cable):
    near, _ = jumbo_cable
    other = """
import ctypes, os, sys
# The capabilities stay (SECBIT_NO_SETUID_FIXUP), as those of a service do.
assert ctypes.CDLL(None).prctl(28, 4, 0, 0, 0) == 0
os.environ["MXWIRE_RUNTIME_DIR"] = sys.argv[2]
os.chown(sys.argv[2], 65534, 65534)
os.setresuid(65534, 65534, 65534)
from mxwire.host import Host
with Host.open(sys.argv[1], name="theirs") as host:
    print("ready", flush=True)
    sys.stdin.read()
"""
    with (
        tempfile.TemporaryDirectory(prefix="mx") as folder,
        program(other, near.interface, folder, namespace=near.namespace.name) as process,
    ):
        refused = mxwire(near, "serve")
        with running(near, "capture"):
            # Programs that only listen disturb no host, and are not disturbed.
            pass
    assert refused.code == 2 and refused.out == ""
    (line,) = refused.err.splitlines()
    assert f"{near.interface}: process {process.pid} (python" in line and "user 65534) has a host" in line
