"""Doctor: checks of an interface for use by a live host, with advice.

``examine`` runs all checks: first those of the interface's configuration, which need no privileges and send nothing;
then those that run a host, with a tap beside it that captures the frames actually transmitted and received.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

from mxwire.ethernet import BROADCAST, DESTINATION, ETHERTYPE_MXOE, HEADER_SIZE, SOURCE, mac_text
from mxwire.host.host import Host
from mxwire.host.mtu import advised_mtu, longest_frame, needed_mtu
from mxwire.host.survey import Survey, SurveyedHost
from mxwire.link import LinkError, Tap
from mxwire.link.ethtool import Hardware, read_hardware
from mxwire.link.interface import NetworkInterface, read_settled
from mxwire.link.listeners import (
    AttachedProgram,
    KernelHandler,
    SocketListener,
    kernel_handlers,
    master_of,
    packet_sockets,
    xdp_program,
)
from mxwire.link.packet_socket import permission_advice
from mxwire.link.process_memory import copy_refusal
from mxwire.link.xdp import xdp_refusal
from mxwire.texts import entries
from mxwire.wire.dialect import MXOE as MXOE_DIALECT
from mxwire.wire.dialect import Dialect
from mxwire.words import count_of

_SETTLING: Final = 3.0
"""Seconds to wait for a link to come up."""
_MUCH_COALESCING: Final = 30
"""Coalescing delay in microseconds above which it dominates the latency of small messages."""
_SMALLEST_LIMIT: Final = 256
_LARGEST_LIMIT: Final = 65535
_MULTICAST = 1
_SHOWN: Final = 3
"""Maximum number of hosts that are listed for one finding."""


class DoctorLevel(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    """A host works, but not well, or a property could not be tested."""
    PROBLEM = "problem"
    """A host will not work."""


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """Result of one check."""

    check: str
    """Name of the check: a word that never changes."""
    level: DoctorLevel
    text: str
    """Description."""
    advice: str | None = None
    """Remedy."""
    host: str | None = None
    """Address of the remote host concerned; None for this host."""
    several: str | None = None
    """The text for several hosts, which ``{}`` stands for; None for this host."""


@cache
def _findings() -> dict[str, dict[str, str]]:
    return entries(__file__, "findings.toml")


def finding(kind: str, about: SurveyedHost | None = None, /, **values: object) -> DoctorFinding:
    """Make the finding ``kind`` of ``findings.toml``, with ``values`` for the names in its texts."""
    described = _findings()[kind]
    if about is not None:
        values |= {"host": f"{about.name or 'the host'} ({about.address})", "hosts": "{}"}
    texts = {key: each.format(**values) for key, each in described.items()}
    return DoctorFinding(
        texts["check"],
        DoctorLevel(texts["level"]),
        texts["text"],
        texts.get("advice"),
        None if about is None else about.address,
        texts.get("several"),
    )


# Before a host runs: the configuration of the interface.


def check_state(interface: NetworkInterface) -> Iterator[DoctorFinding]:
    """Check the link and the address."""
    name, address = interface.name, interface.address
    yield finding("link-down" if not interface.up else "link-up" if interface.carrier else "no-carrier", name=name)
    if not any(address) or address[0] & _MULTICAST:
        yield finding("bad-address", name=name, address=mac_text(address))


def check_mtu(interface: NetworkInterface, dialect: Dialect) -> Iterator[DoctorFinding]:
    """Check the MTU for the chosen dialect, and report which others fit."""
    name, mtu, needed = interface.name, interface.mtu, needed_mtu(dialect)
    fits = f"omx:{min(max(mtu, _SMALLEST_LIMIT), _LARGEST_LIMIT)}"
    values = {"name": name, "mtu": mtu, "dialect": dialect, "needed": needed, "fits": fits}
    yield finding("mtu-fits" if mtu >= needed else "mtu-small", None, advised=advised_mtu(needed), **values)
    if dialect.family == "mxoe":
        yield finding("mtu-omx", fits=fits)
    else:
        needed = needed_mtu(MXOE_DIALECT)
        yield finding("mtu-mxoe", needed=needed, fits="would fit" if mtu >= needed else "would not fit")


def check_hardware(name: str, found: Hardware) -> Iterator[DoctorFinding]:
    """Check the properties that the driver reports."""
    speed = "of unknown speed" if found.megabits is None else f"at {found.megabits / 1000:g} Gb/s"
    yield finding("hardware", driver=found.driver or "unknown", speed=speed)
    coalescing = found.coalescing
    if coalescing is None:
        yield finding("coalescing-unknown")
    elif coalescing.adaptive or coalescing.microseconds > _MUCH_COALESCING:
        how = "adaptive" if coalescing.adaptive else f"{coalescing.microseconds} µs"
        yield finding("coalescing-long", name=name, how=how)
    else:
        yield finding("coalescing", microseconds=coalescing.microseconds)
    on = [each for each, active in found.offloads.items() if active]
    which = f"on: {', '.join(on)}" if on else "all are off"
    yield finding("offloads" if found.offloads else "offloads-unknown", which=which)
    if found.receive_ring is not None:
        now, most = found.receive_ring
        yield finding("ring-small" if now * 4 <= most else "ring", name=name, now=now, most=most)
    if found.flow_control is False:
        yield finding("no-pause-frames", name=name)


def check_master(name: str, of: str | None) -> Iterator[DoctorFinding]:
    """Check whether a bridge or bond takes the received frames."""
    if of is not None:
        yield finding("bridge", name=name, master=of)


def check_listeners(name: str, sockets: list[SocketListener], handlers: list[KernelHandler]) -> Iterator[DoctorFinding]:
    """Check for other receivers of MXoE frames on the interface."""
    for each in handlers:
        yield finding("kernel-handler", name=name, function=each.function)
    hosts = [each for each in sockets if not each.every_type]
    if hosts:
        yield finding("other-hosts", name=name, count=count_of(len(hosts), "other program"), programs=_programs(hosts))
    captures = [each for each in sockets if each.every_type]
    if captures:
        yield finding("captured", name=name, programs=_programs(captures))
    if not handlers and not sockets:
        yield finding("no-listeners", name=name)


def check_xdp(name: str, program: AttachedProgram | None, queues: int | None, refusal: str | None) -> DoctorFinding:
    """Report whether AF_XDP can be used, which takes all frames away from other programs.

    ``queues`` is the number of receive queues; ``refusal`` is the reason if AF_XDP cannot be used.
    """
    if program is not None:
        which = "" if program.number is None else f" (bpftool prog show id {program.number})"
        return finding("xdp-program", mode=program.mode, which=which)
    if refusal is not None:
        return finding("xdp-refused", refusal=refusal)
    several = "" if queues in (None, 1) else f"; it receives on queue 0 only, and {name} has {queues}"
    return finding("xdp", name=name, several=several)


def _programs(found: list[SocketListener]) -> str:
    return ", ".join(
        "a process of another user" if each.process is None else f"{each.program or '?'} ({each.process})"
        for each in found
    )


# With a host: sending, receiving, conflicts of address and name, and the peers.


@dataclass
class TapCounts:
    """Frames that a tap has captured on an interface."""

    left: int = 0
    """Frames with the host's source address."""
    arrived: int = 0
    """Frames of other hosts to this one or to all."""

    def update(self, tap: Tap, own: bytes, survey: Survey) -> None:
        """Count the frames since the last call, and pass them to ``survey``, which detects dialects by them."""
        while len(batch := tap.receive(0.0)):
            survey.observe(batch)
            for start in batch.offset.tolist():
                header = batch.buffer[start : start + HEADER_SIZE].tobytes()
                destination, source = header[: DESTINATION.stop], header[SOURCE.start : SOURCE.stop]
                self.left += source == own
                self.arrived += source != own and destination in (own, BROADCAST)


