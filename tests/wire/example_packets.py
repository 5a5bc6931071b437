"""The values of the packets whose dumps are the worked examples, for readers that share nothing with each other."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "data" / "sequence-examples.toml"


@dataclass(frozen=True)
class ExamplePacket:
    """A packet by the names of the specification."""

    kind: str
    dialect: str
    fields: dict[str, int | bytes]
    data: bytes

    def __str__(self) -> str:
        return f"{self.kind} {self.dialect}"


def _packet(table: dict[str, Any]) -> ExamplePacket:
    fields = {
        name: bytes.fromhex(value.replace(":", "")) if name.endswith("_mac") else value
        for name, value in table["fields"].items()
    }
    data = table.get("data", "").encode() or bytes(table.get("zeros", 0)) or bytes(range(table.get("counting", 0)))
    return ExamplePacket(table["type"], table["dialect"], fields, data)


PACKETS = [_packet(each) for each in tomllib.loads(_FILE.read_text(encoding="utf-8"))["packet"]]
"""In the order of the dumps."""
