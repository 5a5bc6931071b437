"""Runs the real command in a process of its own, as a user does; but one that has been imported already."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
EVERY_TYPE = CAPTURES / "mxoe-every-type.pcap"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


class _Server:
    """The process that makes one for each command; it saves them what takes longest, importing."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(60)
        command = [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(theirs.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()

    def run(
        self,
        arguments: list[str],
        folder: Path,
        streams: list[int],
        environment: Mapping[str, str] | None = None,
        constants: Mapping[str, object] | None = None,
    ) -> int:
        """The exit code of a command; negative for a signal."""
        request = {
            "arguments": arguments,
            "folder": str(folder),
            "environment": dict(os.environ if environment is None else environment),
            "constants": dict(constants or {}),
        }
        socket.send_fds(self.channel, [json.dumps(request).encode()], streams)
        return int(self.channel.recv(100))


@cache
def _server(process: int) -> _Server:
    """The server of this process; one that was forked from it has its own."""
    server = _Server()
    atexit.register(server.channel.close)
    return server


def server() -> _Server:
    """What runs commands for this process."""
    return _server(os.getpid())


def mxwire(*arguments: object, stdin: bytes | None = None, cwd: Path | None = None) -> Run:
    """The command's exit code and what it printed; a traceback is always a failure."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given, writer = os.pipe()
        feeding = Thread(target=_feed, args=(writer, stdin or b""))
        feeding.start()
        try:
            streams = [given, out.fileno(), err.fileno()]
            code = server().run([str(each) for each in arguments], cwd or Path.cwd(), streams)
        finally:
            os.close(given)
            feeding.join()
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    run = Run(code, *said)
    assert "Traceback" not in run.err, run.err
    return run


def _feed(pipe: int, data: bytes) -> None:
    """Write to a command's standard input, as far as it reads."""
    with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
        stream.write(data)


def open_to_all(folder: Path) -> None:
    """Let other users pass through a test's folder; pytest's own are for their owner alone."""
    ours = [folder, *folder.parents]
    for each in ours[: ours.index(Path(tempfile.gettempdir()))]:
        each.chmod(0o755)
