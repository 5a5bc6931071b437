"""Tables of unit costs: the machines of two papers (1998 and 2010), and this machine as it was measured.

A table names the numbers to which it was fitted (:attr:`Costs.fitted_to`). Claims cannot use them as evidence.
"""

from __future__ import annotations

import json
import os
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
    pio_line: float = 0.0
    """Writing a line of 32 bytes to the adapter, with write combining."""
    dma_start: float = 0.0
    """Starting a transfer between memory and adapter, by the adapter's processor."""
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


_GIVEN_2010: Final[dict[str, Source]] = {
    "line": "given",
    "line_overhead": "given",
    "cores": "given",
    "system_call": "given",
    "copy_warm": "given",
    "submit": "given",
    "engine": "given",
    "frame_receive": "derived",
    "copy_cold": "derived",
    "local_copy": "given",
    "adapter_send": "fitted",
    "adapter_receive": "fitted",
    "tcp_send": "fitted",
    "tcp_receive": "fitted",
    "tcp_copy": "fitted",
    "tcp_frame": "guess",
    "call": "guess",
    "event": "guess",
    "frame_send": "guess",
    "pin": "guess",
    "combine": "guess",
}
_FITTED_2010: Final = (
    FittedNumber("half round trip", "open-mx", 0, 7.3),
    FittedNumber("half round trip", "tcp", 0, 13.2),
    FittedNumber("half round trip", "mx", 0, 2.0),
    # 800 MiB/s with an MTU of 9000, half of the line with 1500; TCP at two thirds of the line.
    FittedNumber("half round trip", "open-mx", 4 << 20, 5_000.0),
    FittedNumber("half round trip", "omx:1500", 4 << 20, 6_745.0),
    FittedNumber("half round trip", "tcp", 4 << 20, 5_060.0),
    # The costs of the bottom half were derived from these rates on the assumption that it limits them.
    FittedNumber("processor share", "bottom half", 4 << 20, 1.0, "of the time"),
    FittedNumber("half round trip by coalescing", "open-mx", 62.7, 70.0),
    FittedNumber("half round trip by coalescing", "open-mx", 0, 7.3),
    FittedNumber("half round trip by coalescing", "tcp", 0, 13.2),
)
"""The paper's numbers from which the table of 2010 was made."""
CLOVERTOWN: Final = Costs(
    "clovertown-2010",
    "two Xeon E5345 with Myri-10G as plain Ethernet, Linux 2.6.30, Open-MX 1.2.1",
    adapter_send=2_653.0,
    adapter_receive=2_653.0,
    call=150.0,
    event=200.0,
    system_call=100.0,
    frame_send=700.0,
    frame_receive=700.0,
    copy_cold=1.11,
    copy_warm=0.667,
    pin=100.0,
    submit=350.0,
    engine=0.4,
    local_copy=0.667,
    combine=0.667,
    tcp_send=4_000.0,
    tcp_receive=3_000.0,
    tcp_frame=700.0,
    tcp_copy=1.21,
    sources=_GIVEN_2010,
    fitted_to=_FITTED_2010,
)
CLOVERTOWN_1G: Final = replace(
    CLOVERTOWN,
    name="clovertown-2010-1g",
    about="the same hosts with Broadcom NetXtreme II at 1 Gb/s",
    line=1e9,
    adapter_send=11_200.0,
    adapter_receive=11_200.0,
    fitted_to=(
        *_FITTED_2010,
        FittedNumber("half round trip, 1G", "open-mx", 0, 24.9),
        FittedNumber("half round trip, 1G", "tcp", 0, 30.8),
    ),
)
MX_FIRMWARE: Final = replace(
    CLOVERTOWN,
    name="mx-2010",
    about="the same hosts with native MX, whose firmware does the work of the driver",
    adapter_send=650.0,
    adapter_receive=590.0,
    system_call=0.0,
    frame_send=100.0,
    frame_receive=50.0,
    copy_cold=0.0,
    sources=_GIVEN_2010 | {"frame_receive": "guess", "copy_cold": "given"},
)
COALESCING_10G: Final = 62_700.0
"""Delay in ns of the interrupts of the 10G adapter in its default mode, derived from the paper's half round trips."""

MYRINET_FITTED: Final = ("call", "copy_cold", "copy_warm", "pio_line", "protection", "reliability", "request")
"""Values that :func:`mxwire.bench.cost.libraries.fit` finds."""
MYRINET: Final = Costs(
    "myrinet-1998",
    "two Pentium Pro at 200 MHz with Myrinet (LANai 4.1), Linux 2.0.24",
    line=1.28e9,
    line_overhead=0,
    adapter_send=100.0,
    cores=1,
    call=975.0,
    event=975.0,
    frame_send=478.0,
    copy_cold=17.8,
    copy_warm=4.55,
    local_copy=4.55,
    combine=17.8,
    to_adapter=7.81,
    from_adapter=7.55,
    pio_word=120.0,
    pio_line=478.0,
    dma_start=700.0,
    firmware=1_200.0,
    protection=1_380.0,
    reliability=2_680.0,
    request=4_100.0,
    sources={
        **dict.fromkeys(("line", "line_overhead", "adapter_send", "cores"), "given"),
        **dict.fromkeys(("to_adapter", "from_adapter", "pio_word", "dma_start", "firmware"), "guess"),
        **dict.fromkeys(("call", "event", "frame_send", "local_copy", "combine"), "fitted"),
        **dict.fromkeys(MYRINET_FITTED, "fitted"),
    },
    fitted_to=(
        *(
            FittedNumber("RTT/2", library, 4, value)
            for library, value in (("AM", 17.0), ("BIP", 6.0), ("FM", 9.0), ("PM", 9.0), ("VMMC", 13.0))
        ),
        FittedNumber("RTT/2", "AM", 4096, 197.9),
        FittedNumber("g", "AM", 4096, 153.5),
        *(
            FittedNumber("bandwidth", library, 1 << 20, value, "MB/s")
            for library, value in (("AM", 50.0), ("BIP", 125.0), ("FM", 65.0), ("VMMC", 100.0))
        ),
    ),
)
TABLES: Final = {each.name: each for each in (CLOVERTOWN, CLOVERTOWN_1G, MX_FIRMWARE, MYRINET)}
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


def table_names() -> tuple[str, ...]:
    """Names that :func:`table_by_name` knows."""
    return (*TABLES, HERE)


def table_by_name(name: str) -> Costs:
    """Return a table; ``here`` is that of this machine, and any other name may be the path of a JSON file.

    Raises :class:`~mxwire.errors.MxwireError` for an unknown name, or for a file without a table.
    """
    table = TABLES.get(name)
    if table is not None:
        return table
    path = own_table_file() if name == HERE else Path(name)
    if name != HERE and path.suffix != ".json":
        known = table_names()
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
    try:
        fitted = tuple(FittedNumber(**each) for each in record.get("fitted_to", ()))
    except TypeError:
        raise MxwireError(f"cost table {path}: fitted_to is not a list of numbers of a series") from None
    if not record.get("line", 1) or not record.get("cores", 1):
        raise MxwireError(f"cost table {path}: line and cores cannot be 0")
    return Costs(**record | {"fitted_to": fitted})
