"""Options that all live commands share, how they name other hosts, and how they open their own."""

from __future__ import annotations

import functools
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from mxwire.cli.completion import catalogued, interfaces, live_dialects, offers
from mxwire.cli.notes import note
from mxwire.cli.options import Amount
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from types import FrameType

    from mxwire.host import Host
    from mxwire.link.interface import NetworkInterface
    from mxwire.protocol import Peer

_MAC: Final = r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}"
_DESTINATION: Final = re.compile(rf"(?P<host>{_MAC}|[^\s:/]+:\d+)(?:[:/](?P<endpoint>\d+))?")
_SHORT: Final = re.compile(r"(?P<host>[^\s:/]+)(?:/(?P<endpoint>\d+))?")
"""A name without the number of its interface, which is 0 then."""
_HIGHEST_ENDPOINT: Final = 255
MEETING_POINT: Final = 1
"""The endpoint of serve, send and receive unless told otherwise: 0 is where omx_perf, and ``mxwire perf``, meet."""

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Destination:
    """A host as the user names it, and perhaps one of its endpoints."""

    host: str
    """A name with the number of its interface, like ``alpha:0``, or an Ethernet address."""
    endpoint: int | None = None

    def __str__(self) -> str:
        """As the user would write it."""
        return self.host if self.endpoint is None else f"{self.host}:{self.endpoint}"


class DestinationType(click.ParamType):  # type: ignore[type-arg]
    """``alpha:0``, ``alpha`` for the same, or an Ethernet address; with ``:3`` or ``/3`` behind it, endpoint 3.

    A name has the number of the interface in it, so that one colon always belongs to the name: ``alpha:3`` is the
    fourth interface of alpha, ``alpha:0:3`` and ``alpha/3`` are endpoint 3 of its first.
    """

    name = "host"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Destination:
        """The host and its endpoint."""
        if isinstance(value, Destination):
            return value
        text = str(value).strip()
        found = _DESTINATION.fullmatch(text) or _SHORT.fullmatch(text)
        if not found:
            self.fail(
                f"{value!r} is no host: write alpha:0 or 52:54:00:0a:00:01, and alpha:0:3 for its endpoint 3",
                param,
                ctx,
            )
        endpoint = None if found["endpoint"] is None else int(found["endpoint"])
        if endpoint is not None and endpoint > _HIGHEST_ENDPOINT:
            self.fail(f"{value!r}: endpoints have numbers from 0 to {_HIGHEST_ENDPOINT}", param, ctx)
        return Destination(f"{found['host']}:0" if found.re is _SHORT else found["host"], endpoint)


@dataclass(frozen=True, slots=True)
class Live:
    """What the shared options say: our own host, and where it is."""

    interface: str
    name: str | None = None
    dialect: str | None = None
    """What the user has asked for; None: nothing, which means mxoe."""
    profile: str = "open-mx"
    peers: Path | None = None
    quiet: bool = False

    def check(self) -> NetworkInterface:
        """What the kernel says of the interface.

        Raises :class:`~mxwire.link.errors.LinkError` where there is none, it is not Ethernet, or it is down. Says on
        standard error where nothing is plugged in: that may still come.
        """
        from mxwire.link.errors import LinkError
        from mxwire.link.interface import read_interface

        found = read_interface(self.interface)
        if not found.up:
            raise LinkError(f"{self.interface}: is down; set it up: ip link set {self.interface} up")
        if not found.carrier:
            note(f"{self.interface} has no carrier: nothing is plugged in, or its other end is down")
        return found

    def open(self, *, short_frames: bool = False, **more: Any) -> Host:
        """Our host on the interface; ``more`` goes to :meth:`Host.open <mxwire.host.host.Host.open>`.

        With ``short_frames`` only such are sent, which fit into any MTU: then a dialect that does not is refused only
        where the user has asked for it. Raises :class:`~mxwire.errors.MxwireError` for what cannot work.
        """
        from mxwire.host import Host

        self.check()
        return Host.open(
            self.interface,
            name=self.name,
            dialect=self.dialect or "mxoe",
            profile=self.profile,
            peers=self.peers,
            announce=not self.quiet,
            small_mtu=short_frames and self.dialect is None,
            **more,
        )


_OPTIONS: Final = (
    click.option(
        "-i",
        "--interface",
        metavar="IF",
        shell_complete=offers(interfaces),
        required=True,
        help="The Ethernet interface, like eth0.",
    ),
    click.option("--name", metavar="NAME", help="Our own host name.  [default: that of this computer, with :0]"),
    click.option(
        "--dialect",
        metavar="mxoe|omx|omx:M",
        shell_complete=live_dialects,
        help="What we speak; all hosts must speak the same.  [default: mxoe]",
    ),
    click.option(
        "--profile",
        metavar="NAME",
        default="open-mx",
        shell_complete=offers(catalogued("profile")),
        show_default=True,
        help="What kind of host we are: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help.",
    ),
    click.option(
        "--peers",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Hosts that need not be found: an Ethernet address and a name a line.",
    ),
    click.option("--quiet", is_flag=True, help="Do not announce ourselves: only hosts that know us answer."),
)


def live_options(function: Command) -> Command:
    """Give a command the options of all live commands; it gets them as ``live``, a :class:`Live`."""

    @functools.wraps(function)
    def wrapped(
        *arguments: Any,
        interface: str,
        name: str | None,
        dialect: str | None,
        profile: str,
        peers: Path | None,
        quiet: bool,
        **rest: Any,
    ) -> Any:
        live = Live(interface, name, dialect, profile, peers, quiet)
        return function(*arguments, live=live, **rest)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


def timeout_option(default: float, text: str) -> Callable[[Command], Command]:
    """``--timeout`` in seconds, greater than 0; ``text`` says what for."""
    return _seconds_option("--timeout", "timeout", default, text)


def time_option(default: float, text: str) -> Callable[[Command], Command]:
    """``--time`` in seconds, greater than 0, given to the command as ``seconds``; ``text`` says what for."""
    return _seconds_option("--time", "seconds", default, text)


def _seconds_option(option: str, name: str, default: float, text: str) -> Callable[[Command], Command]:
    return click.option(
        option,
        name,
        type=Amount(0, min_open=True),
        default=default,
        show_default=True,
        metavar="S",
        help=text,
    )


def find(host: Host, which: Destination, timeout: float) -> Peer:
    """The peer that the user names, once it has told its name or is known by ``--peers``.

    Raises :class:`~mxwire.errors.MxwireError` where it does not appear within ``timeout`` seconds, with what was
    tried and who was seen instead, and where it is ourselves.
    """
    peer = host.wait_for_peer(which.host, timeout)
    if peer.own is not None:
        raise MxwireError(f"{which.host} is our own name or address: name another host, or call us otherwise (--name)")
    return peer


def end_like_interrupt() -> None:
    """Let SIGTERM do what Ctrl-C does, so that whatever is open is ended well; call it before a host is opened.

    A shell has what it starts in the background ignore Ctrl-C; SIGTERM then works all the same.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    asked = False

    def end(*_: object) -> None:
        nonlocal asked
        asked = True
        signal.raise_signal(signal.SIGINT)

    def interrupt(number: int, frame: FrameType | None) -> None:
        if asked:
            signal.default_int_handler(number, frame)

    if ignored:
        signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, end)
