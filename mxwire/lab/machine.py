"""The computer on which something is measured: its facts for reports, its processors, and what spoils measurements."""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import mxwire
from mxwire import __version__
from mxwire.errors import MxwireError
from mxwire.link.ethtool import read_hardware
from mxwire.link.interface import NetworkInterface, read_interface
from mxwire.native import is_compiled
from mxwire.words import count_of

_GET_ADDRESS: Final = 0x8915
_USUAL_CACHES: Final = {1: 32 << 10, 2: 1 << 20, 3: 32 << 20}
_MOST_COLD: Final = 512 << 20
_BUSY: Final = 0.3
"""Load per processor above which a machine counts as busy."""


def available_processors() -> list[int]:
    """Processors on which this process may run."""
    return sorted(os.sched_getaffinity(0))


def placement(sides: int = 2) -> tuple[int, ...]:
    """A processor for each side; sides share them if there are fewer."""
    processors = available_processors()
    return tuple(processors[side % len(processors)] for side in range(sides))


def card_processors() -> tuple[int, int]:
    """A processor for the card of each of two sides: one of its own if there are four.

    Otherwise both share one, that of the passive side if there is no third, so that the active side, on which
    overheads are measured, has its own.
    """
    processors = available_processors()
    return (processors[2], processors[3]) if cards_are_alone() else (processors[-1],) * 2


def cards_are_alone() -> bool:
    """Return whether each of two cards has a processor of its own."""
    return len(available_processors()) >= 4


def agent_processor() -> int | None:
    """A processor for an agent beside two sides; None if there is no third one."""
    left = [each for each in available_processors() if each not in placement()]
    return left[0] if left else None


def processors_of(process: int) -> list[int]:
    """The processors on which a process may run; 0: this one."""
    return sorted(os.sched_getaffinity(process))


def pin(processor: int | None, named: str = "processor") -> None:
    """Bind this process to a processor, which an error calls ``named``; None leaves it where it may run.

    Raises :class:`~mxwire.errors.MxwireError` if it may not run there.
    """
    if processor is None:
        return
    try:
        os.sched_setaffinity(0, {processor})
    except (OSError, ValueError, OverflowError):
        usable = ", ".join(map(str, available_processors()))
        raise MxwireError(f"{named} {processor}: this process cannot run on it; it may use {usable}") from None


def boot_id() -> str:
    """Identifier of this start of the kernel: programs with the same one share their clocks; empty if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _processor_facts() -> str:
    """Description of the processors by the kernel; empty if it has none."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def processor_name() -> str:
    """Model of the processor, as the kernel reports it."""
    lines = _processor_facts().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def cache_bytes(level: int) -> int:
    """Size of the cache of a level for data of the first processor; a usual size if the kernel does not report it."""
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            own, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if own == str(level) and kind != "Instruction" and size.removesuffix("K").isdigit():
            return int(size.removesuffix("K")) << 10
    return _USUAL_CACHES[level]


def cold_bytes() -> int:
    """Bytes of memory whose use drives everything else out of the caches; bounded where caches are very large."""
    return min(4 * cache_bytes(3), _MOST_COLD)


def other_programs(samples: int = 10, pause: float = 0.01) -> float:
    """Average number of programs that are runnable beside this one, from samples ``pause`` seconds apart.

    The load average of the system would contain what this process has measured in the last minute.
    """
    found = []
    for _ in range(samples):
        time.sleep(pause)
        running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0]
        found.append(int(running) - 1)
    return round(sum(found) / len(found), 2)


def is_virtual() -> bool:
    """Return whether the processor reports a hypervisor."""
    return " hypervisor" in _processor_facts()


def software_record() -> dict[str, Any]:
    """The facts that depend neither on an interface nor on this process, as an object for JSON."""
    return {
        "processor": processor_name(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "mxwire": __version__,
    }


def machine_conditions() -> dict[str, Any]:
    """The conditions of a study that do not depend on an interface."""
    return {
        **software_record(),
        "processors": len(available_processors()),
        "virtual_machine": is_virtual(),
    }


def interface_record(name: str) -> dict[str, Any]:
    """The conditions of an interface in the namespace of this thread. Raises LinkError if there is none."""
    interface, hardware = read_interface(name), read_hardware(name)
    coalescing = hardware.coalescing
    return {
        "address": interface.address.hex(),
        "mtu": interface.mtu,
        "driver": hardware.driver or "",
        "offloads": sorted(each for each, active in hardware.offloads.items() if active),
        "coalescing": None if coalescing is None else float(coalescing.microseconds),
        "ip": ip_address(name),
        "compiled": is_compiled(),
        "host": socket.gethostname(),
        "processors": len(available_processors()),
    }


def machine_record(
    interface: NetworkInterface, via: str, mode: str | None = None, refusals: Sequence[str] = ()
) -> dict[str, Any]:
    """Describe this machine, an interface and its kind of link as an object for JSON.

    ``mode`` is that of AF_XDP, ``refusals`` are the reasons why it is not a better one.
    """
    import numpy as np

    hardware = read_hardware(interface.name)
    return {
        "host": socket.gethostname(),
        **software_record(),
        "processors": os.cpu_count(),
        "processors_used": available_processors(),
        "numpy": np.__version__,
        "interface": interface.name,
        "driver": hardware.driver,
        "megabits": hardware.megabits,
        "mtu": interface.mtu,
        "offloads": sorted(name for name, active in hardware.offloads.items() if active),
        "receive_queues": _queues(interface.name, "rx"),
        "transmit_queues": _queues(interface.name, "tx"),
        "via": via,
        "mode": mode,
        "refusals": list(refusals),
    }


def _queues(interface: str, kind: str) -> int | None:
    """Number of queues that the kernel reports for an interface; None if it is not visible here."""
    found = list(Path("/sys/class/net", interface, "queues").glob(f"{kind}-*"))
    return len(found) or None


def ip_address(interface: str) -> str | None:
    """IPv4 address of an interface; None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking.fileno(), _GET_ADDRESS, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def own_folder() -> Path:
    """The folder of the mxwire that runs here."""
    return Path(mxwire.__file__).parents[1]


def compiled_folder() -> Path | None:
    """The folder of a compiled mxwire that equals this one (``make compiled``); None if there is none.

    A folder whose source differs is out of date, and not used.
    """
    package = Path(mxwire.__file__).parent
    folder = package.parent / "build" / "compiled"
    if not (folder / "digest").exists():
        return None
    for path in package.rglob("*.py"):
        other = folder / "mxwire" / path.relative_to(package)
        if not other.exists() or other.read_bytes() != path.read_bytes():
            return None
    return folder


def warnings() -> Iterator[str]:
    """Circumstances of this machine that spoil live measurements, one sentence each."""
    count = len(available_processors())
    if count < 2:
        yield "there is one processor: both sides share it, so times contain the scheduler's; polling sides are slowest"
    load = os.getloadavg()[0]
    if load > _BUSY * count:
        yield f"the machine is busy (load {load:.1f} on {count_of(count, 'processor')}): orderings may remain undecided"
    if is_virtual():
        yield "this is a virtual machine: its host may take the processors away unseen"
