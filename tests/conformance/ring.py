"""The times at which the real library read the frames in its ring, as its acks show them.

No frame shows these times, but they determine which frames one ack covers. The library of the node reads a frame at the
time of the first frame that acknowledges or answers it, together with all others that this one acknowledges, so that
acks are merged as on the real host. A packet whose ack is delayed is read when it arrives, or just after the last frame
that does not acknowledge it yet; so the time of that ack can be checked.
"""

from __future__ import annotations

from collections.abc import Iterable

from mxwire.protocol import Profile
from mxwire.protocol.library.reliability import distance
from mxwire.replay.stateful.records import FOR_LIBRARY, NUMBERED, Record, acked_by, covers
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import ConnectReply, Notify, Pull, Rndv, Truc


class Looks:
    """The conclusions from the acks of one host."""

    def __init__(self, records: list[Record], dialect: Dialect, profile: Profile) -> None:
        self.dialect = dialect
        self.profile = profile
        self.after: dict[int, int] = {}
        """For the frames whose ack was delayed: the frame of the node after which they were read, or 0 if they were
        read on arrival."""
        self.held: dict[int, int] = {}
        """Duplicates that were read only when they were answered, with the answer's frame."""
        self._groups: dict[tuple[int, int], dict[int, tuple[Record, int]]] = {}
        """Unacknowledged frames per pair of endpoints, each with the last frame that did not acknowledge it."""
        self._told: dict[tuple[int, int], int] = {}
        """The last acknowledged position."""
        self._duplicates: set[int] = set()
        self._again: dict[int, Record] = {}
        self._pulled: set[int] = set()
        """RNDVs that a PULL followed from, which is better evidence than an ack."""
        for record in records:
            if isinstance(record.frame, FOR_LIBRARY):
                self._read(record)
            elif record.is_played and record.news and isinstance(record.frame, Pull):
                self._pulls(record.frame)

    def _read(self, record: Record) -> None:
        frame = record.frame
        here, there = frame.src_endpoint, frame.dst_endpoint
        pair = (here, there) if record.is_played else (there, here)
        if not record.is_played:
            if isinstance(frame, NUMBERED):
                self._arrives(record, pair)
        elif isinstance(frame, ConnectReply):
            self._told.pop(pair, None)
        elif acked_by(frame) is not None:
            self._acknowledges(record, pair)

    def _arrives(self, record: Record, pair: tuple[int, int]) -> None:
        self._groups.setdefault(pair, {})[record.number] = record, 0
        if not record.news:
            self._again[record.number] = record
        if pair in self._told and covers(self._told[pair], record.frame.lib_seqnum):
            self._duplicates.add(record.number)

    def _acknowledges(self, record: Record, pair: tuple[int, int]) -> None:
        frame, value = record.frame, acked_by(record.frame)
        assert value is not None
        alone = isinstance(frame, Truc)
        if alone and self._told.get(pair) == value:
            self._answers_duplicate(record)
        self._told[pair] = value
        group = self._groups.get(pair, {})
        covered = {number: each for number, each in group.items() if covers(value, each[0].frame.lib_seqnum)}
        if alone and not self._duplicates & covered.keys() and self._may_wait(each for each, _ in covered.values()):
            shown = {number: after for number, (_, after) in covered.items() if number not in self._pulled}
            self.after.update(shown)
        left = group.keys() - covered.keys()
        self._groups[pair] = {number: (group[number][0], record.number) for number in group if number in left}

    def _pulls(self, pull: Pull) -> None:
        region = pull.pulled_rdma_id, pull.pulled_rdma_seqnum
        for number, (each, _) in self._groups.get((pull.src_endpoint, pull.dst_endpoint), {}).items():
            frame = each.frame
            if isinstance(frame, Rndv) and (frame.pulled_rdma_id, frame.pulled_rdma_seqnum) == region:
                self._pulled.add(number)

    def _answers_duplicate(self, answer: Record) -> None:
        """An ack without news answers a duplicate of the number before it (R-ORD-03)."""
        for number, each in reversed(self._again.items()):
            if distance(answer.frame.liback_lib_seqnum, each.frame.lib_seqnum) == 1 and number not in self.held:
                self.held[number] = answer.number
                return

    def _may_wait(self, covered: Iterable[Record]) -> bool:
        """Return whether the ack of these frames is delayed: few numbers, and no NOTIFY in `mxoe`."""
        frames = [each.frame for each in covered]
        hurried = self.dialect.family == "mxoe" and any(type(each) is Notify for each in frames)
        return not hurried and len({each.lib_seqnum for each in frames}) < self.profile.ack_threshold
