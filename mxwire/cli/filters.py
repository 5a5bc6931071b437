"""The filter: options that select frames and messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mxwire.cli.completion import catalogued, expressions, offers, packet_types
from mxwire.cli.option_class import option, options_class
from mxwire.cli.options import Amount, endpoint_option, host_type, number_type, of_topic, peers_option

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
ABOUT_NAMES: Final = frozenset({"peers", "by_name"})
"""The parameters of options that select nothing."""


@options_class
class FilterOptions:
    """The filter, the same in all commands that read frames."""

    hosts: tuple[HostChoice, ...] = option(
        "Only from or to this host: a name, like alpha:0, or an Ethernet address; may be repeated.",
        "--host HOST",
        type=host_type,
        multiple=True,
        **_FILTER,
    )
    pair: tuple[HostChoice, HostChoice] | None = option(
        "Only between these hosts; with :N appended, as in alpha:0:3, only its endpoint N.",
        "--pair A B",
        type=host_type,
        nargs=2,
        **_FILTER,
    )
    endpoint: int | None = endpoint_option("Only this endpoint number, of the source or of the destination.", **_FILTER)
    types: tuple[str, ...] = option(
        "Only this packet type, by name or number; may be repeated.",
        "--type TYPE",
        multiple=True,
        shell_complete=offers(packet_types),
        **_FILTER,
    )
    kinds: tuple[str, ...] = option(
        "Only messages of this kind; may be repeated.",
        "--kind",
        type=click.Choice(KINDS, case_sensitive=False),
        multiple=True,
        shell_complete=offers(lambda: KINDS),
        **_FILTER,
    )
    messages: list[NumberRange] | None = option(
        "Only messages with these numbers (mxwire messages lists them): 7, 10-20, 100-, or several, as in 7,9.",
        "--message RANGE",
        type=ranges_type("messages"),
        **_FILTER,
    )
    frames: list[NumberRange] | None = option(
        "Only these frame numbers: 7, 10-20, 100-, or several, as in 7,9.",
        "--frames RANGE",
        type=ranges_type("frames"),
        **_FILTER,
    )
    between: tuple[float, float] | None = option(
        "Only from T1 to T2 seconds since the first frame.", "--between T1 T2", type=Amount(0), nargs=2, **_FILTER
    )
    match: int | None = option(
        "Only messages with this match info, 64 bits.", "--match N", type=number_type((1 << 64) - 1), **_FILTER
    )
    flags: tuple[str, ...] = option(
        "Only frames with this mark, such as retransmission; may be repeated for any of several.",
        "--flag NAME",
        multiple=True,
        shell_complete=offers(catalogued("flag")),
        **_FILTER,
    )
    where: str | None = option(
        "Only frames for which this expression over their fields is true.",
        "--where EXPRESSION",
        shell_complete=expressions,
        **_FILTER,
    )
    peers: Path | None = peers_option
    by_name: bool = option(
        "Show names of hosts, where known and unique, instead of addresses.  [default: --names]",
        "--names/--no-names",
        default=True,
        **of_topic("hosts"),
    )
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


FILTERS: Final = frozenset(each.name for each in fields(FilterOptions))
"""The parameters of the filter."""
