"""Doctor: checks of an interface for use by a live host, with advice.

``examine`` runs all checks: first those of the interface's configuration, which need no privileges and send nothing;
then those that run a host, with a tap beside it that captures the frames actually transmitted and received.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
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


def ok(check: str, text: str) -> DoctorFinding:
    """Make a finding without a problem."""
    return DoctorFinding(check, DoctorLevel.OK, text)


def warning(check: str, text: str, advice: str | None) -> DoctorFinding:
    """Make a warning."""
    return DoctorFinding(check, DoctorLevel.WARNING, text, advice)


def problem(check: str, text: str, advice: str) -> DoctorFinding:
    """Make a problem."""
    return DoctorFinding(check, DoctorLevel.PROBLEM, text, advice)


# Before a host runs: the configuration of the interface.


def check_state(interface: NetworkInterface) -> Iterator[DoctorFinding]:
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


def check_mtu(interface: NetworkInterface, dialect: Dialect) -> Iterator[DoctorFinding]:
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


def check_hardware(name: str, found: Hardware) -> Iterator[DoctorFinding]:
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


def check_master(name: str, of: str | None) -> Iterator[DoctorFinding]:
    """Check whether the interface is a port of a bridge or bond, which takes all frames."""
    if of is not None:
        yield problem(
            "bridge",
            f"{name} belongs to {of}, which takes the frames that arrive before a host on {name} gets them",
            f"use {of} instead: -i {of}",
        )


def check_listeners(name: str, sockets: list[SocketListener], handlers: list[KernelHandler]) -> Iterator[DoctorFinding]:
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


def check_xdp(name: str, program: AttachedProgram | None, queues: int | None, refusal: str | None) -> DoctorFinding:
    """Report an XDP program on the interface, or whether AF_XDP could be used.

    ``queues`` is the number of receive queues, ``refusal`` the reason why this process cannot use AF_XDP.
    """
    if program is not None:
        which = "" if program.number is None else f" (bpftool prog show id {program.number})"
        return warning(
            "af-xdp",
            f"a program sees the frames first: XDP in {program.mode} mode{which}; those that it redirects reach no "
            f"packet socket",
            "if it belongs to a host with --via xdp, end that host, or run all of them in one process",
        )
    if refusal is not None:
        return ok("af-xdp", f"not available, and not needed: {refusal}")
    several = "" if queues in (None, 1) else f"; it receives on queue 0 only, and {name} has {queues}"
    return ok(
        "af-xdp",
        f"available (--via xdp), but not the default: it takes the frames from all other programs on {name}{several}",
    )


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
    """Check that the host's own frames are transmitted."""
    if passed.left:
        return ok("sending", f"frames leave: a tap on {name} has captured {passed.left} of this host")
    if refused and not sent:
        return problem("sending", f"{name} accepts no frames: {refused} were refused", f"see ip -s link show {name}")
    if not sent:
        return warning(
            "sending",
            "no frame was sent: no peer is known, and the host is quiet or announced by another process",
            "try without --no-announce, or start another host",
        )
    return problem(
        "sending",
        f"{count_of(sent, 'frame')} passed to {name}, but none left",
        f"look for what drops them: tc filter show dev {name} egress; nft list ruleset",
    )


def check_receiving(name: str, received: int, passed: TapCounts) -> Iterator[DoctorFinding]:
    """Check that arriving frames reach the host."""
    if passed.arrived and not received:
        yield problem(
            "receiving",
            f"{count_of(passed.arrived, 'frame')} for this host arrived on {name}, but none reached it",
            f"look for what intercepts them: tc filter show dev {name} ingress; nft list ruleset; bridge link",
        )
    elif received:
        yield ok("receiving", f"received {count_of(received, 'frame')} of other hosts")


def check_conflicts(host: Host, survey: Survey, hosts: list[SurveyedHost]) -> Iterator[DoctorFinding]:
    """Check whether another host has this host's address or name."""
    own, name = mac_text(host.core.links[0].address), host.name
    if survey.echoes:
        yield problem(
            "address",
            f"{count_of(survey.echoes, 'frame')} of this host returned to it",
            "the network has a loop: enable spanning tree",
        )
    if survey.impostors:
        yield problem(
            "address",
            f"another host uses the same address {own} ({count_of(survey.impostors, 'frame')})",
            f"give one of them another: ip link set {host.core.links[0].name} address 02:…",
        )
    if not survey.echoes and not survey.impostors:
        yield ok("address", f"no other host uses the address {own}")
    same = [each.address for each in hosts if each.name == name]
    if same:
        have = "has" if len(same) == 1 else "have"
        yield problem("name", f"{_some(same)} {have} the same name {name}", "choose another name: --name NAME")
    else:
        yield ok("name", f"no other host has the name {name}")


