"""Agents: hosts whose endpoints belong to other processes, which are killed, stopped, hostile, or too many."""

from __future__ import annotations

import gc
import itertools
import mmap
import os
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from mxwire.errors import MxwireError
from mxwire.host import Endpoint, Host, HostClosedError, HostError
from mxwire.host.agent import Agent
from mxwire.host.sharing import MachineSharing, agent_path
from mxwire.host.state_socket import read_states
from mxwire.link import LinkError, MemoryNetwork, process_memory
from mxwire.link.local import SharedMemoryPath, make_memory
from mxwire.link.process_memory import CalledMemory, ProcessMemory
from mxwire.protocol import LocalProtocolError, Partner, Status
from mxwire.protocol.agent.records import AGENT_HEAD, AGENT_VERSION, AgentRecord
from mxwire.protocol.counters import Counter
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.report.document import Table
from mxwire.report.state import state_blocks
from tests.waiting import until

from .agents import agent_on, agent_program, echo, interface_name
from .conftest import PATIENCE


@pytest.fixture
def interface(runtime: Path) -> str:
    """A name of an interface, in a runtime folder of the test alone."""
    return interface_name("memory")


@pytest.mark.parametrize("progress", ["match", "card"])
def test_a_killed_agent_ends_all_calls_and_the_next_one_serves(interface, progress):
    """Also waits in other threads; the host of before stays closed, and a new one attaches."""
    with agent_program(interface, "alpha") as agent:
        host = Host.open(interface, agent=progress)
        with host, host.open_endpoint(1) as endpoint:
            posted = endpoint.ireceive(5, maximum=100)
            errors: list[Status] = []

            def wait() -> None:
                try:
                    endpoint.receive(6)
                except HostError as error:
                    errors.append(error.status)

            waiting = threading.Thread(target=wait)
            waiting.start()
            until(lambda: host.core.waiters)
            agent.kill()
            with pytest.raises(HostError, match="endpoint closed") as error:
                endpoint.wait(posted, PATIENCE)
            assert error.value.status is Status.REMOTE_ENDPOINT_CLOSED
            waiting.join(PATIENCE)
            assert errors == [Status.REMOTE_ENDPOINT_CLOSED]
            assert posted.status is Status.REMOTE_ENDPOINT_CLOSED
            with pytest.raises(HostClosedError, match=rf"endpoint closed: the agent of {interface} .* has ended"):
                endpoint.ireceive(7, maximum=1)
            with pytest.raises(HostClosedError, match="endpoint closed"):
                host.open_endpoint()
    with agent_program(interface, "alpha"), Host.open(interface, agent=progress) as host:
        endpoint = host.open_endpoint(1)
        endpoint.send(endpoint.own_partner, b"again", 3)
        assert bytes(endpoint.receive(3, timeout=PATIENCE)) == b"again"


@pytest.mark.parametrize(
    ("how", "progress"), [(signal.SIGKILL, "match"), (signal.SIGSTOP, "match"), (signal.SIGKILL, "card")]
)
def test_a_killed_or_stopped_program_loses_its_endpoints_and_others_continue(interface, how, progress):
    """In the middle of large messages, and with receives posted."""
    network = MemoryNetwork()
    changes = []
    with ExitStack() as stack:
        agent = stack.enter_context(agent_on(network.attach(interface), name="alpha"))
        agent._on_change = lambda client, came, reason: changes.append((client.process, came, reason))
        other = stack.enter_context(Host.open(interface, agent=True)).open_endpoint(2)
        far = stack.enter_context(Host(network.attach("b"), name="beta")).open_endpoint(0)
        with echo(interface, 1, name="alpha", agent=progress) as client:
            victim = far.connect("alpha", 1, timeout=PATIENCE)
            far.send(victim, b"hello", 5, timeout=PATIENCE)
            assert bytes(far.receive(5, timeout=PATIENCE)) == b"hello"
            sends = [far.isend(victim, bytes(5_000_000), each) for each in range(3)]
            [gone] = [each for each in agent.clients if each.process == client.pid]
            client.send_signal(how)
            if how is signal.SIGSTOP:
                os.waitpid(client.pid, os.WUNTRACED)
            partner = far.connect("alpha", 2, timeout=PATIENCE)
            until(lambda: len(agent.clients) == 1)
            for number in range(20):
                far.send(partner, bytes([number]) * 3000, number)
                assert bytes(other.receive(number, timeout=PATIENCE)) == bytes([number]) * 3000
            reason = "has ended" if how is signal.SIGKILL else "is stopped"
            seen = [(came, why) for process, came, why in changes if process == client.pid]
            assert seen == [(True, ""), (False, reason)]
            until(lambda: not agent._leaving)
            assert not (gone.served.sides or gone.served.request_count or gone.served.held_bytes)
            # Nothing is written to its memory any more, even if another process has its number.
            until(lambda: max(getattr(gone.memory, each, -1) for each in ("_descriptor", "_pidfd")) < 0)
            assert list(agent.core.node.interfaces[0].endpoints) == [2]
            far.disconnect(victim)
            assert all(each.done for each in sends)
            with pytest.raises(HostError):
                far.connect("alpha", 1, timeout=PATIENCE)
        with Host.open(interface, agent=True) as host:
            assert host.open_endpoint(1).number == 1
        assert agent.core.ended is None


