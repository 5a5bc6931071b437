"""Checks made by running a host: sending, receiving, conflicts of address and name, and the peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mxwire.ethernet import BROADCAST, DESTINATION, HEADER_SIZE, SOURCE, mac_text
from mxwire.host.base_host import longest_frame
from mxwire.host.doctor.finding import DoctorFinding, ok, problem, warning
from mxwire.host.doctor.interface import needed_mtu
from mxwire.host.host import Host
from mxwire.host.survey import Survey, SurveyedHost
from mxwire.link import Tap
from mxwire.wire.dialect import Dialect


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
    yield sending(link.name, link.statistics().sent, link.statistics().refused, passed)
    yield from receiving(link.name, link.statistics().received, passed)
    yield from conflicts(host, survey, hosts)
    yield from peers(hosts, dialect, length)


def sending(name: str, sent: int, refused: int, passed: TapCounts) -> DoctorFinding:
    """Check that the host's own frames leave."""
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
        f"{sent} frames were passed to {name}, and none of them left",
        f"look for what drops them: tc filter show dev {name} egress; nft list ruleset",
    )


def receiving(name: str, received: int, passed: TapCounts) -> Iterator[DoctorFinding]:
    """Check that arriving frames reach the host."""
    if passed.arrived and not received:
        yield problem(
            "receiving",
            f"{passed.arrived} frames for this host arrived on {name}, and none reached it",
            f"look for what intercepts them: tc filter show dev {name} ingress; nft list ruleset; bridge link",
        )
    elif received:
        yield ok("receiving", f"{received} frames of other hosts were received")


def conflicts(host: Host, survey: Survey, hosts: list[SurveyedHost]) -> Iterator[DoctorFinding]:
    """Check whether another host has this host's address or name."""
    own, name = mac_text(host.core.links[0].address), host.name
    if survey.echoes:
        yield problem(
            "address", f"{survey.echoes} frames of this host came back", "the network has a loop: enable spanning tree"
        )
    if survey.impostors:
        yield problem(
            "address",
            f"another host uses the same address {own} ({survey.impostors} frames)",
            f"give one of them another: ip link set {host.core.links[0].name} address 02:…",
        )
    if not survey.echoes and not survey.impostors:
        yield ok("address", f"no other host uses the address {own}")
    same = [each.address for each in hosts if each.name == name]
    if same:
        yield problem("name", f"{', '.join(same)} has the same name {name}", "choose another name: --name NAME")
    else:
        yield ok("name", f"no other host has the name {name}")


def peers(hosts: list[SurveyedHost], dialect: Dialect, length: int | None) -> Iterator[DoctorFinding]:
    """Check each peer: whether it answers, its dialect, and whether long frames reach it."""
    if not any(each.heard for each in hosts):
        yield warning(
            "peers",
            "no other host was heard, so nothing could be tested with one",
            "start one on another computer on this Ethernet (mxwire serve -i IF), and try again",
        )
    for each in hosts:
        yield from _peer(each, dialect, length)


def _peer(found: SurveyedHost, dialect: Dialect, length: int | None) -> Iterator[DoctorFinding]:
    host = f"{found.name or 'the host'} ({found.address})"
    if not found.heard:
        yield warning(
            "peers",
            f"no frame arrived from {host}, which is only known from --peers, or from another process",
            "check that it is running, and on this Ethernet",
            found.address,
        )
        return
    if not found.answers:
        state = "announces itself, but does" if found.announced else "sends frames, but does"
        yield warning(
            "peers",
            f"{host} {state} not answer host queries",
            "it does not know this host: omit --no-announce, or add a static peer for this host there",
            found.address,
        )
        return
    time = "" if found.answer_ns is None else f", the fastest in {found.answer_ns / 1e6:.3f} ms"
    yield ok("peers", f"{host} answered {found.answers} of {found.queries} host queries{time}", found.address)
    if found.dialect is not None:
        yield _dialect(host, found, dialect)
    if found.long_frames is not None and length is not None:
        yield _long(host, found, length)


def _dialect(host: str, found: SurveyedHost, dialect: Dialect) -> DoctorFinding:
    if found.dialect in (dialect.family, dialect.name):
        return ok("dialect", f"{host} uses {found.dialect}, as this host does", found.address)
    theirs = "omx:M, with the M that it was built with" if found.dialect == "omx" else found.dialect
    return problem(
        "dialect",
        f"{host} uses {found.dialect}, and this host {dialect}: longer messages between them will not work",
        f"use the same on all hosts: --dialect {theirs}",
        found.address,
    )


def _long(host: str, found: SurveyedHost, length: int) -> DoctorFinding:
    if found.long_frames:
        return ok("long-frames", f"frames of {length} bytes reach {host}", found.address)
    return problem(
        "long-frames",
        f"frames of {length} bytes do not reach {host}, but short ones do",
        f"raise the MTU of that host and of all switches on the path to at least {length - HEADER_SIZE}",
        found.address,
    )
