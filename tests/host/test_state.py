"""The state that live hosts report through their sockets, and the client that reads it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mxwire.host import AsyncHost, Host
from mxwire.host.sharing import MachineSharing
from mxwire.host.state_socket import StateServer, read_states
from mxwire.link import MemoryNetwork
from mxwire.link.runtime import runtime_folder
from tests.waiting import until

from .conftest import PATIENCE
from .test_sharing import other_process

INTERFACE = f"state{os.getpid()}"


pytestmark = pytest.mark.usefixtures("runtime")


def sockets(folder: Path) -> list[Path]:
    return list(folder.glob("*.sock"))


def shared(part: str) -> MachineSharing:
    return MachineSharing([f"{INTERFACE}{part}"])


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts, of which alpha's endpoint 0 is connected to beta's endpoint 3."""
    with ExitStack() as stack:
        network = MemoryNetwork()
        one, two = network.attach("a"), network.attach("b")
        alpha = stack.enter_context(Host(one, name="alpha", peers={two.address: "beta:0"}, sharing=shared("a")))
        beta = stack.enter_context(Host(two, name="beta", sharing=shared("b")))
        beta.open_endpoint(3)
        alpha.open_endpoint(0).connect("beta", 3, timeout=PATIENCE)
        yield alpha, beta


def test_a_host_reports_its_endpoints_partners_and_queues(hosts):
    alpha, _beta = hosts
    (endpoint,) = alpha._endpoints.values()
    (partner,) = endpoint.engine.partners.values()
    endpoint.ireceive(1, maximum=10)
    endpoint.isend(partner, b"x" * 100)

    def unexpected() -> Any:
        found = {each["host"]: each for each in read_states()}
        return found["beta:0"]["endpoints"][0]["unexpected_bytes"] == 100 and found

    found = until(unexpected)
    one, two = found["alpha:0"], found["beta:0"]
    assert one["pid"] == os.getpid() and one["dialect"] == "mxoe" and one["peers"] == 1
    assert one["interfaces"][0]["interface"] == "a" and one["interfaces"][0]["counters"]["Send Small"] == 1
    (ours,) = one["endpoints"]
    assert (ours["endpoint"], ours["posted_receives"], ours["session"]) == (0, 1, endpoint.engine.session)
    (known,) = ours["partners"]
    assert (known["name"], known["endpoint"], known["tx_next"], known["rx_next"]) == ("beta:0", 3, 2, 1)
    assert known["unacked"] + known["window"] == alpha.core.node.profile.outstanding_maximum
    (theirs,) = two["endpoints"]
    assert theirs["unexpected_messages"] == 1
    assert theirs["partners"][0]["rx_next"] == 2


def test_an_unacked_message_shows_its_transmissions_and_its_timer(hosts):
    alpha, beta = hosts
    beta.core.links[0].up = False
    (endpoint,) = alpha._endpoints.values()
    endpoint.isend(next(iter(endpoint.engine.partners.values())), b"x" * 40_000)

    def waiting() -> Any:
        ours = next(each for each in read_states() if each["host"] == "alpha:0")["endpoints"][0]
        return ours["partners"][0]["unacked"] == 1 and ours

    ours = until(waiting)
    (partner,) = ours["partners"]
    assert partner["oldest_transmissions"] >= 1 and partner["large_sends"] == 1 and ours["rendezvous"] == 1
    assert 0 <= partner["oldest_retransmission_in_ns"] <= 1_000_000_000
    assert 0 <= ours["retransmission_in_ns"] <= 1_000_000_000


def test_a_socket_is_for_its_user_alone_and_goes_with_its_host(hosts, runtime):
    found = sockets(runtime)
    assert stat.S_IMODE(runtime.stat().st_mode) == 0o700
    assert len(found) == 2
    assert all(stat.S_ISSOCK(each.stat().st_mode) and stat.S_IMODE(each.stat().st_mode) == 0o600 for each in found)
    hosts[0].close()
    assert [each["host"] for each in read_states()] == ["beta:0"]
    hosts[1].close()
    assert list(runtime.iterdir()) == [] and list(read_states()) == []


def test_a_host_on_links_of_its_process_alone_has_no_socket(runtime):
    with Host(MemoryNetwork().attach()):
        assert not runtime.exists() and list(read_states()) == []


