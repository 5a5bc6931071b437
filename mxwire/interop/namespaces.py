"""Network namespaces joined by a veth pair: two machines in one. Creating them needs root and the program ip."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.link.namespace import NetworkNamespace

_CARRIER_SECONDS: Final = 10.0
_FOLDER: Final = Path("/run/netns")


class NamespaceError(MxwireError):
    """A network namespace cannot be created or entered."""


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


@contextmanager
def made(ends: tuple[tuple[str, str], tuple[str, str]], mtu: int) -> Iterator[None]:
    """Create two namespaces with an interface each, given as (namespace, interface), and a cable between them.

    All are removed at the end. Raises :class:`NamespaceError` if they cannot be created, or already exist: then they
    may be in use.
    """
    if os.geteuid() != 0:
        raise NamespaceError("creating network namespaces needs root: run with sudo, or describe interfaces that exist")
    if shutil.which("ip") is None:
        raise NamespaceError("creating network namespaces needs the program ip (package iproute2)")
    done: list[str] = []
    try:
        for namespace, _ in ends:
            if (_FOLDER / namespace).exists():
                raise NamespaceError(
                    f"network namespace {namespace} exists already: remove it (ip netns del {namespace}), or use it "
                    "as it is with make = false"
                )
            run_ip("netns", "add", namespace)
            done.append(namespace)
            run_ip("-n", namespace, "link", "set", "dev", "lo", "up")
        (one, left), (other, right) = ends
        run_ip(
            *("link", "add", left, "netns", one, "mtu", str(mtu), "type", "veth"),
            *("peer", "name", right, "netns", other, "mtu", str(mtu)),
        )
        for namespace, interface in ends:
            run_ip("-n", namespace, "link", "set", "dev", interface, "up")
        for namespace, interface in ends:
            _wait_for_carrier(namespace, interface)
        yield
    finally:
        for namespace in reversed(done):
            _remove(namespace)


def _wait_for_carrier(namespace: str, interface: str) -> None:
    end = time.monotonic() + _CARRIER_SECONDS
    while "NO-CARRIER" in run_ip("-n", namespace, "link", "show", "dev", interface):
        if time.monotonic() > end:
            raise NamespaceError(f"{interface} in {namespace} has no carrier")
        time.sleep(0.01)


def _remove(namespace: str) -> None:
    """End the processes in a namespace, and remove it with its interfaces."""
    with suppress(NamespaceError):
        for process in run_ip("netns", "pids", namespace).split():
            if int(process) != os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(int(process), 9)
    with suppress(NamespaceError):
        run_ip("netns", "del", namespace)


def run_ip(*words: str) -> str:
    """Run ``ip`` and return its output; raise :class:`NamespaceError` if it fails."""
    try:
        return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        # Root of a container may lack the capability.
        advice = "; run as root with CAP_SYS_ADMIN" if "not permitted" in error.stderr else ""
        raise NamespaceError(f"ip {' '.join(words)}: {error.stderr.strip()}{advice}") from None
    except OSError as error:
        raise NamespaceError(f"ip: {error.strerror or error}") from None
