"""The filter: options that select frames and messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mxwire.cli.completion import catalogued, expressions, offers, packet_types
from mxwire.cli.options import (
    Amount,
    Decorator,
    endpoint_option,
    host_type,
    number_type,
    of_topic,
    option_group,
    peers_option,
)

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostChoice, HostNames
    from mxwire.analysis.selection import NumberRange, Selection

_RANGE: Final = re.compile(r"(\d*)(-?)(\d*)")


def ranges_type(noun: str) -> Callable[[str], list[NumberRange]]:
    """An option type: ``7``, ``10-20``, ``100-``, ``-5``, or several with commas, of things that are counted from 1.

    The last number of an open range is None.
    """

    def ranges(value: str) -> list[NumberRange]:
        numbers: list[NumberRange] = []
        for part in value.split(","):
            match = _RANGE.fullmatch(part.strip())
            if not match or not (match[1] or match[3]):
                raise click.BadParameter(f"{part!r} is not a range of {noun}: write 7, 10-20, 100- or -5")
            first = int(match[1] or 1)
            if first == 0:
                raise click.BadParameter(f"{part!r}: {noun} count from 1")
            last = int(match[3]) if match[3] else (None if match[2] else first)
            if last is not None and last < first:
                raise click.BadParameter(f"{part!r} ends before it starts")
            numbers.append((first, last))
        return numbers

    return ranges


KINDS: Final = ("TINY", "SMALL", "MEDIUM", "RNDV")
"""Kinds of messages."""

_FILTER: Final = of_topic("filter")
_FILTERS: Final[dict[str, Decorator]] = {
    "hosts": click.option(
        "--host",
        "hosts",
        metavar="HOST",
        type=host_type,
        multiple=True,
        help="Only from or to this host: a name, like alpha:0, or an Ethernet address; may be repeated.",
        **_FILTER,
    ),
    "pair": click.option(
        "--pair",
        metavar="A B",
        type=host_type,
        nargs=2,
        help="Only between these hosts; with :N appended, as in alpha:0:3, only its endpoint N.",
        **_FILTER,
    ),
    "endpoint": endpoint_option("Only this endpoint number, of the source or of the destination.", **_FILTER),
    "types": click.option(
        "--type",
        "types",
        metavar="TYPE",
        multiple=True,
        shell_complete=offers(packet_types),
        help="Only this packet type, by name or number; may be repeated.",
        **_FILTER,
    ),
    "kinds": click.option(
        "--kind",
        "kinds",
        type=click.Choice(KINDS, case_sensitive=False),
        multiple=True,
        shell_complete=offers(lambda: KINDS),
        help="Only messages of this kind; may be repeated.",
        **_FILTER,
    ),
    "messages": click.option(
        "--message",
        "messages",
        metavar="RANGE",
        type=ranges_type("messages"),
        help="Only messages with these numbers (mxwire messages lists them): 7, 10-20, 100-, or several, as in 7,9.",
        **_FILTER,
    ),
    "frames": click.option(
        "--frames",
        metavar="RANGE",
        type=ranges_type("frames"),
        help="Only these frame numbers: 7, 10-20, 100-, or several, as in 7,9.",
        **_FILTER,
    ),
    "between": click.option(
        "--between",
        metavar="T1 T2",
        type=Amount(0),
        nargs=2,
        help="Only from T1 to T2 seconds since the first frame.",
        **_FILTER,
    ),
    "match": click.option(
        "--match",
        metavar="N",
        type=number_type((1 << 64) - 1),
        help="Only messages with this match info, 64 bits.",
        **_FILTER,
    ),
    "flags": click.option(
        "--flag",
        "flags",
        metavar="NAME",
        multiple=True,
        shell_complete=offers(catalogued("flag")),
        help="Only frames with this mark, such as retransmission; may be repeated for any of several.",
        **_FILTER,
    ),
    "where": click.option(
        "--where",
        metavar="EXPRESSION",
        shell_complete=expressions,
        help="Only frames for which this expression over their fields is true.",
        **_FILTER,
    ),
    "peers": peers_option,
    "by_name": click.option(
        "--names/--no-names",
        "by_name",
        default=True,
        help="Show names of hosts, where known and unique, instead of addresses.  [default: --names]",
        **of_topic("hosts"),
    ),
}
"""The options of the filter, by the name of their parameter."""
FILTERS: Final = frozenset(_FILTERS)
"""The names of the parameters of these options."""
ABOUT_NAMES: Final = frozenset({"peers", "by_name"})
"""The parameters of options that select nothing."""


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Parsed filter options, the same in all commands that read frames."""

    hosts: tuple[HostChoice, ...] = ()
    pair: tuple[HostChoice, HostChoice] | None = None
    endpoint: int | None = None
    types: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    messages: list[NumberRange] | None = None
    frames: list[NumberRange] | None = None
    between: tuple[float, float] | None = None
    match: int | None = None
    flags: tuple[str, ...] = ()
    where: str | None = None
    peers: Path | None = None
    by_name: bool = False
    """True if output shows names of hosts instead of addresses."""

    def selection(self) -> Selection:
        """The selection, in which names of hosts are not resolved.

        Raises :class:`~mxwire.errors.MxwireError` for unknown words and for mistakes in the expression.
        """
        from mxwire.analysis.selection import Selection

        return Selection.of(
            **{each.name: getattr(self, each.name) for each in fields(self) if each.name not in ABOUT_NAMES}
        )

    def host_names(self) -> HostNames:
        """The host names given by the user, to which the names in a capture can be added."""
        from mxwire.analysis.host_names import HostNames

        if self.peers is None:
            return HostNames()
        from mxwire.host.peer_names import read_peers

        return HostNames({address: name for address, name in read_peers(self.peers).items() if name})


def filter_options(*omitted: str) -> Decorator:
    """The options of the filter, passed to the command as ``filters``, :class:`FilterOptions`.

    ``omitted`` names the parameters of options that the command lacks, or defines with other properties.
    """
    return option_group("filters", FilterOptions, *(each for name, each in _FILTERS.items() if name not in omitted))
