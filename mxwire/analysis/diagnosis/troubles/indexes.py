"""Peer indexes: they identify the source of a frame, so a wrong one attributes it to another host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from mxwire.analysis.diagnosis.announcements import AnnouncedValues, ValueColumns
from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import Finding, Party, evidence, weighed
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.diagnosis.traffic import pair_at, pair_key
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.numbers import NO_PEER_INDEX
from mxwire.words import count_of

STALE: Final = Diagnosis("stale-peer-index", "peers")
REUSED: Final = Diagnosis("peer-index-reused", "peers")
_ANNOUNCING: Final = ("host_query", "host_reply", "connect_request", "connect_reply")
_USING: Final = ("tiny", "small", "medium", "rndv", "notify", "truc")
"""Layouts with an index that the sender looks up for each frame: a PULL is repeated with that of its first time."""
_LEAST: Final = 3


@examines(STALE, REUSED)
class IndexExaminer(Examiner):
    """Tracker of the index that each host received, and of the index that it uses."""

    def __init__(self) -> None:
        self._announced = AnnouncedValues()

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Note announced and used indexes."""
        if not decoded.located.has_destination:
            return
        used = self._columns_of(decoded, _USING, "dst_src_peer_index", turned=False)
        announced = self._columns_of(decoded, _ANNOUNCING, "src_dst_peer_index", turned=True)
        self._announced.observe(announced, used, decoded.batch.timestamp_ns, decoded.batch.number)

    @staticmethod
    def _columns_of(decoded: DecodedBatch, layouts: tuple[str, ...], field: str, *, turned: bool) -> ValueColumns:
        """Return the values of a field by the host that uses them and the host to which it sends them."""
        found = []
        for block in decoded.columns.of(*layouts):
            good = decoded.columns.reason[block.place] == 0
            place = block.place[good]
            one, other = decoded.assignment.source[place], decoded.assignment.destination[place]
            if turned:
                one, other = other, one
            found.append((pair_key(one, other), place, block[field][good].astype(np.int64)))
        return ValueColumns.joined(found)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on wrong indexes, and on indexes that two hosts share."""
        address = facts.decoder.hosts.keys
        for key, misuse in self._announced.misused(_LEAST):
            user, host = (address[each] for each in pair_at(key))
            used, announced = _index(misuse.used), _index(misuse.announced)
            text = f"{count_of(misuse.frames, 'frame')} with {used} after receiving {announced}"
            summary = f"{mac_text(user)} sends to {mac_text(host)} with an outdated index"
            yield STALE.found((Party(user), Party(host)), summary, [misuse.evidence(text, misuse.frames)])
        yield from self._reused(address, facts)

    def _reused(self, address: list[int], facts: Facts) -> Iterator[Finding]:
        owners: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for key, (index, time_ns, frame) in self._announced.latest.items():
            if index != NO_PEER_INDEX:
                user, host = pair_at(key)
                owners.setdefault((host, index), []).append((time_ns, user, frame))
        for (host, index), announced in owners.items():
            announced.sort()
            # A process that rebuilt its table may assign the index of a host that is gone to another one.
            first = facts.traffic.direction(address[announced[0][1]], address[host])
            if len(announced) < 2 or first is None or first.last_ns <= announced[-1][0]:
                continue
            shown = [
                evidence(f"{mac_text(address[user])} was assigned index {index} there", [frame], time_ns)
                for time_ns, user, frame in announced[:4]
            ]
            parties = Party(address[host]), *(Party(address[user]) for _, user, _ in announced[:4])
            summary = f"{mac_text(address[host])} assigned index {index} to {len(announced)} hosts"
            yield REUSED.found(parties, summary, weighed(shown, "proof"))


def _index(value: int) -> str:
    return "no index (0xffff)" if value == NO_PEER_INDEX else f"index {value}"