@pytest.mark.parametrize("call", ["probe", "open"])
def test_a_question_to_a_killed_agent_closes_the_host(interface, call):
    """The end is noticed by the call itself, before any step of the host."""
    with agent_program(interface, "alpha") as agent, Host.open(interface, agent=True, background=False) as host:
        endpoint = host.open_endpoint(1)
        calls = {"probe": endpoint.probe, "open": host.open_endpoint}
        agent.kill()
        agent.wait(PATIENCE)
        with pytest.raises(HostClosedError, match="endpoint closed"):
            calls[call]()
        assert host.closed


@pytest.mark.interpreted("compiled code has the constant")
def test_a_stopped_agent_is_reported(interface, monkeypatch):
    monkeypatch.setattr("mxwire.host.attachment._PATIENCE", 0.1)
    with agent_program(interface, "alpha") as agent, Host.open(interface, agent=True) as host:
        agent.send_signal(signal.SIGSTOP)
        os.waitpid(agent.pid, os.WUNTRACED)
        with pytest.raises(HostClosedError, match="has not answered for"):
            host.open_endpoint()
        assert host.closed


def test_an_interface_without_an_agent(interface):
    with pytest.raises(LinkError, match=f"{interface}: no agent of this user has the interface: start one"):
        Host.open(interface, agent=True)


def test_an_interface_has_one_agent(interface):
    with agent_on(MemoryNetwork().attach(interface), name="alpha"):
        sharing = MachineSharing([interface])
        with Host(MemoryNetwork().attach(interface), name="alpha", sharing=sharing, background=False) as second:
            with pytest.raises(HostError, match=f"{interface}: another host of this process is the agent") as error:
                Agent(second)
            assert error.value.status is Status.BUSY
    with agent_on(MemoryNetwork().attach(interface), name="alpha"), Host.open(interface, agent=True):
        pass


@pytest.mark.interpreted("compiled code has the constant")
def test_another_version_is_refused_by_name(interface, monkeypatch):
    with agent_on(MemoryNetwork().attach(interface), name="alpha") as agent:
        monkeypatch.setattr("mxwire.protocol.agent.node.AGENT_VERSION", 1)
        monkeypatch.setattr("mxwire.protocol.agent.served.AGENT_VERSION", 2)
        with pytest.raises(LinkError, match=r"refuses: mxwire .*, whose protocol for applications is 2, not 1; end it"):
            Host.open(interface, agent=True)
        until(lambda: not agent.clients)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": "gamma"}, "has the name alpha, not gamma: omit the name"),
        ({"dialect": "omx:1500"}, "uses dialect mxoe, not omx:1500: omit the dialect"),
        ({"profile": "native-mx"}, "has profile open-mx-1.5, not native-mx: omit the profile"),
        ({"announce": False}, "decides whether it announces itself"),
    ],
)
def test_options_that_contradict_the_agent_are_refused(interface, options, text):
    """Objects that were exempt from garbage collection while the agent was open are not exempt afterwards."""
    frozen = gc.get_freeze_count()
    with agent_on(MemoryNetwork().attach(interface), name="alpha") as agent:
        with pytest.raises(MxwireError, match=text):
            Host.open(interface, agent=True, **options)
        with pytest.raises(LinkError, match=f"has {interface}, not {interface}, other: name its interfaces"):
            Host.open([interface, "other"], agent=True)
        until(lambda: not agent.clients)
    assert gc.get_freeze_count() <= frozen


