"""Options of a program that uses the library, from its environment."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from mxwire.errors import MxwireError
from mxwire.link import LinkError
from mxwire.link.interface import NetworkInterface, read_interface
from mxwire.protocol import Profile, profile_by_name
from mxwire.protocol.agent.progress import AgentProgress, agent_progress
from mxwire.wire.dialect import MXOE, Dialect, as_dialect
from mxwire.wire.formats import MEDIUM_MXOE

Getenv = Callable[[str], str | None]
"""Reads a variable of the C environment, which programs may change just before ``mx_init``."""

INTERFACE: Final = "MXWIRE_INTERFACE"
NAME: Final = "MXWIRE_NAME"
DIALECT: Final = "MXWIRE_DIALECT"
PROFILE: Final = "MXWIRE_PROFILE"
PEERS: Final = "MXWIRE_PEERS"
ANNOUNCE: Final = "MXWIRE_ANNOUNCE"
AGENT: Final = "MXWIRE_AGENT"
FILES: Final = frozenset({PEERS})
"""Variables with the name of a file."""

DISCOVERY: Final = 10.0
"""Seconds for which a program waits for hosts that are not known yet."""
LATE_DISCOVERY: Final = 60.0
"""The same for a program that mpirun or Slurm starts: ranks on loaded hosts start many seconds apart."""
_OF_MPIRUN: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "MPIRUN_RANK", "SLURM_PROCID")
_DISABLE_HOST: Final = ("MX_DISABLE_SHMEM", "MX_DISABLE_SHARED")
_WITHOUT_EFFECT: Final = ("MX_RCACHE", "MX_BONDING", "OMX_CONNECT_POLLALL")
_SHORTEST_PIPELINE: Final = 10
"""Base-2 logarithm of the shortest fragment of a MEDIUM."""
_CONTEXT_ID: Final = re.compile(r"(\d+),(\d+)")


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """Options of the host that a program in C opens, and of its endpoints."""

    interfaces: tuple[str, ...]
    """Interfaces by board number; none if the program communicates only with itself."""
    agent: AgentProgress | None
    """Progress of the endpoints at the agent of these interfaces; None without an agent."""
    name: str | None
    dialect: Dialect
    profile: Profile
    peers: str | None
    announce: bool
    acked_sends: bool
    """True if a send ends only when it is acknowledged."""
    any_endpoint: int | None
    """Number of an endpoint opened as MX_ANY_ENDPOINT; None: the lowest free one."""
    context_id: tuple[int, int]
    """Bits and shift of the context id of endpoints opened without one."""
    verbose: bool
    """True to report the host and the variables without effect."""
    ignored: tuple[str, ...]
    """Environment variables of MX and Open-MX that are set but have no effect here."""
    discovery: float
    """Seconds after the start within which unknown hosts may still be discovered."""


def read_options(getenv: Getenv) -> ProgramOptions:
    """Read all options; raise :class:`~mxwire.errors.MxwireError` with the variable for a bad value."""
    mx = (lambda _: None) if _is_set(getenv("OMX_IGNORE_MX_ENV")) else getenv
    profile = profile_by_name(getenv(PROFILE) or "open-mx")
    retries = _first_number(("MX_MAX_RETRIES", mx), ("OMX_RESENDS_MAX", getenv))
    if retries is not None:
        profile = replace(profile, resend_maximum=retries)
    ack_threshold = _first_number(("MX_IMM_ACK", mx))
    if ack_threshold is not None:
        # With 0 too, each message is acked at once (R-ACK-07).
        profile = replace(profile, ack_threshold=max(ack_threshold, 1))
    medium_threshold = _first_number(("OMX_RNDV_THRESHOLD", getenv))
    if medium_threshold is not None:
        profile = replace(profile, medium_threshold=min(medium_threshold, profile.medium_threshold))
    if any(_is_set(mx(each)) for each in _DISABLE_HOST):
        profile = replace(profile, shortcut_to_host=False)
    if _is_set(mx("MX_DISABLE_SELF")):
        profile = replace(profile, shortcut_to_self=False)
    dialect = as_dialect(getenv(DIALECT) or MXOE)
    pipeline = _first_number(("MX_PIPELINE_LOG", mx))
    if pipeline and dialect.medium_format is MEDIUM_MXOE:
        longest = dialect.fragment_payload.bit_length() - 1
        profile = replace(profile, fragment_pipeline=min(max(pipeline, _SHORTEST_PIPELINE), longest))
    return ProgramOptions(
        interfaces=() if _is_set(mx("MX_NO_MYRINET")) else _interfaces(getenv(INTERFACE), dialect),
        agent=_agent(getenv(AGENT) or "0"),
        name=getenv(NAME) or None,
        dialect=dialect,
        profile=profile,
        peers=getenv(PEERS) or None,
        announce=getenv(ANNOUNCE) != "0",
        acked_sends=_first_number(("MX_ZOMBIE_SEND", mx)) == 0,
        any_endpoint=_first_number(("OMX_ANY_ENDPOINT", getenv)),
        context_id=_context_id(getenv("OMX_CTXIDS")),
        verbose=_is_set(mx("MX_VERBOSE")),
        ignored=tuple(each for each in _WITHOUT_EFFECT if getenv(each) is not None),
        discovery=_seconds(getenv("MXWIRE_DISCOVERY"), LATE_DISCOVERY if any(map(getenv, _OF_MPIRUN)) else DISCOVERY),
    )


def _agent(value: str) -> AgentProgress | None:
    try:
        return agent_progress(value == "1" if value in ("0", "1") else value)
    except MxwireError as error:
        raise MxwireError(f"{AGENT}: {error}") from None


def _is_set(value: str | None) -> bool:
    return value is not None and value not in ("", "0")


def _first_number(*variables: tuple[str, Getenv]) -> int | None:
    """Number in the first of several variables that is set."""
    for name, getenv in variables:
        value = getenv(name)
        if value:
            try:
                number = int(value, 0)
            except ValueError:
                number = -1
            if not 0 <= number < 1 << 32:
                raise MxwireError(f"{name}={value}: it must be a number from 0 to {(1 << 32) - 1}")
            return number
    return None


def _seconds(value: str | None, default: float) -> float:
    try:
        return max(0.0, float(value)) if value else default
    except ValueError:
        return default


def _context_id(value: str | None) -> tuple[int, int]:
    if not value:
        return 0, 0
    found = _CONTEXT_ID.fullmatch(value)
    if found is None:
        raise MxwireError(f"OMX_CTXIDS={value}: write the number of bits and their shift, like 16,48")
    return int(found[1]), int(found[2])


def _interfaces(value: str | None, dialect: Dialect) -> tuple[str, ...]:
    """Interfaces by name; by default the only Ethernet interface that is up and has the MTU of the dialect."""
    if value:
        return tuple(each.strip() for each in value.split(",") if each.strip())
    from mxwire.host.mtu import needed_mtu

    usable = [each for each in _ethernets() if each.up and each.mtu >= needed_mtu(dialect)]
    if len(usable) == 1:
        return (usable[0].name,)
    if not usable:
        raise LinkError(
            f"no Ethernet interface here is up and has an MTU for dialect {dialect}: choose one with mxwire run -i, "
            f"or {INTERFACE}"
        )
    names = ", ".join(each.name for each in usable)
    raise LinkError(
        f"this machine has several Ethernet interfaces ({names}): choose with mxwire run -i, or {INTERFACE}"
    )


def _ethernets() -> list[NetworkInterface]:
    found = []
    for _, name in socket.if_nameindex():
        try:
            found.append(read_interface(name))
        except LinkError:
            continue
    return found
