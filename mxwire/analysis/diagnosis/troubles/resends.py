"""Partners that are about to be abandoned, or have been."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Final

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis.facts import Facts, connects_of, ends, named
from mxwire.analysis.diagnosis.finding import KEPT, Finding, Observations, Party, evidence, seconds, weighed
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.numbers import ABANDONED_NEXT, NUMBER_MASK
from mxwire.words import count_of

NEAR: Final = Diagnosis("resend-limit-near", "processes")
REACHED: Final = Diagnosis("partner-abandoned", "processes")
# Half of the default of 1000 retransmissions (R-RTX-03), and of the time limit of a pull (R-PUL-09).
_HALF: Final = 500
_LONG_PULL_NS: Final = 250_000_000_000


@examines(NEAR, REACHED)
class ResendExaminer(Examiner):
    """Counter of transmissions."""

    def __init__(self) -> None:
        self._near: FirstKeys[tuple[Party, Party], Observations] = FirstKeys(KEPT, Observations)
        self._abandoned: FirstKeys[tuple[Party, Party], Observations] = FirstKeys(KEPT, Observations)

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note a message that was retransmitted very often, or has been pulled for very long."""
        one, other = ends(message.flow)
        if message.transmissions > _HALF:
            self._near[one, other].add(evidence(f"{named(message)} was sent {message.transmissions} times"))
        pull = message.pull
        if pull is None or pull.first_pull_ns is None:
            return
        if pull.notice is not None and pull.notice.transmissions > _HALF:
            text = f"the NOTIFY of {named(message)} was sent {pull.notice.transmissions} times"
            self._near[other, one].add(evidence(text, [pull.notice.frame], pull.notice.first_ns))
        if pull.requests and pull.requests[-1].time_ns - pull.first_pull_ns > _LONG_PULL_NS:
            last = pull.requests[-1]
            text = f"{named(message)} was still requested after {seconds(last.time_ns - pull.first_pull_ns)}"
            self._near[other, one].add(evidence(text, [last.frame], last.time_ns))

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Collect connect requests of hosts that abandoned a partner."""
        for block in decoded.columns.of("connect_request"):
            start = block["target_recv_seqnum_start"]
            good = decoded.columns.reason[block.place] == 0
            for at in (good & (start & NUMBER_MASK == ABANDONED_NEXT)).nonzero()[0].tolist():
                place = int(block.place[at])
                keys, assignment = decoded.hosts.keys, decoded.assignment
                one = Party(keys[assignment.source[place]], int(block["src_endpoint"][at]))
                other = Party(keys[assignment.destination[place]], int(block["dst_endpoint"][at]))
                text = f"a CONNECT request asks to start with 0x{int(start[at]):04x}"
                number, time_ns = int(decoded.batch.number[place]), int(decoded.batch.timestamp_ns[place])
                self._abandoned[one, other].add(evidence(text, [number], time_ns))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield both kinds of findings."""
        near = deepcopy(self._near)
        for connect, flow in connects_of(facts):
            if connect.requests > _HALF:
                text = f"{count_of(connect.requests, 'CONNECT request')} with number {connect.number}"
                near[ends(flow)].add(evidence(text, [connect.frame], connect.time_ns))
        for (one, other), each in near.items():
            yield NEAR.found((one, other), f"{one} is about to abandon {other}", weighed(each.shown, "proof"))
        for (one, other), each in self._abandoned.items():
            summary = f"{one} abandoned {other} and is reconnecting"
            yield REACHED.found((one, other), summary, weighed(each.shown, "proof"))