def run_host(host: Host, tap: Tap, dialect: Dialect, seconds: float) -> Iterator[DoctorFinding]:
    """Run a host for ``seconds`` with a tap beside it, and yield the findings."""
    link = host.core.links[0]
    length = longest_frame(dialect) if link.mtu >= needed_mtu(dialect) else None
    survey = Survey(host, length=length)
    passed = TapCounts()
    try:
        for _ in survey.rounds(seconds):
            passed.update(tap, link.address, survey)
    finally:
        survey.close()
    hosts = survey.hosts()
    passed.update(tap, link.address, survey)
    yield check_sending(link.name, link.statistics().sent, link.statistics().refused, passed)
    yield from check_receiving(link.name, link.statistics().received, passed)
    yield from check_conflicts(host, survey, hosts)
    yield from check_peers(hosts, dialect, length)


def check_sending(name: str, sent: int, refused: int, passed: TapCounts) -> DoctorFinding:
    """Check that transmitted frames leave the interface."""
    values = {"name": name, "sent": count_of(sent, "frame"), "refused": refused, "left": passed.left}
    nothing = "frames-refused" if refused else "nothing-sent"
    return finding("frames-leave" if passed.left else "frames-lost" if sent else nothing, None, **values)


def check_receiving(name: str, received: int, passed: TapCounts) -> Iterator[DoctorFinding]:
    """Check that frames on the interface reach the host."""
    if received:
        yield finding("receiving", received=count_of(received, "frame"))
    elif passed.arrived:
        yield finding("frames-intercepted", name=name, arrived=count_of(passed.arrived, "frame"))


def check_conflicts(host: Host, survey: Survey, hosts: list[SurveyedHost]) -> Iterator[DoctorFinding]:
    """Check for hosts with the same address or name."""
    link, name = host.core.links[0], host.name
    own = mac_text(link.address)
    if survey.echoes:
        yield finding("loop", frames=count_of(survey.echoes, "frame"))
    if survey.impostors:
        yield finding("same-address", name=link.name, address=own, frames=count_of(survey.impostors, "frame"))
    if not survey.echoes and not survey.impostors:
        yield finding("address-unique", address=own)
    same = [each.address for each in hosts if each.name == name]
    others = f"{_some(same)} {'has' if len(same) == 1 else 'have'}"
    yield finding("same-name" if same else "name-unique", name=name, others=others)


