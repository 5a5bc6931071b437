"""Host names: the name of this host, and names and addresses that users give for others."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError
from mxwire.ethernet import mac_bytes
from mxwire.wire.numbers import HOST_NAME_MAXIMUM

Peers = Mapping[str | bytes, str | None] | str | Path
"""Names by address, or the path of a file that lists them."""

_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}")
_SUFFIX: Final = len(":0\0")


def own_name(name: str | None) -> str:
    """Name of this host without the ``:0`` of an interface; by default that of the machine.

    Raises :class:`~mxwire.errors.MxwireError` for an invalid name.
    """
    host = os.uname().nodename.split(".")[0] or "localhost" if name is None else name.strip().removesuffix(":0")
    if not host or ":" in host or not host.isprintable() or any(each.isspace() for each in host):
        raise MxwireError(f"{name!r} is not a host name: give one like alpha, or alpha:0")
    if len(host.encode()) + _SUFFIX > HOST_NAME_MAXIMUM:
        raise MxwireError(
            f"the host name {host!r} is too long: with :0 at most {HOST_NAME_MAXIMUM - 1} bytes are allowed"
        )
    return host


def peer_key(text: str | bytes) -> str | bytes:
    """Key of a peer in the engine: the six bytes of an address, or a name with the number of the interface.

    Takes ``52:54:00:0a:00:01``, ``alpha:0``, and ``alpha`` for ``alpha:0``. Raises
    :class:`~mxwire.errors.MxwireError` for bytes of another length, and for an empty name.
    """
    if isinstance(text, bytes):
        if len(text) != 6:
            raise MxwireError(f"an Ethernet address has 6 bytes, not {len(text)}")
        return text
    if not isinstance(text, str):
        raise TypeError(f"a host is a name like 'alpha:0', an Ethernet address or a Peer, not {text!r}")
    text = text.strip()
    if _ADDRESS.fullmatch(text):
        return mac_bytes(text)
    if not text:
        raise MxwireError("a host is missing: give its name, like alpha:0, or its Ethernet address")
    return text if ":" in text else f"{text}:0"


def static_peers(peers: Peers | None) -> dict[bytes, str | None]:
    """Names by address, from a mapping or a file.

    Raises :class:`~mxwire.errors.MxwireError` for an invalid address or name.
    """
    if peers is None:
        return {}
    if isinstance(peers, (str, Path)):
        return read_peers(Path(peers))
    return {_address(each): name and str(peer_key(name)) for each, name in peers.items()}


def _address(address: str | bytes) -> bytes:
    return address if isinstance(address, bytes) and len(address) == 6 else mac_bytes(str(address))


def read_peers(path: Path) -> dict[bytes, str | None]:
    """Read static peers: per line an address and, optionally, a name; ``#`` starts a comment.

    Raises :class:`~mxwire.errors.MxwireError` with the file and the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise MxwireError(f"{path}: the peers cannot be read: {why}") from None
    peers: dict[bytes, str | None] = {}
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            if len(words) > 2:
                raise MxwireError(f"{' '.join(words)!r} is more than an address and a name")
            address = mac_bytes(words[0])
            if address in peers:
                raise MxwireError(f"{words[0]} is listed twice")
        except MxwireError as error:
            raise MxwireError(f"{path}:{number}: {error}") from None
        peers[address] = str(peer_key(words[1])) if len(words) == 2 else None
    return peers