def test_an_endpoint_of_another_program_is_taken(interface):
    with (
        agent_on(MemoryNetwork().attach(interface), name="alpha"),
        echo(interface, 1, name="alpha", agent="match") as client,
        Host.open(interface, agent=True) as host,
    ):
        with pytest.raises(HostError, match=f"endpoint 1 of {interface} is taken by process {client.pid}") as error:
            host.open_endpoint(1)
        assert error.value.status is Status.BUSY
        assert [host.open_endpoint().number for _ in range(2)] == [0, 2]


def test_the_state_of_an_agent_lists_its_programs(interface):
    with (
        agent_on(MemoryNetwork().attach(interface), name="alpha") as agent,
        echo(interface, 1, name="alpha", agent="card") as client,
        Host.open(interface, agent=True) as host,
    ):
        host.open_endpoint(4).ireceive(1, maximum=10)
        host.tokens.register(bytearray(50_000))
        until(lambda: agent.clients[1].served.request_count)
        states = list(read_states())
        [state] = [each for each in states if "clients" in each]
        rows = [(each["pid"], each["progress"], each["endpoints"], each["requests"]) for each in state["clients"]]
        assert sorted(rows) == sorted([(client.pid, "card", [1], 0), (os.getpid(), "match", [4], 1)])
        # The library of the other one is in the program, which is a host of its own.
        [own] = [each for each in states if "clients" not in each]
        assert [[each["endpoint"] for each in host["endpoints"]] for host in (state, own)] == [[4], [1]]
        programs = next(each for each in state_blocks(state) if isinstance(each, Table))
        regions = [each.heading for each in programs.columns].index("regions")
        assert [each.cells[regions] for each in programs.rows] == ["0", "1"]


@pytest.fixture
def collector() -> Iterator[list[int]]:
    """The generations of objects that the garbage collector has searched, in order; its settings are restored."""
    searched: list[int] = []
    thresholds = gc.get_threshold()

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            searched.append(info["generation"])

    gc.callbacks.append(note)
    yield searched
    gc.callbacks.remove(note)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_garbage_is_not_searched_for_among_many_requests(interface, collector):
    """A search of all objects would delay all programs; it waits until there are few requests."""

    class Cycle:
        """An object that refers to itself."""

        def __init__(self) -> None:
            self.own = self

    sharing = MachineSharing([interface])
    with (
        Host(MemoryNetwork().attach(interface), sharing=sharing, background=False, name="alpha") as own,
        Agent(own, dedicated=True) as agent,
    ):
        over = threading.Event()
        thread = threading.Thread(target=lambda: agent.run(over=over.is_set))
        thread.start()
        try:
            host = Host.open(interface, agent=True, background=False)
            endpoint = host.open_endpoint(1)
            posted = [endpoint.ireceive(each, maximum=8) for each in range(1500)]
            until(lambda: agent.clients[0].served.request_count == len(posted))
            collector.clear()
            lost = weakref.ref(Cycle())
            kept: list[list[int]] = []
            while collector.count(1) <= 110:
                # Usually, fewer searches of young objects precede one of all objects.
                kept += ([] for _ in range(5000))
            assert 2 not in collector and lost() is None
            host.close()
            until(lambda: 2 in collector)
        finally:
            over.set()
            thread.join()


def test_programs_of_one_agent_and_hosts_without_it_exchange_messages(interface):
    """Through the agent, and past it: another process on the same interface."""
    with agent_on(MemoryNetwork().attach(interface), name="alpha"), ExitStack() as stack:
        stack.enter_context(echo(interface, 1, name="alpha", agent="match"))
        stack.enter_context(echo(interface, 2, name="alpha"))
        endpoint = stack.enter_context(Host.open(interface, agent=True)).open_endpoint(3)
        for number, size in itertools.product((1, 2, 3), (0, 100, 4097, 32_768, 32_769, 2_000_000)):
            content = Random(size).randbytes(size)
            partner = endpoint.own_partner if number == 3 else endpoint.connect("alpha", number, timeout=PATIENCE)
            send = endpoint.isend(partner, content, size)
            assert bytes(endpoint.receive(size, timeout=PATIENCE)) == content
            endpoint.wait(send, PATIENCE)
        endpoint.flush(PATIENCE)


