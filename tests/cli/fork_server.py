"""A process that has imported what most commands need, and makes a new process for each command that it is asked for.

Started by ``support.py`` with one end of a socket as its first argument. A request is a line of JSON with arguments,
folder, environment and constants to be replaced (by their dotted names), and the three standard streams as file
descriptors; the answer is the exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "cli.py"
IMPORTED = (
    "numpy",
    "rich.progress",
    "mxwire.cli.main",
    "mxwire.cli.progress",
    "mxwire.cli.reading",
    "mxwire.capture",
    "mxwire.wire.decoder",
    "mxwire.report.document",
    "mxwire.analysis.conversations",
    "mxwire.rules",
)
"""Nothing that starts threads: they would not survive the fork."""
MESSAGE = 1 << 20


def main(channel: socket.socket) -> None:
    """Serve until the other side closes the socket."""
    while True:
        said, streams, _, _ = socket.recv_fds(channel, MESSAGE, 3)
        if not said:
            return
        child = os.fork()
        if not child:
            channel.close()
            run(json.loads(said), streams)
            return
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        channel.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def run(request: dict[str, Any], streams: list[int]) -> None:
    """Become the command."""
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    # Those that the server has are made for what it got: a file that can be told where it stands, or a terminal.
    sys.stdout, sys.stderr = (
        open(stream, "w", encoding="utf-8", buffering=1 if os.isatty(stream) else -1, closefd=False)  # noqa: SIM115
        for stream in (1, 2)
    )
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for name, value in request["constants"].items():
        module, _, constant = name.rpartition(".")
        setattr(import_module(module), constant, value)
    sys.argv = [str(SCRIPT), *request["arguments"]]
    runpy.run_path(str(SCRIPT), run_name="__main__")


if __name__ == "__main__":
    sys.path[0] = str(SCRIPT.parent)
    for each in IMPORTED:
        import_module(each)
    main(socket.socket(fileno=int(sys.argv[1])))
