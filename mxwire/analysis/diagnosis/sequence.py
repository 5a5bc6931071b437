"""Detect reordering of frames that a host sends in a fixed order: replies to a PULL, and fragments of a MEDIUM.

If they pass in another order, they were reordered between that host and the capture (R-MEA-15). PULLs do not count:
a busy host sends those of a transfer in any order. Neither do frames that were transmitted more than once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations.state import RESEND_NS
from mxwire.analysis.verification import WITHIN_NS
from mxwire.wire.checks import Reason
from mxwire.wire.columns import LayoutBlock
from mxwire.wire.decoder import DecodedBatch

CHUNK: Final = 8192
"""Number of rows examined at a time: the cost of sorting per row is lowest for a few thousand."""
TAIL: Final = 2048
"""Number of preceding rows that are examined again with a chunk, since a group may extend across its boundary."""
DIRECTIONS_MAXIMUM: Final = 1 << 12
"""Maximum number of directions between two hosts that are remembered."""
SAMPLES: Final = 4
WAITS: Final = 1 << 14
"""Maximum number of waits that are remembered per direction."""
_PULL: Final = -1
"""Value that stands for the position of the PULL that requests the group."""
_FARTHEST: Final = 32
"""Depth of reordering that is examined, in frames of a block or fragments of a message."""
_LOST_IN_A_ROW: Final = 8
"""Maximum number of consecutive frames that may be lost from one answer but not from another."""
_PLACES: Final = 512
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_NEVER: Final = np.iinfo(np.int64).max

_Rows = NDArray[np.int64]
"""Frames whose order of transmission is known, shape (6, n), in the order of the capture: time and number of the frame;
the codes of its source (upper 32 bits) and destination; the group; for a PULL the transfer, 0 if it makes the group
unusable; and the position within the group."""
_TIME, _NUMBER, _PAIR, _GROUP, _USE, _PLACE = range(6)


@dataclass(frozen=True, slots=True)
class LateFrame:
    """A frame that passed after one that was transmitted later."""

    number: int
    passed_by: int
    """Number of the first frame that passed before it although it was transmitted later."""
    since_ns: int
    """Time at which that frame passed, in nanoseconds."""
    time_ns: int
    """Time at which the late frame passed, in nanoseconds."""


@dataclass(slots=True)
class Disorder:
    """Frames of one direction whose order of transmission is known, and the late ones among them."""

    examined: int = 0
    late: int = 0
    deepest: int = 0
    """Maximum number of frames of a group that passed before a frame transmitted earlier."""
    longest_ns: int = 0
    waits: list[tuple[int, int]] = field(default_factory=list)
    """Periods in which the receiver waited for late frames, as start and end; their number is bounded."""
    samples: list[LateFrame] = field(default_factory=list)

    def add(self, other: Disorder, waits: int = WAITS) -> None:
        """Add other results, such as those of the next chunk, with at most a number of ``waits`` altogether."""
        self.examined += other.examined
        self.late += other.late
        self.deepest = max(self.deepest, other.deepest)
        self.longest_ns = max(self.longest_ns, other.longest_ns)
        self.waits += other.waits[: waits - len(self.waits)]
        self.samples += other.samples[: SAMPLES - len(self.samples)]


class Sequences:
    """Comparison of the order in which frames pass with the order in which they were transmitted."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], Disorder] = {}
        self._answers_first = 0
        self._waiting: list[_Rows] = []
        self._count = 0
        self._tail = np.empty((6, 0), np.int64)
        self._hosts: list[int] = []
        self._known: tuple[dict[tuple[int, int], Disorder], int] | None = None

    def observe(self, decoded: DecodedBatch) -> None:
        """Process a batch."""
        rows = _rows_of(decoded)
        if not rows.size:
            return
        self._known = None
        self._hosts = decoded.hosts.keys
        self._waiting.append(rows)
        self._count += rows.shape[1]
        if self._count >= CHUNK:
            rows = np.concatenate(self._waiting, axis=1)
            end = rows.shape[1] - rows.shape[1] % CHUNK
            for start in range(0, end, CHUNK):
                chunk = rows[:, start : start + CHUNK]
                self._answers_first += self._take(chunk, self._found)
                # Copies here and below, since a view would keep all rows in memory.
                self._tail = chunk[:, -TAIL:].copy()
            self._waiting, self._count = [rows[:, end:].copy()], rows.shape[1] - end

    def disorders(self) -> tuple[dict[tuple[int, int], Disorder], int]:
        """Return disorders by source and destination, and the number of blocks answered before their PULL."""
        if self._known is not None:
            return self._known
        disorders: dict[tuple[int, int], Disorder] = {}
        answers_first = self._answers_first
        if self._count:
            answers_first += self._take(np.concatenate(self._waiting, axis=1), disorders)
        for key, known in self._found.items():
            total = Disorder()
            total.add(known)
            total.add(disorders.pop(key, Disorder()))
            disorders[key] = total
        self._known = disorders, answers_first
        return self._known

    def _take(self, chunk: _Rows, found: dict[tuple[int, int], Disorder]) -> int:
        rows = np.concatenate([self._tail, chunk], axis=1)
        order = _by_group(rows[_GROUP])
        # Rows of the tail were counted with their own chunk.
        rows, new = rows.take(order, axis=1), order >= self._tail.shape[1]
        groups = _ReplyGroups(rows)
        examined = np.flatnonzero(groups.examined & new)
        if len(examined):
            self._count_by_direction(rows, groups, examined, new, found)
        return groups.answers_first(new)

    def _count_by_direction(
        self,
        rows: _Rows,
        groups: _ReplyGroups,
        examined: NDArray[np.intp],
        new: NDArray[np.bool_],
        found: dict[tuple[int, int], Disorder],
    ) -> None:
        late = groups.late(new)
        pair = rows[_PAIR]
        for value, count in _counted(pair[examined]):
            key = self._hosts[value >> 32], self._hosts[value & 0xFFFFFFFF]
            if key not in found and len(found) >= DIRECTIONS_MAXIMUM:
                continue
            known = found.setdefault(key, Disorder())
            known.add(_disorder(rows, late, late.at[pair[late.at] == value], count))


