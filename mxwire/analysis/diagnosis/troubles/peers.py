"""Hosts that do not answer, hosts whose peer table lacks the querying host, and incompatible discovery programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import KEPT, Evidence, Finding, Party, evidence, weighed
from mxwire.analysis.diagnosis.queries import unanswered
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import PacketType
from mxwire.words import count_of

MUTE: Final = Diagnosis("mute-peer", "peers")
INCOMPLETE: Final = Diagnosis("discovery-incomplete", "peers")
NAMELESS: Final = Diagnosis("name-not-reported", "peers")

_QUERIES: Final = 3
_QUERY_SPAN_NS: Final = 9_000_000_000


@examines(MUTE, INCOMPLETE, NAMELESS)
class PeerExaminer(Examiner):
    """Detector of unanswered queries."""

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on hosts that never answer another host."""
        for queries in unanswered(facts):
            parties = Party(queries.direction.destination), Party(queries.direction.source)
            silent, asking = (mac_text(each.address) for each in parties)
            waited = queries.direction.last_ns - queries.direction.first_ns
            shown = [queries.evidence()]
            if queries.seen:
                others = next(facts.traffic.sent_by(parties[0].address))
                text = f"{silent} is up: it sent frames to {mac_text(others.destination)}"
                shown.append(evidence(text, [others.first_frame], others.first_ns))
                summary = f"{silent} drops the frames of {asking}"
                yield INCOMPLETE.found(parties, summary, shown, stalled_ns=waited)
            else:
                summary = f"{silent} never sent a frame, though {asking} queried it"
                if queries.only_names:
                    # No transfer waits for a name.
                    yield replace(MUTE.found(parties, summary, shown), severity="warning")
                else:
                    yield MUTE.found(parties, summary, shown, stalled_ns=waited)
        yield from self._nameless(facts)

    @staticmethod
    def _nameless(facts: Facts) -> Iterator[Finding]:
        """Yield a finding per host that sends frames, but does not report its name."""
        for one, other in facts.traffic.pairs():
            for direction, back in ((one, other), (other, one)):
                queries = direction.count(PacketType.HOST_QUERY)
                if queries < _QUERIES or back.count(PacketType.HOST_REPLY):
                    continue
                numbers, first_ns = direction.first(PacketType.HOST_QUERY)
                if direction.last_ns - (first_ns or 0) < _QUERY_SPAN_NS:
                    continue
                text = f"{queries} HOST_QUERYs to {mac_text(direction.destination)}, no HOST_REPLY"
                nameless = mac_text(direction.destination)
                summary = f"{nameless} talks to {mac_text(direction.source)}, but never reports its name"
                parties = Party(direction.destination), Party(direction.source)
                yield NAMELESS.found(parties, summary, [evidence(text, numbers, first_ns, "proof")])


MIXED: Final = Diagnosis("mixed-discovery-daemons", "peers")


@examines(MIXED)
class DaemonExaminer(Examiner):
    """Collector of the senders of RAW frames, by kind."""

    def __init__(self) -> None:
        self._hosts: dict[str, FirstKeys[int, list[int]]] = {name: FirstKeys(KEPT) for name in ("raw", "raw_omxoed")}

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Count RAW frames by sender."""
        for block in decoded.columns.of("raw", "raw_omxoed"):
            kept = self._hosts[block.layout.name]
            good = block.place[decoded.columns.reason[block.place] == 0]
            for place in good.tolist():
                address = decoded.hosts.keys[decoded.assignment.source[place]]
                kept.setdefault(address, [int(decoded.batch.number[place]), 0])[1] += 1

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield a finding if both kinds occur in the capture."""
        usual = self._hosts["raw_omxoed"]
        foreign = {address: each for address, each in self._hosts["raw"].items() if address not in usual}
        if not (foreign and usual):
            return
        shown = [*_senders(usual, "of omxoed"), *weighed(_senders(foreign, "of another program"), "sign", len(foreign))]
        with_daemon, others = count_of(len(usual), "host"), count_of(len(foreign), "host")
        summary = f"{with_daemon} with omxoed (or mxoed), {others} with something else"
        parties = tuple(Party(each) for each in [*foreign, *usual][:8])
        yield MIXED.found(parties, summary, shown)


def _senders(hosts: dict[int, list[int]], what: str) -> list[Evidence]:
    return [
        evidence(f"{mac_text(address)}: {count_of(number, 'RAW frame')} {what}", [frame])
        for address, (frame, number) in list(hosts.items())[:2]
    ]
