"""A process that has imported what most commands need, and forks a new process for each command that is requested.

Started by ``tests/forked.py`` with one end of a socket as its first argument. A request is a line of JSON with the file
descriptors of the command: the three standard streams, and further ones. The answer is the exit code of the command or,
if the command was only to be started, its process id; such a process becomes a child of the process that asked, which
must be a subreaper. A command that starts a further program of this package forks it in turn.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

ROOT = str(Path(__file__).parents[1])
sys.path[0] = ROOT
Program = import_module("tests.forked").Program
COMMANDS = import_module("mxwire.cli.main").COMMANDS
NetworkNamespace = import_module("mxwire.link.namespace").NetworkNamespace
IMPORTED = (
    *Path(__file__).with_name("forked_modules.txt").read_text().split(),
    *(f"mxwire.cli.{each}" for each in COMMANDS),
)
"""Nothing that starts threads: they would not survive the fork."""
IMPORTED_LATER = {
    "--plot": ("matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"),
    "pytest": ("pytest",),
}
"""Imported for the first command line with this word."""
CAPTURES = ("mxoe-every-type", "omx1500-early", "omx9000-connect")
"""Captures that are decoded before the fork: what is computed once for the layout of a frame is shared then."""
MESSAGE = 1 << 20
MOST_STREAMS = 8
_UNUSED = 200
"""Descriptors from here on are free, so that no stream is in the place of another."""
_CLONE_NEWNS = 0x20000
_MNT_DETACH = 2
_MS_REC, _MS_SLAVE = 0x4000, 0x80000


def main(channel: socket.socket) -> None:
    """Serve until the other side closes the socket."""
    while True:
        text, streams, _, _ = socket.recv_fds(channel, MESSAGE, MOST_STREAMS)
        if not text:
            return
        request = json.loads(text)
        for word in IMPORTED_LATER.keys() & {request["program"], *request["arguments"]}:
            with contextlib.suppress(ImportError):
                prepare(IMPORTED_LATER.pop(word))
        answer = start(request, streams, channel) if request["detached"] else wait(request, streams, channel)
        for stream in streams:
            os.close(stream)
        channel.sendall(f"{answer}\n".encode())


def decode(name: str) -> None:
    """Decode a capture in both ways."""
    decoder = import_module("mxwire.wire.decoder").Decoder()
    with import_module("mxwire.capture").open_capture(Path(ROOT, "captures", f"{name}.pcap")) as batches:
        for decoded in decoder.decode_all(batches):
            assert len(list(decoded)) == len(decoded.columns)


def prepare(modules: Iterable[str]) -> None:
    """Import modules, and exempt them from garbage collection, which would copy their memory in each command."""
    for each in modules:
        import_module(each)
    gc.collect()
    gc.freeze()


def wait(request: dict[str, Any], streams: list[int], channel: socket.socket) -> int:
    """Run a command to its end, and return its exit code; kill it if it does not end in time."""
    child = os.fork()
    if not child:
        channel.close()
        run(request, streams)
    descriptor = os.pidfd_open(child)
    if not select.select([descriptor], [], [], request["seconds"])[0]:
        os.kill(child, signal.SIGKILL)
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def start(request: dict[str, Any], streams: list[int], channel: socket.socket) -> int:
    """Start a command as an orphan, which the subreaper adopts, and return its process id."""
    reading, writing = os.pipe()
    between = os.fork()
    if not between:
        child = os.fork()
        if child:
            os.write(writing, str(child).encode())
            os._exit(0)
        os.close(reading)
        os.close(writing)
        channel.close()
        run(request, streams)
    os.close(writing)
    os.waitpid(between, 0)
    try:
        return int(os.read(reading, MESSAGE))
    finally:
        os.close(reading)


def run(request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Become the command."""
    place(streams, request["numbers"])
    # Those of the server were made for its own streams: these may be a file that can be positioned, or a terminal.
    for stream, name in ((1, "stdout"), (2, "stderr")):
        setattr(sys, name, writer(stream, request["unbuffered"]))
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.sched_setaffinity(0, request["processors"])
    if request["session"]:
        os.setsid()
    if request["namespace"]:
        enter(request["namespace"])
    for name, value in request["constants"].items():
        module, _, constant = name.rpartition(".")
        setattr(import_module(module), constant, value)
    program, option = request["program"], request["option"]
    sys.argv = [option if option == "-c" else program, *request["arguments"]]
    code: object = 0
    try:
        if option:
            sys.path[0] = request["folder"]
            sys.path[1:1] = filter(None, request["environment"].get("PYTHONPATH", "").split(":"))
        if option == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        elif option == "-c":
            sys.modules["__main__"] = module = ModuleType("__main__")
            exec(compile(program, "<string>", "exec"), vars(module))
        else:
            sys.path[0] = str(Path(program).parent)
            runpy.run_path(program, run_name="__main__")
    except SystemExit as error:
        code = error.code
    if code is None or isinstance(code, int):
        end(code or 0)
    sys.exit(code)  # type: ignore[arg-type]


