"""Hearing: what the frames of a peer say while something does not go on, so that the reason can be told."""

from __future__ import annotations

from typing import Final

from mxwire.frames import FrameBatch
from mxwire.host.core import Core
from mxwire.protocol import Peer
from mxwire.protocol.counters import Counter
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import HostQuery

SHORT: Final = 64 + 14
"""Frames up to this length pass everywhere, in bytes with their header."""
ENOUGH: Final = 4096
"""Frames that tell all there is to be told."""
_SURE: Final = 0.8
"""From this confidence on a dialect is taken to be known."""
_STRANGE: Final = (
    Counter.DROP_BAD_DATA_LENGTH,
    Counter.DROP_BAD_FRAME_LENGTH,
    Counter.DROP_PULL_BAD_REPLIES,
    Counter.DROP_PULL_BAD_RANGE,
    Counter.DROP_REPLY_BAD_SEQUENCE,
    Counter.DROP_REPLY_WRAP_AROUND,
)
"""What is counted where two hosts do not mean the same by their frames."""


class Hearing:
    """Listens to all that a host hears and says, from when it is made until it is closed.

    It decodes every frame, and is meant for times when there are few: after ``ENOUGH`` it hears no more.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._left = ENOUGH
        self._decoder = Decoder()
        self._heard: dict[bytes, int] = {}
        self._long_heard: dict[bytes, int] = {}
        self._long_sent: dict[bytes, int] = {}
        with core.section:
            self._before = core.watch
            core.watch = self._watch
            self._strange = strange(core)

    def close(self) -> None:
        """Stop listening."""
        with self._core.section:
            self._core.watch = self._before

    def _watch(self, batch: FrameBatch, sent: bool) -> None:
        if self._before is not None:
            self._before(batch, sent)
        if self._left <= 0:
            return
        self._left -= len(batch)
        if not sent:
            self._decoder.decode(batch)
        columns = 0 if sent else 6
        for start, length in zip(batch.offset.tolist(), batch.length.tolist(), strict=True):
            other = batch.buffer[start + columns : start + columns + 6].tobytes()
            if not sent:
                self._heard[other] = self._heard.get(other, 0) + 1
            if length > SHORT:
                counts = self._long_sent if sent else self._long_heard
                counts[other] = counts.get(other, 0) + 1

    def heard(self, peer: Peer) -> int:
        """How many frames have come from a peer."""
        return self._heard.get(peer.address, 0)

    def long_heard(self, peer: Peer) -> int:
        """How many of them were longer than what passes everywhere."""
        return self._long_heard.get(peer.address, 0)

    def long_sent(self, peer: Peer) -> int:
        """How many such were sent to it."""
        return self._long_sent.get(peer.address, 0)

    def ask(self, peer: Peer) -> None:
        """Ask a peer for its name, which any host answers at once if it lives and knows us (R-HOST-04)."""
        core = self._core
        with core.section:
            for board in core.node.interfaces:
                board.send(
                    Counter.SEND_HOST_QUERY,
                    HostQuery(
                        dst_mac=peer.address,
                        src_mac=board.address,
                        src_dst_peer_index=peer.index,
                        magic=core.node.magic,
                    ),
                )
            core.flush()

    def other_dialect(self, peer: Peer) -> Dialect | None:
        """What a peer speaks, where that is plain and not what we speak; our receiver must have found it strange."""
        ours = self._core.node.dialect
        if strange(self._core) == self._strange:
            return None
        number = int.from_bytes(peer.address, "big")
        for each in self._decoder.detections():
            theirs = each.dialect
            if number in each.hosts and theirs is not None and each.confidence >= _SURE and _differ(ours, theirs):
                return theirs
        return None


def strange(core: Core) -> int:
    """How many frames a host has found that make sense in another dialect only, if at all."""
    return sum(board.counters[each] for board in core.node.interfaces for each in _STRANGE)


def _differ(ours: Dialect, theirs: Dialect) -> bool:
    if ours.family != theirs.family or ours.generation != theirs.generation:
        return True
    return theirs.frame_limit_known and ours.frame_limit != theirs.frame_limit