def test_a_returned_message_is_received_by_another_receive(interface):
    """A wait that is abandoned after its message has arrived: in order, and of any length."""
    with agent_on(MemoryNetwork().attach(interface), name="alpha"), Host.open(interface, agent=True) as host:
        endpoint = host.open_endpoint(1)
        for size in (10, 100_000):
            contents = [Random(each).randbytes(size) for each in range(3)]
            taken = endpoint.ireceive(7, maximum=size)
            sends = [endpoint.isend(endpoint.own_partner, each, 7) for each in contents]
            until(lambda request=taken: endpoint.test(request))
            assert taken.inner.give_back()
            assert [bytes(endpoint.receive(7, timeout=PATIENCE)) for _ in contents] == contents
            endpoint.wait_all(sends, PATIENCE)


@pytest.mark.parametrize(
    "record",
    [b"", b"\x05", bytes(64), AGENT_HEAD.pack(5, 0, 2, 1, 1, 0, 0, 0, 5, 0)],
    ids=["empty", "short", "nothing", "early"],
)
def test_a_program_with_an_impossible_record_is_dropped(interface, record, caplog):
    with agent_on(MemoryNetwork().attach(interface), name="alpha") as agent, Host.open(interface, agent=True) as good:
        endpoint = good.open_endpoint(1)
        path = SharedMemoryPath(lambda *_: agent_path(interface))
        channel = path.reach(0, 0)
        assert channel is not None
        channel.put(record)
        until(lambda: agent.dropped == 1)
        assert "has sent an impossible record (" in caplog.text
        assert len(agent.clients) == 1
        endpoint.send(endpoint.own_partner, b"on", 3)
        assert bytes(endpoint.receive(3, timeout=PATIENCE)) == b"on"
        path.close()


def test_a_program_names_only_its_own_endpoints(interface):
    """The handle of an endpoint means nothing in the records of another program."""
    with agent_on(MemoryNetwork().attach(interface), name="alpha") as agent, ExitStack() as stack:
        first, second = (stack.enter_context(Host.open(interface, agent=True)) for _ in range(2))
        endpoint = first.open_endpoint(1)
        endpoint.ireceive(5, maximum=10)
        until(lambda: agent.clients[0].served.request_count == 1)
        node = second.core.node
        node.out.put(AgentRecord.CLOSE, handle=endpoint.engine.handle, number=99)
        until(lambda: len(agent.clients) == 1)
        assert not endpoint.closed and agent.clients[0].served.request_count == 1


@pytest.mark.interpreted("compiled code has the constants")
def test_more_requests_than_an_agent_allows_end_without_resources(interface, monkeypatch):
    monkeypatch.setattr("mxwire.protocol.agent.served_side._REQUESTS_MAXIMUM", 4)
    monkeypatch.setattr("mxwire.protocol.agent.served_side._HELD_MAXIMUM", 100_000)
    link = MemoryNetwork().attach(interface)
    with agent_on(link, single_copy=False, name="alpha"), Host.open(interface, agent=True) as host:
        endpoint = host.open_endpoint(1)
        posted = [endpoint.ireceive(each, maximum=1) for each in range(5)]
        with pytest.raises(HostError) as error:
            endpoint.wait(posted[-1], PATIENCE)
        assert error.value.status is Status.NO_RESOURCES
        for each in posted[:3]:
            assert endpoint.cancel(each)
        sends = [endpoint.isend(endpoint.own_partner, bytes(60_000), 9) for _ in range(2)]
        with pytest.raises(HostError) as error:
            endpoint.wait(sends[1], PATIENCE)
        assert error.value.status is Status.NO_RESOURCES
        assert len(endpoint.receive(9, timeout=PATIENCE)) == 60_000
        assert endpoint.wait(sends[0], PATIENCE) is Status.SUCCESS


