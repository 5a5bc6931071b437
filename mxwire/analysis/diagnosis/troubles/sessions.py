"""Sessions that changed, and the session number in the upper two bits of sequence numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from mxwire.analysis.conversations import CapturedMessage, Flow, Refusal
from mxwire.analysis.diagnosis.announcements import AnnouncedValues, ValueColumns
from mxwire.analysis.diagnosis.facts import Facts, direction_of, named, sender_of
from mxwire.analysis.diagnosis.finding import KEPT, Finding, Observations, Party, evidence, weighed
from mxwire.analysis.diagnosis.libraries import direction_at, direction_key
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import ConnectStatus
from mxwire.wire.numbers import NO_SESSION, SESSION_NUMBER_MASK
from mxwire.words import count_of

CHANGED: Final = Diagnosis("session-changed", "connections")
BITS: Final = Diagnosis("session-number-differs", "connections")
_LEAST: Final = 2
_CONNECTING: Final = ("connect_request", "connect_reply")
_NUMBERED: Final = ("tiny", "small", "medium", "rndv", "notify")


@examines(CHANGED, BITS)
class SessionExaminer(Examiner):
    """Collector of refused sessions, and tracker of requested and used session numbers."""

    def __init__(self) -> None:
        self._refused: FirstKeys[tuple[Party, Party], Observations] = FirstKeys(KEPT, Observations)
        self._announced = AnnouncedValues()

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note a message that was refused because of its session."""
        pull = message.pull
        own = "rndv" if message.kind == "RNDV" else message.kind.lower()
        self._note(message.flow, message.nack, own, f"{named(message)} was refused", facts)
        if pull is not None:
            back = message.flow.back
            self._note(back, pull.refusal, "pull", f"the PULLs of {named(message)} were refused", facts)
            nack = pull.notice.nack if pull.notice is not None else None
            self._note(back, nack, "notify", f"the NOTIFY of {named(message)} was refused", facts)

    def _note(self, flow: Flow, refusal: Refusal | None, layout: str, text: str, facts: Facts) -> None:
        if refusal is None or refusal.reason != "BAD_SESSION":
            return
        # Without any session it is refused as well; `no-reverse-connect` reports that.
        if layout in facts.unknown_sessions.get(direction_of(flow), {}):
            return
        shown = evidence(f"{text}: BAD_SESSION", [refusal.frame], refusal.time_ns)
        self._refused[sender_of(flow.back), sender_of(flow)].add(shown)

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Note requested and used session numbers."""
        if decoded.located.has_destination:
            batch = decoded.batch
            announced = _numbers_of(decoded, _CONNECTING, "target_recv_seqnum_start", back=True)
            used = _numbers_of(decoded, _NUMBERED, "lib_seqnum")
            self._announced.observe(announced, used, batch.timestamp_ns, batch.number)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield both kinds of findings."""
        for (target, sender), found in self._refused.items():
            summary = f"{sender} uses a session that {target} does not have: {count_of(found.count, 'refusal')}"
            yield CHANGED.found((sender, target), summary, weighed(found.shown, "proof"))
        address = facts.decoder.hosts.keys
        for key, misuse in self._announced.misused(_LEAST):
            direction = direction_at(key, address)
            sender = Party(direction.source, direction.source_endpoint)
            target = Party(direction.destination, direction.destination_endpoint)
            text = (
                f"{count_of(misuse.frames, 'frame')} with session number {misuse.used >> 14}; "
                f"{mac_text(target.address)} had requested {misuse.announced >> 14}"
            )
            summary = f"{target} drops the messages of {sender}: wrong session number"
            yield BITS.found((sender, target), summary, [misuse.evidence(text, misuse.frames // _LEAST)])


def _numbers_of(decoded: DecodedBatch, layouts: tuple[str, ...], field: str, *, back: bool = False) -> ValueColumns:
    """Return the session numbers in ``field`` by endpoint: the sender, or with ``back`` its partner."""
    found = []
    for block in decoded.columns.of(*layouts):
        good = decoded.columns.reason[block.place] == 0
        if "connect_status_code" in block.names:
            good &= block["connect_status_code"] == ConnectStatus.SUCCESS
        if "session" in block.names:
            good &= block["session"] != NO_SESSION
        which = np.flatnonzero(good)
        numbers = (block[field][which] & SESSION_NUMBER_MASK).astype(np.int64)
        found.append((direction_key(decoded, block, which, back=back), block.place[which], numbers))
    return ValueColumns.joined(found)
