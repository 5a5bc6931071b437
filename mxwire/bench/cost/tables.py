"""Tables of unit costs: the machines of two papers (1998 and 2010), and this machine as it was measured.

A table names the numbers to which it was fitted (:attr:`Costs.fitted_to`). Claims cannot use them as evidence.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from mxwire.errors import MxwireError, create_folder, write_file
from mxwire.words import suggestion

Source = Literal["given", "derived", "fitted", "guess", "measured"]


@dataclass(frozen=True, slots=True)
class FittedNumber:
    """A point of a series to which a table was fitted, or from which one of its values was derived."""

    series: str
    name: str
    x: float
    value: float
    unit: str = "µs"

    @property
    def text(self) -> str:
        """The number in words: ``half round trip of tcp at 0: 13.2 µs``."""
        return f"{self.series} of {self.name} at {self.x:,.15g}: {self.value:g} {self.unit}"


@dataclass(frozen=True, slots=True)
class Costs:
    """Unit costs of a host and its link. Times are in ns, per byte in ns/B, rates in bits per second."""

    name: str
    about: str = ""
    line: float = 9_953e6
    """Rate of the link."""
    line_overhead: int = 24
    """Bytes per frame on the link that are not in the frame: preamble, check sequence and gap."""
    adapter_send: float = 0.0
    """Latency of the sending adapter and half of the cable, which occupies no processor."""
    adapter_receive: float = 0.0
    """Latency of the receiving adapter and half of the cable."""
    cores: int = 8
    """Cores per host; with fewer cores than processes and the bottom half, they share."""
    call: float = 0.0
    """A call of the library by the application."""
    event: float = 0.0
    """An event that the library takes from its ring."""
    system_call: float = 0.0
    frame_send: float = 0.0
    """Building a frame and handing it to the adapter."""
    frame_receive: float = 0.0
    """The bottom half per received frame, without its data."""
    copy_cold: float = 0.0
    """A byte that the bottom half copies out of a received frame."""
    copy_warm: float = 0.0
    """A byte that the library copies between application and ring."""
    medium: float = 0.0
    """Sending a MEDIUM message, beyond what a SMALL one takes: it is handled by columns, for many fragments."""
    pin: float = 0.0
    """Pinning a page of 4 KiB of a large message."""
    submit: float = 0.0
    """Submitting a chunk of at most 4 KiB to the copy engine (I/OAT)."""
    engine: float = 0.0
    """A byte that the copy engine copies; 0: there is none."""
    local_copy: float = 0.0
    """A byte of a message within the host, per copy."""
    combine: float = 0.0
    """A byte that a reduction adds to another."""
    signal: float = 0.0
    """Entering and leaving the handler of a signal."""
    tcp_send: float = 0.0
    """A send of TCP/IP, without its data."""
    tcp_receive: float = 0.0
    """The receipt of data by TCP/IP, without its data."""
    tcp_frame: float = 0.0
    """The bottom half of TCP/IP per received frame."""
    tcp_copy: float = 0.0
    """A byte that a receive of TCP copies to the application."""
    to_adapter: float = 0.0
    """A byte on the I/O bus from memory to the adapter; 0: the bus does not limit."""
    from_adapter: float = 0.0
    """A byte on the I/O bus from the adapter to memory."""
    pio_word: float = 0.0
    """Writing a word of 4 bytes to the adapter."""
    pio_read: float = 0.0
    """Reading a word of 4 bytes from the adapter."""
    pio_line: float = 0.0
    """Writing a line of 32 bytes to the adapter, with write combining."""
    dma_start: float = 0.0
    """Starting a transfer between memory and adapter, by the adapter's processor."""
    dma_start_host: float = 0.0
    """Starting it by the host's processor."""
    firmware: float = 0.0
    """The adapter's processor per packet and side."""
    protection: float = 0.0
    """Protection of processes from each other, per message and side."""
    reliability: float = 0.0
    """Recovery in the firmware, per packet and side."""
    request: float = 0.0
    """A request of Active Messages or its handler, beyond a message: tokens and reply."""
    sources: dict[str, Source] = field(default_factory=dict)
    """The source of each value that is not 0."""
    fitted_to: tuple[FittedNumber, ...] = ()
    """The numbers from which the fitted and derived values were computed."""
    contradicted: tuple[FittedNumber, ...] = ()
    """Numbers that contradict those, so that the table was not fitted to them."""

    @property
    def models_tcp(self) -> bool:
        """True if the table has costs of TCP."""
        return self.tcp_send > 0

    @property
    def delivery_copy(self) -> float:
        """A byte that the bottom half copies out of a frame; an adapter with firmware delivers without a copy."""
        return 0.0 if self.firmware else self.copy_cold

    def record(self) -> dict[str, Any]:
        """The table as an object for JSON."""
        return asdict(self)


