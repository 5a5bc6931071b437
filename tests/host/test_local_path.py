"""Endpoints of several processes on one interface: through shared memory, never on the wire (R-LOC-02)."""

from __future__ import annotations

import array
import asyncio
import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random

import pytest

from mxwire.host import AsyncHost, Endpoint, Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork, local, process_memory, record_ring
from mxwire.protocol import Partner, Status
from mxwire.protocol.local_channel import RECORD_MAXIMUM
from tests.forked import start

from .agents import ECHO, agent_program, echo
from .local_ranks import PATIENCE, content, opened

FOLDER = Path(__file__).parent
GONE = (Status.REMOTE_ENDPOINT_CLOSED, Status.REMOTE_ENDPOINT_UNREACHABLE)


@pytest.fixture
def interface(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"memory{os.getpid()}-{abs(hash(request.node.name)) % 100000}"


@pytest.mark.parametrize(
    ("face", "count", "copies"),
    [("blocking", 8, 1), ("blocking", 3, 2), ("asyncio", 4, 1), ("match-blocking", 5, 1), ("card-asyncio", 3, 2)],
)
def test_all_to_all(interface, face, count, copies):
    """R-LOC-02: each rank with each, itself included, in all size classes; no frame leaves. Ranks that are attached to
    an agent are ranks like others."""
    words = [sys.executable, FOLDER / "local_ranks.py", face, interface, f"ranks:{count}", str(copies)]
    with agent_program(interface, "ranks") if "-" in face else nullcontext():
        ranks = start(words, stderr=subprocess.PIPE, text=True)
        assert ranks is not None
        _, errors = ranks.communicate(timeout=PATIENCE * 3)
        assert ranks.returncode == 0, errors


@pytest.mark.parametrize("copies", [1, 2])
def test_a_killed_process(interface, copies):
    """Whatever waits for it ends, and nothing of it remains; its successor is reached."""
    with opened(Host, interface, copies) as host:
        endpoint = host.open_endpoint(1)
        with echo(interface, copies=copies) as process:
            partner = endpoint.connect(host.name, 2, timeout=PATIENCE)
            endpoint.send(partner, b"hello", 5, timeout=PATIENCE)
            assert bytes(endpoint.receive(5, timeout=PATIENCE)) == b"hello"
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            waiting = [endpoint.isend(partner, bytes(size), 7) for size in (5000, 3_000_000)]
            short = [endpoint.isend(partner, bytes(4000), 7) for _ in range(200)]
            assert not all(each.done for each in short), "the channel is full"
            process.send_signal(signal.SIGKILL)
            for each in (*waiting, *(each for each in short if not each.done)):
                with pytest.raises(HostError) as error:
                    endpoint.wait(each, PATIENCE)
                assert error.value.status in GONE
            assert endpoint.undelivered >= sum(each.status is Status.SUCCESS for each in short)
            assert not host.sharing.path.channels
            process.wait()
            with pytest.raises(HostError) as error:
                endpoint.send(partner, b"late", timeout=PATIENCE)
            assert error.value.status in GONE
            with pytest.raises(HostError):
                endpoint.connect(host.name, 2, timeout=PATIENCE)
        with echo(interface, copies=copies):
            partner = endpoint.connect(host.name, 2, timeout=PATIENCE)
            endpoint.send(partner, content(1, 2, 100_000), 9, timeout=PATIENCE)
            assert bytes(endpoint.receive(9, timeout=PATIENCE)) == content(1, 2, 100_000)
    assert not list(Path("/dev/shm").glob("mxwire-local*"))


def test_a_process_that_is_killed_in_the_middle_of_a_transfer(interface):
    """At any moment; the copy in two steps leaves most of them."""
    with opened(Host, interface, 2) as host:
        endpoint = host.open_endpoint(1)
        for turn in range(3):
            with echo(interface, copies=2) as process:
                partner = endpoint.connect(host.name, 2, timeout=PATIENCE)
                sends = [endpoint.isend(partner, bytes(20_000_000), turn) for _ in range(2)]
                receives = [endpoint.ireceive(turn, maximum=20_000_000) for _ in range(2)]
                host.driver.pause(0.003 * turn)
                process.kill()
                for each in (*sends, *receives):
                    if each in sends or each.inner.partner is not None:
                        with pytest.raises(HostError) as error:
                            endpoint.wait(each, PATIENCE)
                        assert error.value.status in GONE
                    else:
                        endpoint.cancel(each)


def test_the_sender_may_exit_when_its_sends_are_complete(interface):
    """R-SND-06: its last messages are received after its end."""
    text = ECHO[: ECHO.index("    print")] + (
        "    partner = endpoint.connect(host.name, 1)\n    [endpoint.send(partner, bytes([n]), n) for n in range(20)]\n"
        "    import os\n    os._exit(0)\n"
    )
    with opened(Host, interface) as host:
        endpoint = host.open_endpoint(1)
        child = start([sys.executable, "-c", text, interface, "2", "1", "ranks", ""])
        assert child is not None
        for number in range(20):
            assert bytes(endpoint.receive(number, timeout=PATIENCE)) == bytes([number])
        assert child.wait() == 0


def test_asyncio_and_blocking_hosts_of_one_process(interface):
    """Two hosts of one process have channels as those of two processes."""

    async def play() -> None:
        async with opened(AsyncHost, interface) as host:
            endpoint = host.open_endpoint(3)
            with echo(interface):
                partner = await endpoint.connect(host.name, 2, timeout=PATIENCE)
                for size in (0, 4096, 4097, 300_000):
                    await endpoint.send(partner, content(3, 2, size), size, timeout=PATIENCE)
                    assert bytes(await endpoint.receive(size, timeout=PATIENCE)) == content(3, 2, size)

    asyncio.run(play())
    with opened(Host, interface) as one, opened(Host, interface) as two:
        near, far = one.open_endpoint(), two.open_endpoint()
        assert (near.number, far.number) == (0, 1)
        partner = near.connect(two.name, 1, timeout=PATIENCE)
        near.isend(partner, content(0, 1, 50_000))
        assert bytes(far.receive(timeout=PATIENCE)) == content(0, 1, 50_000)


# Hostile processes.


def greet(host: Host, memory: int | None, greeting: bytes) -> socket.socket:
    """A connection to the socket of endpoint 1, with a greeting that may carry any descriptor."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(host.sharing._socket_of(0, 1)))
    if memory is None:
        connection.send(greeting)
    else:
        socket.send_fds(connection, [greeting], [memory])
    connection.settimeout(PATIENCE)
    return connection


def memory_file(size: int = 2 * record_ring.SIDE, seals: int = local._SEALS) -> int:
    descriptor = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    if seals:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def check_alive(host: Host, interface: str) -> None:
    """Another process reaches the host as before."""
    with opened(Host, interface) as other:
        endpoint = other.open_endpoint(9)
        partner = endpoint.connect(host.name, 1, timeout=PATIENCE)
        endpoint.issend(partner, b"still here", 77)
        (own,) = host._endpoints.values()
        assert bytes(own.receive(77, timeout=PATIENCE)) == b"still here"


def test_invalid_greetings(interface):
    """A process that passes no memory, another size, or memory that it could truncate, is refused."""
    good = local._greeting()
    with opened(Host, interface) as host:
        host.open_endpoint(1)
        for memory, greeting in (
            (None, good),
            (None, b""),
            (memory_file(), b"x" * len(good)),
            (memory_file(), b"short"),
            (memory_file(size=4096), good),
            (memory_file(seals=0), good),
            (os.open("/dev/zero", os.O_RDWR), good),
            (os.eventfd(0), good),
        ):
            with greet(host, memory, greeting) as connection:
                if not greeting:
                    connection.shutdown(socket.SHUT_WR)
                assert connection.recv(100) == b"", "the connection is closed"
            if memory is not None:
                os.close(memory)
        assert not host.sharing.path.channels
        check_alive(host, interface)


def test_hostile_memory(interface):
    """Positions, lengths and records that no correct process writes end the channel, and nothing else."""
    rng = Random(1)
    with opened(Host, interface) as host:
        host.open_endpoint(1)
        for turn in range(40):
            descriptor = memory_file()
            memory = mmap.mmap(descriptor, 2 * record_ring.SIDE)
            words = memoryview(memory).cast("Q")
            produced = rng.choice((8, 16, 4096, record_ring.RING_BYTES, record_ring.RING_BYTES + 8, 7, (1 << 64) - 8))
            length = rng.choice((0, 1, 56, 4000, 60_000, record_ring.LONGEST + 1, 1 << 40, (1 << 64) - 1))
            words[512] = length
            for place in range(513, 513 + 2000):
                words[place] = rng.choice((0, 1, rng.getrandbits(8), rng.getrandbits(64)))
            words[512 + 7 : 512 + 9] = array.array("Q", [rng.getrandbits(64)] * 2)
            words[0] = produced
            if turn % 2:
                words[(record_ring.SIDE >> 3) + record_ring.CONSUMED] = rng.getrandbits(64)
            with greet(host, descriptor, local._greeting()) as connection:
                host.driver.pause(0.02)
                connection.close()
            os.close(descriptor)
        check_alive(host, interface)


def test_the_longest_record_fits():
    assert RECORD_MAXIMUM <= record_ring.LONGEST
    assert record_ring.LONGEST * 3 <= record_ring.RING_BYTES


def test_memory_that_does_not_exist_is_not_read():
    target = array.array("B", bytes(16))
    places = [target.buffer_info()]
    assert not process_memory.copy_from(os.getpid(), [(0, 16)], places, 16)
    assert not process_memory.copy_from(os.getpid(), [(1 << 63, 16)], places, 16)
    assert not process_memory.copy_from(0, places, places, 16)
    assert process_memory.copy_from(os.getpid(), places, places, 16) or process_memory.copy_refusal()


def test_memory_is_read_wherever_the_kernel_permits_it():
    """A vector of several segments on both sides; compiled code once freed it before the call."""
    source, target = array.array("B", range(16)), array.array("B", bytes(16))
    (start, _), (end, _) = source.buffer_info(), target.buffer_info()
    vectors = [(ctypes.c_ulong * 2)(address, 16) for address in (end, start)]
    call = ctypes.CDLL(None).process_vm_readv
    call.argtypes = [ctypes.c_int, *[ctypes.c_void_p, ctypes.c_ulong] * 2, ctypes.c_ulong]
    permitted = call(os.getpid(), vectors[0], 1, vectors[1], 1, 0) == 16
    target[:] = array.array("B", bytes(16))
    read = process_memory.copy_from(os.getpid(), [(start, 5), (start + 5, 11)], [(end, 7), (end + 7, 9)], 16)
    assert (read, target == source) == (permitted, permitted)
    target[:] = array.array("B", bytes(16))
    rest = process_memory.copy_from(os.getpid(), [(start, 5), (start + 5, 11)], [(end, 7), (end + 7, 9)], 14, 6)
    assert rest == permitted
    assert list(target) == [each if permitted and 6 <= each < 14 else 0 for each in range(16)]


@pytest.mark.parametrize(("scope", "requested"), [("0\n", False), ("1\n", True), ("2\n", False), (None, False)])
def test_permission_is_requested_only_from_a_yama_that_can_give_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str | None, requested: bool
):
    """The kernel knows the request if it has Yama, and refuses it with EINVAL otherwise."""
    real = process_memory._YAMA.exists()
    monkeypatch.setattr(process_memory, "_YAMA", tmp_path / "ptrace_scope")
    if scope is not None:
        process_memory._YAMA.write_text(scope)
    assert process_memory.permit_reading() is (requested and real)


@pytest.mark.interpreted  # it replaces names of the module
@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        ("1\n", "Yama forbids it (kernel.yama.ptrace_scope is 1)"),
        ("3\n", "Yama forbids it (kernel.yama.ptrace_scope is 3)"),
        (None, "the kernel does not permit process_vm_readv, as in many containers"),
    ],
)
def test_the_reason_why_memory_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str | None, reason: str
):
    monkeypatch.setattr(process_memory, "_readv", None)
    monkeypatch.setattr(process_memory, "_YAMA", tmp_path / "ptrace_scope")
    if scope is not None:
        process_memory._YAMA.write_text(scope)
    assert process_memory.copy_refusal() == reason


@pytest.mark.interpreted  # it replaces a name of the module
def test_messages_pass_where_memory_cannot_be_read(interface, monkeypatch: pytest.MonkeyPatch):
    """They are copied twice."""
    monkeypatch.setattr(process_memory, "_readv", None)
    with opened(Host, interface) as host, echo(interface):
        endpoint = host.open_endpoint(1)
        partner = endpoint.connect(host.name, 2, timeout=PATIENCE)
        endpoint.send(partner, content(1, 2, 300_000), 9, timeout=PATIENCE)
        assert bytes(endpoint.receive(9, timeout=PATIENCE)) == content(1, 2, 300_000)
        assert not any(each.reads for each in host.sharing.path.channels)


def unattended(interface: str) -> Host:
    """A host that makes progress in calls only."""
    link, sharing = MemoryNetwork().attach(), MachineSharing([interface])
    return Host(link, sharing=sharing, name="ranks", announce=False, background=False)


def rest(*hosts: Host) -> None:
    """Poll until all hosts may sleep."""
    for _ in range(1000):
        if all(host.core.pause() != 0 for host in hosts):
            return
        for host in hosts:
            host.poll()
    raise AssertionError("the hosts never rest")


@contextmanager
def joined(interface: str) -> Iterator[tuple[Host, Host, Endpoint, Endpoint, Partner]]:
    with unattended(interface) as source, unattended(interface) as target:
        one, two = source.open_endpoint(1), target.open_endpoint(2)
        connect = one.iconnect(target.name, 2)
        for _ in range(1000):
            source.poll()
            target.poll()
            if one.test(connect):
                break
        assert connect.status == Status.SUCCESS and connect.partner is not None
        yield source, target, one, two, connect.partner


def test_a_process_may_read_its_own_memory():
    """Whatever Yama forbids; in a compiled mxwire too, where the kernel must find the addresses that it is given."""
    assert process_memory.can_read(os.getpid(), *process_memory.own_token())


def test_no_process_sleeps_before_it_has_taken_all_records(interface):
    """More of them than it takes from one neighbour at once."""
    with joined(interface) as (_, target, one, two, partner):
        for number in range(1000):
            one.isend(partner, b"x", number)
        rest(target)
        assert two.engine.matching.unexpected == 1000


def test_records_do_not_keep_a_host_from_polling_its_links(interface):
    """A record is answered before the links are polled, but not each time."""
    with joined(interface) as (_, target, one, two, partner):
        link = target.core.links[0]
        link.wake()
        for number in range(8):
            one.isend(partner, b"x", number)
            target.core.step(looks=2)
        assert two.engine.matching.unexpected == 8
        assert not select.select([link], [], [], 0)[0]


def test_records_for_a_suspended_endpoint_keep_no_process_awake(interface):
    """R-GEN-01: those that its ring has no room for wait in the channel, and are taken when it resumes."""
    with joined(interface) as (source, target, one, two, partner):
        two.suspend()
        sends = [one.isend(partner, number.to_bytes(4000, "big"), number) for number in range(1200)]
        rest(source, target)
        active = target.core.active
        assert not all(each.done for each in sends)
        for _ in range(5):
            target.poll()
        assert target.core.active == active
        assert not select.select([target.core.local], [], [], 0)[0]
        two.resume()
        assert target.core.pause() == 0
        rest(source, target)
        assert all(each.done for each in sends)
        assert two.engine.matching.unexpected == 1200
        assert two.receive(timeout=PATIENCE).match_info == 0


def test_records_that_must_wait_do_not_hide_the_end_of_their_process(interface):
    """R-CLS-02: the other endpoints learn of it at once, and of all that it has answered before."""
    with joined(interface) as (source, target, one, two, partner), target.open_endpoint(3) as three:
        back = three.iconnect(source.name, 1)
        rest(target, source)
        there = three.wait(back)
        two.suspend()
        for number in range(1100):
            one.isend(partner, b"x", number)
        rest(target)
        answered, unmatched = three.iconnect(source.name, 1), three.isend(there, bytes(10_000))
        rest(source)
        source.close()
        assert (answered.done, unmatched.done) == (False, False)
        while select.select([target.core.local], [], [], 0)[0]:
            target.poll()
        assert answered.status == Status.SUCCESS
        assert unmatched.status in GONE
        assert target.core.local.channels
        two.resume()
        rest(target)
        assert two.engine.matching.unexpected == 1100
        assert not target.core.local.channels


def test_a_process_that_has_ended_keeps_no_other_one_awake(interface):
    """R-CLS-02: while its last records wait for a suspended endpoint, which then receives them."""
    with joined(interface) as (source, target, one, two, partner):
        two.suspend()
        for number in range(1100):
            one.isend(partner, b"x", number)
        rest(target)
        source.close()
        wakes = 0
        while select.select([target.core.local], [], [], 0)[0]:
            wakes += 1
            assert wakes < 10
            target.poll()
            rest(target)
        two.resume()
        rest(target)
        assert two.engine.matching.unexpected == 1100
        assert not target.core.local.channels


def test_a_short_record_does_not_end_the_wait_of_a_long_one_for_room():
    """The data of a message would stay in its sender until the next record of the receiver."""
    memory = memoryview(bytearray(record_ring.SIDE))
    writer = record_ring.make_writer(memory, *record_ring.RING_LAYOUT)
    while writer.put(b"", bytes(32_768)):
        pass
    assert writer.blocked and writer.put(b"", b"short") and writer.blocked
