"""Ordinary handshakes, judged together: both hosts of a conversation connect to each other, and no rule is broken.

With many hosts, their first frames take longer than all further ones: the judge would create a dozen objects for each
conversation. The four CONNECTs of a handshake (a request of each endpoint, and the replies) are therefore compared by
columns, and kept until a frame requires these objects (:class:`~mxwire.rules.plain_run.FlowTable`).

Both hosts must be new, and have no other frame before the last of the four: then all conditions concern these frames
only, as the state before them is empty. They are those of the rules for CONNECTs, simplified: number 0, start 1,
success.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.ethernet import GROUP_BIT
from mxwire.rules.plain_run import OrderedFrames, ends_of, hosts_of

if TYPE_CHECKING:
    from mxwire.rules.judge import Judge
    from mxwire.rules.state.flows import ObservedFlow
    from mxwire.wire.codec import Codec

_FRAMES: Final = 4
_GROUP: Final = np.uint64(GROUP_BIT)
_Integers = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class PlainConnects(OrderedFrames):
    """CONNECTs in order, with number 0, start 1 and success, that break no rule by themselves; shape (n,)."""

    destination: NDArray[np.uint64]
    lane: _Integers
    """A number of source, destination and endpoints (:attr:`~mxwire.rules.plain_run.PlainFrames.lane`)."""
    reverse: _Integers
    """That number of the frames in the other direction."""
    is_reply: NDArray[np.bool_]
    index: _Integers
    """``dst_src_peer_index``"""
    taught: _Integers
    """``src_dst_peer_index``"""
    own: _Integers
    """The session of the sender."""
    copied: _Integers
    """The session that a reply copies from the request; of a request its own."""

    def handshakes(self, frames_of_hosts: NDArray[np.intp]) -> Handshakes:
        """Return the handshakes of hosts that have these four frames only, given the number of frames by host."""
        conversation = np.minimum(self.lane, self.reverse)
        order = np.argsort(conversation, kind="stable")
        begins = np.flatnonzero(np.diff(conversation[order], prepend=-1))
        four = np.diff(begins, append=len(order)) == _FRAMES
        order = order[begins[four][:, None] + np.arange(_FRAMES)]
        # In the order of their first frames.
        order = order[np.argsort(order[:, 0])]
        every = self.part(order)
        conversation = conversation[order[:, 0]]
        side = (every.lane != conversation[:, None]).astype(np.int64)
        role = 2 * side + every.is_reply
        hosts = hosts_of(conversation)
        good = (np.sort(role) == np.arange(_FRAMES)).all(1)
        good &= (frames_of_hosts[hosts] == _FRAMES).all(0) & (hosts[0] != hosts[1])
        good &= (every.destination & _GROUP == 0).all(1)
        # By role: request and reply of side 0, request and reply of side 1.
        at = np.argsort(role)
        own, copied, taught, index = (
            np.take_along_axis(each, at, 1) for each in (every.own, every.copied, every.taught, every.index)
        )
        good &= (at[:, 1] > at[:, 2]) & (at[:, 3] > at[:, 0])
        for request, other in ((0, 2), (2, 0)):
            good &= (own[:, request] == own[:, request + 1]) & (copied[:, request + 1] == own[:, other])
            good &= taught[:, request] == taught[:, request + 1]
            # No frame has taught the sender of the first frame.
            right = index[:, request : request + 2] == taught[:, other, None]
            good &= (right | (at[:, request : request + 2] == 0)).all(1)
        addresses = np.take_along_axis(every.destination, at, 1)
        columns = own, taught, addresses
        values = (each[good][:, [2, 0]] for each in columns)
        frames = (each[good] for each in (every.place, every.time_ns, every.number))
        return Handshakes(conversation[good], hosts[:, good].T, *values, *frames)


@dataclass(slots=True, eq=False)
class Handshakes:
    """Handshakes in order, with four frames each; arrays of shape (n, 2) or (n, 4)."""

    conversation: _Integers
    """The lower of the numbers of the lanes, shape (n,)."""
    hosts: NDArray[np.intp]
    """Codes of the source and the destination of this lane."""
    session: _Integers
    """The session that the frames of each lane name."""
    index: _Integers
    """``dst_src_peer_index`` of the frames of each lane."""
    addresses: NDArray[np.uint64]
    """Addresses of the hosts."""
    place: _Integers
    """Place of each frame in its batch."""
    time_ns: _Integers
    number: _Integers
    raw: list[bytes] = field(default_factory=list)
    """The bytes of all frames."""
    codecs: list[Codec] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of handshakes."""
        return len(self.conversation)

    def part(self, which: NDArray[np.bool_]) -> Handshakes:
        """Return some of the handshakes, before their bytes are set."""
        return Handshakes(*(getattr(self, each.name)[which] for each in fields(self)[:-2]))

    def observe(self, at: int, judge: Judge) -> ObservedFlow:
        """Pass the frames of a handshake to the judge; return the flow of the lower lane."""
        span = slice(_FRAMES * at, _FRAMES * (at + 1))
        columns = self.time_ns[at].tolist(), self.codecs[span], self.raw[span], self.number[at].tolist()
        judge.observe_reserved(
            (time_ns, codec.parse(raw, len(raw)), raw, number)
            for time_ns, codec, raw, number in zip(*columns, strict=True)
        )
        pair = judge.plain_pair(*self.addresses[at].tolist())
        assert pair is not None
        return pair.flows[ends_of(int(self.conversation[at]))]
