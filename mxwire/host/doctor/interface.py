"""Checks of an interface's configuration, without sending frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.ethernet import ETHERTYPE_MXOE, HEADER_SIZE, mac_text
from mxwire.host.base_host import advised_mtu, longest_frame
from mxwire.host.doctor.finding import DoctorFinding, ok, problem, warning
from mxwire.link.ethtool import Hardware
from mxwire.link.interface import NetworkInterface
from mxwire.link.listeners import KernelHandler, SocketListener
from mxwire.wire.dialect import MXOE as MXOE_DIALECT
from mxwire.wire.dialect import Dialect

_MUCH_COALESCING: Final = 30
"""Coalescing delay in microseconds above which it dominates the latency of small messages."""
_SMALLEST_LIMIT: Final = 256
_LARGEST_LIMIT: Final = 65535
_MULTICAST = 1


def state(interface: NetworkInterface) -> Iterator[DoctorFinding]:
    """Check that the link is up and has a valid address."""
    name = interface.name
    if not interface.up:
        yield problem("link", f"{name} is down", f"set it up: ip link set {name} up")
    elif not interface.carrier:
        yield problem(
            "link", f"{name} is up, but has no carrier", "plug in its cable, or set the other side up (ip link show)"
        )
    else:
        yield ok("link", f"{name} is up and has a carrier")
    address = interface.address
    if not any(address) or address[0] & _MULTICAST:
        yield problem(
            "address",
            f"{mac_text(address)} is not a valid host address",
            f"give it one: ip link set {name} address 02:00:00:00:00:01",
        )


def needed_mtu(dialect: Dialect) -> int:
    """MTU that the longest frames of a dialect need."""
    return longest_frame(dialect) - HEADER_SIZE


def mtu(interface: NetworkInterface, dialect: Dialect) -> Iterator[DoctorFinding]:
    """Check the MTU for the chosen dialect, and report which others fit."""
    yield from (_chosen(interface, dialect), *_other(interface, dialect))


def _chosen(interface: NetworkInterface, dialect: Dialect) -> DoctorFinding:
    name, needed = interface.name, needed_mtu(dialect)
    if interface.mtu >= needed:
        return ok("mtu", f"the MTU of {interface.mtu} is large enough for dialect {dialect}, which needs {needed}")
    fits = _largest_omx(interface)
    return problem(
        "mtu",
        f"the MTU of {interface.mtu} is too small for dialect {dialect}, which needs {needed}",
        f"raise it on all hosts and switches (ip link set {name} mtu {advised_mtu(needed)}), or use --dialect {fits} "
        f"on all hosts",
    )


def _other(interface: NetworkInterface, dialect: Dialect) -> Iterator[DoctorFinding]:
    if dialect.family == "mxoe":
        yield ok("mtu", f"dialect omx would fit up to {_largest_omx(interface)}")
        return
    needed = needed_mtu(MXOE_DIALECT)
    fits = "would fit" if interface.mtu >= needed else "would not fit"
    yield ok("mtu", f"dialect mxoe, that of native MX hosts, needs an MTU of {needed} and {fits}")


def _largest_omx(interface: NetworkInterface) -> str:
    return f"omx:{min(max(interface.mtu, _SMALLEST_LIMIT), _LARGEST_LIMIT)}"


def hardware(name: str, found: Hardware) -> Iterator[DoctorFinding]:
    """Check the settings that the driver reports."""
    speed = "of unknown speed" if found.megabits is None else f"at {found.megabits / 1000:g} Gb/s"
    yield ok("hardware", f"driver {found.driver or 'unknown'}, {speed}")
    yield _coalescing(name, found)
    yield _offloads(found)
    if found.receive_ring is not None:
        now, most = found.receive_ring
        if now * 4 <= most:
            yield warning(
                "ring", f"the receive ring holds {now} frames of {most} possible", f"ethtool -G {name} rx {most}"
            )
        else:
            yield ok("ring", f"the receive ring holds {now} frames of {most} possible")
    if found.flow_control is False:
        yield warning(
            "flow-control",
            "no pause frames are sent: bursts may be lost, and each loss costs a timeout",
            f"ethtool -A {name} rx on tx on, if the switch does so as well",
        )


def _coalescing(name: str, found: Hardware) -> DoctorFinding:
    coalescing = found.coalescing
    if coalescing is None:
        return ok("coalescing", "the driver does not report interrupt coalescing; virtual interfaces have none")
    if coalescing.adaptive or coalescing.microseconds > _MUCH_COALESCING:
        how = "adaptive" if coalescing.adaptive else f"{coalescing.microseconds} µs"
        return warning(
            "coalescing",
            f"received frames may be delayed ({how}), which adds to the latency of each message",
            f"for short messages: ethtool -C {name} adaptive-rx off rx-usecs 0",
        )
    return ok("coalescing", f"received frames are delayed by at most {coalescing.microseconds} µs")


def _offloads(found: Hardware) -> DoctorFinding:
    on = [name for name, active in found.offloads.items() if active]
    text = f"on: {', '.join(on)}" if on else "all are off"
    return ok("offloads", f"{text}; none of them affects MXoE frames" if found.offloads else "the driver reports none")


def master(name: str, of: str | None) -> Iterator[DoctorFinding]:
    """Check whether the interface is a port of a bridge or bond, which takes all frames."""
    if of is not None:
        yield problem(
            "bridge",
            f"{name} belongs to {of}, which takes the frames that arrive before a host on {name} gets them",
            f"use {of} instead: -i {of}",
        )


def listeners(name: str, sockets: list[SocketListener], handlers: list[KernelHandler]) -> Iterator[DoctorFinding]:
    """Report other receivers of MXoE frames: kernel handlers and packet sockets."""
    for each in handlers:
        yield problem(
            "ethertype",
            f"the kernel's {each.function} takes frames of 0x{ETHERTYPE_MXOE:04X} as well: two hosts would share one "
            "address",
            f"detach it from {name} (Open-MX: rmmod open_mx), or use another interface",
        )
    hosts = [each for each in sockets if not each.every_type]
    if hosts:
        yield ok(
            "ethertype",
            f"{len(hosts)} other program{'s' if len(hosts) > 1 else ''} on {name}: {_programs(hosts)}; frames "
            f"for their endpoints go to them",
        )
    captures = [each for each in sockets if each.every_type]
    if captures:
        yield ok("ethertype", f"{name} is being captured: {_programs(captures)}")
    if not handlers and not sockets:
        yield ok("ethertype", f"no other program takes frames of 0x{ETHERTYPE_MXOE:04X} on {name}")


def _programs(found: list[SocketListener]) -> str:
    return ", ".join(
        "a process of another user" if each.process is None else f"{each.program or '?'} ({each.process})"
        for each in found
    )
