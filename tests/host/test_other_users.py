"""Another user of the machine can neither stop a host nor reach what its processes share."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mxwire.errors import MxwireError
from mxwire.host import Host
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork
from tests.forked import program

from .local_ranks import PATIENCE, opened
from .test_sharing import other_process

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")

OTHER = 65534
INTERFACE = f"memory-users{os.getpid()}"


def as_other_user(attack: Callable[[], None]) -> None:
    """Run ``attack`` in a process of another user, without privileges; each of its assertions must hold."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(OTHER, OTHER, OTHER)
            os.setresuid(OTHER, OTHER, OTHER)
            attack()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def denied(action: Callable[[], object]) -> None:
    try:
        action()
    except PermissionError:
        return
    raise AssertionError(f"{action} is possible")


@pytest.fixture
def shared_place(runtime: Path) -> Path:
    """A runtime folder beside which every user can make files, as in /tmp."""
    runtime.parent.chmod(0o1777)
    return runtime


def test_a_running_host_is_out_of_reach(shared_place):
    with opened(Host, INTERFACE) as host:
        endpoint = host.open_endpoint(1)
        folder = host.sharing.folder
        files = {each.name: each.lstat() for each in folder.iterdir()}
        assert set(files) == {"peers", f"{INTERFACE}.claims", f"{INTERFACE}-1.sock"}
        states = list(shared_place.glob("*.sock"))
        assert len(states) == 1

        def attack() -> None:
            for path in (*(folder / each for each in files), *states):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(socket.AF_UNIX, kind) as asking:
                        for _ in range(1100):
                            denied(lambda path=path, asking=asking: asking.connect(str(path)))
                denied(lambda path=path: os.open(path, os.O_RDONLY))
                denied(lambda path=path: os.open(path, os.O_WRONLY | os.O_TRUNC))
                denied(lambda path=path: os.truncate(path, 0))
                denied(path.unlink)
            with socket.socket(socket.AF_UNIX) as taking:
                denied(lambda: taking.bind(str(folder / f"{INTERFACE}-2.sock")))
            denied(lambda: (folder / f"{INTERFACE}-2.sock").write_text(""))
            denied(lambda: shared_place.rename(shared_place.parent / "gone"))
            denied(lambda: list(shared_place.iterdir()))
            denied(lambda: fcntl.flock(os.open(shared_place, os.O_RDONLY), fcntl.LOCK_EX))

        as_other_user(attack)
        assert {each.name: each.lstat().st_ino for each in folder.iterdir()} == {
            each: status.st_ino for each, status in files.items()
        }
        with opened(Host, INTERFACE) as other:
            partner = other.open_endpoint(2).connect(host.name, 1, timeout=PATIENCE)
            next(iter(other._endpoints.values())).issend(partner, b"as before", 7)
            assert bytes(endpoint.receive(7, timeout=PATIENCE)) == b"as before"


def test_abstract_names_mean_nothing(shared_place):
    """Anyone can take them; hosts used them once."""
    taken = [f"\0mxwire/{INTERFACE}/{each}" for each in ("host", 0, 1)]

    def hold() -> list[socket.socket]:
        made = []
        for name in taken:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                made.append(socket.socket(socket.AF_UNIX, kind))
                made[-1].bind(name)
        return made

    body = f"import os, socket\nos.setresuid({OTHER}, {OTHER}, {OTHER})\nheld = []\n" + "".join(
        f"held.append(socket.socket(socket.AF_UNIX, socket.{kind}))\nheld[-1].bind({name!r})\n"
        for name in taken
        for kind in ("SOCK_STREAM", "SOCK_DGRAM")
    )
    with other_process(body):
        with pytest.raises(OSError, match="Address already in use"):
            hold()
        with Host(MemoryNetwork().attach(), sharing=MachineSharing([INTERFACE])) as host:
            assert host.open_endpoint(1).number == 1 and host.open_endpoint().number == 0
            assert host.sharing.speaks(0) and not host.sharing.elsewhere(0, 1)


@pytest.mark.parametrize("made", ["folder", "open folder", "file", "link", "link to a folder of the user", "socket"])
def test_a_folder_that_another_user_made_first_is_one_line(shared_place, made, tmp_path):
    private = tmp_path / "private"
    private.mkdir(0o700)

    def attack() -> None:
        if made == "file":
            shared_place.write_text("")
        elif made == "socket":
            socket.socket(socket.AF_UNIX).bind(str(shared_place))
        elif made.startswith("link"):
            shared_place.symlink_to(private if "folder" in made else "nowhere")
        else:
            shared_place.mkdir(0o777 if "open" in made else 0o700)

    as_other_user(attack)
    with pytest.raises(MxwireError) as error:
        MachineSharing([INTERFACE])
    assert f"user {OTHER}" in str(error.value) and "\n" not in str(error.value)
    assert list(private.iterdir()) == []
    if shared_place.is_dir() and not shared_place.is_symlink():
        assert list(shared_place.iterdir()) == []


def test_a_full_place_is_one_line(shared_place):
    """Another user has filled the file system."""
    shared_place.mkdir(0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=3", "none", shared_place], check=True)
    try:
        shared_place.chmod(0o700)
        with suppress(OSError):
            for number in range(3):
                (shared_place / f"filler{number}").write_bytes(bytes(4096))
        with pytest.raises(MxwireError) as error:
            MachineSharing([INTERFACE])
        assert "No space left" in str(error.value) and "\n" not in str(error.value)
    finally:
        subprocess.run(["umount", shared_place], check=True)


@pytest.fixture
def stopped() -> Iterator[subprocess.Popen[str]]:
    """A process of this user that has the folder, and does nothing."""
    text = f"""
import os, signal
from mxwire.host.sharing import MachineSharing
sharing = MachineSharing([{INTERFACE!r}])
sharing.claim(0, 1)
assert sharing.speaks(0)
print("ready", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""
    with program(text) as process:
        yield process


def test_a_stopped_process_blocks_nothing_but_its_endpoint(runtime, stopped):
    with Host(MemoryNetwork().attach(), sharing=MachineSharing([INTERFACE])) as host:
        with pytest.raises(MxwireError, match=rf"is taken by process {stopped.pid} \(\S+, user 0\): choose another"):
            host.open_endpoint(1)
        assert host.open_endpoint().number == 0 and not host.sharing.speaks(0)
