"""Resources that a host holds; all of them must be free when every request has ended."""

from __future__ import annotations

from collections.abc import Iterator

from mxwire.protocol import EngineEndpoint, Node, Partner
from mxwire.protocol.card.endpoint import CardEndpoint
from mxwire.protocol.card.pull import PullState, PullTransfer
from mxwire.protocol.library.reliability import AckState


def left_in_partner(partner: Partner) -> dict[str, int]:
    """Return the unfinished work with a remote endpoint, as counts by name."""
    return _nonzero(
        {
            "unacked numbers": len(partner.deliveries),
            "waiting messages": len(partner.waiting),
            "waiting notifies": len(partner.notifies),
            "pending connects": len(partner.pending_connects),
            "sends waiting for notify": len(partner.large_sends),
            "incomplete mediums": len(partner.incomplete),
            "early packets": len(partner.window.early),
            "owed acks": int(partner.acks.state is not AckState.NOTHING),
        }
    )


def left_in_endpoint(endpoint: EngineEndpoint) -> dict[str, int]:
    """Return the resources of an endpoint and its partners, as counts by name."""
    card = endpoint.card
    found = _nonzero(
        {
            "requests": len(endpoint.requests),
            "posted receives": endpoint.matching.posted,
            "unexpected messages": endpoint.matching.unexpected,
            "regions": len(card.regions),
            "rendezvous": endpoint.rendezvous,
            "pulls": len(card.pulls),
            "pulling receives": len(endpoint.pulling),
            "pull starts": len(endpoint.pull_starts),
            "ring events": len(card.ring.received) + len(card.ring.ended),
            "resends": len(endpoint.resends),
            "flushing partners": sum(each.flushing for each in endpoint.flushing),
            "connects": len(endpoint.connecting),
            "messages to the own host": len(endpoint.local_sends),
            "delayed acks": sum(each.state is AckState.DELAYED for each in endpoint.delayed_acks),
            "immediate acks": len(endpoint.immediate_acks),
        }
    )
    for partner in endpoint.partners.values():
        for name, count in left_in_partner(partner).items():
            found[name] = found.get(name, 0) + count
    return found


def left_in_node(node: Node) -> dict[str, int]:
    """Return the resources of a host besides its open endpoints; orphaned pulls are counted separately (R-CLS-08)."""
    orphans = sum(each.state is PullState.ORPHANED for each in _pulls(node))
    neighbours = node.neighbourhood.neighbours.values()
    return _nonzero(
        {
            "requests to other processes": sum(len(each.connects) + len(each.sends) for each in neighbours),
            "offers of other processes": sum(len(each.offers) for each in neighbours),
            "frames to send": sum(board.outgoing.frames for board in node.interfaces),
            "pull timers": sum(len(board.timers) for board in node.interfaces) - orphans,
            "orphaned pulls": orphans,
        }
    )


def idle(node: Node) -> bool:
    """Return whether the host will send nothing except for discovery, host names and orphaned pulls."""
    if any(board.outgoing.frames for board in node.interfaces):
        return False
    if any(each.state is PullState.RUNNING for each in _pulls(node)):
        return False
    return all(endpoint.deadline() is None for endpoint in node.endpoints.values())


def shares_handles(card: CardEndpoint) -> bool:
    """Return whether a pull of an earlier opening of an endpoint is running, and may have the handle of one of its
    pulls (D-13)."""
    orphans = (each for each in card.timers if each.state is PullState.ORPHANED)
    return any(each.endpoint.number == card.number and each.endpoint.slots is not card.slots for each in orphans)


def _pulls(node: Node) -> Iterator[PullTransfer]:
    for board in node.interfaces:
        yield from board.timers


def _nonzero(found: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in found.items() if count}
