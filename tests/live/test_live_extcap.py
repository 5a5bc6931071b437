"""Captures for Wireshark on real interfaces: of this computer, and of a host that is reached by a real sshd."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from mxwire.capture import open_capture
from tests.link.link_frames import BROADCAST, frame
from tests.waiting import until

from .commands import LONGEST
from .namespaces import Namespace, Port, as_nobody
from .test_live_tap import send_raw

PROGRAM = [sys.executable, "-m", "mxwire.cli.extcap"]
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
PORT = 2222
ENOUGH = 3
"""Frames by which a capture has certainly begun, and after which it is ended."""


def reader_of(fifo: Path) -> BinaryIO:
    """Open a FIFO without waiting for its writer, since a program that fails never opens it."""
    return os.fdopen(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb")


def captured(port: Port, interface: str, folder: Path, *options: str) -> tuple[list[bytes], subprocess.Popen[str], str]:
    """Capture until frames have passed, then end as Wireshark does, with SIGTERM; the frames are sent until then."""
    fifo, made = folder / "fifo", folder / "made.pcapng"
    os.mkfifo(fifo)
    words = [*PROGRAM, "--capture", "--extcap-interface", interface, "--fifo", str(fifo), *options]
    process = port.namespace.start(*words)
    sent, ended = frame(BROADCAST), False
    with reader_of(fifo) as pipe, made.open("wb") as file:
        while process.poll() is None:
            if made.stat().st_size < ENOUGH * len(sent):
                send_raw(port, sent)
            elif not ended:
                process.terminate()
                ended = True
            file.write(pipe.read() or b"")
            file.flush()
            time.sleep(0.02)
        file.write(pipe.read() or b"")
    errors = process.communicate()[1]
    if not made.stat().st_size:
        return [], process, errors
    with open_capture(made) as reader:
        return [batch.frame(each) for batch in reader for each in range(len(batch))], process, errors


def test_an_interface_of_this_computer(cable: tuple[Port, Port], tmp_path: Path) -> None:
    frames, process, errors = captured(cable[0], "mxwire-live", tmp_path, "--interface", "veth0")
    assert len(frames) >= 1 and set(frames) == {frame(BROADCAST)}, errors
    assert process.returncode == 143 and "0 frames dropped" in errors


def test_an_interface_that_does_not_exist(cable: tuple[Port, Port], tmp_path: Path) -> None:
    frames, process, errors = captured(cable[0], "mxwire-live", tmp_path, "--interface", "veth7")
    assert (frames, process.returncode) == ([], 2) and errors.count("\n") == 1 and "veth7" in errors


def test_without_permission(cable: tuple[Port, Port], tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    words = [
        "mxwire-extcap",
        "--capture",
        "--extcap-interface",
        "mxwire-live",
        "--fifo",
        str(fifo),
        "--interface=veth0",
    ]
    code = f"import sys; sys.argv = {words}; from mxwire.cli.extcap import main; main()"
    for each in (fifo, tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o777)
    process = cable[0].namespace.start(*as_nobody(code))
    with reader_of(fifo) as pipe:
        errors = process.communicate(timeout=LONGEST)[1]
        assert pipe.read() == b""
    assert process.returncode == 2 and "CAP_NET_RAW" in errors and errors.count("\n") == 1


@contextlib.contextmanager
def sshd(namespace: Namespace, folder: Path) -> Iterator[list[str]]:
    """A real sshd in a namespace, and the options with which ssh reaches it."""
    host_key, key = folder / "host_key", folder / "key"
    for each in (host_key, key):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(each)], check=True)
    settings = {
        "Port": PORT,
        "ListenAddress": "127.0.0.1",
        "HostKey": host_key,
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        "PermitRootLogin": "yes",
        "AuthorizedKeysFile": key.with_suffix(".pub"),
    }
    config = folder / "sshd_config"
    config.write_text("".join(f"{name} {value}\n" for name, value in settings.items()), encoding="utf-8")
    # A folder that the service's own start makes; sshd refuses to run as root without it.
    privileged = Path("/run/sshd")
    privileged.mkdir(mode=0o755, exist_ok=True)
    assert SSHD is not None
    process = namespace.start(SSHD, "-D", "-e", "-f", str(config))
    known = folder / "known_hosts"
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "listening on" in line:
                break
        known.write_text(f"[127.0.0.1]:{PORT} {host_key.with_suffix('.pub').read_text()}", encoding="utf-8")
        yield ["-F", "none", "-p", str(PORT), "-i", str(key), "-o", f"UserKnownHostsFile={known}"]
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.skipif(SSHD is None, reason="sshd is not installed")
@pytest.mark.parametrize("program", ["mxwire", "tcpdump"])
def test_an_interface_of_a_remote_host(cable: tuple[Port, Port], tmp_path: Path, program: str) -> None:
    namespace = cable[0].namespace
    path = shutil.which(program, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed")
    with sshd(namespace, tmp_path) as options:
        remote = ["--remote-host", "127.0.0.1", "--remote-interface", "veth0", "--remote-program", path]
        frames, _, errors = captured(cable[0], "mxwire-ssh", tmp_path, *remote, "--ssh-options", " ".join(options))
        assert len(frames) >= 1 and set(frames) == {frame(BROADCAST)}, errors
        # On the remote host nothing may keep running, although no more frames pass.
        until(lambda: not re.search("capture|tcpdump", _commands(namespace)))


@pytest.mark.skipif(SSHD is None, reason="sshd is not installed")
def test_a_remote_host_that_refuses_the_key(cable: tuple[Port, Port], tmp_path: Path) -> None:
    with sshd(cable[0].namespace, tmp_path) as options:
        options = [*options, "-o", "IdentitiesOnly=yes", "-o", "PubkeyAuthentication=no"]
        remote = ["--remote-host", "127.0.0.1", "--remote-interface", "veth0"]
        frames, process, errors = captured(
            cable[0], "mxwire-ssh", tmp_path, *remote, "--ssh-options", " ".join(options)
        )
    assert (frames, process.returncode) == ([], 255) and "Permission denied" in errors


def _commands(namespace: Namespace) -> str:
    """The command lines of the processes in a namespace."""
    found = []
    for process in subprocess.run(
        ["ip", "netns", "pids", namespace.name], capture_output=True, text=True, check=True
    ).stdout.split():
        with contextlib.suppress(OSError):
            found.append(Path("/proc", process, "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return "\n".join(found)
