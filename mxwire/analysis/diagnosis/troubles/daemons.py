"""Discovery programs that do not understand each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import Finding, Party, evidence
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.words import count_of

MIXED: Final = Diagnosis(
    id="mixed-discovery-daemons",
    title="Different discovery daemons on one fabric",
    group="peers",
    users_see="Hosts fall into groups: each sees the hosts of its own group only.",
    capture_shows="Some hosts broadcast the RAW frames of omxoed (or mxoed), others send RAW frames with other "
    "content, such as those of FMA.",
    distinction="By the content of RAW frames: an announcement of omxoed has 64 bytes, with the address of its sender "
    "in it.",
    advice=(
        "Run the same discovery program everywhere: FMA (1.3.0 or later, the same version on all hosts) where native "
        "MX hosts take part, omxoed otherwise.",
        "A wire-compatible Open-MX is built to use FMA if FMA's sources were available; check which one runs.",
    ),
)
_HOSTS: Final = 4096


@examines(MIXED)
class Daemons(Examiner):
    """Remembers whose RAW frames are what."""

    def __init__(self) -> None:
        self._hosts: dict[str, dict[int, list[int]]] = {"raw": {}, "raw_omxoed": {}}

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Count RAW frames by sender."""
        for block in decoded.columns.of("raw", "raw_omxoed"):
            kept = self._hosts[block.layout.name]
            good = block.place[decoded.columns.reason[block.place] == 0]
            for place in good.tolist():
                address = decoded.hosts.keys[decoded.assignment.source[place]]
                if address in kept:
                    kept[address][1] += 1
                elif len(kept) < _HOSTS:
                    kept[address] = [int(decoded.batch.number[place]), 1]

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Both kinds in one capture."""
        foreign, usual = (self._hosts[name] for name in ("raw", "raw_omxoed"))
        foreign = {address: each for address, each in foreign.items() if address not in usual}
        if not (foreign and usual):
            return
        shown = [
            evidence(f"{mac_text(address)}: {count_of(number, 'RAW frame')} {what}", [frame])
            for hosts, what in ((usual, "of omxoed"), (foreign, "of another program"))
            for address, (frame, number) in list(hosts.items())[:2]
        ]
        with_daemon, others = count_of(len(usual), "host"), count_of(len(foreign), "host")
        summary = f"{with_daemon} with omxoed (or mxoed), {others} with something else"
        parties = tuple(Party(each) for each in [*foreign, *usual][:8])
        yield MIXED.found("high" if len(foreign) > 1 else "medium", parties, summary, shown)
