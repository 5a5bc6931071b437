"""Network namespaces joined by veth pairs: several machines in one. Creating them needs root and the program ip.

A process that is killed leaves its namespaces. The next one that makes some removes them, if they have a name of
:func:`process_name`, the process of this name has ended, and no process, perhaps of a container with other numbers,
holds their locks: each :class:`Laboratory` locks its namespaces.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.link.namespace import NetworkNamespace
from mxwire.words import count_of

_CARRIER_SECONDS: Final = 10.0
_FOLDER: Final = Path("/run/netns")
_OWN_NAME: Final = re.compile(r"mxwire-[a-z]+-(\d+)-\d+(-[a-z]+)?")
_numbers = count(1)
_creation = threading.Lock()
"""Held while a namespace is created and not yet locked: it looks like that of a process that was killed."""
_log = logging.getLogger(__name__)

Completed = subprocess.CompletedProcess[str]


class NamespaceError(MxwireError):
    """A network namespace cannot be created or entered."""


def namespaces_refusal() -> str | None:
    """Return the reason why namespaces cannot be created here; None if they probably can."""
    if os.geteuid() != 0:
        return "creating network namespaces needs root: run with sudo"
    return None if shutil.which("ip") else "creating network namespaces needs the program ip (package iproute2)"


def in_user_namespace() -> bool:
    """Return whether this process is in a user namespace, whose root is not that of the machine."""
    try:
        return "4294967295" not in Path("/proc/self/uid_map").read_text(encoding="utf-8")
    except OSError:
        return False


@contextmanager
def inside(name: str | None) -> Iterator[None]:
    """Open sockets of this thread in the namespace ``name``, where they stay afterwards; None for the current one.

    Raises :class:`NamespaceError` if there is no such namespace, or it cannot be entered.
    """
    if name is None:
        yield
        return
    try:
        there = NetworkNamespace(_FOLDER / name)
    except OSError as error:
        raise NamespaceError(f"network namespace {name}: {error.strerror or error} (ip netns add {name})") from None
    with ExitStack() as stack:
        stack.enter_context(there)
        try:
            stack.enter_context(there.visited())
        except OSError as error:
            raise NamespaceError(
                f"network namespace {name}: cannot be entered: {error.strerror}; run as root"
            ) from None
        yield


def run_ip(*words: str) -> str:
    """Run ``ip`` and return its output; raise :class:`NamespaceError` if it fails."""
    try:
        return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        # Root of a container may lack the capability.
        advice = "; run as root with CAP_SYS_ADMIN" if "not permitted" in error.stderr else ""
        if advice and in_user_namespace():
            advice += ", outside of this user namespace"
        raise NamespaceError(f"ip {' '.join(words)}: {error.stderr.strip()}{advice}") from None
    except OSError as error:
        raise NamespaceError(f"ip: {error.strerror or error}") from None


@dataclass(frozen=True)
class Namespace:
    """A network namespace: a machine of its own, as far as the network goes."""

    name: str

    def ip(self, *words: str) -> str:
        """Run ``ip`` in it and return the output; raise :class:`NamespaceError` if it fails."""
        return run_ip("-n", self.name, *words)

    def command(self, *words: str) -> list[str]:
        """Return a command line that runs a command in it."""
        return ["ip", "netns", "exec", self.name, *words]

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command in it with pipes for its output; the caller ends it.

        ``options`` are those of :class:`subprocess.Popen`.
        """
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        return subprocess.Popen(self.command(*words), **options)

    def run(self, *words: str, check: bool = False, timeout: float | None = None, **options: Any) -> Completed:
        """Run a command in it to its end; the options are those of :func:`subprocess.run`."""
        given = options.pop("input", None)
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

    def inside(self) -> AbstractContextManager[None]:
        """Open sockets of this thread in it, where they stay afterwards."""
        return inside(self.name)

    def processes(self) -> list[int]:
        """Return the processes in it."""
        return [int(each) for each in run_ip("netns", "pids", self.name).split()]

    def end_processes(self) -> None:
        """Kill the processes in it, except this one."""
        with suppress(NamespaceError):
            for process in self.processes():
                if process != os.getpid():
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)

    def remove(self) -> None:
        """End the processes in it, and remove it with its interfaces."""
        self.end_processes()
        with suppress(NamespaceError):
            run_ip("netns", "del", self.name)


