"""The state that processes on one interface share: endpoint numbers, the answering process, and the peer table."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.host import Host, HostError
from mxwire.host.sharing import MachineSharing, SharedPeerTable
from mxwire.link import MemoryNetwork
from mxwire.protocol import Status
from tests.forked import start

INTERFACE = f"test{os.getpid()}"


@contextmanager
def other_process(body: str) -> Iterator[subprocess.Popen[str]]:
    """A process that prints "ready" after running ``body``, and exits when its input ends."""
    program = (
        f"import sys\nfrom pathlib import Path\n{textwrap.dedent(body)}\nprint('ready', flush=True)\nsys.stdin.read()\n"
    )
    process = start([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process is not None and process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def sharing() -> Iterator[MachineSharing]:
    made = MachineSharing([INTERFACE])
    yield made
    made.close()


CLAIMS = f"""
from mxwire.host.sharing import MachineSharing
sharing = MachineSharing(["{INTERFACE}"])
sharing.claim(0, 3)
assert sharing.speaks(0)
"""


def test_an_endpoint_of_another_process_is_taken_until_that_ends(sharing):
    with other_process(CLAIMS) as process:
        with pytest.raises(HostError, match=f"endpoint 3 of {INTERFACE} is taken by process {process.pid}") as error:
            sharing.claim(0, 3)
        assert error.value.status is Status.BUSY
        assert sharing.elsewhere(0, 3) and not sharing.elsewhere(0, 4)
        assert not sharing.speaks(0)
        sharing.claim(0, 4)
        assert sharing.owner(0, 4) is None
    sharing.claim(0, 3)
    assert sharing.speaks(0) and sharing.speaks(0)
    assert sharing.owner(0, 3) is None


def test_the_child_of_a_fork_keeps_no_claim(sharing):
    """It would, after the end of its parent, and answer no host."""
    body = f"{CLAIMS}\nimport os\nif os.fork():\n    os.wait()\n"
    with other_process(body) as process:
        process.kill()
        process.wait()
        sharing.claim(0, 3)
        assert sharing.speaks(0)


def test_a_host_reports_the_owner_of_an_endpoint_and_takes_another(sharing):
    link = MemoryNetwork().attach()
    with other_process(CLAIMS) as process, Host(link, sharing=MachineSharing([INTERFACE])) as host:
        with pytest.raises(HostError, match=f"is taken by process {process.pid}"):
            host.open_endpoint(3)
        endpoints = [host.open_endpoint() for _ in range(4)]
        assert [each.number for each in endpoints] == [0, 1, 2, 4]
        with pytest.raises(MxwireError, match=r"endpoint 4 .* is open already"):
            host.open_endpoint(4)
        with pytest.raises(HostError, match=r"endpoint 4 of .* is taken by another host of this process"):
            sharing.claim(0, 4)
        endpoints[3].close()
        sharing.claim(0, 4)
    sharing.claim(0, 0)


def test_a_peer_has_the_same_index_in_all_processes(tmp_path):
    one, two = SharedPeerTable(tmp_path), SharedPeerTable(tmp_path)
    addresses = [bytes([2, 0, 0, 0, 0, each]) for each in range(5)]
    assert [one.place_of(addresses[0]), two.place_of(addresses[1]), one.place_of(addresses[2])] == [0, 1, 2]
    assert [two.place_of(each) for each in addresses[:3]] == [0, 1, 2]
    body = f"""
    from mxwire.host.sharing import SharedPeerTable
    peers = SharedPeerTable(Path({str(tmp_path)!r}))
    assert peers.place_of(bytes.fromhex({addresses[2].hex()!r})) == 2
    assert peers.place_of(bytes.fromhex({addresses[3].hex()!r})) == 3
    """
    with other_process(body):
        assert list(one.places()) == addresses[:4]
    assert two.place_of(addresses[4]) == 4
    one.close()
    two.close()
    two.close()
    assert not one.path.exists()


def test_entries_of_a_killed_process_are_swept(tmp_path):
    body = f"""
    from mxwire.host.sharing import SharedPeerTable
    peers = SharedPeerTable(Path({str(tmp_path)!r}))
    peers.place_of(bytes(6))
    """
    with other_process(body):
        pass
    (left,) = tmp_path.iterdir()
    assert left.stat().st_size == 6
    (tmp_path / "mxwire-peers-of-another-namespace").touch()
    fresh = SharedPeerTable(tmp_path)
    assert list(fresh.places()) == [] and list(tmp_path.iterdir()) == [left]
    fresh.close()
    assert list(tmp_path.iterdir()) == []


def test_two_entries_at_once_leave_one_that_counts(tmp_path):
    """Processes that enter a peer at the same moment both append it; the first place is its index."""
    one, two = SharedPeerTable(tmp_path), SharedPeerTable(tmp_path)
    one.path.write_bytes(b"AAAAAABBBBBBAAAAAACCCCCC")
    assert [two.place_of(each * 6) for each in (b"A", b"B", b"C", b"D")] == [0, 1, 3, 4]
    assert one.place_of(b"D" * 6) == 4
    one.close()
    two.close()


def test_a_table_without_access_rights_is_reported(tmp_path):
    link = SharedPeerTable(tmp_path)
    link.close()
    link.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MxwireError, match="the shared peer table cannot be used"):
        SharedPeerTable(tmp_path)
    assert not Path(tmp_path / "elsewhere").exists()


def test_a_table_without_space_is_reported(tmp_path):
    table = SharedPeerTable(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(MxwireError, match=r"the shared peer table cannot be used: File too large$"):
            table.place_of(b"AAAAAA")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        table.close()


@pytest.mark.parametrize(("mode", "user"), [(0o666, None), (0o600, 65534)])
def test_a_peer_table_that_others_can_open_is_refused_unchanged(tmp_path: Path, mode: int, user: int | None) -> None:
    table = SharedPeerTable(tmp_path)
    table.close()
    table.path.write_bytes(bytes(6))
    table.path.chmod(mode)
    if user is not None:
        if os.geteuid():
            return
        os.chown(table.path, user, -1)
    inode = table.path.stat().st_ino
    # In use, so that it is not swept away.
    with table.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        with pytest.raises(MxwireError, match="must be a file of user"):
            SharedPeerTable(tmp_path)
    assert (table.path.stat().st_ino, table.path.read_bytes()) == (inode, bytes(6))


def test_a_peer_table_that_stays_locked_is_reported(tmp_path: Path) -> None:
    table = SharedPeerTable(tmp_path)
    table.close()
    table.path.touch(0o600)
    with table.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(MxwireError, match="has locked the shared peer table"):
            SharedPeerTable(tmp_path)