def _read_tables() -> dict[str, Costs]:
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        described = tomllib.load(file)
    tables: dict[str, Costs] = {}
    for name, values in described.items():
        base = tables.get(values.pop("like", ""), Costs(""))
        sources = {cost: source for source, costs in values.pop("sources", {}).items() for cost in costs}
        fitted_to = tuple(FittedNumber(*each) for each in values.pop("fitted_to", ()))
        contradicted = tuple(FittedNumber(*each) for each in values.pop("contradicted", ()))
        base = replace(base, sources=base.sources | sources, fitted_to=base.fitted_to + fitted_to)
        tables[name] = replace(base, name=name, contradicted=contradicted, **values)
    return tables


TABLES: Final = _read_tables()
CLOVERTOWN, CLOVERTOWN_1G, MX_FIRMWARE, MYRINET = TABLES.values()
COALESCING_10G: Final = 62_700.0
"""Delay in ns of the interrupts of the 10G adapter in its default mode, derived from the paper's half round trips."""
MYRINET_FITTED: Final = ("call", "copy_cold", "copy_warm", "pio_line", "protection", "reliability", "request")
"""Values that :func:`mxwire.bench.claims.library_study.fit` finds."""
HERE: Final = "here"
"""Name of the table of this machine."""


def own_table_file() -> Path:
    """The file with the table of this machine."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mxwire" / "costs-here.json"


def write_own_table(costs: Costs) -> Path:
    """Keep the table of this machine, and return its file.

    Raises :class:`~mxwire.errors.OutputError` if it cannot be written.
    """
    path = own_table_file()
    create_folder(path.parent)
    write_file(path, json.dumps(costs.record(), indent=1) + "\n")
    return path


def table_by_name(name: str) -> Costs:
    """Return a table; ``here`` is that of this machine, and any other name may be the path of a JSON file.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name, or for a file without a table.
    """
    table = TABLES.get(name)
    if table is not None:
        return table
    path = own_table_file() if name == HERE else Path(name)
    if name != HERE and path.suffix != ".json":
        known = (*TABLES, HERE)
        raise MxwireError(f"no cost table {name!r}{suggestion(name, known)}: use {', '.join(known)}, or FILE.json")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        advice = "measure it first: sudo mxwire bench path" if name == HERE else "there is no such file"
        raise MxwireError(f"cost table {name}: {path} is missing: {advice}") from None
    except (OSError, ValueError) as error:
        raise MxwireError(f"cost table {name}: {path} cannot be read: {error}") from None
    return _table_of(record, path)


def _table_of(record: Any, path: Path) -> Costs:
    kinds = {each.name: each.type for each in fields(Costs)}
    if not isinstance(record, dict) or not isinstance(record.get("name"), str):
        raise MxwireError(f"cost table {path}: it has no name")
    for name, value in record.items():
        if name not in kinds:
            raise MxwireError(f"cost table {path}: there is no cost {name!r}{suggestion(name, kinds)}")
        number = kinds[name] in ("float", "int")
        if number and (isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf")):
            raise MxwireError(f"cost table {path}: {name} is {value!r}, not a number from 0")
    numbers: dict[str, Any] = {}
    for name in ("fitted_to", "contradicted"):
        try:
            numbers[name] = tuple(FittedNumber(**each) for each in record.get(name, ()))
        except TypeError:
            raise MxwireError(f"cost table {path}: {name} is not a list of numbers of a series") from None
    if not record.get("line", 1) or not record.get("cores", 1):
        raise MxwireError(f"cost table {path}: line and cores cannot be 0")
    return Costs(**record | numbers)
