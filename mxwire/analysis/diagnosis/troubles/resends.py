"""Partners that are about to be abandoned, or have been."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis.facts import Facts, named, sender_of
from mxwire.analysis.diagnosis.finding import Evidence, Finding, Party, evidence, keep, seconds, weighed
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.numbers import ABANDONED_NEXT, NUMBER_MASK
from mxwire.words import count_of

NEAR: Final = Diagnosis(
    id="resend-limit-near",
    title="A partner is about to be abandoned",
    group="processes",
    users_see="Nothing yet: a request hangs for minutes. After about 500 s it and all others to that partner fail as "
    "unreachable.",
    capture_shows="A message or a CONNECT was sent more than 500 times, or a large message is pulled for more than "
    "250 s: half of what a host tries by default (1001 transmissions, R-RTX-03; R-PUL-09).",
    distinction="By the default limit only: a lower limit that was configured shows when it is reached.",
    advice=(
        "See the other findings for why the partner does not answer; beyond the limit both sides count from "
        "different numbers and must reconnect.",
        "If the partner needs that long, raise the limit (OMX_RESENDS_MAX).",
    ),
)
REACHED: Final = Diagnosis(
    id="partner-abandoned",
    severity="error",
    title="A partner was abandoned",
    group="processes",
    users_see="All requests to a host fail as unreachable at the same moment; after connecting again, messages of the "
    "former connection turn up or vanish.",
    capture_shows="A CONNECT request has a start number of 0x30F1 with the next session number: its sender has "
    "reached its resend limit (R-RTX-05).",
    distinction="From a restart: a new process starts at 1.",
    advice=(
        "Check why the partner did not answer for so long: see the other findings.",
        "If it was only busy, raise the limit (OMX_RESENDS_MAX) or let it call the library more often.",
        "Restart both sides, or let both disconnect and connect: messages in flight are lost.",
    ),
)
_HALF: Final = 500
_LONG_PULL_NS: Final = 250_000_000_000


@examines(NEAR, REACHED)
class ResendExaminer(Examiner):
    """Counter of transmissions."""

    def __init__(self) -> None:
        self._near: dict[tuple[Party, Party], list[Evidence]] = {}
        self._abandoned: dict[tuple[Party, Party], list[Evidence]] = {}

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note a message that was retransmitted very often, or has been pulled for very long."""
        one, other = sender_of(message.flow), sender_of(message.flow.back)
        if message.transmissions > _HALF:
            keep(self._near, (one, other), evidence(f"{named(message)} was sent {message.transmissions} times"))
        pull = message.pull
        if pull is None or pull.first_pull_ns is None:
            return
        if pull.notice is not None and pull.notice.transmissions > _HALF:
            text = f"the NOTIFY of {named(message)} was sent {pull.notice.transmissions} times"
            keep(self._near, (other, one), evidence(text, [pull.notice.frame], pull.notice.first_ns))
        if pull.requests and pull.requests[-1].time_ns - pull.first_pull_ns > _LONG_PULL_NS:
            last = pull.requests[-1]
            text = f"{named(message)} was still requested after {seconds(last.time_ns - pull.first_pull_ns)}"
            keep(self._near, (other, one), evidence(text, [last.frame], last.time_ns))

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
                keep(self._abandoned, (one, other), evidence(text, [number], time_ns))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield both kinds of findings."""
        near = {key: list(shown) for key, shown in self._near.items()}
        for conversation in facts.follower.conversations:
            for connect in conversation.connects:
                if connect.requests > _HALF:
                    one = sender_of(conversation.flows[connect.side])
                    other = sender_of(conversation.flows[1 - connect.side])
                    text = f"{count_of(connect.requests, 'CONNECT request')} with number {connect.number}"
                    keep(near, (one, other), evidence(text, [connect.frame], connect.time_ns))
        for (one, other), shown in near.items():
            yield NEAR.found((one, other), f"{one} is about to abandon {other}", weighed(shown, "proof"))
        for (one, other), shown in self._abandoned.items():
            yield REACHED.found((one, other), f"{one} abandoned {other} and is reconnecting", weighed(shown, "proof"))
