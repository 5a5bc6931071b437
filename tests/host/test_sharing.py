"""The state that processes on one interface share: endpoint numbers, the answering process, and the peer table."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import textwrap
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.host import Host, HostError, shared_peers
from mxwire.host.shared_peers import _IN_USE, _ROW, SharedPeerTable, remove_unused
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork
from mxwire.link.byte_locks import LockableFile
from mxwire.protocol import Node, Status
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.units import SECOND
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Announcement
from tests.forked import program

INTERFACE = f"test{os.getpid()}"


def other_process(body: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that prints "ready" after running ``body``, and then waits."""
    return program(
        f"import sys\nfrom pathlib import Path\n{textwrap.dedent(body)}\nprint('ready', flush=True)\nsys.stdin.read()\n"
    )


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
        assert [one.address_at(each) for each in range(5)] == [*addresses[:4], None]
    assert two.place_of(addresses[4]) == 4
    one.close()
    two.close()
    two.close()
    assert not folder.exists()


def test_peers_belong_to_their_interface_and_indexes_to_all(folder):
    """A process with two interfaces has one index for each peer, which the processes of both must understand."""
    near, far = SharedPeerTable(folder, ["near"]), SharedPeerTable(folder, ["far"])
    assert [near.place_of(address(1)), far.place_of(address(2)), far.place_of(address(1))] == [0, 1, 0]
    assert [near.index_of(address(each)) for each in (1, 2)] == [0, None]
    assert near.address_at(1) is None and near.address_at(2) is None, "the row of the far interface is no index"
    assert near.news() == [] and far.news() == [], "only others add what is new"
    both = SharedPeerTable(folder, ["near", "far"])
    assert both.news() == [address(1), address(2)] and both.news() == []
    assert [both.index_of(address(each)) for each in (1, 2)] == [0, 1]
    assert both.place_of(address(3)) == far.place_of(address(3)) == near.place_of(address(3))
    assert near.address_at(near.place_of(address(3))) == address(3)
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
    assert fresh.news() == [] and fresh.index_of(bytes(6)) is None
    remove_unused(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == [folder], "this one is in use"
    fresh.close()
    assert list(tmp_path.iterdir()) == []


def test_the_index_of_a_peer_that_no_process_has_is_given_to_another(folder):
    one, two = SharedPeerTable(folder, ["a"]), SharedPeerTable(folder, ["a"])
    assert [one.place_of(address(each)) for each in (1, 2, 3)] == [0, 1, 2]
    assert two.place_of(address(2)) == 1
    one.learn(address(2), "alpha:0")
    one.leave(address(2))
    assert one.place_of(address(4)) == 3, "the other process has it still"
    assert one.index_of(address(2)) == 1 and one.name_of(address(2)) == "alpha:0"
    two.leave(address(2))
    two.leave(address(2))
    assert one.index_of(address(2)) is None and one.address_at(1) is None
    assert one.place_of(address(5)) == 1 and one.name_of(address(5)) is None
    assert two.address_at(1) == address(5) and two.news() == [address(1), address(3), address(4), address(5)]
    assert two.place_of(address(2)) == 4
    for each in (one, two):
        each.close()


def test_the_first_row_of_a_peer_stays_the_first(folder):
    """Its number is the index; a row that becomes blank before it takes another peer."""
    near, far = SharedPeerTable(folder, ["near"]), SharedPeerTable(folder, ["far"])
    assert [near.place_of(address(each)) for each in (1, 2)] == [0, 1]
    near.leave(address(1))
    assert far.place_of(address(2)) == 1 and near.index_of(address(2)) == 1
    assert near.place_of(address(3)) == 0
    for each in (near, far):
        each.close()


@pytest.mark.interpreted("it replaces a constant of the module")
def test_rows_of_killed_processes_are_used_again(folder, monkeypatch):
    monkeypatch.setattr(shared_peers, "_ROWS_MAXIMUM", 4)
    table = SharedPeerTable(folder, ["a"])
    assert table.place_of(address(1)) == 0
    with table_in_another_process(folder, "a", "[peers.place_of(bytes([each] * 6)) for each in range(3)]"):
        assert table.place_of(address(2)) == 4 and table.address_at(1) == bytes(6)
    assert table.address_at(1) is None
    assert sorted(table.place_of(address(each)) for each in (3, 4, 5)) == [1, 2, 3]
    assert table.place_of(address(6)) == 5
    table.close()


def test_another_process_that_does_not_run_for_a_while_in_its_change_is_waited_for(folder):
    one, two = SharedPeerTable(folder, ["a"]), SharedPeerTable(folder, ["a"])
    with ExitStack() as changing:
        assert changing.enter_context(one._changing())
        ending = threading.Timer(0.2, changing.close)
        ending.start()
        assert two.place_of(address(1)) == 0
        ending.join()
    for each in (one, two):
        each.close()


def test_another_process_that_never_ends_its_change_is_not_waited_for(folder):
    one, two = SharedPeerTable(folder, ["a"]), SharedPeerTable(folder, ["a"])
    one.place_of(address(1))
    with one._changing() as may_change:
        assert may_change
        assert two.place_of(address(2)) is None and two.index_of(address(1)) == 0
    assert two.place_of(address(2)) == 1
    for each in (one, two):
        each.close()


def test_processes_come_and_go_at_random(folder):
    """No index belongs to two peers that processes have, and all have the same index for a peer."""
    rng = Random(1)
    interfaces = (["a"], ["a"], ["b"], ["a", "b"])
    tables = [SharedPeerTable(folder, each) for each in interfaces]
    have: list[dict[bytes, int]] = [{} for _ in tables]
    for _ in range(4000):
        which, who = rng.randrange(4), address(rng.randrange(12))
        table, mine = tables[which], have[which]
        chosen = rng.randrange(10)
        if chosen < 5:
            place = table.place_of(who)
            assert place is not None
            mine[who] = place
        elif chosen < 9:
            table.leave(who)
            mine.pop(who, None)
        else:
            mine.clear()
            table.close()
            tables[which] = SharedPeerTable(folder, interfaces[which])
        held = {index: who for each in have for who, index in each.items()}
        assert all(held[index] == who for each in have for who, index in each.items())
        assert len(set(held.values())) == len(held)
        near = [index for place, each in enumerate(have) if place != which and place != 2 for index in each.values()]
        if which != 2:
            assert all(tables[which].address_at(index) == held[index] for index in near)
    assert (folder / "peers").stat().st_size < 50 * _ROW.size
    for each in tables:
        each.close()


@pytest.mark.rule("R-DISC-05")
def test_a_flood_of_announcements_neither_hides_hosts_nor_hurts_partners_of_several_processes(folder):
    """All processes hear it; each keeps what it needs, and they agree on the indexes."""
    own, partner, late, static = (address(each) for each in (1, 2, 3, 4))
    profile = replace(OPEN_MX_1_5, peer_maximum=64)
    sharings = [MachineSharing([INTERFACE]) for _ in range(2)]
    nodes = [Node(own, rng=Random(each), listen=True, profile=profile, sharing=sharings[each]) for each in range(2)]
    codec = codec_of(MXOE)

    def announce(*addresses: bytes) -> None:
        numbers = [int.from_bytes(each, "big") for each in addresses]
        frames = [
            Announcement(
                dst_mac=b"\xff" * 6, src_mac=late, nic_id_hi=each >> 32, nic_id_lo=each & 0xFFFF_FFFF, serial=1
            )
            for each in numbers
        ]
        for node in nodes:
            node.receive(FrameBatch.from_frames([codec.build(each) for each in frames]), 0)
            node.transmit(0)
            node.events()

    announce(partner)
    endpoint = nodes[0].open_endpoint(1)
    endpoint.connect(partner, 1, 0)
    nodes[1].add_peer(static)
    index = nodes[0].peer(partner).index
    for first in range(0, 5000, 25):
        announce(*[b"\6\0" + each.to_bytes(4, "big") for each in range(first, first + 25)])
    announce(late)
    for node in nodes:
        assert len(node.peers) == 64
        assert node.peers.at(index) is node.peer(partner) and node.peer(partner).index == index
        assert node.peer(late).index == nodes[0].peer(late).index
        assert node.peers.at(nodes[1].peer(static).index) is node.peer(static)
    one, two = ({each.index: each.address for each in node.peers} for node in nodes)
    assert all(one[each] == two[each] for each in one.keys() & two.keys())
    assert (sharings[0].folder / "peers").stat().st_size < 200 * _ROW.size
    for each in sharings:
        each.close()


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
    with pytest.raises(MxwireError, match="of this user has locked the shared peer table"):
        SharedPeerTable(folder, ["a"])
    held.close()
    SharedPeerTable(folder, ["a"]).close()


def test_a_cleaner_of_old_files_leaves_the_folder_alone(folder: Path) -> None:
    """systemd-tmpfiles skips a folder that it cannot lock; a claim whose file has gone would be free again."""
    tables = [SharedPeerTable(folder, ["a"]) for _ in range(2)]
    cleaner = os.open(folder, os.O_RDONLY)
    for each in tables:
        with pytest.raises(BlockingIOError):
            fcntl.flock(cleaner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        each.close()
    fcntl.flock(cleaner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(cleaner)


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


def test_a_host_stays_with_the_process_that_opened_it():
    link = MemoryNetwork().attach()
    with Host(link, sharing=MachineSharing([INTERFACE])) as host:
        host.open_endpoint(1)
        child = os.fork()
        if not child:
            code = 1
            try:
                with pytest.raises(MxwireError, match="a host belongs to the process that opened it"):
                    host.peers()
                host.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        other = MachineSharing([INTERFACE])
        assert other.owner(0, 1) == "another host of this process"
        other.close()
    assert [each.own for each in host.peers()] == [True]


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
