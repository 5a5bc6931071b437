"""The states of live hosts as tables, from their JSON records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import starmap
from typing import Any, Final

from mxwire.report.document import Block, Heading, Paragraph, Row, Table, columns_of, tabulate
from mxwire.units import MILLISECOND, SECOND
from mxwire.words import count_of, printable

_ENDPOINTS: Final = columns_of(
    "#local, `session, #posted, #unexpected, #bytes, #early bytes, #partners, #pulls, #timer"
)
_PARTNERS: Final = columns_of(
    "#local, `partner, #sent, #unacked / window, #queued, #received / acked, ack owed, #tries, #timer"
)
_PULLS: Final = columns_of("#local, `pull from, #length, #requested, #blocks, #missing frames, #timer")
_CLIENTS: Final = columns_of(
    "#process, `program, progress, endpoints, #requests, #bytes to send, #regions, #records waiting, #refused, "
    "#attached for"
)
_OWED: Final = {"nothing owed": "-", "immediate": "now"}


def state_blocks(state: Mapping[str, Any]) -> list[Block]:
    """Return the state of one host: a heading, and tables of endpoints, partners and pulls.

    Raises :class:`KeyError`, :class:`TypeError` or :class:`ValueError` for a record of another form.
    """
    return list(_blocks(state))


def _blocks(state: Mapping[str, Any]) -> Iterator[Block]:
    yield Heading(printable(f"{state['host']} (process {state['pid']}: {state['command']})"), 3)
    interfaces = ", ".join(
        f"{each['interface']} {each['address']} (received {each['received']:,}, sent {each['sent']:,}"
        + "".join(f", {key} {each[key]:,}" for key in ("dropped", "refused") if each[key])
        + ")"
        for each in state["interfaces"]
    )
    yield Paragraph(
        printable(f"{interfaces}; dialect {state['dialect']}, {state['profile']}, {count_of(state['peers'], 'peer')}, ")
        + f"open for {state['age_ns'] // SECOND} s"
    )
    clients = state.get("clients")
    if clients is not None:
        yield Paragraph(f"Agent of {count_of(len(clients), 'program')}.")
    if clients:
        yield tabulate(_CLIENTS, map(_client_row, clients))
    endpoints = state["endpoints"]
    if not endpoints:
        yield Paragraph("No endpoint is open.")
        return
    yield tabulate(_ENDPOINTS, map(_endpoint_row, endpoints))
    partners = [(each, partner) for each in endpoints for partner in each["partners"]]
    if partners:
        yield Table(_PARTNERS, tuple(starmap(_partner_row, partners)))
    pulls = [(each, pull) for each in endpoints for pull in each["pulls"]]
    if pulls:
        yield tabulate(_PULLS, starmap(_pull_row, pulls))
    hidden = sum(each["partner_count"] - len(each["partners"]) for each in endpoints)
    if hidden:
        yield Paragraph(f"{count_of(hidden, 'more partner')} without unfinished work not shown.")


def _client_row(client: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        client["pid"],
        printable(str(client["program"])),
        client["progress"],
        ", ".join(map(str, client["endpoints"])) or "none",
        *(f"{client[key]:,}" for key in ("requests", "bytes", "regions", "records_waiting", "refused")),
        f"{client['age_ns'] // SECOND} s",
    )


def _endpoint_row(state: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        state["endpoint"],
        f"{state['session']:08x}",
        *(f"{state[key]:,}" for key in ("posted_receives", "unexpected_messages", "unexpected_bytes")),
        *(f"{state[key]:,}" for key in ("early_bytes", "partner_count", "pull_count")),
        _timer(state["retransmission_in_ns"]),
    )


def _partner_row(endpoint: Mapping[str, Any], partner: Mapping[str, Any]) -> Row:
    queued = partner["waiting"] + partner["notifies_waiting"] + partner["connecting"]
    early = f"+{partner['early']}" if partner["early"] else ""
    idle = not (partner["unacked"] or queued or partner["incomplete"] or partner["early"])
    cells = (
        str(endpoint["endpoint"]),
        _place(partner),
        f"{partner['tx_next']:04x}",
        f"{partner['unacked']}/{partner['window']}",
        str(queued),
        f"{partner['rx_next']:04x}{early}/{partner['rx_acked']:04x}",
        _OWED.get(partner["ack"]) or printable(partner["ack"]),
        str(partner["oldest_transmissions"] or "-"),
        _timer(partner["oldest_retransmission_in_ns"]),
    )
    return Row(cells, muted=idle)


def _pull_row(endpoint: Mapping[str, Any], pull: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        endpoint["endpoint"],
        _place(pull),
        *(f"{pull[key]:,}" for key in ("total_length", "requested", "blocks", "missing_frames")),
        _timer(pull["timer_ns"]),
    )


def _place(state: Mapping[str, Any]) -> str:
    return printable(f"{state['name'] or state['address']}:{state['endpoint']}")


def _timer(nanoseconds: int | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / MILLISECOND:.0f} ms"
