"""Receivers whose application does not call its library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis.facts import Facts, about, direction_of, sender_of, waits_for_another
from mxwire.analysis.diagnosis.finding import KEPT, SHOWN, Evidence, Finding, Party, evidence, seconds, weighed
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.words import count_of

STOPPED: Final = Diagnosis("receiver-not-progressing", "processes")
_REPEATS: Final = 2
_LONG_NS: Final = 900_000_000
_IN_PROGRESS_NS: Final = 100_000_000
"""Time for which answers may still pass after the receiver fell silent."""
_OFTEN: Final = 4
_STORED_NS: Final = 20_000_000
"""If the receiver acknowledges this long after the last transmission, it had received the message before."""


class _Stopped:
    __slots__ = ("card", "ended_ns", "first_ns", "last_ns", "messages", "often", "shown", "stored")

    def __init__(self, first_ns: int) -> None:
        self.first_ns = first_ns
        self.last_ns = first_ns
        self.ended_ns: int | None = None
        self.messages = 0
        self.often = False
        self.card = 0
        self.stored = 0
        self.shown: list[Evidence] = []


@examines(STOPPED)
class ProgressExaminer(Examiner):
    """Detector of messages that were retransmitted while the receiver's library was silent."""

    def __init__(self) -> None:
        self._stopped: FirstKeys[tuple[Party, Party], _Stopped] = FirstKeys(KEPT)

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Examine a message that was transmitted several times."""
        if message.retransmissions < _REPEATS or message.last_sent_ns - message.first_ns < _LONG_NS or message.nacks:
            return
        direction = direction_of(message.flow.back)
        if message.ack is not None and message.ack.time_ns < message.last_sent_ns:
            # The receiver had answered, but the answer was lost.
            return
        if waits_for_another(message):
            # Such a message cannot be acknowledged, however often the library is called.
            return
        if message.retransmissions < _OFTEN and _is_prompt(message):
            # A message that is acknowledged right after its retransmission was more likely lost.
            return
        if not facts.libraries.spoke(direction):
            return
        quiet = facts.libraries.silence(direction, message.first_ns + _IN_PROGRESS_NS, message.last_sent_ns)
        if quiet is None:
            return
        key = sender_of(message.flow.back), sender_of(message.flow)
        self._add(self._stopped.setdefault(key, _Stopped(message.first_ns)), message, quiet[1], facts)

    @staticmethod
    def _add(found: _Stopped, message: CapturedMessage, ended_ns: int | None, facts: Facts) -> None:
        found.messages += 1
        found.often = found.often or found.messages > 1 or message.retransmissions > _REPEATS
        found.first_ns = min(found.first_ns, message.first_ns)
        found.last_ns = max(found.last_ns, message.last_sent_ns)
        found.ended_ns = ended_ns if ended_ns is not None else found.ended_ns
        receiver = message.flow.back
        until = ended_ns if ended_ns is not None else facts.last_ns
        found.card = max(
            found.card, facts.libraries.card_frames(receiver.address, message.flow.address, message.first_ns, until)
        )
        ack = message.ack
        if ack is not None and not _is_prompt(message):
            found.stored += 1
        if len(found.shown) < SHOWN:
            end = (
                "never acknowledged" if ack is None else f"acknowledged after {seconds(ack.time_ns - message.first_ns)}"
            )
            found.shown.append(about(message, f"was sent {message.transmissions} times and {end}"))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on endpoints that were silent for long."""
        for (receiver, sender), stop in self._stopped.items():
            if not (stop.card or stop.stored or stop.often):
                # A very lossy network may have dropped all of these few frames.
                continue
            until = stop.ended_ns if stop.ended_ns is not None else stop.last_ns
            shown = weighed(stop.shown, "sign")
            if stop.card:
                text = f"the card of {mac_text(receiver.address)} sent {count_of(stop.card, 'frame')} at that time"
                shown.append(evidence(text, weight="proof"))
            if stop.stored:
                verb = "it" if stop.stored == 1 else "them"
                text = (
                    f"{count_of(stop.stored, 'message')} finally acknowledged without another transmission: the host "
                    f"had {verb} all along"
                )
                shown.append(evidence(text, (), stop.ended_ns, "proof"))
            ending = "" if stop.ended_ns is not None else " and longer"
            summary = f"the library of {receiver} was silent to {sender} for {seconds(until - stop.first_ns)}{ending}"
            yield STOPPED.found((receiver, sender), summary, shown, stalled_ns=until - stop.first_ns)


def _is_prompt(message: CapturedMessage) -> bool:
    """Return whether the last transmission of a message was acknowledged at once."""
    ack = message.ack
    return ack is not None and ack.time_ns - message.last_sent_ns <= _STORED_NS
