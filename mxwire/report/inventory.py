"""The contents of a capture as JSON and as blocks of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from mxwire.analysis.inventory import Inventory
from mxwire.analysis.message_counter import KINDS, SIZE_CLASSES, MessageCounter
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Heading, Listing, Paragraph, Table, number_columns, tabulate
from mxwire.report.pointers import SEE_FRAME
from mxwire.report.result import Result, column, internal, result, table
from mxwire.report.times import seconds_text, time_text
from mxwire.wire.numbers import NO_PEER_INDEX
from mxwire.words import count_of

_NOT_RECORDED: Final = 0
"""Address of the unrecorded receivers in Linux cooked captures."""


def _listed(texts: Iterable[str], between: str = " ") -> str:
    return between.join(texts) or "-"


def _numbers(values: Iterable[int]) -> str:
    return _listed(f"0x{each:08x}" for each in values)


def _index_text(known: dict[str, Any]) -> str:
    return f"{'unknown' if known['index'] == NO_PEER_INDEX else known['index']} at {known['peer']}"


@result()
class HostContents(Result):
    """The frames of a host."""

    address: str = column("host", code=True, text=lambda text: "others" if text == mac_text(_NOT_RECORDED) else text)
    names: list[str] = column("name", code=True, text=lambda names: _listed(names, ", "))
    sent: int = column(right=True)
    received: int = column(right=True)
    indexes: list[dict[str, Any]] = column(
        "index in peer tables", text=lambda all: _listed(map(_index_text, all), ", ")
    )
    byte_order: str
    """network or little."""


@result()
class PairDialect(Result):
    """The dialect of two hosts; of one in cooked captures, which do not record receivers."""

    hosts: list[str] = column(
        code=True, text=lambda both: " ".join(both) if len(both) == 2 else f"{both[0]} and its peers"
    )
    dialect: str | None = column(code=True, text=lambda name: name or "undetermined")
    confidence: float
    """From 0 to 1."""
    evidence: list[dict[str, Any]] = column(
        wraps=True,
        text=lambda shown: (
            "; ".join(f"{each['text']} ({each['frames']}, first in frame {each['first_frame']})" for each in shown)
            or "none: no packet here differs between the dialects"
        ),
    )
    certainty: str = column("confidence", right=True, internal=True)


@result()
class EndpointContents(Result):
    """The frames of an endpoint."""

    host: str
    endpoint: int
    sessions: list[int] = column("session ids", code=True, wraps=True, text=_numbers)
    keys: list[int] = column("keys presented", code=True, text=_numbers)
    sent: int = column(right=True)
    received: int = column(right=True)
    label: str = column("endpoint", code=True, internal=True)


@result()
class NackCount(Result):
    """Nacks of one type with one reason."""

    type: str = column(code=True)
    reason: str = column(code=True)
    frames: int = column(right=True)


@result()
class MessageCount(Result):
    """Messages of one kind and size class."""

    kind: str = column(code=True)
    size_class: str = column("length", right=True)
    messages: int = column(right=True)
    bytes: int = column(right=True)


@result()
class CaptureContents(Result):
    """The contents of a capture."""

    file: str
    format: str
    compression: str | None
    bytes: int | None
    """Size of the file; null for a pipe."""
    snap_length: int | None
    frames: int
    """MXoE frames."""
    bytes_on_wire: int
    other_frames: int
    """Frames of other protocols."""
    cut_frames: int
    """Frames that the capture cut."""
    first_ns: int | None
    last_ns: int | None
    duration_ns: int
    vlans: dict[str, int]
    """Frames by VLAN id."""
    hosts: list[HostContents]
    dialects: list[PairDialect]
    endpoints: list[EndpointContents]
    types: dict[str, dict[str, int]]
    """Frames and bytes by packet type."""
    messages: list[MessageCount] | None
    """Null with ``--quick``, as is ``repeated_frames``."""
    repeated_frames: dict[str, int] | None
    """Retransmissions and duplicates by kind of message."""
    nacks: list[NackCount]
    malformed: dict[str, dict[str, int]]
    """Malformed frames by reason."""
    cooked: bool = internal()
    requested_dialect: str | None = internal()

    @classmethod
    def of(cls, found: Inventory, **about: Any) -> CaptureContents:
        """The contents of a capture; ``about`` has the fields of the file: from ``file`` to ``snap_length``."""
        counter = found.messages
        repeated = {} if counter is None else counter.repeated
        endpoints = [
            EndpointContents(
                *(mac_text(address), number, list(facts.sessions), list(facts.keys), facts.sent, facts.received),
                label=f"{mac_text(address)} {number}",
            )
            for (address, number), facts in sorted(found.endpoints.items())
        ]
        return cls.copied(
            found,
            **about,
            bytes_on_wire=found.bytes,
            other_frames=found.skipped,
            cut_frames=found.cut,
            vlans={str(vlan): count for vlan, count in sorted(found.vlans.items())},
            hosts=[*_hosts(found)],
            dialects=[*_dialects(found)],
            endpoints=endpoints,
            types={name: asdict(facts) for name, facts in found.types.items()},
            messages=None if counter is None else [*_messages(counter)],
            repeated_frames=None
            if counter is None
            else {k.upper(): each for k, each in sorted(repeated.items()) if each},
            nacks=[NackCount(*kind, count) for kind, count in sorted(found.nacks.items())],
            malformed={name: asdict(fault) for name, fault in found.faults.items()},
        )


def _hosts(found: Inventory) -> Iterator[HostContents]:
    for address, facts in found.hosts.items():
        indexes = [
            {"peer": mac_text(peer), "index": index, "frames": frames}
            for (peer, index), frames in sorted(facts.known_as.items())
        ]
        order = "little" if address in found.swapped_hosts else "network"
        yield HostContents(mac_text(address), list(facts.names), facts.sent, facts.received, indexes, order)


def _dialects(found: Inventory) -> Iterator[PairDialect]:
    for each in found.detections:
        known = [host for host in each.hosts if host in found.hosts]
        if len(known) == 2 or (len(known) == 1 and _NOT_RECORDED in each.hosts):
            certainty = f"{each.confidence:.0%}" if each.dialect else "-"
            yield PairDialect(
                [mac_text(host) for host in known],
                each.dialect.name if each.dialect else None,
                round(each.confidence, 3),
                [asdict(one) for one in each.evidence],
                certainty,
            )


def _messages(counter: MessageCounter) -> Iterator[MessageCount]:
    for (kind, size), count in sorted(counter.messages.items()):
        yield MessageCount(kind.upper(), size, count, counter.bytes[kind, size])


def blocks(found: CaptureContents) -> list[Block]:
    """The whole contents as blocks of a report."""
    shown: list[Block] = [Heading(found.file), Listing(tuple(_facts(found)))]
    if found.frames:
        hosts = table(HostContents, found.hosts, "address", "names", "sent", "received", "indexes")
        shown += [Heading("Hosts", 3), hosts, Heading("Dialects", 3), _dialect_block(found.dialects)]
        if found.endpoints:
            columns = ("label", "sent", "received", "sessions", "keys")
            shown += [Heading("Endpoints", 3), table(EndpointContents, found.endpoints, *columns)]
        shown += [Heading("Packets", 3), _types(found)]
        if found.messages:
            shown += [Heading("Messages", 3), _message_table(found)]
        if found.nacks:
            shown += [Heading("Nacks", 3), table(NackCount, found.nacks, "type", "reason", "frames")]
        if found.malformed:
            shown += [Heading("Malformed frames", 3), _faults(found)]
        shown.append(Paragraph(SEE_FRAME))
    return shown


def _facts(found: CaptureContents) -> Iterator[str]:
    compressed = f", compressed with {found.compression}" if found.compression else ""
    size = f", {count_of(found.bytes, 'byte')}" if found.bytes is not None else ""
    yield f"{found.format}{compressed}{size}"
    if found.first_ns is not None:
        yield f"{seconds_text(found.duration_ns).strip()} s from {time_text(found.first_ns)} UTC"
    yield f"{count_of(found.frames, 'MXoE frame')}, {count_of(found.bytes_on_wire, 'byte')} on the wire"
    if found.other_frames:
        yield f"{count_of(found.other_frames, 'other frame')}, ignored"
    if found.cut_frames:
        yield f"{count_of(found.cut_frames, 'frame')} cut by the capture (snap length {found.snap_length})"
    if found.cooked:
        yield "Linux cooked, as from tcpdump -i any: destinations are not recorded, except those of received broadcasts"
    if found.vlans:
        yield "VLANs: " + ", ".join(f"{vlan} ({count_of(count, 'frame')})" for vlan, count in found.vlans.items())
    if found.requested_dialect:
        yield f"decoded as dialect {found.requested_dialect}, as requested; the detected dialects are below"
    for host in found.hosts:
        if host.byte_order == "little":
            yield f"{host.address} sends its integers in little-endian order (endian option off)"


def _dialect_block(dialects: Sequence[PairDialect]) -> Block:
    if not dialects:
        return Paragraph("No two hosts have exchanged frames, and broadcasts are the same in both dialects.")
    return table(PairDialect, dialects, "hosts", "dialect", "certainty", "evidence")


def _types(found: CaptureContents) -> Table:
    ordered = sorted(found.types.items(), key=lambda each: -each[1]["frames"])
    return tabulate("`type, #frames, #bytes", ((name, each["frames"], each["bytes"]) for name, each in ordered))


def _message_table(found: CaptureContents) -> Table:
    """Messages by kind and size, with the repeated frames of a kind in its last row."""
    sizes = [name for name, _ in SIZE_CLASSES]
    kinds = [kind.upper() for kind in KINDS]
    ordered = sorted(found.messages or (), key=lambda each: (kinds.index(each.kind), sizes.index(each.size_class)))
    last = {each.kind: each for each in ordered}
    made = table(MessageCount, ordered, "kind", "size_class", "messages", "bytes")
    repeated = found.repeated_frames or {}
    rows = (
        (*row.cells, repeated.get(each.kind, 0) if last[each.kind] is each else "")
        for row, each in zip(made.rows, ordered, strict=True)
    )
    return tabulate((*made.columns, *number_columns("repeated frames")), rows)


def _faults(found: CaptureContents) -> Table:
    rows = ((name, each["frames"], each["first_frame"]) for name, each in found.malformed.items())
    return tabulate("reason, #frames, #first frame", rows)
