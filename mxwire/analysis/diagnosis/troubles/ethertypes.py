"""MXoE under another EtherType, and frames of MXoE that are removed on the path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.diagnosis.facts import Facts
from mxwire.analysis.diagnosis.finding import KEPT, Finding, Party, evidence, weighed
from mxwire.analysis.diagnosis.queries import UnansweredQueries, unanswered
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import ETHERTYPE_MXOE, mac_text
from mxwire.frames import LINKTYPE_ETHERNET, FrameBatch
from mxwire.wire.byteorder import HOST_MAGIC_PREFIX, PULL_MAGIC_PREFIX
from mxwire.wire.codes import groups_of
from mxwire.wire.encapsulation import HEADER_LENGTH, ROW, TAG_TYPES, Located, locate
from mxwire.wire.enums import PacketType, TrucType
from mxwire.wire.formats import CONNECT_REQUEST, HOST_QUERY, PULL_MXOE, PULL_OMX, PULL_REPLY, RNDV, TRUC, PacketFormat
from mxwire.wire.layout import header_type, layout_of
from mxwire.wire.numbers import CONNECT_LENGTH, RNDV_LENGTH
from mxwire.words import count_of

CHANGED: Final = Diagnosis("ethertype-changed", "path")
FILTERED: Final = Diagnosis("ethertype-filtered", "path")

_TYPES_KEPT: Final = 64
_FRAMES: Final = 3
_SAMPLES: Final = 8


@dataclass
class _Suspect:
    """Another EtherType that seems to carry MXoE."""

    frames: int = 0
    numbers: list[int] = field(default_factory=list)
    first_ns: int | None = None
    hosts: dict[int, None] = field(default_factory=dict)


@examines(CHANGED, FILTERED)
class EtherTypeExaminer(Examiner):
    """Examiner of frames with an EtherType other than that of MXoE."""

    def __init__(self) -> None:
        self._suspects: dict[int, _Suspect] = {}
        self._others: FirstKeys[tuple[int, int], tuple[int, int, int]] = FirstKeys(KEPT)

    def raw(self, batch: FrameBatch) -> None:
        """Collect frames of other EtherTypes by source, and frames among them that contain MXoE."""
        if batch.link_type != LINKTYPE_ETHERNET:
            return
        whole = np.flatnonzero(batch.length >= HEADER_LENGTH)
        at = batch.offset[whole]
        types = batch.buffer[at + 12].astype(np.int64) << 8 | batch.buffer[at + 13]
        other = types != ETHERTYPE_MXOE
        if other.any():
            other &= ~np.isin(types, TAG_TYPES)
        if not other.any():
            return
        types, whole = types[other], whole[other]
        for value, members in groups_of(types):
            # Smaller values are lengths (IEEE 802.3), not EtherTypes.
            if value >= 0x600 and (value in self._suspects or len(self._suspects) < _TYPES_KEPT):
                self._look(value, batch.select(whole[members]))

    def _look(self, ethertype: int, batch: FrameBatch) -> None:
        located = locate(batch, (ethertype,))
        sources, destinations = located.source, located.destination
        strong = np.flatnonzero(looks_like_mxoe(located))
        if len(strong):
            suspect = self._suspects.setdefault(ethertype, _Suspect())
            suspect.frames += len(strong)
            if suspect.first_ns is None:
                suspect.first_ns = int(located.batch.timestamp_ns[strong[0]])
            suspect.numbers += located.batch.number[strong[: _SAMPLES - len(suspect.numbers)]].tolist()
            for each in np.unique(sources[strong])[: KEPT - len(suspect.hosts)].tolist():
                suspect.hosts[each] = None
        one, source_of = np.unique(sources, return_inverse=True)
        other, destination_of = np.unique(destinations, return_inverse=True)
        for value, members in groups_of(source_of.astype(np.int64) << 32 | destination_of):
            key = int(one[value >> 32]), int(other[value & 0xFFFFFFFF])
            number, _, frame = self._others.get(key) or (0, 0, int(located.batch.number[members[0]]))
            self._others[key] = number + len(members), int(located.batch.timestamp_ns[members[-1]]), frame

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield both kinds of findings."""
        yield from self._changed(facts)
        for each in unanswered(facts):
            finding = self._filtered(each)
            if finding is not None:
                yield finding

    def _changed(self, facts: Facts) -> Iterator[Finding]:
        for value, suspect in self._suspects.items():
            if suspect.frames < _FRAMES or value in facts.decoder.ethertypes:
                continue
            text = f"{count_of(suspect.frames, 'frame')} with EtherType 0x{value:04x} can only be MXoE"
            shown = [evidence(text, suspect.numbers, suspect.first_ns, "proof")]
            usual = [each for each in facts.traffic.hosts() if each not in suspect.hosts]
            if usual:
                shown.append(evidence(f"{', '.join(map(mac_text, usual[:3]))} used 0x86df"))
            parties = tuple(Party(each) for each in sorted(suspect.hosts)[:8])
            yield CHANGED.found(parties, f"MXoE uses EtherType 0x{value:04x} here", shown)

    def _filtered(self, queries: UnansweredQueries) -> Finding | None:
        direction = queries.direction
        other = [
            (number, frame)
            for (source, _), (number, last_ns, frame) in self._others.items()
            if source == direction.destination and last_ns >= direction.first_ns
        ]
        number = sum(each for each, _ in other)
        if queries.seen or number < _FRAMES:
            return None
        silent = mac_text(direction.destination)
        text = f"{silent} sent {count_of(number, 'frame')} of other protocols at that time"
        shown = [queries.evidence(), evidence(text, [frame for _, frame in other])]
        parties = Party(direction.source), Party(direction.destination)
        return FILTERED.found(parties, f"{silent} is alive, but sends no MXoE frames", weighed(shown, "sign"))


def looks_like_mxoe(located: Located) -> NDArray[np.bool_]:
    """Return, per frame, whether its fields are characteristic of MXoE; shape (n,)."""
    mask = np.zeros(len(located.batch), np.bool_)
    types = located.row_bytes[:, HEADER_LENGTH + 2]

    def fields(packet_type: PacketType, packet_format: PacketFormat) -> tuple[NDArray[np.intp], NDArray[np.void]]:
        layout = layout_of(packet_format)
        place = np.flatnonzero((types == packet_type) & (located.captured >= layout.header_end))
        return place, located.rows[place].view(header_type(layout, size=ROW))

    place, view = fields(PacketType.CONNECT, CONNECT_REQUEST)
    mask[place] = (view["length"] == CONNECT_LENGTH) & (view["is_reply"] <= 1) & (view["lib_seqnum"] == 0)
    place, view = fields(PacketType.TRUC, TRUC)
    mask[place] = (view["liback.type"] == TrucType.ACK) & (view["session"] == view["liback.session_id"])
    place, view = fields(PacketType.RNDV, RNDV)
    mask[place] = view["length"] == RNDV_LENGTH
    for packet_type in (PacketType.HOST_QUERY, PacketType.HOST_REPLY):
        place, view = fields(packet_type, HOST_QUERY)
        mask[place] = view["magic"] >> 8 == HOST_MAGIC_PREFIX
    place, view = fields(PacketType.PULL_REPLY, PULL_REPLY)
    mask[place] = view["dst_magic"] >> 8 == PULL_MAGIC_PREFIX
    for packet_format in (PULL_MXOE, PULL_OMX):
        place, view = fields(PacketType.PULL, packet_format)
        mask[place] |= view["src_magic"] >> 8 == PULL_MAGIC_PREFIX
    return mask
