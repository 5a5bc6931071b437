"""An inventory as blocks of a report, and as one record for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from mxwire.analysis.inventory import Inventory
from mxwire.analysis.message_counter import KINDS, SIZE_CLASSES, MessageCounter
from mxwire.ethernet import mac_text
from mxwire.report.document import Block, Column, Heading, Listing, Paragraph, Row, Table, code_columns, number_columns
from mxwire.report.pointers import SEE_FRAME
from mxwire.report.times import seconds_text, time_text
from mxwire.wire.detection import Detection
from mxwire.words import count_of

_NOT_RECORDED: Final = 0
"""Address of the unrecorded receivers in Linux cooked captures."""


def blocks(path: str, file: dict[str, Any], inventory: Inventory) -> list[Block]:
    """The whole inventory as blocks of a report."""
    shown: list[Block] = [Heading(path), Listing(tuple(_facts(file, inventory)))]
    if inventory.frames:
        shown += [Heading("Hosts", 3), _hosts(inventory), Heading("Dialects", 3), *_dialects(inventory)]
        if inventory.endpoints:
            shown += [Heading("Endpoints", 3), _endpoints(inventory)]
        shown += [Heading("Packets", 3), _types(inventory)]
        if inventory.messages is not None and inventory.messages.messages:
            shown += [Heading("Messages", 3), _messages(inventory.messages)]
        if inventory.nacks:
            shown += [Heading("Nacks", 3), _nacks(inventory)]
        if inventory.faults:
            shown += [Heading("Malformed frames", 3), _faults(inventory)]
        shown.append(Paragraph(SEE_FRAME))
    return shown


def _facts(file: dict[str, Any], inventory: Inventory) -> Iterator[str]:
    compressed = f", compressed with {file['compression']}" if file["compression"] else ""
    size = f", {count_of(file['bytes'], 'byte')}" if file["bytes"] is not None else ""
    yield f"{file['format']}{compressed}{size}"
    if inventory.first_ns is not None:
        duration = seconds_text(inventory.duration_ns).strip()
        yield f"{duration} s from {time_text(inventory.first_ns)} UTC"
    yield f"{count_of(inventory.frames, 'MXoE frame')}, {count_of(inventory.bytes, 'byte')} on the wire"
    if inventory.skipped:
        yield f"{count_of(inventory.skipped, 'other frame')}, ignored"
    if inventory.cut:
        yield f"{count_of(inventory.cut, 'frame')} cut by the capture (snap length {file['snap_length']})"
    if inventory.cooked:
        yield "Linux cooked, as from tcpdump -i any: destinations are not recorded, except those of received broadcasts"
    if inventory.vlans:
        yield "VLANs: " + ", ".join(
            f"{vlan} ({count_of(count, 'frame')})" for vlan, count in sorted(inventory.vlans.items())
        )
    if inventory.requested_dialect:
        yield f"decoded as dialect {inventory.requested_dialect}, as requested; the detected dialects are below"
    for host in inventory.swapped_hosts:
        yield f"{mac_text(host)} sends its integers in little-endian order (endian option off)"


def _hosts(inventory: Inventory) -> Table:
    columns = (*code_columns("host", "name"), *number_columns("sent", "received"), Column("index in peer tables"))
    rows = []
    for address, facts in inventory.hosts.items():
        known = ", ".join(f"{index} at {peer}" for peer, index in inventory.known_indexes(address))
        name = ", ".join(facts.names) or "-"
        rows.append(Row((_host_text(address), name, str(facts.sent), str(facts.received), known or "-")))
    return Table(columns, tuple(rows))


def _host_text(address: int) -> str:
    return "others" if address == _NOT_RECORDED else mac_text(address)


def _pairs(inventory: Inventory) -> list[tuple[list[str], Detection]]:
    """Pairs of hosts with their addresses; only the senders for cooked captures, which do not record receivers."""
    pairs = []
    for detection in inventory.detections:
        known = [host for host in detection.hosts if host in inventory.hosts]
        if len(known) == 2 or (len(known) == 1 and _NOT_RECORDED in detection.hosts):
            pairs.append(([mac_text(host) for host in known], detection))
    return pairs


def _dialects(inventory: Inventory) -> Iterator[Block]:
    columns = (*code_columns("hosts", "dialect"), *number_columns("confidence"), Column("evidence", wraps=True))
    rows = []
    for addresses, detection in _pairs(inventory):
        hosts = " ".join(addresses) if len(addresses) == 2 else f"{addresses[0]} and its peers"
        name = detection.dialect.name if detection.dialect else "undetermined"
        evidence = "; ".join(
            f"{each.text} ({each.frames}, first in frame {each.first_frame})" for each in detection.evidence
        )
        confidence = f"{detection.confidence:.0%}" if detection.dialect else "-"
        rows.append(Row((hosts, name, confidence, evidence or "none: no packet here differs between the dialects")))
    if rows:
        yield Table(columns, tuple(rows))
    else:
        yield Paragraph("No two hosts have exchanged frames, and broadcasts are the same in both dialects.")


def _endpoints(inventory: Inventory) -> Table:
    columns = (
        Column("endpoint", code=True),
        *number_columns("sent", "received"),
        Column("session ids", code=True, wraps=True),
        Column("keys presented", code=True),
    )
    rows = [
        Row(
            (
                f"{mac_text(address)} {number}",
                str(facts.sent),
                str(facts.received),
                " ".join(f"0x{each:08x}" for each in facts.sessions) or "-",
                " ".join(f"0x{each:08x}" for each in facts.keys) or "-",
            )
        )
        for (address, number), facts in sorted(inventory.endpoints.items())
    ]
    return Table(columns, tuple(rows))


def _types(inventory: Inventory) -> Table:
    columns = Column("type", code=True), *number_columns("frames", "bytes")
    rows = [Row((name, str(facts.frames), str(facts.bytes))) for name, facts in inventory.types.items()]
    return Table(columns, tuple(sorted(rows, key=lambda row: -int(row.cells[1]))))


def _messages(counter: MessageCounter) -> Table:
    columns = Column("kind", code=True), *number_columns("length", "messages", "bytes", "repeated frames")
    rows = []
    for kind in KINDS:
        shown = [name for name, _ in SIZE_CLASSES if counter.messages[kind, name]]
        for name in shown:
            repeated = str(counter.repeated[kind]) if name == shown[-1] else ""
            cells = (kind.upper(), name, str(counter.messages[kind, name]), str(counter.bytes[kind, name]), repeated)
            rows.append(Row(cells))
    return Table(columns, tuple(rows))


def _nacks(inventory: Inventory) -> Table:
    columns = *code_columns("type", "reason"), *number_columns("frames")
    rows = (Row((kind, reason, str(count))) for (kind, reason), count in sorted(inventory.nacks.items()))
    return Table(columns, tuple(rows))


def _faults(inventory: Inventory) -> Table:
    columns = Column("reason"), *number_columns("frames", "first frame")
    rows = (Row((name, str(fault.frames), str(fault.first_frame))) for name, fault in inventory.faults.items())
    return Table(columns, tuple(rows))


def as_object(path: str, file: dict[str, Any], inventory: Inventory) -> dict[str, Any]:
    """The whole inventory as a record with stable keys."""
    counter = inventory.messages
    return {
        "file": path,
        **file,
        "frames": inventory.frames,
        "bytes_on_wire": inventory.bytes,
        "other_frames": inventory.skipped,
        "cut_frames": inventory.cut,
        "first_ns": inventory.first_ns,
        "last_ns": inventory.last_ns,
        "duration_ns": inventory.duration_ns,
        "vlans": {str(vlan): count for vlan, count in sorted(inventory.vlans.items())},
        "hosts": [
            {
                "address": mac_text(address),
                "names": list(facts.names),
                "sent": facts.sent,
                "received": facts.received,
                "indexes": [
                    {"peer": mac_text(peer), "index": index, "frames": frames}
                    for (peer, index), frames in sorted(facts.known_as.items())
                ],
                "byte_order": "little" if address in inventory.swapped_hosts else "network",
            }
            for address, facts in inventory.hosts.items()
        ],
        "dialects": [
            {
                "hosts": addresses,
                "dialect": detection.dialect.name if detection.dialect else None,
                "confidence": round(detection.confidence, 3),
                "evidence": [asdict(each) for each in detection.evidence],
            }
            for addresses, detection in _pairs(inventory)
        ],
        "endpoints": [
            {
                "host": mac_text(address),
                "endpoint": number,
                "sessions": list(facts.sessions),
                "keys": list(facts.keys),
                "sent": facts.sent,
                "received": facts.received,
            }
            for (address, number), facts in sorted(inventory.endpoints.items())
        ],
        "types": {name: {"frames": facts.frames, "bytes": facts.bytes} for name, facts in inventory.types.items()},
        "messages": None
        if counter is None
        else [
            {"kind": kind.upper(), "size_class": size, "messages": count, "bytes": counter.bytes[kind, size]}
            for (kind, size), count in sorted(counter.messages.items())
        ],
        "repeated_frames": None
        if counter is None
        else {kind.upper(): count for kind, count in sorted(counter.repeated.items()) if count},
        "nacks": [
            {"type": kind, "reason": reason, "frames": count}
            for (kind, reason), count in sorted(inventory.nacks.items())
        ],
        "malformed": {name: asdict(fault) for name, fault in inventory.faults.items()},
    }
