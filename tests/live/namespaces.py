"""Network namespaces joined by virtual Ethernet, as machines for tests. They require root and ``ip``."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

from mxwire.lab import namespaces
from mxwire.lab.namespaces import NamespaceError, namespaces_refusal, process_name, run_ip
from mxwire.lab.namespaces import NamespacePort as Port

__all__ = ["Laboratory", "Namespace", "Port"]


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
    if refusal := namespaces_refusal():
        return refusal
    try:
        with Laboratory() as laboratory:
            name = laboratory.machine().name
            run_ip("link", "add", "probe0", "netns", name, "type", "veth", "peer", "name", "probe1", "netns", name)
    except NamespaceError as error:
        return f"network namespaces cannot be made here: {error}"
    return None


class Namespace(namespaces.Namespace):
    """A machine of its own, in which programs of Python start quickly."""

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command in it, forked if it is a program of Python; the caller ends it."""
        from tests.forked import start

        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return start(words, self.name, **pipes | options) or super().start(*words, **options)


class Laboratory(namespaces.Laboratory):
    """Machines and cables, with more shapes."""

    def machine(self, name: str = "") -> namespaces.Namespace:
        """A new namespace, with its loopback up."""
        return super().machine(name or process_name("test"))

    def _namespace(self, name: str) -> Namespace:
        return Namespace(name)

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
