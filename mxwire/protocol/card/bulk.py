"""Reception by the card: batches are split into runs, and runs of bulk packets are handled by columns.

PULLs and PULL_REPLYs come in runs. Their headers are read as columns, and their data is copied once. The fragments of a
MEDIUM are too few for that: one by one they take a fifth of the time. The effect on the state is that of the scalar
path (:meth:`HostInterface.take`), which also handles every run that contains anything unusual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.frames import FrameBatch
from mxwire.protocol.card.interface import HostInterface
from mxwire.protocol.card.pull import PullReplyRun
from mxwire.protocol.counters import Counter
from mxwire.wire.enums import PacketType
from mxwire.wire.formats import PULL_REPLY
from mxwire.wire.layout import TYPE_OFFSET, Layout, header_type, layout_of
from mxwire.wire.numbers import PULL_MAGIC

SHORTEST_RUN: Final = 4
"""Minimum number of frames per run that is taken as a whole; shorter runs are cheaper one frame at a time."""
_FEW_PULLS: Final = 2
"""Two PULLs are already cheaper together, since their replies are built together."""

_PULL: Final = int(PacketType.PULL)
_ETHERTYPE_OFFSET: Final = layout_of(PULL_REPLY).by_name["ethertype"].offset
_ETHERTYPE: Final = ETHERTYPE_MXOE.to_bytes(2, "big")
_KIND_OFFSETS: Final = np.array([_ETHERTYPE_OFFSET, _ETHERTYPE_OFFSET + 1, TYPE_OFFSET])
Taker = Callable[[HostInterface, "FrameRun", int], None]


@dataclass(frozen=True, slots=True)
class FrameRun:
    """Consecutive frames of a batch that are handled alike."""

    batch: FrameBatch
    starts: list[int]
    lengths: list[int]
    bulk: Taker | None
    """The function that takes the whole run; None: one frame at a time."""


def receive(interface: HostInterface, batch: FrameBatch, now: int) -> None:
    """Take the frames of a batch in order."""
    for run in runs(batch):
        if run.bulk is not None:
            run.bulk(interface, run, now)
        else:
            _one_by_one(interface, run, now)


def runs(batch: FrameBatch) -> Iterator[FrameRun]:
    """Split a batch into runs."""
    starts, lengths = batch.offset.tolist(), batch.length.tolist()
    if len(starts) < SHORTEST_RUN and not _few_pulls(batch, starts, lengths):
        yield FrameRun(batch, starts, lengths, None)
        return
    # A frame that ends before its packet type has no column for it.
    if min(lengths) <= TYPE_OFFSET:
        yield FrameRun(batch, starts, lengths, None)
        return
    kinds = batch.buffer[batch.offset[:, None] + _KIND_OFFSETS]
    if (kinds == kinds[0]).all():
        yield FrameRun(batch, starts, lengths, _TAKERS.get(kinds[0].tobytes()))
        return
    first = 0
    for taker, group in groupby(_TAKERS.get(each.tobytes()) for each in kinds):
        end = first + sum(1 for _ in group)
        enough = end - first >= (_FEW_PULLS if taker is pulls else SHORTEST_RUN)
        yield FrameRun(batch, starts[first:end], lengths[first:end], taker if enough else None)
        first = end


def _few_pulls(batch: FrameBatch, starts: list[int], lengths: list[int]) -> bool:
    """Return whether a short batch begins with two PULLs, which are worth taking together."""
    return bool(
        len(starts) >= _FEW_PULLS
        and min(lengths) > TYPE_OFFSET
        and batch.buffer[starts[0] + TYPE_OFFSET] == _PULL
        and batch.buffer[starts[1] + TYPE_OFFSET] == _PULL
    )


def _headers(run: FrameRun, layout: Layout) -> NDArray[np.void] | None:
    """The headers of a run as an array, or None if a frame is shorter than the header."""
    if min(run.lengths) < layout.header_end:
        return None
    starts = run.starts
    count, gap = len(starts), starts[1] - starts[0]
    if gap > 0 and starts == list(range(starts[0], starts[0] + count * gap, gap)):
        # Evenly spaced, as in the ring of a link or in frames built together: a view, not a copy.
        return np.ndarray((count,), header_type(layout), run.batch.buffer, starts[0], (gap,))
    rows = np.array(starts)[:, None] + np.arange(layout.header_end)
    return run.batch.buffer[rows].view(header_type(layout)).reshape(count)


def _all_for_us(interface: HostInterface, headers: NDArray[np.void]) -> bool:
    if interface.promiscuous:
        return True
    addresses = headers["dst_mac"]
    return bool((addresses == np.frombuffer(interface.address, np.uint8)).all())


def _one_by_one(interface: HostInterface, run: FrameRun, now: int) -> None:
    data = run.batch.buffer.data
    for start, length in zip(run.starts, run.lengths, strict=True):
        interface.take(bytes(data[start : start + length]), now)


def pull_replies(interface: HostInterface, run: FrameRun, now: int) -> None:
    """Take a run of PULL_REPLYs; their data is copied once, into the application's memory."""
    layout = layout_of(PULL_REPLY)
    headers = _headers(run, layout)
    if headers is None or not _all_for_us(interface, headers):
        _one_by_one(interface, run, now)
        return
    interface.counters[Counter.RECV_PULL_REPLY] += len(headers)
    handles, magics = headers["dst_pull_handle"], headers["dst_magic"]
    lengths = headers["frame_length"].tolist()
    sequences = headers["frame_seqnum"].tolist()
    offsets = headers["msg_offset"].tolist()
    starts = [each + layout.header_end for each in run.starts]
    sources = headers["src_mac"]
    changes = (handles[1:] != handles[:-1]) | (magics[1:] != magics[:-1]) | (sources[1:] != sources[:-1]).any(axis=1)
    fits = [True]
    # Only then can a frame announce more data than it has; the usual run needs no test per frame.
    if max(lengths) > min(run.lengths) - layout.header_end:
        fits = [length <= size - layout.header_end for length, size in zip(lengths, run.lengths, strict=True)]
        changes |= np.array([one != other for one, other in pairwise(fits)])
    for first, end in pairwise([0, *(np.flatnonzero(changes) + 1).tolist(), len(headers)]):
        # ``fits`` has one entry for all frames, or one per frame.
        which = int(handles[first]), int(magics[first]), sources[first].tobytes(), fits[first % len(fits)]
        part = PullReplyRun(
            sequences[first:end], offsets[first:end], lengths[first:end], starts[first:end], run.batch.buffer
        )
        _pull_replies(interface, which, part, now)


