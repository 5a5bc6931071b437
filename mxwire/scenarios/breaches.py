"""The rules that the host under test breaks in any frame, beside the expectations of the scenario.

Scenarios deliberately send frames that break a rule; the answers of the host to such frames are excused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mxwire.ethernet import SOURCE
from mxwire.rules import SENDERS, Judge, Violation
from mxwire.scenarios.outcome import ScenarioOutcome
from mxwire.wire import packets
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NUMBER_MASK

_LIVE: Final = replace(SENDERS, clock_ns=10_000_000)
"""Vantage of live runs: received frames have their arrival times, transmitted frames a time before transmission."""
Subject = tuple[Any, ...]
"""A key shared by a request and its answer, for example a conversation or a region."""

_NUMBERED: Final = packets.Tiny | packets.Small | packets.Medium | packets.Rndv | packets.Notify
_ACKNOWLEDGING: Final = frozenset({"R-ACK-01", "R-ACK-03"})
"""Rules on the number in an acknowledgement."""
_HALF: Final = 0x2000


def breaches(outcome: ScenarioOutcome, dialect: Dialect) -> list[Violation]:
    """Return the rules that the host breaks, whatever the subject of the scenario.

    Known defects of real hosts are left out, and so are answers to the tester's own breaches: the judge examines the
    tester's frames too, and a frame that breaks a rule excuses the answers to it
    (:class:`Provocations`).
    """
    judge, codec = Judge(dialect, SENDERS if outcome.profile else _LIVE), codec_of(dialect)
    frames, found = outcome.frames, []
    hosts = {frames.frame(place)[SOURCE] for place in range(len(frames)) if not outcome.sent[place]}
    provocations = Provocations(hosts)
    for place in range(len(frames)):
        raw = frames.frame(place)
        frame = codec.parse(raw)
        violations = judge.observe(int(frames.timestamp_ns[place]), frame, raw, int(frames.number[place]))
        if outcome.sent[place]:
            provocations.sent(frame, proper=all(each.severity == "note" for each in violations))
            continue
        found += [
            each
            for each in violations
            if each.severity != "note" and each.host == raw[SOURCE] and not provocations.excuse(frame, each.rule)
        ]
        provocations.heard(frame)
    return found


class Provocations:
    """Follows both sides of a run; frames must be given in order.

    ``hosts`` are the Ethernet addresses of the host under test. A conversation is identified by the numbers of its
    endpoints alone, because a host may attribute a frame to the wrong source address (D-6).
    """

    def __init__(self, hosts: set[bytes]) -> None:
        self._hosts = hosts
        self._subjects: set[Subject] = set()
        self._messages: dict[Subject, set[int]] = {}
        """Sequence numbers of improper messages, by conversation."""
        self._regions: dict[int, Subject] = {}
        """The region that each pull of the host reads, by its handle."""

    def sent(self, frame: packets.Frame | Malformed, *, proper: bool) -> None:
        """Record a frame of the tester; ``proper`` if it breaks no rule."""
        if isinstance(frame, Malformed):
            return
        if proper and frame.dst_mac in self._hosts and frame.src_mac not in self._hosts:
            if isinstance(frame, packets.HostQuery):
                # The replies that follow answer this proper query, so they are judged.
                self._subjects.discard(("name", frame.src_mac))
            return
        self._subjects.update(self._provoked_by(frame))
        if isinstance(frame, _NUMBERED):
            between = (frame.dst_endpoint, frame.src_endpoint)
            self._messages.setdefault(between, set()).add(frame.lib_seqnum & NUMBER_MASK)

    def heard(self, frame: packets.Frame | Malformed) -> None:
        """Record a frame of the host."""
        if isinstance(frame, packets.Pull):
            self._regions[frame.src_pull_handle] = _region(frame)

    def excuse(self, frame: packets.Frame | Malformed, rule: str) -> bool:
        """Return True if a frame of the host that breaks ``rule`` answers an improper frame of the tester."""
        if isinstance(frame, Malformed):
            return False
        return bool(self._subjects.intersection(_subjects(frame))) or self._acknowledges(frame, rule)

    def _provoked_by(self, frame: packets.Frame) -> Iterator[Subject]:
        """Return the subjects of the answers that an improper frame may provoke."""
        match frame:
            case packets.HostQuery() | packets.HostReply():
                yield "name", frame.src_mac
            case packets.Pull():
                yield "served", frame.src_pull_handle, frame.src_magic
            case packets.PullReply() | packets.NackMcp():
                handle = frame.dst_pull_handle if isinstance(frame, packets.PullReply) else frame.src_pull_handle
                yield "pulled", handle
                if handle in self._regions:
                    yield self._regions[handle]
            case packets.ConnectRequest() | packets.ConnectReply():
                # Either may reset the host's state of its partner.
                yield "reset", frame.dst_endpoint, frame.src_endpoint
            case packets.Truc() | packets.NackLib():
                yield "resent", frame.dst_endpoint, frame.src_endpoint
            case packets.Tiny() | packets.Small() | packets.Medium() | packets.Rndv() | packets.Notify():
                between = (frame.dst_endpoint, frame.src_endpoint)
                yield "nacked", *between, frame.lib_seqnum
                if isinstance(frame, packets.Rndv):
                    yield "region", frame.pulled_rdma_id, frame.pulled_rdma_seqnum

    def _acknowledges(self, frame: packets.Frame, rule: str) -> bool:
        """Return whether ``rule`` is about the acknowledgement in a frame that covers an improper message."""
        if not isinstance(frame, _NUMBERED | packets.Truc) or rule not in _ACKNOWLEDGING:
            return False
        ack = frame.liback_lib_seqnum if isinstance(frame, packets.Truc) else frame.lib_piggyack
        # The host answers in the other direction, hence the swapped endpoints.
        numbers = self._messages.get((frame.src_endpoint, frame.dst_endpoint), ())
        return any(0 < (ack - each) & NUMBER_MASK < _HALF for each in numbers)


def _region(frame: packets.Pull | packets.Notify) -> Subject:
    return "region", frame.pulled_rdma_id, frame.pulled_rdma_seqnum


def _subjects(frame: packets.Frame) -> Iterator[Subject]:
    """Return the subjects of a frame of the host."""
    if hasattr(frame, "dst_endpoint") and hasattr(frame, "src_endpoint"):
        yield "reset", frame.src_endpoint, frame.dst_endpoint
    match frame:
        case packets.HostQuery() | packets.HostReply():
            yield "name", frame.dst_mac
        case packets.PullReply():
            yield "served", frame.dst_pull_handle, frame.dst_magic
        case packets.NackMcp():
            yield "served", frame.src_pull_handle, frame.src_magic
        case packets.NackLib():
            yield "nacked", frame.src_endpoint, frame.dst_endpoint, frame.lib_seqnum
        case packets.Pull():
            yield "pulled", frame.src_pull_handle
            yield _region(frame)
        case packets.Tiny() | packets.Small() | packets.Medium() | packets.Rndv() | packets.Notify():
            yield "resent", frame.src_endpoint, frame.dst_endpoint
            if isinstance(frame, packets.Notify):
                yield _region(frame)