@dataclass(frozen=True)
class NamespacePort:
    """An interface in a namespace."""

    namespace: Namespace
    interface: str

    def link(self, *words: str) -> None:
        """Change the interface by ``ip link set``."""
        self.namespace.ip("link", "set", "dev", self.interface, *words)

    def up(self) -> None:
        """Switch the interface on."""
        self.link("up")

    def down(self) -> None:
        """Switch the interface off."""
        self.link("down")

    def wait_for_carrier(self, present: bool = True) -> None:
        """Wait until the kernel has noticed that the other end went up, or down if not ``present``.

        Raises :class:`NamespaceError` if it does not within ten seconds.
        """
        end = time.monotonic() + _CARRIER_SECONDS
        while ("NO-CARRIER" in self.namespace.ip("link", "show", "dev", self.interface)) is present:
            if time.monotonic() > end:
                state = "no" if present else "still a"
                raise NamespaceError(f"{self.interface} in {self.namespace.name} has {state} carrier")
            time.sleep(0.01)

    def steer(self, processor: int | None) -> None:
        """Process received frames on one processor; None for that of the sender, as is usual on a veth pair."""
        mask = 0 if processor is None else 1 << processor
        path = f"/sys/class/net/{self.interface}/queues/rx-0/rps_cpus"
        done = self.namespace.run("sh", "-c", f"echo {mask:x} >{path}")
        if done.returncode:
            raise NamespaceError(f"receive packet steering cannot be set: {done.stderr.strip()}")

    def delete(self) -> None:
        """Delete the interface, and with it the other end of its cable."""
        self.namespace.ip("link", "del", "dev", self.interface)

    @property
    def address(self) -> bytes:
        """Its Ethernet address."""
        words = self.namespace.ip("-br", "link", "show", "dev", self.interface).split()
        return bytes.fromhex(words[2].replace(":", ""))


def process_name(purpose: str) -> str:
    """Return a name for a namespace of this process, or, with a hyphen and a word behind it, for several."""
    return f"mxwire-{purpose}-{os.getpid()}-{next(_numbers)}"


def remove_leftovers() -> None:
    """Remove the namespaces of processes that were killed, with what runs in them, and log their number."""
    removed = 0
    for path in sorted(_FOLDER.glob("mxwire-*")):
        name = _OWN_NAME.fullmatch(path.name)
        # A namespace is locked only some time after it was made: until then the number of its process counts.
        if name is None or (int(name[1]) != os.getpid() and Path("/proc", name[1]).exists()):
            continue
        with suppress(OSError):
            os.close(_locked(path))
            Namespace(path.name).remove()
            removed += not path.exists()
    if removed:
        _log.warning("%s of killed processes removed", count_of(removed, "network namespace"))


@cache
def _remove_leftovers_once() -> None:
    remove_leftovers()


def _locked(path: Path) -> int:
    """A descriptor that holds the lock of a namespace. Raises :class:`OSError` if another one holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class Laboratory(AbstractContextManager["Laboratory"]):
    """Namespaces and the cables between them, all of which are removed at the end.

    Its methods raise :class:`NamespaceError` if they fail.
    """

    def __init__(self) -> None:
        self._namespaces: list[tuple[Namespace, int]] = []
        """The namespaces, and the descriptors that hold their locks."""

    def machine(self, name: str) -> Namespace:
        """Create a namespace with its loopback interface up; refuse a name that exists, as it may be in use."""
        if refusal := namespaces_refusal():
            raise NamespaceError(f"{refusal}, or describe interfaces that exist")
        namespace = self._namespace(name)
        with _creation:
            _remove_leftovers_once()
            if (_FOLDER / name).exists():
                raise NamespaceError(
                    f"network namespace {name} exists already: remove it (ip netns del {name}), or use it as it is "
                    "with make = false"
                )
            run_ip("netns", "add", name)
            try:
                lock = _locked(_FOLDER / name)
            except OSError as error:
                raise NamespaceError(
                    f"network namespace {name}: another process has taken it: {error.strerror}"
                ) from None
            self._namespaces.append((namespace, lock))
        namespace.ip("link", "set", "dev", "lo", "up")
        return namespace

    def _namespace(self, name: str) -> Namespace:
        return Namespace(name)

    def cable(
        self, one: Namespace, other: Namespace, names: Sequence[str] = ("veth0", "veth1"), mtu: int = 1500
    ) -> tuple[NamespacePort, NamespacePort]:
        """Create a veth pair between two namespaces, up at both ends."""
        run_ip(
            *("link", "add", names[0], "netns", one.name, "mtu", str(mtu), "type", "veth"),
            *("peer", "name", names[1], "netns", other.name, "mtu", str(mtu)),
        )
        ports = NamespacePort(one, names[0]), NamespacePort(other, names[1])
        for port in ports:
            port.up()
        for port in ports:
            port.wait_for_carrier()
        return ports

    def close(self) -> None:
        """Remove all namespaces, with what runs in them."""
        while self._namespaces:
            namespace, lock = self._namespaces.pop()
            # An open descriptor would keep its interfaces.
            os.close(lock)
            namespace.remove()

    def __exit__(self, *_: object) -> None:
        """Remove all namespaces."""
        self.close()


@contextmanager
def joined(ends: tuple[tuple[str, str], tuple[str, str]], mtu: int) -> Iterator[tuple[NamespacePort, NamespacePort]]:
    """Create two namespaces with an interface each, given as (namespace, interface), and a cable between them.

    All are removed at the end. Raises :class:`NamespaceError` if they cannot be created, or already exist.
    """
    with Laboratory() as laboratory:
        (one, left), (other, right) = ends
        yield laboratory.cable(laboratory.machine(one), laboratory.machine(other), (left, right), mtu)


def private_cable(purpose: str, mtu: int) -> AbstractContextManager[tuple[NamespacePort, NamespacePort]]:
    """Create two namespaces with names of this process, and a cable between their interfaces veth0 and veth1.

    See :func:`joined`.
    """
    name = process_name(purpose)
    return joined(((f"{name}-a", "veth0"), (f"{name}-b", "veth1")), mtu)
