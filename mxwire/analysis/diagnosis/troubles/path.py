"""A path that lets short frames pass and drops long ones: the MTU of a network card or of a switch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from mxwire.analysis.conversations import CapturedMessage
from mxwire.analysis.diagnosis.facts import Facts, about, direction_of, waits_for_another
from mxwire.analysis.diagnosis.finding import KEPT, Finding, Party, evidence, standstill, weighed
from mxwire.analysis.diagnosis.registry import Diagnosis, Examiner, examines
from mxwire.analysis.first_keys import FirstKeys
from mxwire.ethernet import HEADER_SIZE, mac_text
from mxwire.wire.dialect import MEDIUM_DATA_OFFSET, MXOE, PULL_REPLY_DATA_OFFSET, Dialect
from mxwire.words import count_of

MTU: Final = Diagnosis("mtu-too-small", "path")

_KEPT: Final = 16
_REPEATS: Final = 2
_OFTEN: Final = 4
"""Number of transmissions of which at least one arrives if the network loses frames only occasionally."""
_PATIENT: Final = 20
"""Number of transmissions after which a silent sender has probably abandoned its partner, not restarted."""
_WINDOW: Final = 4
"""Number of blocks that are requested before the first one is complete (R-PUL-02)."""
_IP_AND_ICMP: Final = 28


@dataclass
class _PathLengths:
    """Lengths of messages that passed from one host to another, and the messages that did not."""

    fragment: int = 0
    """Length of the longest acknowledged MEDIUM message, in bytes; one longer than a fragment counts as a fragment."""
    piece: int = 0
    """Longest fragment, in bytes, of acknowledged MEDIUMs whose sender may choose the fragment size (R-MED-02)."""
    pulled: int = 0
    """Length of the longest large message that was received, in bytes."""
    short_ns: int = 0
    """Time at which the last short message was acknowledged."""
    hung: list[CapturedMessage] = field(default_factory=list)
    behind: list[CapturedMessage] = field(default_factory=list)
    """Messages captured many times, after a message that was never captured."""


@examines(MTU)
class PathExaminer(Examiner):
    """Comparison of the lengths of frames that arrive with those of frames that do not."""

    def __init__(self) -> None:
        self._directions: FirstKeys[tuple[int, int], _PathLengths] = FirstKeys(KEPT, _PathLengths)

    def any_message(self, message: CapturedMessage, facts: Facts) -> None:
        """Note the length of a message, and whether it arrived."""
        direction = self._directions[message.flow.address, message.flow.back.address]
        length = message.length or 0
        if message.ack is None and message.transmissions > _OFTEN and waits_for_another(message):
            _keep(direction.behind, message)
        if message.pull is not None:
            if message.receiver in ("received", "truncated") and message.pull.replies:
                direction.pulled = max(direction.pulled, length)
            elif _never_begins(message):
                _keep(direction.hung, message)
        elif message.ack is not None:
            if message.kind == "MEDIUM":
                direction.fragment = max(direction.fragment, length)
                direction.piece = max(direction.piece, _piece(message))
            else:
                direction.short_ns = max(direction.short_ns, message.ack.time_ns)
        elif message.kind == "MEDIUM" and message.retransmissions >= _REPEATS and not _is_excused(message):
            _keep(direction.hung, message)

    def findings(self, facts: Facts) -> Iterator[Finding]:
        """Yield a finding per pair of hosts between which messages beyond a length never complete."""
        dialects = facts.dialects()
        for (source, destination), direction in self._directions.items():
            dialect = dialects.get((min(source, destination), max(source, destination)), MXOE)
            medium = direction.piece if dialect is MXOE else direction.fragment
            passed = max(_fragment(medium, dialect), _reply(direction.pulled, dialect))
            hung = [each for each in direction.hung if _longest(each, dialect) > passed and _is_heard(each, facts)]
            if hung:
                yield _finding(facts, source, destination, direction, hung, dialect, passed)
            elif direction.behind:
                yield _vanished(source, destination, direction.behind, dialect)


def _keep(kept: list[CapturedMessage], message: CapturedMessage) -> None:
    if len(kept) < _KEPT:
        kept.append(message)


def _is_excused(message: CapturedMessage) -> bool:
    """Return whether a refusal, or a restart of one side, explains that a message was not acknowledged."""
    restarted = message.abandoned_ns is not None and message.transmissions < _PATIENT
    return message.nack is not None or restarted


def _never_begins(message: CapturedMessage) -> bool:
    """Return whether a large message is pulled repeatedly and not even its first block is ever complete."""
    pull = message.pulled
    return (
        len(pull.timed_out) >= _REPEATS
        and pull.requested_blocks <= _WINDOW
        and pull.refusal is None
        and (pull.notice is None or message.receiver == "failed")
    )


def _is_heard(message: CapturedMessage, facts: Facts) -> bool:
    """Return whether the receiver stayed alive: it sent a frame after a retransmission of the message."""
    if message.pull is not None:
        # A receiver that pulls is alive and has received the announcement, so only the data is missing.
        return message.ack is not None or message.pull.pulls > 0
    last = facts.libraries.last_ns(direction_of(message.flow.back))
    return last is not None and bool(message.resends) and last > message.resends[0].time_ns


def _piece(message: CapturedMessage) -> int:
    """Return the longest fragment of a MEDIUM in bytes, from their number, if their size is a power of two."""
    length, count = message.length or 0, message.fragments.bit_count()
    return length if count < 2 else 1 << (-(-length // count) - 1).bit_length()


def _fragment(length: int, dialect: Dialect) -> int:
    """Return the length of the longest frame of a MEDIUM, in bytes."""
    return min(length, dialect.fragment_payload) + MEDIUM_DATA_OFFSET if length else 0


def _reply(length: int, dialect: Dialect) -> int:
    """Return the length of the longest PULL_REPLY of a large message, in bytes."""
    return min(length, dialect.reply_payload) + PULL_REPLY_DATA_OFFSET if length else 0


def _longest(message: CapturedMessage, dialect: Dialect) -> int:
    if message.pull is not None:
        return _reply(message.length or message.pull.requested or 0, dialect)
    return _fragment(_piece(message) if dialect is MXOE else message.length or 0, dialect)


def _finding(
    facts: Facts,
    source: int,
    destination: int,
    direction: _PathLengths,
    hung: list[CapturedMessage],
    dialect: Dialect,
    passed: int,
) -> Finding:
    shortest = min(_longest(each, dialect) for each in hung)
    shown = []
    for each in hung[:3]:
        if each.pull is None:
            shown.append(about(each, f"was sent {each.transmissions} times and never acknowledged"))
        else:
            again = each.pull.requests
            frames = [request.frame for request in again]
            text = f"message {each.number}, {each.length} bytes: its first blocks were re-requested"
            shown.append(evidence(f"{text} {count_of(each.pull.re_requests, 'time')}", frames, again[0].time_ns))
    shorter = f"frames of up to {passed} bytes" if passed else "short messages"
    begun = min(each.first_ns for each in hung)
    alive = direction.short_ns > begun
    often = max(each.transmissions for each in hung)
    last = max((facts.libraries.last_ns(direction_of(each.flow.back)) or 0 for each in hung), default=0)
    if often >= _OFTEN and last > begun:
        shown.append(evidence(f"{mac_text(destination)} was alive at that time, and kept sending", (), last))
    if alive:
        shown.append(
            evidence("short messages between the same hosts were acknowledged at the same time", (), direction.short_ns)
        )
    elif passed or direction.short_ns:
        shown.append(evidence(f"{shorter} between the same hosts got through"))
    shown = weighed(shown, "sign", len(hung) + alive + (often >= _OFTEN))
    senders = facts.senders()
    doubts = [
        f"the dialect of {mac_text(each)} does not show, and a host of another dialect drops long messages, too"
        for each in (source, destination)
        if each not in senders
    ]
    concerns = Party(source), Party(destination)
    summary = (
        f"from {mac_text(source)} to {mac_text(destination)} {shorter} pass, those of {shortest} bytes and more do not"
    )
    stalled = standstill((each.first_ns, each.last_ns) for each in hung)
    return _advised(MTU.found(concerns, summary, shown, *doubts[:1], stalled_ns=stalled), dialect)


def _vanished(source: int, destination: int, behind: list[CapturedMessage], dialect: Dialect) -> Finding:
    """Report messages captured beyond the point that drops long frames: they wait for messages that never arrive."""
    concerns = Party(source), Party(destination)
    summary = f"from {mac_text(source)} to {mac_text(destination)} some messages never arrive here, and shorter ones do"
    shown = [
        about(each, f"arrived {each.transmissions} times; it waits for a preceding message that never arrived")
        for each in behind[:3]
    ]
    stalled = standstill((each.first_ns, each.last_ns) for each in behind)
    return _advised(MTU.found(concerns, summary, weighed(shown, "sign"), stalled_ns=stalled), dialect)


def _advised(made: Finding, dialect: Dialect) -> Finding:
    """Return the finding with the lengths that its advice needs."""
    needed = dialect.frame_limit - HEADER_SIZE
    advice = tuple(each.format(mtu=needed, ping=needed - _IP_AND_ICMP) for each in made.advice)
    return replace(made, advice=advice)