def test_an_asyncio_host_reports_its_state():
    async def run() -> Any:
        async with AsyncHost(MemoryNetwork().attach("a"), name="gamma", sharing=shared("a")) as host:
            host.open_endpoint(2)
            return await asyncio.to_thread(lambda: list(read_states()))

    (found,) = asyncio.run(run())
    assert found["host"] == "gamma:0" and found["endpoints"][0]["endpoint"] == 2


def test_the_socket_of_a_killed_process_is_removed(runtime):
    body = f"""
    from mxwire.host import Host
    from mxwire.host.sharing import MachineSharing
    from mxwire.link import MemoryNetwork
    host = Host(MemoryNetwork().attach(), name="delta", sharing=MachineSharing(["{INTERFACE}d"]))
    """
    with other_process(body) as process:
        assert [each["pid"] for each in read_states()] == [process.pid]
    assert len(sockets(runtime)) == 1
    assert list(read_states()) == []
    assert sockets(runtime) == []


def test_a_stopped_process_is_reported_and_keeps_its_socket(runtime, monkeypatch):
    monkeypatch.setattr("mxwire.host.state_socket._ANSWER_TIMEOUT", 0.2)
    body = f"""
    from mxwire.host import Host
    from mxwire.host.sharing import MachineSharing
    from mxwire.link import MemoryNetwork
    host = Host(MemoryNetwork().attach(), name="delta", sharing=MachineSharing(["{INTERFACE}d"]))
    """
    with other_process(body) as process:
        os.kill(process.pid, signal.SIGSTOP)
        # It answers until all its threads have stopped.
        os.waitpid(process.pid, os.WUNTRACED)
        (found,) = read_states()
        assert found == {"pid": process.pid, "error": "does not answer (timed out)"}
        os.kill(process.pid, signal.SIGCONT)
        assert until(lambda: next(iter(read_states())).get("host")) == "delta:0"


def test_hostile_clients_neither_stop_the_host_nor_other_clients(hosts, monkeypatch):
    monkeypatch.setattr("mxwire.host.state_socket._SEND_TIMEOUT", 0.1)
    alpha, _ = hosts
    assert alpha._state_server is not None
    address = str(alpha._state_server.path)
    with ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(address)
            client.settimeout(1)
            with pytest.raises((BrokenPipeError, ConnectionResetError, TimeoutError)):
                while True:
                    client.sendall(b"\xff" * 65536)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(address)
            assert until(lambda: {each.get("host") for each in read_states()} == {"alpha:0", "beta:0"})
    assert not alpha.closed


def test_a_state_is_copied_only_so_often_and_its_failure_is_an_answer():
    calls = []

    def state() -> dict[str, Any]:
        calls.append(1)
        raise RuntimeError("unforeseen")

    server = StateServer(state)
    try:
        began = time.monotonic()
        for _ in range(20):
            assert list(read_states()) == [{"pid": os.getpid(), "error": "unforeseen"}]
        assert len(calls) <= 2 + (time.monotonic() - began) / 0.05
    finally:
        server.close()
    server.close()
    assert list(read_states()) == []


def test_invalid_answers_are_reported(runtime):
    folder = runtime_folder(make=True)
    (folder / "notes.txt").write_text("")
    (folder / "x.sock").write_text("")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / f"{os.getpid()}-99.sock"))
        listener.listen()
        for answer in (b"[1]", b"{", b"\xff\xfe"):

            def serve(answer: bytes = answer) -> None:
                client, _ = listener.accept()
                with client:
                    client.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            (found,) = read_states()
            thread.join()
            assert found["pid"] == os.getpid() and "does not answer" in found["error"]


@pytest.mark.interpreted("compiled code has its own constant of the partners shown")
def test_the_record_is_bounded_with_very_many_partners(hosts, monkeypatch):
    monkeypatch.setattr("mxwire.host.state.PARTNERS_SHOWN", 5)
    alpha, _ = hosts
    (endpoint,) = alpha._endpoints.values()
    with alpha.core.section:
        for number in range(20):
            peer = alpha.core.node.add_peer(bytes([2, 9, 0, 0, 0, number]), f"n{number}:0")
            endpoint.engine.partner(peer, 0)
    (ours,) = next(each for each in read_states() if each["host"] == "alpha:0")["endpoints"]
    assert ours["partner_count"] == 21 and len(ours["partners"]) == 5
    assert json.dumps(ours)