@pytest.mark.interpreted("compiled code calls the class directly")
@pytest.mark.parametrize("way", [ProcessMemory, CalledMemory])
def test_a_message_does_not_wait_for_a_program_that_computes(interface, monkeypatch, way):
    """The progress of a large message needs no call of its receiver, also where /proc/PID/mem may not be opened."""
    if way is CalledMemory:
        monkeypatch.setattr(process_memory, "ProcessMemory", forbidden)
    network = MemoryNetwork()
    with (
        agent_on(network.attach(interface), name="alpha"),
        Host(network.attach("b"), name="beta") as beta,
        Host.open(interface, agent=True, background=False) as host,
    ):
        endpoint, far = host.open_endpoint(1), beta.open_endpoint(0)
        content = Random(1).randbytes(1_000_000)
        memory = bytearray(len(content))
        posted = endpoint.ireceive(3, buffer=memory)
        send = far.isend(far.connect("alpha", 1, timeout=PATIENCE), content, 3)
        # The sender learns of the end of the transfer while the receiver makes no call.
        far.wait(send, PATIENCE)
        assert not posted.done and memory == content
        assert endpoint.wait(posted, PATIENCE).length == len(content)


def forbidden(*_: object) -> None:
    """Refuse to open the memory of a process."""
    raise PermissionError


def test_a_card_pulls_while_a_program_computes_but_matches_nothing(interface):
    """The library runs in the calls of the program: it matches the message, and the card does the rest."""
    network = MemoryNetwork()
    with (
        agent_on(network.attach(interface), name="alpha") as agent,
        Host(network.attach("b"), name="beta") as beta,
        Host.open(interface, agent="card", background=False) as host,
    ):
        endpoint, far = host.open_endpoint(1), beta.open_endpoint(0)
        content, memory = Random(1).randbytes(1_000_000), bytearray(1_000_000)
        posted = endpoint.ireceive(3, buffer=memory)
        partner = connected(far, host)
        counters = agent.core.node.interfaces[0].counters
        send = far.isend(partner, content, 3)
        until(lambda: counters[Counter.RECV_RNDV])
        assert not counters[Counter.SEND_PULL_REQUEST] and not any(memory)
        until(lambda: host.poll() or endpoint.engine.card.pulls)
        until(lambda: memory == content)
        assert not posted.done and not send.done
        assert len(endpoint.wait(posted, PATIENCE)) == len(content)
        far.wait(send, PATIENCE)


def test_a_program_that_makes_no_calls_loses_frames_when_the_ring_is_full(interface):
    """And gets them by retransmission: the ring at the agent has no slots for it until it has taken what is there."""
    network = MemoryNetwork()
    profile = replace(OPEN_MX_1_5, ring_size=8)
    with (
        agent_on(network.attach(interface), name="alpha", profile=profile) as agent,
        Host(network.attach("b"), name="beta") as beta,
        Host.open(interface, agent="card", background=False) as host,
    ):
        endpoint, far = host.open_endpoint(1), beta.open_endpoint(0)
        partner = connected(far, host)
        sends = [far.isend(partner, bytes([each]), each) for each in range(40)]
        until(lambda: agent.core.node.interfaces[0].counters[Counter.DROP_RING_FULL])
        for number in range(40):
            assert bytes(endpoint.receive(number, timeout=PATIENCE)) == bytes([number])
        assert all(each.done for each in sends)


def test_a_send_returns_before_the_agent_has_copied(interface):
    """As from an adapter: the agent, which is stopped, copies between the memories of its programs later."""
    with agent_program(interface, "alpha") as agent, Host.open(interface, agent=True, background=False) as host:
        endpoint = host.open_endpoint(1)
        content, memory = Random(1).randbytes(1_000_000), bytearray(1_000_000)
        own = endpoint.own_partner
        agent.send_signal(signal.SIGSTOP)
        os.waitpid(agent.pid, os.WUNTRACED)
        posted, send = endpoint.ireceive(3, buffer=memory), endpoint.isend(own, content, 3)
        assert not send.done and not any(memory)
        agent.send_signal(signal.SIGCONT)
        endpoint.wait_all([posted, send], PATIENCE)
        assert memory == content


