"""Checks that a live host makes: does what is sent leave, does what comes arrive, who answers, and what speaks who."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mxwire.ethernet import BROADCAST, mac_text
from mxwire.host.asking import Sighting, Survey
from mxwire.host.doctor.finding import Finding, ok, problem, warning
from mxwire.host.doctor.standing import needed_mtu
from mxwire.host.host import Host
from mxwire.host.opening import longest_frame
from mxwire.link import Tap
from mxwire.wire.dialect import Dialect


@dataclass
class Passed:
    """Frames that a tap has seen on an interface."""

    left: int = 0
    """With our source address."""
    arrived: int = 0
    """From others, for us or for all."""

    def look(self, tap: Tap, own: bytes, survey: Survey) -> None:
        """Count the frames since the last call, and let ``survey`` learn dialects from them."""
        while len(batch := tap.receive(0.0)):
            survey.observe(batch)
            for start in batch.offset.tolist():
                destination = batch.buffer[start : start + 6].tobytes()
                source = batch.buffer[start + 6 : start + 12].tobytes()
                self.left += source == own
                self.arrived += source != own and destination in (own, BROADCAST)


def attempts(host: Host, tap: Tap, dialect: Dialect, seconds: float) -> Iterator[Finding]:
    """Be a host for so many seconds, and say how that was."""
    link = host.core.links[0]
    length = longest_frame(dialect) if link.mtu >= needed_mtu(dialect) else None
    survey = Survey(host, length=length)
    passed = Passed()
    try:
        for _ in survey.rounds(seconds):
            passed.look(tap, link.address, survey)
    finally:
        survey.close()
    sightings = survey.sightings()
    passed.look(tap, link.address, survey)
    yield sending(link.name, link.statistics().sent, link.statistics().refused, passed)
    yield from receiving(link.name, link.statistics().received, passed)
    yield from conflicts(host, survey, sightings)
    yield from peers(sightings, dialect, length)


def sending(name: str, sent: int, refused: int, passed: Passed) -> Finding:
    """Whether our own frames leave."""
    if passed.left:
        return ok("sending", f"frames leave: a tap on {name} has seen {passed.left} of ours")
    if refused and not sent:
        return problem("sending", f"{name} takes no frames: {refused} were refused", f"see ip -s link show {name}")
    if not sent:
        return warning(
            "sending",
            "nothing was sent, since we know nobody, and are quiet or another process announces this host",
            "try without --quiet, or start another host",
        )
    return problem(
        "sending",
        f"{sent} frames were given to {name}, and none of them left",
        f"look for what drops them: tc filter show dev {name} egress; nft list ruleset",
    )


def receiving(name: str, received: int, passed: Passed) -> Iterator[Finding]:
    """Whether what arrives comes to us."""
    if passed.arrived and not received:
        yield problem(
            "receiving",
            f"{passed.arrived} frames for us arrived on {name}, and none came to us",
            f"look for what takes them: tc filter show dev {name} ingress; nft list ruleset; bridge link",
        )
    elif received:
        yield ok("receiving", f"{received} frames of others came to us")


def conflicts(host: Host, survey: Survey, sightings: list[Sighting]) -> Iterator[Finding]:
    """Whether anybody has our address or our name."""
    own, name = mac_text(host.core.links[0].address), host.name
    if survey.echoes:
        yield problem(
            "address", f"{survey.echoes} of our own frames came back", "the network has a loop: enable spanning tree"
        )
    if survey.impostors:
        yield problem(
            "address",
            f"another host speaks with our address {own} ({survey.impostors} frames)",
            f"give one of them another: ip link set {host.core.links[0].name} address 02:…",
        )
    if not survey.echoes and not survey.impostors:
        yield ok("address", f"nobody else was heard with our address {own}")
    same = [each.address for each in sightings if each.name == name]
    if same:
        yield problem("name", f"{', '.join(same)} has our name {name} as well", "call us otherwise: --name NAME")
    else:
        yield ok("name", f"we are {name}, and nobody else is")


def peers(sightings: list[Sighting], dialect: Dialect, length: int | None) -> Iterator[Finding]:
    """Who is out there, and whether we would understand each other."""
    if not any(each.heard for each in sightings):
        yield warning(
            "peers",
            "no other host was heard, so that nothing could be tried with one",
            "start one on another computer on this Ethernet (mxwire serve -i IF), and try again",
        )
    for each in sightings:
        yield from _peer(each, dialect, length)


def _peer(found: Sighting, dialect: Dialect, length: int | None) -> Iterator[Finding]:
    who = f"{found.name or 'the host'} ({found.address})"
    if not found.heard:
        yield warning(
            "peers",
            f"nothing was heard of {who}, which is only known from --peers, or from another process here",
            "see whether it runs, and is on this Ethernet",
            found.address,
        )
        return
    if not found.answers:
        said = "announces itself, but does" if found.announced else "was heard, but does"
        yield warning(
            "peers",
            f"{who} {said} not answer host queries",
            "it does not know us: it must hear our announcements (not --quiet), or have us in its list of peers",
            found.address,
        )
        return
    time = "" if found.answer_ns is None else f", the fastest time in {found.answer_ns / 1e6:.3f} ms"
    yield ok("peers", f"{who} has answered {found.answers} of {found.queries} host queries{time}", found.address)
    if found.dialect is not None:
        yield _dialect(who, found, dialect)
    if found.long_frames is not None and length is not None:
        yield _long(who, found, length)


def _dialect(who: str, found: Sighting, dialect: Dialect) -> Finding:
    if found.dialect in (dialect.family, dialect.name):
        return ok("dialect", f"{who} speaks {found.dialect}, as we do", found.address)
    theirs = "omx:M, with the M that it was built with" if found.dialect == "omx" else found.dialect
    return problem(
        "dialect",
        f"{who} speaks {found.dialect}, and we speak {dialect}: longer messages between us will not work",
        f"use the same on all hosts: --dialect {theirs}",
        found.address,
    )


def _long(who: str, found: Sighting, length: int) -> Finding:
    if found.long_frames:
        return ok("long-frames", f"frames of {length} bytes reach {who}", found.address)
    return problem(
        "long-frames",
        f"frames of {length} bytes do not reach {who}, and short ones do",
        f"raise the MTU there and on what lies between to {length - 14} at least",
        found.address,
    )