@dataclass(frozen=True, slots=True)
class _LateRows:
    at: NDArray[np.intp]
    """Indexes of the rows of late frames."""
    depth: NDArray[np.int64]
    """Number of frames that overtook the frame, per row."""
    first: NDArray[np.intp]
    """Index of the first of these frames, per row."""


class _ReplyGroups:
    """Rows sorted by group and, within a group, by time of passing; arrays have one value per row."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        count = rows.shape[1]
        group, place, time = rows[_GROUP], rows[_PLACE], rows[_TIME]
        self._place = place
        starts = np.ones(count, np.bool_)
        starts[1:] = group[1:] != group[:-1]
        self._starts = starts
        pulls = place == _PULL
        self._pulls = pulls
        # A PULL, and a pause in which a MEDIUM is retransmitted, begin another run within the group.
        begins = starts | pulls
        begins[1:] |= (rows[_USE][1:] != 0) & (time[1:] - time[:-1] >= RESEND_NS)
        self._begins = np.flatnonzero(begins)
        self._run = np.cumsum(begins) - 1
        # Replies are only examined after the first PULL for their block.
        good = rows[_USE] != 0
        good[pulls] = self._is_first_request()
        self._good = good[self._begins]
        self.examined = np.repeat(self._good, np.diff(self._begins, append=count)) & ~pulls
        self._highest = np.maximum.accumulate(place + self._run * _PLACES) - self._run * _PLACES

    def _is_first_request(self) -> NDArray[np.bool_]:
        """Return, per PULL, whether it is the first request for its block in this transfer."""
        at = np.flatnonzero(self._pulls)
        group, use = self._rows[_GROUP][at], self._rows[_USE][at]
        first = use != 0
        first[1:] &= (group[1:] != group[:-1]) | (use[1:] != use[:-1])
        return np.asarray(first, np.bool_)

    def late(self, new: NDArray[np.bool_]) -> _LateRows:
        """Return the frames that passed after one with a higher position, and were transmitted only once."""
        place, run = self._place, self._run
        at = np.flatnonzero(self.examined & new & (place < self._highest))
        depth, first = np.zeros(len(place), np.int64), np.zeros(len(place), np.intp)
        held = self._held_back(new, depth, first)
        if not len(at):
            return _LateRows(held, depth, first)
        originals = self._originals()
        repeats = np.cumsum(originals != np.arange(len(place)))
        at = at[repeats[at] == repeats[self._begins][run[at]]]
        at = at[~self._is_of_second_answer(at, originals)]
        for distance in range(1, min(2 * _FARTHEST, len(place))):
            before = np.maximum(at - distance, 0)
            near = (run[before] == run[at]) & (at >= distance)
            if not near.any():
                break
            passed = near & (place[before] > place[at]) & ~self._pulls[before]
            depth[at] += passed
            first[at[passed]] = before[passed]
        return _LateRows(np.sort(np.concatenate([at[depth[at] > 0], held])), depth, first)

    def _held_back(self, new: NDArray[np.bool_], depth: NDArray[np.int64], first: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the replies to a first PULL that passed only after their block had been re-requested.

        The replies to the second PULL are in order as well, and repeat the replies to the first. Therefore, if a reply
        passes once before a reply with a lower position and once more after it, its first occurrence answers the first
        PULL.
        """
        place, run, begins = self._place, self._run, self._begins
        drops = np.zeros(len(place), np.bool_)
        drops[:-1] = (run[1:] == run[:-1]) & (place[1:] < place[:-1]) & ~self._pulls[:-1]
        again = ~self._good & self._pulls[begins] & ~self._starts[begins] & (self._rows[_USE][begins] != 0)
        again[1:] &= self._good[:-1]
        again[:1] = False
        found: list[int] = []
        for number in np.unique(run[drops & again[run]]).tolist():
            start = int(begins[number])
            end = int(begins[number + 1]) if number + 1 < len(begins) else len(place)
            drop = start + int(np.flatnonzero(drops[start:end])[0])
            before = slice(int(begins[number - 1]) + 1, start)
            for at in range(start + 1, drop + 1):
                if place[at] in place[before]:
                    # From here the replies answer the second PULL: frames seen for the first time were lost from the
                    # first answer.
                    break
                passed = np.flatnonzero(place[before] > place[at])
                if len(passed) and new[at] and place[at] in place[drop + 1 : end]:
                    found.append(at)
                    depth[at], first[at] = len(passed), before.start + int(passed[0])
        return np.array(found, np.intp)

    def _originals(self) -> NDArray[np.intp]:
        """Return, per row, the first row with the same position in the same run: the row itself if it is unique."""
        key = self._run * _PLACES + self._place + 1
        order = np.argsort(key, kind="stable")
        starts = np.ones(len(key), np.bool_)
        starts[1:] = key[order[1:]] != key[order[:-1]]
        originals = np.empty(len(key), np.intp)
        originals[order] = order[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
        return originals

    def _is_of_second_answer(self, at: NDArray[np.intp], originals: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return whether rows without an earlier original belong to a second answer, caused by a duplicate of the PULL.

        A second answer is in order, too: the rows, which were lost from the first answer, precede rows that were
        not.
        """
        place, run = self._place, self._run
        found, ascending = np.zeros(len(at), np.bool_), np.ones(len(at), np.bool_)
        for distance in range(1, _LOST_IN_A_ROW):
            here, before = (np.minimum(at + each, len(place) - 1) for each in (distance, distance - 1))
            ascending &= (run[here] == run[at]) & (place[here] > place[before])
            found |= ascending & (originals[here] < at)
        return found

    def answers_first(self, new: NDArray[np.bool_]) -> int:
        """Return the number of groups of replies that passed a moment before the first PULL that requests them."""
        at = np.flatnonzero(self._pulls[1:] & ~self._pulls[:-1] & ~self._starts[1:] & new[:-1]) + 1
        if not len(at):
            return 0
        time = self._rows[_TIME]
        first = np.maximum.accumulate(np.where(self._starts, np.arange(len(new)), 0))[at]
        pulls = np.cumsum(self._pulls)
        none_before = pulls[at] - pulls[first] == 1
        near = time[at] - time[first] <= WITHIN_NS
        return int((none_before & near & ~self._pulls[first]).sum())


def _disorder(rows: _Rows, late: _LateRows, at: NDArray[np.intp], examined: int) -> Disorder:
    if not len(at):
        return Disorder(examined)
    time, number = rows[_TIME], rows[_NUMBER]
    came, awaited = time[at], time[late.first[at]]
    order = np.argsort(number[at], kind="stable")
    columns = number[at], number[late.first[at]], awaited, came
    samples = [LateFrame(*values) for values in zip(*(each[order[:SAMPLES]].tolist() for each in columns), strict=True)]
    waits = list(zip(awaited[order].tolist(), came[order].tolist(), strict=True))
    return Disorder(examined, len(at), int(late.depth[at].max()), int((came - awaited).max()), waits, samples)


# From columns to rows

_Chosen = NDArray[np.intp] | slice
"""Selection of frames of a layout block: their places in it, or a slice for all."""
_Sizes = NDArray[np.int64] | np.int64
"""A size of the dialect: one per frame, or the same for all."""


def _counted(values: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return each distinct value with the number of its occurrences; ``values`` must not be empty."""
    if (values == values[0]).all():
        return [(int(values[0]), len(values))]
    distinct, counts = np.unique(values, return_counts=True)
    return list(zip(distinct.tolist(), counts.tolist(), strict=True))


def _by_group(group: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the stable order that sorts rows by ``group``.

    Rows of a group are mostly consecutive, so sorting runs costs much less than sorting rows.
    """
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    order = np.argsort(group[starts], kind="stable")
    lengths = np.diff(starts, append=len(group))[order]
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts[order] - before, lengths) + np.arange(len(group))


def _rows_of(decoded: DecodedBatch) -> _Rows:
    """Return the rows of a batch."""
    batch, assignment = decoded.batch, decoded.assignment
    blocks = list(decoded.columns.of("pull_reply", "pull", "medium"))
    if not blocks:
        return np.empty((6, 0), np.int64)
    rows = np.zeros((6, len(batch)), np.int64)
    rows[_TIME], rows[_NUMBER] = batch.timestamp_ns, batch.number
    rows[_PAIR] = _pair(assignment.source, assignment.destination)
    chosen = np.zeros(len(batch), np.bool_)
    straddling: list[tuple[_Rows, NDArray[np.intp]]] = []
    for block in blocks:
        good = _where(decoded.columns.reason[block.place] == Reason.NONE)
        place = block.place[good]
        if not len(place):
            continue
        if block.layout.name == "medium":
            _fill_fragments(rows, place, block, good)
        elif block.layout.name == "pull_reply":
            place = _fill_replies(rows, place, block, good, *_sizes(decoded, place))
        else:
            straddling += _fill_pulls(rows, place, block, good, decoded)
        chosen[place] = True
    if not chosen.all():
        rows = rows.take(np.flatnonzero(chosen), axis=1)
    if straddling:
        after = np.cumsum(chosen)[np.concatenate([place for _, place in straddling])]
        rows = np.insert(rows, after, np.concatenate([each for each, _ in straddling], axis=1), axis=1)
    return rows


def _sizes(decoded: DecodedBatch, place: NDArray[np.intp]) -> tuple[_Sizes, _Sizes]:
    """Return the payload of a PULL_REPLY and the frames per block in the dialects of frames."""
    dialects, which = decoded.assignment.dialects, decoded.assignment.which[place]
    if (which == which[0]).all():
        # Use scalars instead of arrays if possible, because NumPy divides by scalars several times as fast.
        dialect = dialects[which[0]]
        return np.int64(dialect.reply_payload), np.int64(dialect.frames_per_block)
    payload = np.array([each.reply_payload for each in dialects])
    return payload[which], np.array([each.frames_per_block for each in dialects])[which]


def _pair(source: NDArray[np.intp], destination: NDArray[np.intp]) -> NDArray[np.int64]:
    return source.astype(np.int64, copy=False) << 32 | destination


def _where(mask: NDArray[np.bool_]) -> _Chosen:
    """Return the places at which a mask is true, as a slice if it is true everywhere, to avoid copying."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def _of(sizes: _Sizes, mask: NDArray[np.bool_]) -> _Sizes:
    return sizes[mask] if isinstance(sizes, np.ndarray) else sizes


def _fill_replies(
    rows: _Rows, place: NDArray[np.intp], block: LayoutBlock, good: _Chosen, payload: _Sizes, per_block: _Sizes
) -> NDArray[np.intp]:
    """Fill the rows of full PULL_REPLYs, and return their places: they confirm the P from which blocks are computed."""
    full = block["frame_length"][good] == payload
    if not full.all():
        good, place = np.arange(len(block))[good][full], place[full]
        payload, per_block = _of(payload, full), _of(per_block, full)
    # Frame k > 0 begins at k x P - r, r < P (behaviour, chapter 14), so that rounding up gives k.
    frame = -(-block["msg_offset"][good].astype(np.int64) // payload)
    number = frame // per_block
    rows[_GROUP, place] = _group(rows[_PAIR, place], block, good, "dst_pull_handle", "dst_magic", number)
    rows[_PLACE, place] = frame - number * per_block
    return place


def _fill_pulls(
    rows: _Rows, place: NDArray[np.intp], block: LayoutBlock, good: _Chosen, decoded: DecodedBatch
) -> list[tuple[_Rows, NDArray[np.intp]]]:
    """Fill the rows of PULLs. Return a second row for each PULL that spans two blocks, and its place."""
    _, per_block = _sizes(decoded, place)
    replies = _pair(decoded.assignment.destination[place], decoded.assignment.source[place])
    index = block["frame_index"][good].astype(np.int64)
    number = index // per_block
    names = "src_pull_handle", "src_magic"
    rows[_GROUP, place] = _group(replies, block, good, *names, number)
    identity = ("session", "total_length", "pulled_rdma_id", "pulled_rdma_seqnum")
    # Odd, since 0 marks a group that cannot be used.
    rows[_USE, place] = _mixed(*(block[each][good] for each in identity)) | 1
    rows[_PLACE, place] = _PULL
    # A host with other block boundaries may request the frames of one block, as defined here, by two PULLs.
    odd = index % per_block != 0
    if not odd.any():
        return []
    rows[_USE, place[odd]] = 0
    more = rows[:, place[odd]]
    more[_GROUP] = _group(replies[odd], block, np.arange(len(block))[good][odd], *names, number[odd] + 1)
    return [(more, place[odd])]


def _fill_fragments(rows: _Rows, place: NDArray[np.intp], block: LayoutBlock, good: _Chosen) -> None:
    names = "src_endpoint", "dst_endpoint", "lib_seqnum", "session", "length", "match_a", "match_b"
    rows[_GROUP, place] = _mixed(rows[_PAIR, place], *(block[each][good] for each in names))
    rows[_USE, place] = 1
    rows[_PLACE, place] = block["frag_seqnum"][good]


def _group(
    pair: NDArray[np.int64], block: LayoutBlock, good: _Chosen, handle: str, magic: str, number: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the value that a PULL and its replies have in common; ``pair`` is the direction of the replies."""
    return _mixed(pair, block.joined(handle, magic)[good], number)


def _mixed(first: NDArray[np.generic], *others: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return a hash of several columns: a polynomial modulo 2^64."""
    mixed = first.astype(np.uint64)
    for each in others:
        mixed *= _MIX
        mixed += each.astype(np.uint64, copy=False)
    return mixed.view(np.int64)
