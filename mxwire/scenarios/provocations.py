"""Provocations: the frames of a tester that break a rule, and the answers of a host that they excuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mxwire.wire.codec import Malformed
from mxwire.wire.numbers import NUMBER_MASK
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    HostQuery,
    HostReply,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
    Truc,
)

Subject = tuple[Any, ...]
"""What a frame is about, so that a question and its answer have one in common."""

_NUMBERED: Final = Tiny | Small | Medium | Rndv | Notify
_ACKNOWLEDGING: Final = frozenset({"R-ACK-01", "R-ACK-03"})
"""Rules about the number that is acknowledged."""
_HALF: Final = 0x2000


class Provocations:
    """Follow both sides of a run; frames are to be given in their order.

    ``hosts`` are the Ethernet addresses of the host under test. The conversation of two endpoints is known by their
    numbers alone: a host may attribute a frame to another source than its address says (D-6).
    """

    def __init__(self, hosts: set[bytes]) -> None:
        self._hosts = hosts
        self._subjects: set[Subject] = set()
        self._messages: dict[Subject, set[int]] = {}
        """Numbers of improper messages, by conversation."""
        self._regions: dict[int, Subject] = {}
        """The region that each pull of the host reads, by its handle."""

    def sent(self, frame: Frame | Malformed, *, proper: bool) -> None:
        """Note a frame of the tester; ``proper`` if it breaks no rule."""
        if isinstance(frame, Malformed):
            return
        if proper and frame.dst_mac in self._hosts and frame.src_mac not in self._hosts:
            if isinstance(frame, HostQuery):
                self._subjects.discard(("name", frame.src_mac))
            return
        self._subjects.update(self._provoked_by(frame))
        if isinstance(frame, _NUMBERED):
            between = _between(frame.dst_endpoint, frame.src_endpoint)
            self._messages.setdefault(between, set()).add(frame.lib_seqnum & NUMBER_MASK)

    def heard(self, frame: Frame | Malformed) -> None:
        """Note a frame of the host."""
        if isinstance(frame, Pull):
            self._regions[frame.src_pull_handle] = _region(frame)

    def excuse(self, frame: Frame | Malformed, rule: str) -> bool:
        """Return True if a frame of the host that breaks ``rule`` answers a frame with which the tester broke one."""
        if isinstance(frame, Malformed):
            return False
        return bool(self._subjects.intersection(_subjects(frame))) or self._acknowledges(frame, rule)

    def _provoked_by(self, frame: Frame) -> Iterator[Subject]:
        """The subjects of the answers that an improper frame may get."""
        match frame:
            case HostQuery() | HostReply():
                yield "name", frame.src_mac
            case Pull():
                yield "served", frame.src_pull_handle, frame.src_magic
            case PullReply() | NackMcp():
                handle = frame.dst_pull_handle if isinstance(frame, PullReply) else frame.src_pull_handle
                yield "pulled", handle
                if handle in self._regions:
                    yield self._regions[handle]
            case ConnectRequest() | ConnectReply():
                # Either may reset what the host knows of its partner.
                yield "reset", *_between(frame.dst_endpoint, frame.src_endpoint)
            case Truc() | NackLib():
                yield "resent", *_between(frame.dst_endpoint, frame.src_endpoint)
            case Tiny() | Small() | Medium() | Rndv() | Notify():
                between = _between(frame.dst_endpoint, frame.src_endpoint)
                yield "nacked", *between, frame.lib_seqnum
                if isinstance(frame, Rndv):
                    yield "region", frame.pulled_rdma_id, frame.pulled_rdma_seqnum

    def _acknowledges(self, frame: Frame, rule: str) -> bool:
        """Whether the rule is about the acknowledgement in a frame, and that covers an improper message."""
        if not isinstance(frame, _NUMBERED | Truc) or rule not in _ACKNOWLEDGING:
            return False
        ack = frame.liback_lib_seqnum if isinstance(frame, Truc) else frame.lib_piggyack
        numbers = self._messages.get(_between(frame.src_endpoint, frame.dst_endpoint), ())
        return any(0 < (ack - each) & NUMBER_MASK < _HALF for each in numbers)


def _between(host: int, tester: int) -> Subject:
    return host, tester


def _region(frame: Pull | Notify) -> Subject:
    return "region", frame.pulled_rdma_id, frame.pulled_rdma_seqnum


def _subjects(frame: Frame) -> Iterator[Subject]:
    """What a frame of the host is about."""
    if hasattr(frame, "dst_endpoint") and hasattr(frame, "src_endpoint"):
        yield "reset", *_between(frame.src_endpoint, frame.dst_endpoint)
    match frame:
        case HostQuery() | HostReply():
            yield "name", frame.dst_mac
        case PullReply():
            yield "served", frame.dst_pull_handle, frame.dst_magic
        case NackMcp():
            yield "served", frame.src_pull_handle, frame.src_magic
        case NackLib():
            yield "nacked", *_between(frame.src_endpoint, frame.dst_endpoint), frame.lib_seqnum
        case Pull():
            yield "pulled", frame.src_pull_handle
            yield _region(frame)
        case Tiny() | Small() | Medium() | Rndv() | Notify():
            yield "resent", *_between(frame.src_endpoint, frame.dst_endpoint)
            if isinstance(frame, Notify):
                yield _region(frame)
