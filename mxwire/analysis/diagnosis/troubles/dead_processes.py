"""Pulls and NOTIFYs of processes that have died."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.conversations.message import Refusal
from mxwire.analysis.diagnosis.facts import Facts, direction_of, named, sender_of
from mxwire.analysis.diagnosis.finding import (
    KEPT,
    SHOWN,
    Evidence,
    Finding,
    Party,
    evidence,
    seconds,
    standstill,
    weighed,
)
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import mac_text
from mxwire.wire.decoder import DecodedBatch
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import ENDPOINT_MAXIMUM, PULL_TIMER
from mxwire.words import count_of

ZOMBIE: Final = Diagnosis("zombie-pull", "processes")
_TIMERS: Final = 3
"""Timers that expire for a complete block: with fewer, its replies may have been lost behind the point of capture."""
_WINDOW: Final = 4
_LATE_NS: Final = 100_000_000


@examines(ZOMBIE)
class ZombieExaminer(Examiner):
    """Detector of blocks that are re-requested repeatedly without a reason."""

    def __init__(self) -> None:
        self._closed: FirstKeys[Party, list[tuple[int, int]]] = FirstKeys(KEPT, list)
        self._found: FirstKeys[tuple[Party, Party], tuple[str, list[Evidence], int]] = FirstKeys(KEPT)

    def frames(self, decoded: DecodedBatch, facts: Facts) -> None:
        """Record the endpoints that nacks report as closed, or as reopened with another session."""
        for block in decoded.columns.of("nack_lib"):
            gone = (block["nack_type"] == NackType.ENDPT_CLOSED) | (block["nack_type"] == NackType.BAD_SESSION)
            for at in gone.nonzero()[0].tolist():
                place = int(block.place[at])
                address = decoded.hosts.keys[decoded.assignment.source[place]]
                party = Party(address, int(block["src_endpoint"][at]))
                known = self._closed[party]
                if len(known) < SHOWN:
                    known.append((int(decoded.batch.timestamp_ns[place]), int(decoded.batch.number[place])))

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Examine a large message that was requested several times."""
        pull = message.pull
        if pull is None or pull.first_pull_ns is None or not (pull.requests or _is_left_over(message, facts)):
            return
        if min(message.flow.endpoint or 0, message.flow.back.endpoint or 0) >= ENDPOINT_MAXIMUM:
            # These PULLs are probes of a diagnostic tool.
            return
        shown: list[Evidence] = []
        puller = sender_of(message.flow.back)
        after_nack = [
            each
            for each in pull.requests
            if pull.refusal is not None and each.time_ns > pull.refusal.time_ns + _LATE_NS
        ]
        if after_nack and pull.refusal is not None:
            frames = [pull.refusal.frame, *(each.frame for each in after_nack)]
            text = (
                f"{count_of(len(after_nack), 'PULL')} after the nack that would have ended a pull of a running process"
            )
            shown.append(evidence(text, frames, pull.refusal.time_ns, "proof"))
        for time_ns, frame in self._closed.get(puller, ()):
            later = [each.frame for each in pull.requests if each.time_ns > time_ns]
            # An endpoint that was closed before the pull began belonged to an earlier process.
            if time_ns > pull.first_pull_ns and later:
                text = f"{puller} reported that it is closed, and then sent {count_of(len(later), 'PULL')}"
                shown.append(evidence(text, [frame, *later], time_ns, "sign"))
                break
        served = [each for each in pull.timed_out if not each.missing]
        most = max(Counter(each.end for each in served).values(), default=0)
        if most >= _TIMERS and pull.notice is None and (shown or self._is_silent(message, facts)):
            text = f"{count_of(len(served), 'PULL')} for blocks that had arrived completely"
            shown.append(evidence(text, [each.frame for each in served], served[0].time_ns, "sign"))
        elif _is_left_over(message, facts):
            text = f"{count_of(pull.pulls, 'PULL')} for a message from before the capture, without an answer"
            frames = [first for first, _ in message.frames]
            shown.append(evidence(text, frames, pull.first_pull_ns, "sign"))
        elif not shown:
            return
        summary = f"{puller} keeps pulling {named(message)} for a process that is gone"
        found = summary, shown, pull.re_requests + pull.repeated_replies
        self._found.setdefault((puller, sender_of(message.flow)), found)

    @staticmethod
    def _is_silent(message: CapturedMessage, facts: Facts) -> bool:
        """Return whether the puller made progress before, and its library has been silent since."""
        pull = message.pulled
        last = facts.libraries.last_ns(direction_of(message.flow.back))
        return pull.requested_blocks > _WINDOW and (last is None or last < pull.requests[0].time_ns)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield a finding per endpoint whose pulls have outlived its process."""
        for (puller, owner), (summary, shown, useless) in self._found.items():
            yield ZOMBIE.found((puller, owner), summary, shown, frames=useless)


def _is_left_over(message: CapturedMessage, facts: Facts) -> bool:
    """Return whether only PULLs of a message were captured, for several periods of the timer, and the library was
    silent: two pulls of dead processes may share a handle (D-13).
    """
    pull = message.pull
    assert pull is not None and pull.first_pull_ns is not None
    if message.position >= 0 or pull.replies or pull.notice is not None or pull.pulls <= _TIMERS:
        return False
    lasting = message.last_ns - pull.first_pull_ns >= _TIMERS * PULL_TIMER
    return lasting and not facts.libraries.spoke(direction_of(message.flow.back))


STOPPED: Final = Diagnosis("pull-stopped", "processes")
_STOPPED_NS: Final = 3 * PULL_TIMER


@examines(STOPPED)
class StoppedPullExaminer(Examiner):
    """Collector of pulls that end before their message is complete."""

    def __init__(self) -> None:
        self._partial: list[CapturedMessage] = []

    def message(self, message: CapturedMessage, facts: Facts) -> None:
        """Keep a large message of which only a part was pulled."""
        if _is_partial(message) and len(self._partial) < KEPT:
            self._partial.append(message)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield a finding per pair of endpoints with pulls that have stopped."""
        stopped: dict[tuple[Party, Party], list[CapturedMessage]] = {}
        for message in (*self._partial, *filter(_is_partial, facts.follower.unfinished)):
            if _end_ns(message, facts) - message.last_ns >= _STOPPED_NS:
                key = sender_of(message.flow.back), sender_of(message.flow)
                stopped.setdefault(key, []).append(message)
        for (puller, sender), messages in stopped.items():
            shown = weighed((_stopped_evidence(each, facts) for each in messages[:SHOWN]), "sign")
            since = min(each.last_ns for each in messages)
            sent = [each for each in facts.traffic.sent_by(puller.address) if each.last_ns > since + _STOPPED_NS]
            if sent:
                text = f"frames of {mac_text(puller.address)} passed later, so its host and the path work"
                shown.append(evidence(text, [sent[0].last_frame], weight="sign"))
            stalled = standstill((each.last_ns, _end_ns(each, facts)) for each in messages)
            what = "a message" if len(messages) == 1 else f"{len(messages)} messages"
            summary = f"{puller} stopped pulling {what} of {sender}, which waits for it"
            yield STOPPED.found((puller, sender), summary, shown, stalled_ns=stalled)


