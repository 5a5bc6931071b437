"""Host names in Wireshark's columns: the file ``ethers``, from which Wireshark resolves Ethernet addresses.

Only Wireshark fills the columns Source and Destination, after all dissectors, from the addresses of the frame. A plugin
can put a text there only by removing these addresses, and with them the frame's place in flow graphs and the column's
filters. With the names in ``ethers``, Wireshark itself shows them everywhere, even in captures without a HOST_REPLY.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mxwire.errors import MxwireError, check_regular
from mxwire.ethernet import mac_text
from mxwire.plugin.folder import replace_file
from mxwire.plugin.programs import Tshark

FILE_NAME: Final = "ethers"
_ENTRY: Final = re.compile(r"\s*([0-9A-Fa-f]{1,2}(?:([:.-])[0-9A-Fa-f]{1,2})(?:\2[0-9A-Fa-f]{1,2}){4})\s+([^\s#]+)")
_UNUSABLE: Final = re.compile(r"[\s#]+")
"""A name ends at a space, and the rest of the line is a comment after a number sign."""


@dataclass(frozen=True, slots=True)
class NameEntry:
    """An entry of the file for one host."""

    address: str
    name: str
    before: str | None
    """The previous name in the file; None if there was none."""


def names_path(tshark: Tshark) -> Path:
    """Return the user's own file of names."""
    return tshark.configuration() / FILE_NAME


def write_names(path: Path, names: Mapping[int, str]) -> list[NameEntry]:
    """Write host names by Ethernet address into a file of names, and return their entries.

    Entries of other hosts and comments remain. The file is replaced atomically, and only if it changes. Raises
    :class:`~mxwire.errors.MxwireError` if it cannot be read or written.
    """
    usable = {address: _UNUSABLE.sub("_", name) for address, name in names.items()}
    check_regular(path)
    try:
        lines = _lines(path)
        before: dict[int, str] = {}
        for address, name in filter(None, map(_entry, lines)):
            # Wireshark uses the first entry of an address.
            before.setdefault(address, name)
        changed = {address: name for address, name in usable.items() if before.get(address) != name}
        if changed:
            entries = [line for line in lines if (entry := _entry(line)) is None or entry[0] not in changed]
            entries += [f"{mac_text(address)} {name}" for address, name in changed.items()]
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, "".join(f"{line}\n" for line in entries).encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise MxwireError(f"{path} cannot be read or written: {error.strerror}") from error
    return [NameEntry(mac_text(address), name, before.get(address)) for address, name in usable.items()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []


def _entry(line: str) -> tuple[int, str] | None:
    """Return the address and the name in a line, or None if it has no entry."""
    match = _ENTRY.match(line)
    if match is None:
        return None
    octets = bytes(int(each, 16) for each in re.split(r"[:.-]", match[1]))
    return int.from_bytes(octets, "big"), match[3]