@pytest.mark.parametrize("progress", ["match", "card"])
@pytest.mark.parametrize("copies", [1, 2])
def test_programs_put_into_and_get_from_registered_memory(interface, copies, progress):
    """By the token of the program that has registered it, which makes no call while they do."""
    with (
        agent_on(MemoryNetwork().attach(interface), single_copy=copies == 1, name="alpha") as agent,
        Host.open(interface, agent=progress, background=False) as target,
        Host.open(interface, agent="match", background=False) as initiator,
    ):
        memory = target.open_endpoint(1).allocate(3_000_000) if copies == 2 else bytearray(3_000_000)
        token = target.tokens.register(memory)
        for size in (0, 1, 32_768, 32_769, 2_500_000):
            content, found = Random(size).randbytes(size), bytearray(size)
            initiator.tokens.put(token, content, 400_000)
            assert memory[400_000 : 400_000 + size] == content and not any(memory[:400_000])
            initiator.tokens.get(token, found, 400_000)
            assert found == content
        for offset, size in ((2_999_999, 2), (400_000, 2_700_000)):
            with pytest.raises(LocalProtocolError, match="outside of the registered region"):
                initiator.tokens.get(token, bytearray(size), offset)
        assert [each["regions"] for each in agent._states()] == [1, 0]
        with pytest.raises(LocalProtocolError, match="1 of 1 tokens are not of registered memory of this host"):
            initiator.tokens.deregister(token)
        second = target.tokens.register(memory)
        target.tokens.deregister(token)
        with pytest.raises(LocalProtocolError, match="no region has this token"):
            initiator.tokens.put(token, b"late")
        target.close()
        until(lambda: len(agent.clients) == 1)
        with pytest.raises(LocalProtocolError, match="no region has this token"):
            initiator.tokens.put(second, b"late")


def test_memory_is_registered_at_an_agent_that_can_access_it(interface):
    with (
        agent_on(MemoryNetwork().attach(interface), single_copy=False, name="alpha"),
        Host.open(interface, agent=True) as host,
        Host(MemoryNetwork().attach("b"), name="beta") as other,
    ):
        with pytest.raises(LocalProtocolError, match=r"may not access .*: register memory of endpoint.allocate"):
            host.tokens.register(bytearray(100))
        with pytest.raises(LocalProtocolError, match="no memory to register"):
            host.tokens.register(host.open_endpoint(1).allocate(0))
        with pytest.raises(LocalProtocolError, match="token"):
            host.tokens.get(-1, bytearray(1))
        with pytest.raises(MxwireError, match="open the host with agent=True"):
            other.tokens.register(bytearray(1))


@pytest.mark.parametrize("progress", ["match", "card"])
def test_a_send_whose_memory_has_gone_is_aborted(interface, progress):
    """A file in memory becomes shorter after the message was announced, and before it is pulled."""
    network, length = MemoryNetwork(), 1_000_000
    with (
        agent_on(network.attach(interface), name="alpha"),
        Host(network.attach("b"), name="beta") as beta,
        Host.open(interface, agent=progress) as host,
    ):
        endpoint, far = host.open_endpoint(1), beta.open_endpoint(0)
        partner = endpoint.connect("beta", 0, timeout=PATIENCE)
        descriptor = os.memfd_create("shortened", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, length)
        memory = mmap.mmap(descriptor, length)
        memory[:] = bytes([1]) * length
        send = endpoint.isend(partner, memory, 3)
        far.probe(3, timeout=PATIENCE)
        os.ftruncate(descriptor, 0)
        os.close(descriptor)
        assert not any(bytes(far.receive(3, timeout=PATIENCE)))
        with pytest.raises(HostError) as error:
            endpoint.wait(send, PATIENCE)
        assert error.value.status is Status.MESSAGE_ABORTED
        send = endpoint.isend(partner, bytes([2]) * length, 4)
        assert bytes(far.receive(4, timeout=PATIENCE)) == bytes([2]) * length
        assert endpoint.wait(send, PATIENCE) is Status.SUCCESS


def connected(far: Endpoint, host: Host) -> Partner:
    """Connect to endpoint 1 of a host that runs only within its calls."""
    connecting = far.iconnect(host.addresses[0], 1)
    until(lambda: host.poll() or connecting.done)
    return far.wait(connecting, PATIENCE)


def test_an_unknown_progress_is_refused_with_the_nearest(interface):
    with pytest.raises(MxwireError, match=r"no progress 'cart' \(did you mean card\?\): use match or card"):
        Host.open(interface, agent="cart")


