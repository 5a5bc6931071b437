"""Connections in one direction only: without a connection back, a host has no session for the sender."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mxwire.analysis.conversations import CapturedMessage, Connect, Flow
from mxwire.analysis.diagnosis.facts import Facts, connects_of, direction_of, ends
from mxwire.analysis.diagnosis.finding import (
    KEPT,
    SHOWN,
    Evidence,
    Finding,
    Party,
    evidence,
    seconds,
    standstill,
    weighed,
)
from mxwire.analysis.diagnosis.libraries import EndpointRoute
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.words import count_of

NONE: Final = Diagnosis("no-reverse-connect", "connections")
LATE: Final = Diagnosis("late-reverse-connect", "connections")
_KINDS: Final = {"truc": "acknowledgement", "pull": "PULL", "notify": "NOTIFY"}


@examines(NONE, LATE)
class ReverseConnectExaminer(Examiner):
    """Detector of unknown sessions, and of retransmissions after a late connect."""

    def __init__(self) -> None:
        self._late: FirstKeys[Flow, tuple[CapturedMessage, int]] = FirstKeys(KEPT)
        self._unacked: FirstKeys[EndpointRoute, int] = FirstKeys(KEPT, int)

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note a message, or its NOTIFY, that was retransmitted after its sender had connected."""
        self._compare(message.flow, message.first_ns, message.last_sent_ns, message.transmissions, message)
        notice = message.pull.notice if message.pull is not None else None
        if notice is not None:
            back = message.flow.back
            self._compare(back, notice.first_ns, notice.last_ns, notice.transmissions, message)
            if notice.transmissions > 1:
                self._unacked[direction_of(back)] += notice.transmissions - 1

    def _compare(self, flow: Flow, first_ns: int, last_ns: int, transmissions: int, message: CapturedMessage) -> None:
        connected = connected_ns(flow)
        if transmissions > 1 and connected is not None and first_ns < connected < last_ns:
            self._late.setdefault(flow, (message, last_ns))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield both kinds of findings."""
        requested = _requested(facts)
        for direction, frames in facts.unknown_sessions.items():
            frames = {kind: each for kind, each in frames.items() if kind in _KINDS}
            # If no frame of the partner was captured, it may well have connected.
            if not frames or not facts.libraries.spoke(direction.back):
                continue
            if requested.get(direction.back, 0) <= min(each[0][1] for each in frames.values()):
                yield self._none(facts, direction, frames)
        yield from self._stalls()

    def _none(self, facts: Facts, direction: EndpointRoute, frames: dict[str, list[tuple[int, int]]]) -> Finding:
        counts = facts.unknown_counts[direction]
        shown = [
            evidence(
                f"{count_of(counts[kind], _KINDS[kind])} to session 0xffffffff (unknown to the sender), "
                "which is refused",
                [frame for frame, _ in each],
                each[0][1],
                "proof",
            )
            for kind, each in frames.items()
        ]
        repeated = self._unacked.get(direction.back, 0)
        if repeated:
            shown.append(
                Evidence(f"NOTIFYs were retransmitted {count_of(repeated, 'time')} for lack of an acknowledgement")
            )
        caller = Party(direction.source, direction.source_endpoint)
        silent = Party(direction.destination, direction.destination_endpoint)
        summary = f"{caller} has connected to {silent}, which never connects back"
        finding = NONE.found((silent, caller), summary, shown, frames=repeated or None)
        return replace(finding, advice=tuple(each.format(silent=silent) for each in finding.advice))

    def _stalls(self) -> Iterator[Finding]:
        by_direction: dict[EndpointRoute, list[tuple[Flow, CapturedMessage, int]]] = {}
        for flow, (message, last_ns) in self._late.items():
            by_direction.setdefault(direction_of(flow), []).append((flow, message, last_ns))
        for stalls in by_direction.values():
            shown = []
            for flow, message, last_ns in stalls[:SHOWN]:
                connect = next(each for each in flow.conversation.connects if _is_request(each, flow.side))
                waited = seconds(last_ns - connect.time_ns)
                what = "its NOTIFY" if message.flow is not flow else "it"
                text = f"message {message.number}: {what} was sent before the CONNECT request, and again {waited} later"
                shown.append(evidence(text, [connect.frame], connect.time_ns))
            late, other = ends(stalls[0][0])
            times = "" if len(stalls) == 1 else f", {len(stalls)} times"
            summary = f"{late} connects back to {other} only after it has sent messages{times}"
            waits = [(connected_ns(flow) or last_ns, last_ns) for flow, _, last_ns in stalls]
            yield LATE.found((late, other), summary, weighed(shown, "proof"), stalled_ns=standstill(waits))


def connected_ns(flow: Flow) -> int | None:
    """Return the time of the first connect request by the sender of a flow; None if there is none."""
    times = [each.time_ns for each in flow.conversation.connects if _is_request(each, flow.side)]
    return min(times, default=None)


def _is_request(connect: Connect, side: int) -> bool:
    return connect.side == side and connect.requests > 0


def _requested(facts: Facts) -> dict[EndpointRoute, int]:
    """Return the time of the last connect request of each endpoint."""
    requests: dict[EndpointRoute, int] = {}
    for connect, flow in connects_of(facts):
        if connect.requests:
            direction = direction_of(flow)
            requests[direction] = max(requests.get(direction, 0), connect.time_ns)
    return requests
