"""Two processes on one interface look like one host to another machine."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mxwire.host import Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.protocol.counters import Counter

ROOT = Path(__file__).parents[2]
PATIENCE = 30.0

ECHO = """
import sys
from mxwire.host import Host
with Host.open(sys.argv[1], name="alpha") as host:
    endpoint = host.open_endpoint(int(sys.argv[2]))
    print("ready", flush=True)
    while True:
        message = endpoint.receive()
        endpoint.send(message.partner, message.data, message.match_info)
"""


@pytest.fixture
def echoing(jumbo_cable):
    """Starts echoes as processes on the first end of a cable; gives them and the second end."""
    near, far = jumbo_cable
    running = []

    def start(number: int) -> subprocess.Popen[str]:
        process = near.namespace.start(sys.executable, "-c", ECHO, near.interface, str(number), cwd=ROOT)
        running.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    yield start, far
    for each in running:
        each.kill()
        each.communicate()


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
