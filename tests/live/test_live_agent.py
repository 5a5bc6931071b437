"""``mxwire agent`` on a virtual cable, with programs of two processes and a partner without an agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from random import Random

import pytest

from mxwire.host import Host, HostError
from mxwire.host.state import host_state
from mxwire.host.state_socket import read_states
from mxwire.link import LinkError
from mxwire.protocol import Status
from tests.host.agents import echo
from tests.waiting import until

from .commands import CLI, INTERRUPTED, LONGEST, mxwire, running
from .hosts import PATIENCE
from .namespaces import Port


def test_an_agent_serves_programs_until_its_end(jumbo_cable: tuple[Port, Port]) -> None:
    near, far = jumbo_cable
    with running(near, "agent", "--name", "alpha:0") as agent:
        agent.until("Ctrl-C ends it")
        with near.namespace.inside():
            host = Host.open(near.interface, agent=True)
        with far.namespace.inside():
            partner_host = Host.open(far.interface, name="beta")
        with host, partner_host:
            endpoint, remote = host.open_endpoint(3), partner_host.open_endpoint(1)
            agent.until(f"process {os.getpid()} ")
            partner = endpoint.connect("beta", 1, timeout=PATIENCE)
            for size in (0, 100, 32_768, 32_769, 1_000_000):
                content = Random(size).randbytes(size)
                send = endpoint.isend(partner, content, size)
                assert bytes(remote.receive(size, timeout=PATIENCE)) == content
                endpoint.wait(send, PATIENCE)
            with echo(near.interface, 4, name="alpha", agent="match", namespace=near.namespace.name) as program:
                state = next(each for each in read_states() if each.get("pid") == agent.process.pid)
                pids = {each["pid"]: each["endpoints"] for each in state["clients"]}
                assert pids == {os.getpid(): [3], program.pid: [4]}
                shown = subprocess.run(
                    [sys.executable, CLI, "ss"], capture_output=True, text=True, timeout=LONGEST
                ).stdout
                assert "Agent of 2 programs." in shown and str(program.pid) in shown
            agent.until(f"process {program.pid} (python) has ended")
            second = mxwire(near, "agent", "--name", "alpha:0")
            assert second.code == 2 and second.out == ""
            assert "is the agent of this interface, which has one at most: end it first" in second.err
            assert second.err.count("\n") == 1
            posted = endpoint.ireceive(7, maximum=10)
            assert agent.end(signal.SIGTERM) == INTERRUPTED
            with pytest.raises(HostError, match="endpoint closed") as error:
                endpoint.wait(posted, PATIENCE)
            assert error.value.status is Status.REMOTE_ENDPOINT_CLOSED
        with near.namespace.inside(), pytest.raises(LinkError, match="no agent of this user has the interface"):
            Host.open(near.interface, agent=True)


def test_partners_retransmit_while_there_is_no_agent(jumbo_cable: tuple[Port, Port]) -> None:
    """The agent was killed; a program that attaches to the next one is connected to and receives."""
    near, far = jumbo_cable
    with far.namespace.inside():
        partner_host = Host.open(far.interface, name="beta")
    with partner_host, partner_host.open_endpoint(1) as remote:

        def transmissions() -> int:
            [endpoint] = host_state(partner_host.core, 0.0)["endpoints"]
            return sum(each["oldest_transmissions"] for each in endpoint["partners"])

        for content in (b"before", b"afterwards"):
            with running(near, "agent", "--name", "alpha:0") as agent:
                agent.until("Ctrl-C ends it")
                with near.namespace.inside():
                    host = Host.open(near.interface, agent=True)
                with host, host.open_endpoint(3) as endpoint:
                    there = remote.connect(near.address, 3, timeout=PATIENCE)
                    remote.send(there, content, 9, timeout=PATIENCE)
                    assert bytes(endpoint.receive(9, timeout=PATIENCE)) == content
                    agent.process.kill()
                    with pytest.raises(HostError, match="endpoint closed"):
                        endpoint.receive(9, timeout=PATIENCE)
            if content == b"before":
                late = remote.issend(there, b"late", 9)
                until(lambda: transmissions() >= 3)
                assert not late.done