class InnerProcess(subprocess.Popen[Any]):
    """A process that a command starts: forked from the command if it is a program in Python with the same packages."""

    def _execute_child(self, *words: Any) -> None:
        command, _, prepare, _, numbers, folder, environment, _, _, shell = words[:10]
        reading, _, _, writing, _, complaining = pipes = words[10:16]
        program = None if shell or prepare or isinstance(command, str) else Program.of(command)
        if (
            program is None
            or program.option == "-c"
            or set(words[17:21]) != {None, -1}
            or words[22] != -1
            or not same_packages(environment)
        ):
            super()._execute_child(*words)  # type: ignore[misc]
            return
        self.pid = os.fork()
        if not self.pid:
            standard = [own if own != -1 else number for number, own in enumerate((reading, writing, complaining))]
            streams = [os.dup(stream) for stream in (*standard, *numbers)]
            forget(streams)
            run(
                {
                    "program": program.name,
                    "option": program.option,
                    "arguments": program.arguments,
                    "unbuffered": program.unbuffered,
                    "folder": os.fspath(folder or Path.cwd()),
                    "environment": dict(os.environ if environment is None else environment),
                    "namespace": None,
                    "session": words[21],
                    "processors": os.sched_getaffinity(0),
                    "numbers": [0, 1, 2, *numbers],
                    "constants": {},
                },
                streams,
            )
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def same_packages(environment: dict[str, str] | None) -> bool:
    """Return whether a program with this environment finds the modules that this process has imported."""
    if environment is None:
        return True
    known = {"", ROOT, *os.environ.get("PYTHONPATH", "").split(":")}
    return known.issuperset(environment.get("PYTHONPATH", "").split(":"))


def forget(kept: list[int]) -> None:
    """Drop what a new program does not inherit from the process that starts it: handlers, and other open files."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    atexit._clear()
    # Objects of closed files would close those that get their numbers.
    gc.freeze()
    start = 0
    for each in sorted(kept):
        os.closerange(start, each)
        start = each + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def end(code: int) -> NoReturn:
    """Exit without freeing all objects one by one, which would copy the memory that is shared with the server."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # which tries again, and reports the error as Python does
    os._exit(code & 0xFF)


def place(streams: list[int], numbers: list[int]) -> None:
    """Give the streams the numbers that the command expects."""
    moved = [fcntl.fcntl(stream, fcntl.F_DUPFD, _UNUSED) for stream in streams]
    for stream in streams:
        os.close(stream)
    for stream, number in zip(moved, numbers, strict=True):
        os.dup2(stream, number)
        os.close(stream)


def writer(stream: int, unbuffered: bool) -> io.TextIOWrapper:
    """Return what Python makes of a standard stream."""
    errors = "strict" if stream == 1 else "backslashreplace"
    if unbuffered:
        return io.TextIOWrapper(
            open(stream, "wb", buffering=0, closefd=False),  # type: ignore[arg-type]
            encoding="utf-8",
            errors=errors,
            write_through=True,
        )
    lines = stream == 2 or os.isatty(stream)
    return open(stream, "w", encoding="utf-8", errors=errors, buffering=1 if lines else -1, closefd=False)


def enter(name: str) -> None:
    """Do what ``ip netns exec`` does: enter the namespace, and mount /sys of it."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int) -> None:
        if result:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    with NetworkNamespace(Path("/run/netns", name)) as namespace:
        namespace.enter()
    check(libc.unshare(_CLONE_NEWNS))
    check(libc.mount(b"", b"/", b"none", ctypes.c_ulong(_MS_SLAVE | _MS_REC), None))
    libc.umount2(b"/sys", _MNT_DETACH)
    check(libc.mount(name.encode(), b"/sys", b"sysfs", ctypes.c_ulong(0), None))


if __name__ == "__main__":
    for each in CAPTURES:
        decode(each)
    prepare(IMPORTED)
    subprocess.Popen = InnerProcess  # type: ignore[misc]
    main(socket.socket(fileno=int(sys.argv[1])))