def check_peers(hosts: list[SurveyedHost], dialect: Dialect, length: int | None) -> Iterator[DoctorFinding]:
    """Check every other host: whether it answers, in which dialect, and to frames of ``length`` bytes."""
    if not any(each.heard for each in hosts):
        yield finding("no-other-host")
    for each in hosts:
        yield from _peer(each, dialect, length)


def _peer(found: SurveyedHost, dialect: Dialect, length: int | None) -> Iterator[DoctorFinding]:
    if not found.heard:
        yield finding("peer-silent", found)
        return
    if not found.answers:
        yield finding("peer-announced" if found.announced else "peer-mute", found)
        return
    time = "" if found.answer_ns is None else f", the fastest in {found.answer_ns / 1e6:.3f} ms"
    yield finding("peer-answers", found, answers=found.answers, queries=found.queries, time=time)
    used = found.dialect
    if used is not None:
        same = used in (dialect.family, dialect.name)
        remote = "omx:M, with the M that it was built with" if used == "omx" else used
        yield finding("dialect-same" if same else "dialect-differs", found, used=used, dialect=dialect, remote=remote)
    if found.long_frames is not None and length is not None:
        kind = "long-frames" if found.long_frames else "long-frames-lost"
        yield finding(kind, found, length=length, mtu=length - HEADER_SIZE)


# Many hosts.


def _some(hosts: list[str]) -> str:
    """The first few of ``hosts``, and the number of the others."""
    more = f" and {len(hosts) - _SHOWN:,} more" if len(hosts) > _SHOWN else ""
    return ", ".join(hosts[:_SHOWN]) + more


def summary(findings: list[DoctorFinding]) -> list[DoctorFinding]:
    """Replace findings that are the same for more than a few hosts by one with their number and some addresses."""
    same: dict[tuple[str | None, ...], list[DoctorFinding]] = {}
    for number, each in enumerate(findings):
        kind = (each.check, each.several, each.advice) if each.several is not None else (str(number),)
        same.setdefault(kind, []).append(each)
    return [short for group in same.values() for short in (group if len(group) <= _SHOWN else [_summarised(group)])]


def _summarised(findings: list[DoctorFinding]) -> DoctorFinding:
    first, hosts = findings[0], [str(each.host) for each in findings]
    text = str(first.several).format(f"{len(hosts):,} hosts ({_some(hosts)})")
    return DoctorFinding(first.check, first.level, text, first.advice)


# All of them.


def examine(interface: str, dialect: Dialect, seconds: float, **options: Any) -> Iterator[DoctorFinding]:
    """Examine an interface for a host that uses ``dialect``; ``options`` are those of :class:`~mxwire.host.host.Host`.

    Yields findings as they are made, the last ones after running a host for ``seconds``. Raises
    :class:`~mxwire.link.errors.LinkError` if there is no such interface, or it is not Ethernet.
    """
    found = read_settled(interface, _SETTLING)
    yield from check_state(found)
    yield from check_mtu(found, dialect)
    yield from check_hardware(interface, read_hardware(interface))
    yield from check_master(interface, master_of(interface))
    yield from _listeners(found)
    yield check_local(copy_refusal())
    refusal = xdp_refusal(found)
    if refusal is not None and refusal.endswith(permission_advice()):
        refusal = "see permission"
    try:
        yield check_xdp(interface, xdp_program(found.index), read_hardware(interface).queues, refusal)
    except OSError:
        yield finding("xdp-unknown")
    try:
        tap = Tap.open(interface, promiscuous=False)
    except LinkError as error:
        text, _, advice = str(error).partition(": use ")
        use = f"use {advice}" if advice else "get the capability and try again"
        yield finding("not-permitted", reason=text, advice=use)
        return
    with tap:
        yield finding("permitted")
        if found.up and found.carrier:
            with Host.open(interface, dialect=dialect, small_mtu=True, background=False, **options) as host:
                yield from run_host(host, tap, dialect, seconds)


def check_local(refusal: str | None) -> DoctorFinding:
    """Report the number of copies of large messages between processes of this machine; ``refusal`` prevents one."""
    return finding("copied-once" if refusal is None else "copied-twice", refusal=refusal)


def _listeners(found: NetworkInterface) -> Iterator[DoctorFinding]:
    try:
        sockets = packet_sockets(found.index, ETHERTYPE_MXOE)
        handlers = kernel_handlers(found.name, ETHERTYPE_MXOE)
    except (OSError, ValueError, IndexError):
        yield finding("listeners-unknown")
        return
    yield from check_listeners(found.name, sockets, handlers)