def _pull_replies(interface: HostInterface, which: tuple[int, int, bytes, bool], part: PullReplyRun, now: int) -> None:
    """Pass replies with the same handle, magic and source to their pull."""
    handle, magic, source, fits = which
    count = len(part.sequences)
    endpoint = interface.endpoints.get((magic ^ PULL_MAGIC) & 0xFF)
    pull = interface.pull_of(endpoint, handle, source) if endpoint is not None else None
    if not fits:
        interface.counters[Counter.DROP_BAD_FRAME_LENGTH] += count
    elif endpoint is None:
        interface.counters[Counter.DROP_REPLY_BAD_MAGIC] += count
    elif pull is None:
        interface.counters[Counter.DROP_REPLY_BAD_HANDLE] += count
    else:
        for reason in pull.replies(part, now):
            interface.counters[reason] += 1
        if endpoint.ring.ended.count:
            endpoint.announce()


def pulls(interface: HostInterface, run: FrameRun, now: int) -> None:
    """Take a run of PULLs; PULLs of consecutive blocks are answered together (R-PUL-12)."""
    data = run.batch.buffer.data
    frames = [bytes(data[start : start + length]) for start, length in zip(run.starts, run.lengths, strict=True)]
    interface.take_few(frames, now)


_TAKERS: Final[dict[bytes, Taker]] = {
    _ETHERTYPE + bytes([kind]): taker
    for kind, taker in ((PacketType.PULL, pulls), (PacketType.PULL_REPLY, pull_replies))
}
"""The functions for runs, by EtherType and packet type."""
