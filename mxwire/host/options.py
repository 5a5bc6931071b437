"""Options of hosts, as keyword arguments of ``Host``, ``AsyncHost`` and their ``open``; each may be omitted."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypedDict

from mxwire.host.attachment import Attachment
from mxwire.host.peer_names import Peers
from mxwire.host.sharing import MachineSharing
from mxwire.protocol import Event, Profile
from mxwire.wire.dialect import Dialect

DEFAULT_PROFILE = "open-mx"
"""Profile of hosts opened without one."""


class HostOptions(TypedDict, total=False):
    """Options of all hosts."""

    name: str | None
    """The host name, with or without ``:0``; by default that of the machine."""
    dialect: Dialect | str
    """``MXOE`` (the default), ``omx(M)`` or a name such as ``"omx:9000"``; all hosts on a network must use the same."""
    profile: Profile | str
    """The implementation whose behaviour to follow, as a Profile or by name; by default ``"open-mx"``."""
    peers: Peers | None
    """Static peers: names by address, or a file with one address and name per line."""
    announce: bool
    """With False the host does not announce itself, and can be reached only by hosts with its address in their peer
    tables."""
    on_event: Callable[[Event], object] | None
    """Called for each peer found and partner lost, on the thread that polls the links; it must not block."""
    rng: Random | None
    """The source of randomness."""
    small_mtu: bool
    """True to accept a link whose MTU is too small for the longest frames of the dialect."""
    sharing: MachineSharing | None
    """State shared with other processes on the same interfaces."""
    attachment: Attachment | None
    """The agent that runs the endpoints."""


class BlockingHostOptions(HostOptions, total=False):
    """Options of ``Host``."""

    spin: bool | float
    """The time for which waits poll without sleeping: that many seconds after the last frame, or always with True; by
    default they sleep at once."""
    background: bool
    """True, the default, to have a thread run the host while no caller waits."""
