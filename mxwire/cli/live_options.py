"""Options of all live commands: names of remote hosts, the local host, and connections."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mxwire.cli.notes import note
from mxwire.cli.option_class import option, options_class
from mxwire.cli.options import interface_option, live_dialect_option, name_option, of_topic, peers_option, via_option
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from types import FrameType

    from mxwire.analysis.host_names import HostChoice
    from mxwire.host import Endpoint, Host
    from mxwire.link.interface import NetworkInterface
    from mxwire.protocol import Partner, Peer

_SETTLING: Final = 1.5
"""Seconds to wait for the carrier of an interface, because the kernel may report it up to a second after setup."""
MEETING_POINT: Final = 1
"""The endpoint of serve, send and receive by default: omx_perf and ``mxwire perf`` use 0."""


_HOSTS: Final = of_topic("hosts")
own_name_option = option(
    "Name of the local host.  [default: that of this computer, with :0]", "--name NAME", **of_topic("hosts", "name")
)
own_dialect_option = live_dialect_option(
    "Dialect of the local host, which all hosts must share.  [default: mxoe]", **of_topic("hosts", "dialect")
)
announce_option = option(
    "Do not announce the local host: only hosts that know it answer.",
    "--no-announce",
    flag_value=False,
    default=True,
    show_default=False,
    **_HOSTS,
)


def own_profile_option(**properties: Any) -> Any:
    """``--profile`` of the local host; ``properties`` are those of click."""
    text = "Implementation to imitate: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help."
    return name_option(text, "profile", "--profile", **properties, **_HOSTS)


@options_class
class LiveOptions:
    """Options of all live commands: the local host and its interface."""

    interface: str = interface_option(required=True)
    name: str | None = own_name_option
    dialect: str | None = own_dialect_option
    """The dialect, if one was given; otherwise it is mxoe."""
    profile: str = own_profile_option(default="open-mx")
    peers: Path | None = peers_option
    announce: bool = announce_option
    via: str = via_option("packet", "xdp", "xdp-send", **_HOSTS)

    def check(self) -> NetworkInterface:
        """Read the properties of the interface from the kernel.

        Raises :class:`~mxwire.link.errors.LinkError` if it does not exist, is not Ethernet, or is down. Prints a note
        if it has no carrier even after a moment; it may still come.
        """
        from mxwire.link.errors import LinkError
        from mxwire.link.interface import read_settled

        found = read_settled(self.interface, _SETTLING)
        if not found.up:
            raise LinkError(f"{self.interface}: is down; set it up: ip link set {self.interface} up")
        if not found.carrier:
            note(f"{self.interface} has no carrier: the cable is unplugged, or its other end is down")
        return found

    def open(self, *, short_frames: bool = False, **more: Any) -> Host:
        """Open the local host; ``more`` goes to :meth:`Host.open <mxwire.host.host.Host.open>`.

        With ``short_frames`` the caller sends only frames that fit into any MTU: a dialect that exceeds the MTU is then
        refused only if it was given explicitly. Raises :class:`~mxwire.errors.MxwireError` if this fails.
        """
        from mxwire.host import Host

        self.check()
        return Host.open(
            self.interface,
            name=self.name,
            dialect=self.dialect or "mxoe",
            profile=self.profile,
            peers=self.peers,
            announce=self.announce,
            small_mtu=short_frames and self.dialect is None,
            link=self.via,
            **more,
        )


def find(host: Host, which: HostChoice, timeout: float) -> Peer:
    """Wait until a peer has sent its name, or return it at once if it is known by ``--peers``.

    Raises :class:`~mxwire.errors.MxwireError` if it does not appear within ``timeout`` seconds, with the attempts and
    the hosts seen instead, and if it is the local host.
    """
    peer = host.wait_for_peer(which.host, timeout)
    if peer.own is not None:
        raise MxwireError(f"{which.host} is the local host: name another host, or rename the local one (--name)")
    return peer


def connect(
    endpoint: Endpoint, host: str, number: int, key: int, timeout: float | None, *, other_key: str = "see --key"
) -> Partner:
    """Connect to an endpoint; if that is refused, the error includes advice, ``other_key`` for another key."""
    from mxwire.host import HostError
    from mxwire.protocol import Status

    try:
        return endpoint.connect(host, number, key, timeout=timeout)
    except HostError as error:
        hints = {
            Status.REMOTE_ENDPOINT_BAD_CONNECTION_KEY: f"the endpoint has another key than {key:#x}: {other_key}",
            Status.REMOTE_ENDPOINT_CLOSED: f"endpoint {number} is not open there: "
            "start a program that opens it, or name an open one (HOST:N)",
            Status.REMOTE_ENDPOINT_BAD_ID: f"that host has no endpoint {number}",
        }
        hint = hints.get(error.status)
        if hint is None:
            raise
        raise HostError(error.status, f"{host} refuses the connection ({error.status.text}): {hint}") from None


def end_like_interrupt() -> None:
    """Handle SIGTERM like Ctrl-C, so that a host is closed properly; call it before the host is opened.

    A shell starts background programs with Ctrl-C ignored; SIGTERM still works for them.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    interrupted = False

    def end(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        signal.raise_signal(signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        if interrupted:
            signal.default_int_handler(number, frame)

    if ignored:
        signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, end)
