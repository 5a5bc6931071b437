"""Checks of an interface as it stands, without sending anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.ethernet import ETHERTYPE_MXOE, HEADER_SIZE, mac_text
from mxwire.host.doctor.finding import Finding, ok, problem, warning
from mxwire.host.opening import advised_mtu, longest_frame
from mxwire.link.ethtool import Hardware
from mxwire.link.interface import Interface
from mxwire.link.listeners import KernelHandler, Listener
from mxwire.wire.dialect import MXOE as MXOE_DIALECT
from mxwire.wire.dialect import Dialect

_MUCH_COALESCING: Final = 30
"""Microseconds that are more than a small message should wait."""
_SMALLEST_LIMIT: Final = 256
_LARGEST_LIMIT: Final = 65535
_MULTICAST = 1


def state(interface: Interface) -> Iterator[Finding]:
    """Whether the link is there."""
    name = interface.name
    if not interface.up:
        yield problem("link", f"{name} is down", f"set it up: ip link set {name} up")
    elif not interface.carrier:
        yield problem(
            "link", f"{name} is up, but has no carrier", "plug in its cable, or set its other end up (ip link show)"
        )
    else:
        yield ok("link", f"{name} is up and has a carrier")
    address = interface.address
    if not any(address) or address[0] & _MULTICAST:
        yield problem(
            "address",
            f"{mac_text(address)} is no address of a host",
            f"give it one: ip link set {name} address 02:00:00:00:00:01",
        )


def needed_mtu(dialect: Dialect) -> int:
    """The MTU that the longest frames of a dialect need."""
    return longest_frame(dialect) - HEADER_SIZE


def mtu(interface: Interface, dialect: Dialect) -> Iterator[Finding]:
    """Whether the frames of the dialects fit."""
    yield from (_chosen(interface, dialect), *_other(interface, dialect))


def _chosen(interface: Interface, dialect: Dialect) -> Finding:
    name, needed = interface.name, needed_mtu(dialect)
    if interface.mtu >= needed:
        return ok("mtu", f"the MTU of {interface.mtu} has room for dialect {dialect}, which needs {needed}")
    fits = _largest_omx(interface)
    return problem(
        "mtu",
        f"the MTU of {interface.mtu} is too small for dialect {dialect}, which needs {needed}",
        f"raise it on all hosts and switches (ip link set {name} mtu {advised_mtu(needed)}), or use --dialect {fits} "
        f"on all hosts",
    )


def _other(interface: Interface, dialect: Dialect) -> Iterator[Finding]:
    if dialect.family == "mxoe":
        yield ok("mtu", f"of dialect omx, up to {_largest_omx(interface)} would fit")
        return
    needed = needed_mtu(MXOE_DIALECT)
    fits = "would fit" if interface.mtu >= needed else "would not fit"
    yield ok("mtu", f"dialect mxoe, which native MX hosts speak, needs an MTU of {needed} and {fits}")


def _largest_omx(interface: Interface) -> str:
    return f"omx:{min(max(interface.mtu, _SMALLEST_LIMIT), _LARGEST_LIMIT)}"


def hardware(name: str, told: Hardware) -> Iterator[Finding]:
    """What the driver tells."""
    speed = "of unknown speed" if told.megabits is None else f"at {told.megabits / 1000:g} Gb/s"
    yield ok("hardware", f"driver {told.driver or 'unknown'}, {speed}")
    yield _coalescing(name, told)
    yield _offloads(told)
    if told.receive_ring is not None:
        now, most = told.receive_ring
        if now * 4 <= most:
            yield warning(
                "ring", f"the receive ring holds {now} frames of {most} possible", f"ethtool -G {name} rx {most}"
            )
        else:
            yield ok("ring", f"the receive ring holds {now} frames of {most} possible")
    if told.flow_control is False:
        yield warning(
            "flow-control",
            "no pause frames are sent: bursts may be lost, and lost frames are waited for",
            f"ethtool -A {name} rx on tx on, if the switch does that as well",
        )


def _coalescing(name: str, told: Hardware) -> Finding:
    found = told.coalescing
    if found is None:
        return ok("coalescing", "the driver tells nothing of interrupt coalescing, as virtual interfaces do")
    if found.adaptive or found.microseconds > _MUCH_COALESCING:
        how = "adaptive" if found.adaptive else f"{found.microseconds} µs"
        return warning(
            "coalescing",
            f"received frames may be held back ({how}), which adds to the time of each message",
            f"for short messages: ethtool -C {name} adaptive-rx off rx-usecs 0",
        )
    return ok("coalescing", f"received frames are held back at most {found.microseconds} µs")


def _offloads(told: Hardware) -> Finding:
    on = [name for name, active in told.offloads.items() if active]
    text = f"on: {', '.join(on)}" if on else "none is on"
    return ok("offloads", f"{text}; none of them touches frames of MXoE" if told.offloads else "the driver tells none")


def master(name: str, of: str | None) -> Iterator[Finding]:
    """Whether the interface is a port of something that takes all frames."""
    if of is not None:
        yield problem(
            "bridge",
            f"{name} belongs to {of}, which takes the frames that arrive before a host on {name} gets them",
            f"use {of} instead: -i {of}",
        )


def listeners(name: str, sockets: list[Listener], handlers: list[KernelHandler]) -> Iterator[Finding]:
    """Who else takes frames of our EtherType."""
    for each in handlers:
        yield problem(
            "ethertype",
            f"the kernel's {each.function} takes frames of 0x{ETHERTYPE_MXOE:04X} as well: two hosts would share one "
            "address",
            f"detach it from {name} (Open-MX: rmmod open_mx), or use another interface",
        )
    ours = [each for each in sockets if not each.every_type]
    if ours:
        yield ok(
            "ethertype",
            f"{len(ours)} other program{'s' if len(ours) > 1 else ''} on {name}: {_programs(ours)}; what is for "
            f"their endpoints goes to them",
        )
    captures = [each for each in sockets if each.every_type]
    if captures:
        yield ok("ethertype", f"{name} is being captured: {_programs(captures)}")
    if not handlers and not sockets:
        yield ok("ethertype", f"nobody else takes frames of 0x{ETHERTYPE_MXOE:04X} on {name}")


def _programs(found: list[Listener]) -> str:
    return ", ".join(
        "a process of another user" if each.process is None else f"{each.program or '?'} ({each.process})"
        for each in found
    )
