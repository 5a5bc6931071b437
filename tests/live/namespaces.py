"""Network namespaces joined by virtual Ethernet, as machines for tests. They require root and ``ip``."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

PREFIX = "mxw"
_CARRIER_SECONDS = 10.0
_CLONE_NEWNET = 0x40000000
_numbers = itertools.count()


def as_nobody(code: str, *capabilities: str) -> list[str]:
    """Return a command line that runs Python code as the user ``nobody``, with these capabilities only.

    It may also read all files: the interpreter can be in a home directory that only its owner may enter.
    """
    kept = "".join(f",+{each}" for each in ("dac_read_search", *capabilities))
    words = ["setpriv", "--reuid=65534", "--clear-groups", f"--inh-caps=-all{kept}", f"--ambient-caps=-all{kept}"]
    return [*words, sys.executable, "-c", code]


@cache
def missing() -> str | None:
    """The reason why namespaces cannot be created here; None if they can."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "the program ip is not installed (package iproute2)"
    try:
        with _made() as one:
            _ip("link", "add", "probe0", "netns", one.name, "type", "veth", "peer", "name", "probe1", "netns", one.name)
    except (subprocess.CalledProcessError, OSError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        return f"network namespaces cannot be made here: {said.strip()}"
    return None


def sweep() -> None:
    """Remove the namespaces that test runs left behind which were killed."""
    for line in _ip("netns", "list").splitlines():
        name = line.split()[0]
        parts = name.split("-")
        if parts[0] == PREFIX and len(parts) == 3 and not Path("/proc", parts[1]).exists():
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@dataclass
class Namespace:
    """A machine of its own, as far as the network goes."""

    name: str

    def ip(self, *words: str) -> str:
        """The output of ``ip`` in it; raises CalledProcessError."""
        return _ip("-n", self.name, *words)

    def command(self, *words: str) -> list[str]:
        """A command line that runs a command in it."""
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command in it to its end."""
        given, timeout, check = options.pop("input", None), options.pop("timeout", None), options.pop("check", False)
        with self.start(*words, **({} if given is None else {"stdin": subprocess.PIPE}), **options) as process:
            try:
                out, errors = process.communicate(given, timeout)
            except BaseException:
                process.kill()
                raise
        done = subprocess.CompletedProcess(process.args, process.returncode, out, errors)
        if check:
            done.check_returncode()
        return done

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command in it, forked if it is a program of Python; the caller ends it."""
        from tests.forked import start

        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        return start(words, self.name, **options) or subprocess.Popen(self.command(*words), **options)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Everything that this thread opens belongs to the namespace; what it has opened stays so afterwards."""
        with Path("/proc/thread-self/ns/net").open() as here, Path("/run/netns", self.name).open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(here.fileno())

    def remove(self) -> None:
        """Kill what runs in it, and remove it with all its interfaces."""
        with suppress(subprocess.CalledProcessError):
            for process in _ip("netns", "pids", self.name).split():
                with suppress(ProcessLookupError):
                    os.kill(int(process), 9)
        with suppress(subprocess.CalledProcessError):
            _ip("netns", "del", self.name)


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@dataclass(frozen=True)
class Port:
    """An interface in a namespace."""

    namespace: Namespace
    interface: str

    def link(self, *words: str) -> None:
        """``ip link set`` with the interface."""
        self.namespace.ip("link", "set", "dev", self.interface, *words)

    def up(self) -> None:
        self.link("up")

    def down(self) -> None:
        self.link("down")

    def wait_for_carrier(self, present: bool = True) -> None:
        """Wait until the kernel has seen that its other end went up or down, a moment after it did."""
        end = time.monotonic() + _CARRIER_SECONDS
        while ("NO-CARRIER" in (said := self.namespace.ip("link", "show", "dev", self.interface))) is present:
            assert time.monotonic() < end, said
            time.sleep(0.01)

    def steer(self, processor: int | None) -> None:
        """Process received frames on one processor; None for that of the sender, as is usual on a veth pair."""
        mask = 0 if processor is None else 1 << processor
        path = f"/sys/class/net/{self.interface}/queues/rx-0/rps_cpus"
        self.namespace.run("sh", "-c", f"echo {mask:x} >{path}", check=True)

    def delete(self) -> None:
        """Delete the interface, and with it the other end of its cable."""
        self.namespace.ip("link", "del", "dev", self.interface)

    @property
    def address(self) -> bytes:
        """Its Ethernet address."""
        words = self.namespace.ip("-br", "link", "show", "dev", self.interface).split()
        return bytes.fromhex(words[2].replace(":", ""))


@dataclass
class Laboratory:
    """Makes machines and cables, and removes them all at its end."""

    _made: list[Namespace] = field(default_factory=list)

    def machine(self) -> Namespace:
        """A new namespace, with its loopback up."""
        made = Namespace(f"{PREFIX}-{os.getpid()}-{next(_numbers)}")
        self._made.append(made)
        _ip("netns", "add", made.name)
        made.ip("link", "set", "dev", "lo", "up")
        return made

    def cable(
        self, one: Namespace, other: Namespace, names: Sequence[str] = ("veth0", "veth1"), mtu: int = 1500
    ) -> tuple[Port, Port]:
        """A veth pair between two machines, up at both ends."""
        _ip(
            *("link", "add", names[0], "netns", one.name, "mtu", str(mtu), "type", "veth"),
            *("peer", "name", names[1], "netns", other.name, "mtu", str(mtu)),
        )
        ports = Port(one, names[0]), Port(other, names[1])
        for port in ports:
            port.up()
        for port in ports:
            port.wait_for_carrier()
        return ports

    def pair(self, mtu: int = 1500) -> tuple[Port, Port]:
        """Two new machines joined by a cable: veth0 and veth1."""
        return self.cable(self.machine(), self.machine(), mtu=mtu)

    def bridged(self, count: int, mtu: int = 1500, *, hub: bool = False) -> list[Port]:
        """New machines, each with an interface eth0 on one bridge; as a ``hub`` it learns no addresses."""
        switch = self.machine()
        switch.ip("link", "add", "br0", "mtu", str(mtu), "type", "bridge")
        ports = []
        for number in range(count):
            port, inner = self.cable(self.machine(), switch, ("eth0", f"port{number}"), mtu)
            inner.link("master", "br0")
            ports.append(port)
            if hub:
                inner.link("type", "bridge_slave", "learning", "off")
        switch.ip("link", "set", "dev", "br0", "up")
        return ports

    def close(self) -> None:
        """Remove everything."""
        for each in reversed(self._made):
            each.remove()
        self._made.clear()

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _made() -> Iterator[Namespace]:
    with Laboratory() as laboratory:
        yield laboratory.machine()
