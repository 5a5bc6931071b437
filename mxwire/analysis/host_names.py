"""Host names that a capture announces, and hosts as users write them: by name or address, perhaps with an endpoint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from mxwire.errors import MxwireError
from mxwire.ethernet import ADDRESS_SIZE, mac_bytes, mac_text
from mxwire.wire.enums import hostname_text
from mxwire.words import printable, suggestion

if TYPE_CHECKING:
    from mxwire.wire.decoder import DecodedBatch

_MOST: Final = 1 << 16
"""Maximum number of hosts whose names are kept: a capture with more has forged addresses."""
_LISTED: Final = 5
"""Maximum number of known names listed in the error about an unknown name."""
_MAC: Final = (
    r"[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}|[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}\.[0-9a-fA-F]{4}|[0-9a-fA-F]{12}(?![^:/])"
)
_COMPACT: Final = re.compile(r"[0-9a-fA-F]{4}(\.?)[0-9a-fA-F]{4}\1[0-9a-fA-F]{4}")
_HOST: Final = re.compile(rf"(?P<host>{_MAC}|[^\s:/]+:\d+)(?:[:/](?P<endpoint>\d+))?")
_SHORT: Final = re.compile(r"(?P<host>[^\s:/]+)(?:/(?P<endpoint>\d+))?")
"""A name without an interface number, which defaults to 0."""
_HIGHEST_ENDPOINT: Final = 255


class HostChoice(NamedTuple):
    """A host as named by a user, and perhaps one of its endpoints."""

    host: str
    """A name with the number of its interface, like ``alpha:0``, or an Ethernet address."""
    endpoint: int | None = None

    def __str__(self) -> str:
        """The host as users write it."""
        return self.host if self.endpoint is None else f"{self.host}:{self.endpoint}"

    @property
    def address(self) -> int | None:
        """The Ethernet address as an integer; None for a name."""
        try:
            return int.from_bytes(mac_bytes(self.host), "big")
        except MxwireError:
            return None


def host_choice(text: str) -> HostChoice:
    """Parse ``alpha:0``, ``alpha`` for the same, or an Ethernet address; with ``:3`` or ``/3`` appended, an endpoint.

    A name includes the number of an interface, so that the first colon always belongs to the name: ``alpha:3`` is the
    fourth interface of alpha, ``alpha:0:3`` and ``alpha/3`` are endpoint 3 of its first. Raises
    :class:`~mxwire.errors.MxwireError` for other texts.
    """
    match = _HOST.fullmatch(text.strip()) or _SHORT.fullmatch(text.strip())
    if not match:
        raise MxwireError(
            f"{text!r} is not a host: write alpha:0 or 52:54:00:0a:00:01, and alpha:0:3 for its endpoint 3"
        )
    # Python converts no number of thousands of digits; four are too high already.
    endpoint = None if match["endpoint"] is None else int(match["endpoint"][:4])
    if endpoint is not None and endpoint > _HIGHEST_ENDPOINT:
        raise MxwireError(f"{text!r}: endpoints have numbers from 0 to {_HIGHEST_ENDPOINT}")
    host = f"{match['host']}:0" if match.re is _SHORT else match["host"]
    # Outside captures only the usual notations of addresses are accepted, because peer tables do not support the
    # others.
    return HostChoice(mac_text(mac_bytes(host)) if _COMPACT.fullmatch(host) else host, endpoint)


class HostNames(Mapping[int, str]):
    """Names of hosts by Ethernet address: those ``given``, and those learned from frames and files.

    Given names take precedence; of several learned names the latest is used.
    """

    def __init__(self, given: Mapping[bytes, str] | None = None) -> None:
        self._given = {int.from_bytes(address, "big"): name for address, name in (given or {}).items() if name}
        self._names = dict(self._given)
        self.version = 0
        """Number of changes so far."""
        self._labels: dict[int, tuple[int, dict[int, str]]] = {}
        """Labels by width, with the value of ``version`` at which they were made."""

    def __getitem__(self, address: int) -> str:
        """The name of a host."""
        return self._names[address]

    def __iter__(self) -> Iterator[int]:
        """Iterate over the addresses of the hosts with names."""
        return iter(self._names)

    def __len__(self) -> int:
        """The number of hosts with names."""
        return len(self._names)

    def add(self, address: int, name: str) -> None:
        """Add a name that was learned."""
        known = self._names.get(address)
        if name and known != name and address not in self._given and (known or len(self._names) < _MOST):
            self._names[address] = name
            self.version += 1

    def add_all(self, names: Mapping[bytes, str]) -> None:
        """Add names from a file, by address of six bytes."""
        for address, name in names.items():
            if len(address) == ADDRESS_SIZE:
                self.add(int.from_bytes(address, "big"), name)

    def learn(self, decoded: DecodedBatch) -> None:
        """Add the names in the HOST_REPLYs of a batch."""
        from mxwire.wire.enums import PacketType
        from mxwire.wire.layout import TYPE_OFFSET

        located = decoded.located
        replies = (located.row_bytes[:, TYPE_OFFSET] == PacketType.HOST_REPLY).nonzero()[0].tolist()
        if not replies:
            return
        from mxwire.wire.packets import HostReply

        for place in replies:
            frame = decoded.frame(place)
            if isinstance(frame, HostReply):
                self.add(int(located.source[place]), hostname_text(frame.hostname))

    def labels(self, width: int) -> dict[int, str]:
        """The printable names of at most ``width`` characters that belong to one host only, by address."""
        version, labels = self._labels.get(width, (-1, {}))
        if version != self.version:
            holders = Counter(self._names.values())
            shown = {address: printable(name) for address, name in self._names.items() if holders[name] == 1}
            labels = {address: name for address, name in shown.items() if len(name) <= width}
            self._labels[width] = self.version, labels
        return labels


def addresses_of(host: str, names: Mapping[int, str]) -> frozenset[int]:
    """Return the addresses of a host given by its address or name; two hosts may have the same name.

    Raises :class:`~mxwire.errors.MxwireError` for a name that ``names`` does not contain.
    """
    address = HostChoice(host).address
    addresses = (
        frozenset([address]) if address is not None else frozenset(key for key, name in names.items() if name == host)
    )
    if addresses:
        return addresses
    known = sorted({printable(each) for each in names.values() if each})
    if not known:
        raise MxwireError(
            f"no host {host!r}: no HOST_REPLY here names one; give an Ethernet address, like 52:54:00:0a:00:01, "
            "or names with --peers"
        )
    listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    raise MxwireError(f"no host {host!r}{suggestion(host, known) or f': the hosts here are {listed}'}")
