"""The state that processes on one interface share: endpoint numbers, the answering process, and the peer table."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mxwire.errors import MxwireError
from mxwire.host import Host, HostError
from mxwire.host.shared_peers import _IN_USE, _ROW, SharedPeerTable, remove_unused
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork
from mxwire.link.byte_locks import LockableFile
from mxwire.protocol import Status
from mxwire.units import SECOND
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


def address(number: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, number])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "1-4-2"


def table_in_another_process(folder: Path, interface: str, body: str) -> AbstractContextManager[Any]:
    return other_process(
        f"from mxwire.host.shared_peers import SharedPeerTable\n"
        f"peers = SharedPeerTable(Path({str(folder)!r}), [{interface!r}])\n{body}"
    )


def test_a_peer_has_the_same_index_in_all_processes(folder):
    one, two = SharedPeerTable(folder, ["a"]), SharedPeerTable(folder, ["a"])
    addresses = [address(each) for each in range(5)]
    assert [one.place_of(addresses[0]), two.place_of(addresses[1]), one.place_of(addresses[2])] == [0, 1, 2]
    assert [two.place_of(each) for each in addresses[:3]] == [0, 1, 2]
    body = f"""assert peers.place_of(bytes.fromhex({addresses[2].hex()!r})) == 2
assert peers.place_of(bytes.fromhex({addresses[3].hex()!r})) == 3
"""
    with table_in_another_process(folder, "a", body):
        assert list(one.places()) == list(enumerate(addresses[:4]))
    assert two.place_of(addresses[4]) == 4
    one.close()
    two.close()
    two.close()
    assert not folder.exists()


def test_peers_belong_to_their_interface_and_indexes_to_all(folder):
    """A process with two interfaces has one index for each peer, which the processes of both must understand."""
    near, far = SharedPeerTable(folder, ["near"]), SharedPeerTable(folder, ["far"])
    assert [near.place_of(address(1)), far.place_of(address(2)), far.place_of(address(1))] == [0, 1, 0]
    assert near.places() == [(0, address(1))] and far.places() == [(1, address(2)), (0, address(1))]
    both = SharedPeerTable(folder, ["near", "far"])
    assert both.places() == [(0, address(1)), (1, address(2))]
    assert both.place_of(address(3)) == far.place_of(address(3)) == near.place_of(address(3))
    assert (both.place_of(address(3)), address(3)) in near.places()
    for each in (near, far, both):
        each.close()


def test_entries_of_a_killed_process_are_removed(tmp_path, folder):
    with table_in_another_process(folder, "a", "peers.place_of(bytes(6))"):
        pass
    assert (folder / "peers").stat().st_size
    other = tmp_path / "1-4-3"
    other.mkdir()
    (other / "peers").touch(0o600)
    (other / "a-3.sock").touch()
    (tmp_path / "1-4-4").mkdir()
    fresh = SharedPeerTable(folder, ["a"])
    assert list(fresh.places()) == []
    remove_unused(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == [folder], "this one is in use"
    fresh.close()
    assert list(tmp_path.iterdir()) == []


def test_two_entries_at_once_leave_one_that_counts(folder):
    """Processes that enter a peer at the same moment both append it; the first place is its index."""
    one, two = SharedPeerTable(folder, ["a"]), SharedPeerTable(folder, ["a"])
    for each in (1, 2, 1, 3):
        one._append(_ROW.pack(address(each), b"a", 0, 0, 0, b""))
    assert [two.place_of(address(each)) for each in (1, 2, 3, 4)] == [0, 1, 3, 4]
    assert one.place_of(address(4)) == 4
    one.close()
    two.close()


@pytest.mark.rule("R-HOST-02")
def test_processes_query_a_peer_and_learn_its_name_together(folder):
    one, two, far = (SharedPeerTable(folder, [each]) for each in ("a", "a", "b"))
    one.place_of(address(1))
    asked = [(now, each.may_query(0, address(1), now * SECOND, 5 * SECOND)) for now, each in ((1, one), (2, two))]
    assert asked == [(1, True), (2, True)], "one may be early"
    assert not two.may_query(0, address(1), 3 * SECOND, 5 * SECOND)
    assert far.may_query(0, address(1), 3 * SECOND, 5 * SECOND), "hosts are queried from each interface"
    assert not one.may_query(0, address(1), 6 * SECOND, 5 * SECOND)
    assert one.may_query(0, address(1), 7 * SECOND, 5 * SECOND)
    assert one.name_of(address(1)) is None
    one.learn(address(1), "ü" * 30)
    assert two.name_of(address(1)) == "ü" * 30
    one.learn(address(1), "x" * 80)
    assert two.name_of(address(1)) == "ü" * 30, "too long for a row"
    two.learn(address(1), None)
    assert one.name_of(address(1)) is None
    assert one.may_query(0, address(1), 8 * SECOND, 5 * SECOND) and not two.may_query(
        0, address(1), 9 * SECOND, 5 * SECOND
    )
    for each in (one, two, far):
        each.close()


def test_a_table_without_space_is_reported(folder):
    table = SharedPeerTable(folder, ["a"])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(MxwireError, match=r"the shared peer table cannot be used: File too large$"):
            table.place_of(b"AAAAAA")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        table.close()


def test_a_table_that_another_program_has_truncated_is_reported(folder):
    table = SharedPeerTable(folder, ["a"])
    table.place_of(address(1))
    os.truncate(folder / "peers", 0)
    with pytest.raises(MxwireError, match="another program has changed the shared peer table"):
        table.place_of(address(2))
    table.close()


@pytest.mark.parametrize("spoil", ["mode", "user", "link", "folder"])
def test_a_file_that_others_can_open_is_refused_unchanged(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "peers"
    if spoil == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif spoil == "folder":
        path.mkdir()
    else:
        path.write_bytes(bytes(6))
        path.chmod(0o666 if spoil == "mode" else 0o600)
    if spoil == "user":
        if os.geteuid():
            return
        os.chown(path, 65534, -1)
    before = path.lstat()
    with pytest.raises(MxwireError, match=r"must be a file of user|cannot be opened"):
        SharedPeerTable(tmp_path, ["a"])
    after = path.lstat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)
    assert list(tmp_path.iterdir()) == [path]


def test_a_peer_table_that_stays_locked_is_reported(folder: Path) -> None:
    folder.mkdir()
    held = LockableFile(folder / "peers")
    assert held.try_lock(_IN_USE)
    with pytest.raises(MxwireError, match="has locked the shared peer table"):
        SharedPeerTable(folder, ["a"])
    held.close()
    SharedPeerTable(folder, ["a"]).close()


def test_a_child_of_a_fork_removes_nothing_of_its_parent(sharing):
    sharing.claim(0, 5)
    child = os.fork()
    if not child:
        try:
            sharing.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    other = MachineSharing([INTERFACE])
    assert other.elsewhere(0, 5) and other.owner(0, 5) == "another host of this process"
    other.close()


def test_the_socket_of_a_killed_process_is_replaced(sharing):
    with other_process(CLAIMS) as process:
        process.kill()
        process.wait()
        assert sharing._socket_of(0, 3).exists() and not sharing.elsewhere(0, 3)
        assert sharing.path.reach(0, 3) is None
        sharing.claim(0, 3)
        other = MachineSharing([INTERFACE])
        assert other.path.reach(0, 3) is not None
        other.close()
