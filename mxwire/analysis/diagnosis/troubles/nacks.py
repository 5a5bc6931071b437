"""Storms of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import KEPT, Finding, Party, evidence
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.diagnosis.traffic import pairs_of
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.units import SECOND
from mxwire.wire.codes import groups_of
from mxwire.wire.decoder import DecodedBatch
from mxwire.words import count_of

STORM: Final = Diagnosis("nack-storm", "processes")
_MANY: Final = 50


@dataclass(slots=True)
class _Rate:
    total: int = 0
    number: int = 0
    most: int = 0
    second: int = -1
    frames: list[int] = field(default_factory=list)
    time_ns: int = 0


@examines(STORM)
class NackExaminer(Examiner):
    """Counter of nacks per second."""

    def __init__(self) -> None:
        self._rates: FirstKeys[tuple[int, int], _Rate] = FirstKeys(KEPT, _Rate)

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Count the nacks of a batch."""
        places = [block.place for block in decoded.columns.of("nack_lib", "nack_mcp")]
        if not places:
            return
        place = np.sort(np.concatenate(places))
        keys = decoded.hosts.keys
        assignment = decoded.assignment
        for source, destination, members in pairs_of(assignment.source[place], assignment.destination[place]):
            rate = self._rates[keys[source], keys[destination]]
            mine = place[members]
            rate.total += len(mine)
            seconds = decoded.batch.timestamp_ns[mine] // SECOND
            for second, which in groups_of(seconds):
                # A second may extend into the next batch.
                rate.number = rate.number + len(which) if second == rate.second else len(which)
                rate.second = second
                if rate.number > rate.most:
                    rate.most = rate.number
                    rate.frames = decoded.batch.number[mine[which[:8]]].tolist()
                    rate.time_ns = int(decoded.batch.timestamp_ns[mine[which[0]]])

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on hosts that send nacks at a high rate."""
        for (refuser, sender), rate in self._rates.items():
            if rate.most < _MANY:
                continue
            text = f"{count_of(rate.most, 'nack')} within one second, {rate.total} in all"
            shown = [evidence(text, rate.frames, rate.time_ns, "proof")]
            summary = f"{mac_text(refuser)} refuses frames of {mac_text(sender)}, {rate.most} per second"
            yield STORM.found((Party(sender), Party(refuser)), summary, shown, frames=rate.total)
