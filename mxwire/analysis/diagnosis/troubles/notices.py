"""NOTIFYs for messages of a process that has died: real hosts send them to its successor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.analysis.conversations import Message
from mxwire.analysis.conversations.message import Refusal
from mxwire.analysis.diagnosis.facts import Facts, sender_of
from mxwire.analysis.diagnosis.finding import Finding, Party, evidence
from mxwire.analysis.diagnosis.keeping import KEPT
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines

LATE: Final = Diagnosis(
    id="notify-for-former-process",
    title="A NOTIFY for a process that has died",
    group="processes",
    severity="note",
    users_see="Nothing.",
    capture_shows="The PULLs of a large message are refused with ENDPT_CLOSED, as its sender's process has died; a new "
    "process opens the same endpoint and connects, and gets a NOTIFY of 0 bytes for the region of the former one "
    "(R-MEA-14).",
    distinction="From a host that invents regions: here the region and its counter are those of the refused pull.",
    advice=("Nothing needs to be done: the new process ignores the NOTIFY, as the counter does not fit (R-NOT-02).",),
    needs=frozenset({"both directions"}),
)
_Key = tuple[Party, Party, int | None, int | None]


@examines(LATE)
class Notices(Examiner):
    """Collects refused pulls, and NOTIFYs of 0 bytes that end nothing."""

    def __init__(self) -> None:
        self._refused: dict[_Key, Refusal] = {}
        self._notices: dict[_Key, tuple[int, int]] = {}

    def any_message(self, message: Message, facts: Facts) -> None:
        """A large message whose pull was refused, or of which only the NOTIFY was seen."""
        pull = message.pull
        if pull is None:
            return
        key = sender_of(message.flow.back), sender_of(message.flow), pull.region, pull.counter
        if pull.refusal is not None and pull.refusal.reason == "ENDPT_CLOSED":
            if len(self._refused) < KEPT:
                self._refused.setdefault(key, pull.refusal)
            return
        notice = pull.notice
        if notice is None or message.position >= 0 or pull.pulls or notice.total_length:
            return
        if len(self._notices) < KEPT:
            self._notices.setdefault(key, (notice.frame, notice.first_ns))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """NOTIFYs whose region is that of a refused pull."""
        for key, (frame, time_ns) in self._notices.items():
            refusal = self._refused.get(key)
            if refusal is None or refusal.time_ns > time_ns:
                continue
            puller, owner, region, counter = key
            shown = [
                evidence("the pull was refused: ENDPT_CLOSED", [refusal.frame], refusal.time_ns),
                evidence(f"NOTIFY of 0 bytes for region {region}, counter {counter}", [frame], time_ns),
            ]
            summary = f"{puller} sent {owner} the NOTIFY of a message of a former process"
            yield LATE.found("high", (puller, owner), summary, shown)
