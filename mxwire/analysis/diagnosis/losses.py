"""Number of the frames that the network lost, per direction between two hosts.

A capture shows a loss only by its consequences: data that was requested and never passed, and repetitions of frames
that had passed. The numbers are therefore lower bounds: frames that no host repeats (announcements, single acks) may be
lost unnoticed, and a retransmission or a re-request counts as one lost frame, although several may have been lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mxwire.analysis.diagnosis.libraries import SILENCE_NS
from mxwire.wire.dialect import MXOE, Dialect

if TYPE_CHECKING:
    from mxwire.analysis.conversations import CapturedMessage
    from mxwire.analysis.conversations.message import MessagePull, Repeat
    from mxwire.analysis.diagnosis.traffic import HostDirection

Pair = tuple[int, int]
_ACKED_NS: Final = 20_000_000
"""Delay of an ack after a transmission that shows that this transmission arrived."""


@dataclass(frozen=True, slots=True)
class DirectionLoss:
    """Frames lost from one host to another, at least."""

    source: int
    destination: int
    frames: int
    """Number of frames captured."""
    before: int
    """Number of frames that were lost before they could be captured."""
    behind: int
    """Number of captured frames that were lost behind the point of capture."""

    @property
    def lost(self) -> int:
        """Number of lost frames."""
        return self.before + self.behind

    @property
    def sent(self) -> int:
        """Number of frames known to have been sent."""
        return self.frames + self.before

    @property
    def percent(self) -> float:
        """Share of the frames sent that were lost."""
        return 100 * self.lost / self.sent if self.sent else 0.0


def pair_of(message: CapturedMessage) -> Pair:
    """Return the addresses of the sender and the receiver of a message."""
    return message.flow.address, message.flow.back.address


def dialect_of(pair: Pair, dialects: Mapping[Pair, Dialect]) -> Dialect:
    """Return the dialect of a pair in either direction; ``dialects`` has the lower address first."""
    return dialects.get((min(pair), max(pair)), MXOE)


def missing_replies(pull: MessagePull) -> int:
    """Return the number of replies requested but never seen: every valid PULL is answered in full (R-PUL-12)."""
    return 0 if pull.nacks else max(pull.requested_replies - pull.replies, 0)


def block_start(again: Repeat, dialect: Dialect) -> int:
    """Return the offset of the block that was re-requested."""
    return (again.end - 1) // dialect.block_length * dialect.block_length


def losses(
    resent: Iterable[CapturedMessage],
    pulled: Iterable[CapturedMessage],
    traffic: Iterable[tuple[HostDirection, HostDirection]],
    dialects: Mapping[Pair, Dialect],
) -> Iterator[DirectionLoss]:
    """Yield the losses of all directions between hosts that were captured in both.

    ``resent`` and ``pulled`` are the messages that were retransmitted, and those whose data was re-requested, because
    of a loss; ``traffic`` contains the two directions of each pair, ``dialects`` the dialects of pairs, the lower
    address first.
    """
    before: Counter[Pair] = Counter()
    behind: Counter[Pair] = Counter()
    for message in resent:
        pair = pair_of(message)
        for end in filter(None, (_lost_towards(message, pair, place) for place in range(len(message.resends)))):
            behind[end] += 1
    for message in pulled:
        pair = pair_of(message)
        replies, requests, again = _lost_of_pull(message, dialect_of(pair, dialects))
        before[pair] += replies
        behind[pair] += again
        # PULLs go in the direction opposite to the data.
        behind[pair[::-1]] += requests
    for each in (direction for both in traffic for direction in both):
        pair = each.source, each.destination
        yield DirectionLoss(*pair, each.frames, before[pair], behind[pair])


def _lost_towards(message: CapturedMessage, pair: Pair, place: int) -> Pair | None:
    """Return the direction in which the frame was lost that a retransmission replaces: the message, or its ack; None if
    the sender did not wait for the ack, or the receiver was slow.
    """
    again = message.resends[place]
    if again.after_ns < SILENCE_NS or message.ack is None:
        return None
    acked_ns = message.ack.time_ns
    if acked_ns > again.time_ns:
        return pair
    # An ack that passed here soon after the transmission before, and did not arrive, was lost behind this point.
    return pair[::-1] if acked_ns <= again.time_ns - again.after_ns + _ACKED_NS else None


def _lost_of_pull(message: CapturedMessage, dialect: Dialect) -> tuple[int, int, int]:
    """Return the number of replies that were requested and never passed, of PULLs that passed without any reply, and of
    re-requests of data that had passed.
    """
    pull = message.pulled
    replies = missing_replies(pull)
    requests = again = 0
    for each in pull.requests:
        if each.missing >= each.end - block_start(each, dialect) and replies:
            # The PULL was lost, and not each of the replies to it.
            replies -= min(replies, -(-each.missing // dialect.reply_payload))
            requests += 1
        elif not each.missing and (each.cause == "timer" or not each.explained):
            again += 1
    return replies, requests, again