def _is_partial(message: CapturedMessage) -> bool:
    pull = message.pull
    if pull is None or pull.requested is None or not pull.pulls or pull.notice is not None or pull.nacks:
        return False
    if message.position < 0 or max(message.flow.endpoint or 0, message.flow.back.endpoint or 0) >= ENDPOINT_MAXIMUM:
        # The message began before the capture, or the PULLs are probes of a diagnostic tool.
        return False
    return pull.ranges.total < pull.requested


def _end_ns(message: CapturedMessage, facts: Facts) -> int:
    """Return the time until which a sender waited: for a new connect, or the end of the capture."""
    return facts.last_ns if message.abandoned_ns is None else message.abandoned_ns


def _stopped_evidence(message: CapturedMessage, facts: Facts) -> Evidence:
    pull = message.pulled
    text = (
        f"{named(message)}: {pull.ranges.total} bytes passed, then no PULL for "
        f"{seconds(_end_ns(message, facts) - message.last_ns)}"
    )
    return evidence(text, [[*message.frames][-1][1]], message.last_ns)


LATE: Final = Diagnosis("notify-for-former-process", "processes")
_Key = tuple[Party, Party, int | None, int | None]


@examines(LATE)
class NotifyExaminer(Examiner):
    """Collector of refused pulls, and of NOTIFYs of 0 bytes that do not end a known message."""

    def __init__(self) -> None:
        self._refused: FirstKeys[_Key, Refusal] = FirstKeys(KEPT)
        self._notices: FirstKeys[_Key, tuple[int, int]] = FirstKeys(KEPT)

    def any_message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note a large message whose pull was refused, or of which only the NOTIFY was seen."""
        pull = message.pull
        if pull is None:
            return
        key = sender_of(message.flow.back), sender_of(message.flow), pull.region, pull.counter
        if pull.refusal is not None and pull.refusal.reason == "ENDPT_CLOSED":
            self._refused.setdefault(key, pull.refusal)
            return
        notice = pull.notice
        if notice is None or message.position >= 0 or pull.pulls or notice.total_length:
            return
        self._notices.setdefault(key, (notice.frame, notice.first_ns))

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield findings on NOTIFYs that name the region of a refused pull."""
        for key, (frame, time_ns) in self._notices.items():
            refusal = self._refused.get(key)
            if refusal is None or refusal.time_ns > time_ns:
                continue
            puller, owner, region, counter = key
            shown = [
                evidence("the pull was refused: ENDPT_CLOSED", [refusal.frame], refusal.time_ns, "sign"),
                evidence(f"NOTIFY of 0 bytes for region {region}, counter {counter}", [frame], time_ns, "sign"),
            ]
            summary = f"{puller} sent {owner} the NOTIFY of a message of a former process"
            yield LATE.found((puller, owner), summary, shown)
