"""Rows of the tables 1 to 3 of Araki and others (1998)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from mxwire.texts import entries

Overflow = Literal["prevented", "data loss", "tolerated", "impossible"]
Errors = Literal["catastrophic", "tolerated", "data loss"]
Parameter = Literal["o_s", "L", "o_r", "-"]

STAGES: Final = (
    "application to system buffer",
    "buffer to interface",
    "interface to interface",
    "interface to buffer",
    "system to application buffer",
)
"""The stages of a message, each of which is part of a parameter of LogP."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The choices of a library, and the copies per byte of long messages."""

    title: str
    model: Literal["RPC", "send/recv", "direct deposit", "bytes"]
    transfer: Literal["combined", "data only", "separate"]
    """Transfer of data and control."""
    within: bool
    """Protection within a node: a process cannot stop its host's network."""
    between: bool
    """Protection between nodes: forged frames are refused."""
    multiprogramming: bool
    overflow: Overflow
    errors: Errors
    management: str
    send: str
    receive: str
    protection: str
    reliability: str
    notification: str
    stages: tuple[Parameter, Parameter, Parameter, Parameter, Parameter]
    in_place: tuple[int, int]
    """Copies in the sender's and the receiver's library if the program uses the library's buffers."""
    elsewhere: tuple[int, int]
    """The same if data are anywhere in user memory."""
    remark: str = ""
    remark_table: int = 0
    """Number of the table with the choice that the remark is about; 0: all of them."""
    combines: bool = False
    """Writes to the adapter are combined into lines."""
    reads: int = -1
    """Length in bytes of the longest packet that a processor reads from the adapter, instead of a DMA transfer."""
    immediate: bool = False
    """A frame enters the network while its DMA transfer still runs."""


def _read_facts() -> dict[str, ModelFacts]:
    rows: dict[str, dict[str, Any]] = {}
    for name, values in entries(__file__, "facts.toml").items():
        rows[name] = rows.get(values.pop("like", ""), {}) | values
    return {name: ModelFacts(**values) for name, values in rows.items()}


FACTS: Final = _read_facts()
"""The rows by name: the models that run, in the order of the tables, and then the others (``facts.toml``)."""