def check_peers(hosts: list[SurveyedHost], dialect: Dialect, length: int | None) -> Iterator[DoctorFinding]:
    """Check each peer: whether it answers, its dialect, and whether long frames reach it."""
    if not any(each.heard for each in hosts):
        yield warning(
            "peers",
            "no other host was heard, so nothing could be tested with one",
            "start one on another computer on this Ethernet (mxwire serve -i IF), and try again",
        )
    for each in hosts:
        yield from _peer(each, dialect, length)


def _about(
    found: SurveyedHost, check: str, level: DoctorLevel, one: str, several: str, advice: str | None = None
) -> DoctorFinding:
    """Make a finding about a host; ``{}`` in both texts stands for the host or hosts."""
    text = one.format(f"{found.name or 'the host'} ({found.address})")
    return DoctorFinding(check, level, text, advice, found.address, several)


def _peer(found: SurveyedHost, dialect: Dialect, length: int | None) -> Iterator[DoctorFinding]:
    if not found.heard:
        yield _about(
            found,
            "peers",
            DoctorLevel.WARNING,
            "no frame arrived from {}, which is only known from --peers, or from another process",
            "no frame arrived from {}, which are only known from --peers, or from another process",
            "check that a host runs there, on this Ethernet",
        )
        return
    if not found.answers:
        seen = ("announces itself", "announce themselves") if found.announced else ("sends frames", "send frames")
        yield _about(
            found,
            "peers",
            DoctorLevel.WARNING,
            f"{{}} {seen[0]}, but does not answer host queries",
            f"{{}} {seen[1]}, but do not answer host queries",
            "a host answers those that it knows: omit --no-announce, or add a static peer for this host there",
        )
        return
    time = "" if found.answer_ns is None else f", the fastest in {found.answer_ns / 1e6:.3f} ms"
    answered = f"{{}} answered {found.answers} of {found.queries} host queries{time}"
    yield _about(found, "peers", DoctorLevel.OK, answered, "{} answered host queries")
    if found.dialect is not None:
        yield _dialect(found, dialect)
    if found.long_frames is not None and length is not None:
        yield _long(found, length)


def _dialect(found: SurveyedHost, dialect: Dialect) -> DoctorFinding:
    used = found.dialect
    if used in (dialect.family, dialect.name):
        same = f"{used}, as this host does"
        return _about(found, "dialect", DoctorLevel.OK, f"{{}} uses {same}", f"{{}} use {same}")
    other = f"{used}, and this host {dialect}: longer messages between them will not work"
    remote = "omx:M, with the M that it was built with" if used == "omx" else used
    advice = f"use the same on all hosts: --dialect {remote}"
    return _about(found, "dialect", DoctorLevel.PROBLEM, f"{{}} uses {other}", f"{{}} use {other}", advice)


def _long(found: SurveyedHost, length: int) -> DoctorFinding:
    if found.long_frames:
        text = f"frames of {length} bytes reach {{}}"
        return _about(found, "long-frames", DoctorLevel.OK, text, text)
    text = f"frames of {length} bytes do not reach {{}}, but short ones do"
    advice = f"raise the MTU there and of all switches on the path to at least {length - HEADER_SIZE}"
    return _about(found, "long-frames", DoctorLevel.PROBLEM, text, text, advice)


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
        yield warning("af-xdp", "the kernel does not report XDP programs (rtnetlink)", None)
    try:
        tap = Tap.open(interface, promiscuous=False)
    except LinkError as error:
        text, _, advice = str(error).partition(": use ")
        yield problem("permission", text, f"use {advice}" if advice else "get the capability and try again")
        return
    with tap:
        yield ok("permission", "raw Ethernet frames are permitted")
        if found.up and found.carrier:
            with Host.open(interface, dialect=dialect, small_mtu=True, background=False, **options) as host:
                yield from run_host(host, tap, dialect, seconds)


def check_local(refusal: str | None) -> DoctorFinding:
    """Report the number of copies of large messages between processes of this machine; ``refusal`` prevents one."""
    if refusal is None:
        return ok("local", "large messages between processes of this machine are copied once (process_vm_readv)")
    return ok("local", f"large messages between processes of this machine are copied twice: {refusal}")


def _listeners(found: NetworkInterface) -> Iterator[DoctorFinding]:
    try:
        sockets = packet_sockets(found.index, ETHERTYPE_MXOE)
        handlers = kernel_handlers(found.name, ETHERTYPE_MXOE)
    except (OSError, ValueError, IndexError):
        yield warning("ethertype", "the kernel does not report other receivers of MXoE frames (/proc/net)", None)
        return
    yield from check_listeners(found.name, sockets, handlers)
