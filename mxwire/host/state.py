"""The state of a live host as a record: interfaces, endpoints, partners, queues and timers, for ``mxwire ss``.

The record is a dictionary that JSON can represent. Its size is bounded, whatever other hosts send.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mxwire.ethernet import mac_text
from mxwire.protocol.library.reliability import distance
from mxwire.units import SECOND

if TYPE_CHECKING:
    from mxwire.host.core import Core
    from mxwire.protocol import EngineEndpoint
    from mxwire.protocol.card.pull import PullTransfer
    from mxwire.protocol.library.partner import Partner

PARTNERS_SHOWN: Final = 256
"""Maximum number of partners and of pulls in the record of an endpoint: because the host pauses while they are
copied."""
_COMMAND_SHOWN: Final = 200


def host_state(core: Core, started: float, clients: Callable[[], list[dict[str, Any]]] | None = None) -> dict[str, Any]:
    """Return the state of a host; call it while no other thread runs the core.

    ``started`` is the time at which the host was opened, on the monotonic clock; ``clients`` returns the applications
    attached to it, if it is that of an agent. Raises
    :class:`~mxwire.host.errors.HostClosedError` if the host has ended: its links may be closed.
    """
    core.must_be_open()
    node, now = core.node, core.clock()
    return {
        "host": node.interfaces[0].name,
        "pid": os.getpid(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:_COMMAND_SHOWN],
        "age_ns": int((time.monotonic() - started) * SECOND),
        "dialect": node.dialect.name,
        "profile": node.profile.name,
        "peers": sum(each.own is None for each in node.peers),
        "next_timer_ns": core.pause(),
        "interfaces": [_interface(core, number) for number in range(len(core.links))],
        "endpoints": [_endpoint(core, each, now) for each in list(node.endpoints.values())],
        **({} if clients is None else {"clients": clients()}),
    }


def _interface(core: Core, number: int) -> dict[str, Any]:
    link, board = core.links[number], core.node.interfaces[number]
    statistics = link.statistics()
    return {
        "interface": link.name,
        "name": board.name,
        "address": mac_text(link.address),
        "mtu": link.mtu,
        "received": statistics.received,
        "sent": statistics.sent,
        "dropped": statistics.dropped,
        "refused": statistics.refused,
        "counters": {str(each): count for each, count in board.counters.items() if count},
    }


def _endpoint(core: Core, endpoint: EngineEndpoint, now: int) -> dict[str, Any]:
    matching, pulls = endpoint.matching, list(endpoint.card.pulls.values())
    partners = list(endpoint.partners.values())
    # Partners with unfinished work come first, so that a limit on their number hides idle ones.
    partners.sort(key=lambda each: not (each.deliveries or each.waiting or each.notifies or each.incomplete))
    deadline = endpoint.resends.deadline()
    return {
        "interface": core.links[endpoint.card.port.number].name,
        "endpoint": endpoint.number,
        "session": endpoint.session,
        "key": endpoint.key,
        "posted_receives": matching.posted,
        "unexpected_messages": matching.unexpected,
        "unexpected_bytes": matching.unexpected_bytes,
        "early_bytes": endpoint.early_bytes,
        "rendezvous": endpoint.rendezvous,
        "pulls_waiting": len(endpoint.pull_starts),
        "retransmission_in_ns": None if deadline is None else max(0, deadline - now),
        "partner_count": len(partners),
        "partners": [_partner(each, endpoint, now) for each in partners[:PARTNERS_SHOWN]],
        "pull_count": len(pulls),
        "pulls": [_pull(each, now) for each in pulls[:PARTNERS_SHOWN]],
    }


def _partner(partner: Partner, endpoint: EngineEndpoint, now: int) -> dict[str, Any]:
    unacked = distance(partner.tx_next, partner.tx_una)
    oldest = partner.deliveries[0] if partner.deliveries else None
    tick = endpoint.profile.tick
    return {
        "name": partner.peer.name,
        "address": mac_text(partner.peer.address),
        "endpoint": partner.number,
        "send_session": partner.fwd,
        "answer_session": partner.rev,
        "tx_una": partner.tx_una,
        "tx_next": partner.tx_next,
        "unacked": unacked,
        "window": max(0, endpoint.profile.outstanding_maximum - unacked),
        "rx_next": partner.rx_next,
        "rx_done": partner.rx_done,
        "rx_acked": partner.rx_acked,
        "ack": str(partner.acks.state),
        "waiting": len(partner.waiting),
        "notifies_waiting": len(partner.notifies),
        "large_sends": len(partner.large_sends),
        "incomplete": len(partner.incomplete),
        "early": len(partner.window.early),
        "connecting": len(partner.pending_connects),
        "oldest_transmissions": 0 if oldest is None else oldest.transmissions,
        "oldest_retransmission_in_ns": (
            max(0, oldest.resend_tick * tick - now) if oldest is not None and oldest.waits else None
        ),
        "resets": partner.epoch,
    }


def _pull(pull: PullTransfer, now: int) -> dict[str, Any]:
    return {
        "name": pull.source.peer.name,
        "address": mac_text(pull.source.peer.address),
        "endpoint": pull.source.endpoint,
        "handle": pull.handle,
        "total_length": pull.total,
        "requested": pull.requested,
        "blocks": len(pull.blocks),
        "missing_frames": sum(each.missing.bit_count() for each in pull.blocks),
        "timer_ns": max(0, pull.deadline - now),
    }