@pytest.mark.parametrize("copies", [1, 2])
def test_allocated_memory_is_mapped_by_both(interface, copies):
    """Also where the agent may not access other memory: no message passes through the channel then."""
    network = MemoryNetwork()
    with (
        agent_on(network.attach(interface), single_copy=copies == 1, name="alpha") as agent,
        Host(network.attach("b"), name="beta") as beta,
        Host.open(interface, agent=True) as host,
    ):
        endpoint, far = host.open_endpoint(1), beta.open_endpoint(0)
        assert host.core.node.in_place is (copies == 1)
        memory, other = endpoint.allocate(300_000), far.allocate(10)
        assert bytes(other) == bytes(10) and not any(memory)
        content = Random(3).randbytes(100_000)
        posted = endpoint.ireceive(3, buffer=memory[50_000:150_000])
        partner = far.connect("alpha", 1, timeout=PATIENCE)
        far.wait(far.isend(partner, content, 3), PATIENCE)
        until(lambda: memory[50_000:150_000] == content)
        assert len(endpoint.wait(posted, PATIENCE)) == 100_000
        send = endpoint.isend(endpoint.connect("beta", 0, timeout=PATIENCE), memory[50_000:150_000], 4)
        assert bytes(far.receive(4, timeout=PATIENCE)) == content
        endpoint.wait(send, PATIENCE)
        assert not any(memory[:50_000]) and not any(memory[150_000:])
        [client] = agent.clients
        assert client.served.held_bytes == 0 and (client.memory is None) is (copies == 2)


def test_descriptors_beyond_a_limit_are_counted_and_logged(interface, caplog):
    with agent_on(MemoryNetwork().attach(interface), name="alpha") as agent, ExitStack() as stack:
        path = SharedMemoryPath(lambda *_: agent_path(interface))
        stack.callback(path.close)
        channel = path.reach(0, 0)
        assert channel is not None
        descriptor, memory = make_memory(4096)
        stack.callback(memory.close)
        stack.callback(os.close, descriptor)
        for _ in range(20):
            assert channel.pass_memory(descriptor)
        channel.put(AGENT_HEAD.pack(AgentRecord.ATTACH, 0, 0, 0, AGENT_VERSION, 0, 0, 0, 0, 0))
        until(lambda: agent.clients and agent.clients[0].refused == 4)
        until(lambda: "has reached a limit: 4 of its requests" in caplog.text)
        [state] = read_states()
        assert [each["refused"] for each in state["clients"]] == [4]


@pytest.mark.interpreted("compiled code has the constants")
def test_more_memory_than_an_agent_maps_is_treated_like_other_memory(interface, monkeypatch):
    monkeypatch.setattr("mxwire.protocol.agent.served_side._SHARED_MAXIMUM", 20)
    with agent_on(MemoryNetwork().attach(interface), name="alpha") as agent, Host.open(interface, agent=True) as host:
        endpoint = host.open_endpoint(1)
        areas = [endpoint.allocate(50_000) for _ in range(24)]
        content = Random(4).randbytes(50_000)
        for place in (19, 20, 23):
            posted = endpoint.ireceive(5, buffer=areas[place])
            endpoint.wait(endpoint.isend(endpoint.own_partner, content, 5), PATIENCE)
            assert len(endpoint.wait(posted, PATIENCE)) == len(content) and areas[place] == content
        assert len(host.attachment._allocated) == 20 and agent.dropped == 0


@pytest.mark.interpreted("compiled code calls the function directly")
def test_memory_that_could_be_truncated_ends_the_attachment(interface, monkeypatch):
    """The agent would be killed by its next access."""

    def unsealed(length):
        descriptor = os.memfd_create("unsealed", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, length)
        return descriptor, mmap.mmap(descriptor, length)

    monkeypatch.setattr("mxwire.host.attachment.make_memory", unsealed)
    with agent_on(MemoryNetwork().attach(interface), name="alpha") as agent, Host.open(interface, agent=True) as host:
        endpoint = host.open_endpoint(1)
        with pytest.raises(HostClosedError, match="has ended"):
            endpoint.allocate(8192)
        assert host.closed and agent.dropped == 1
