"""Hearing: what the frames of a peer say while something does not go on, so that the reason can be told."""

from __future__ import annotations

import time
from typing import Final

from mxwire.frames import FrameBatch
from mxwire.host.core import Core
from mxwire.host.opening import longest_frame
from mxwire.host.watcher import Watcher
from mxwire.protocol import Peer
from mxwire.protocol.counters import Counter
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import HostQuery

SHORT: Final = 64 + 14
"""Frames up to this length pass everywhere, in bytes with their header."""
ENOUGH: Final = 1024
"""Frames that tell all there is to be told."""
LISTEN_AGAIN: Final = 30.0
"""Seconds after which as many frames are looked at again for strangers."""
_SURE: Final = 0.8
"""From this confidence on a dialect is taken to be known."""
_ADVICE: Final = "start both with the same --dialect"


class Hearing(Watcher):
    """Listens to all that a host hears and says, from when it is made until it is closed.

    It decodes every frame, and is meant for times when there are few: after ``ENOUGH`` it hears no more.
    """

    def __init__(self, core: Core) -> None:
        self._left = ENOUGH
        self._decoder = Decoder()
        self._heard: dict[bytes, int] = {}
        self._longest: dict[bytes, int] = {}
        self._long_heard: dict[bytes, int] = {}
        self._long_sent: dict[bytes, int] = {}
        super().__init__(core)

    def _watch(self, batch: FrameBatch, sent: bool) -> None:
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
                self._longest[other] = max(self._longest.get(other, 0), length)
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

    def disagreement(self, peer: Peer) -> str | None:
        """What to say of a peer that plainly does not speak what we do."""
        ours = self._core.node.dialect
        number = int.from_bytes(peer.address, "big")
        for each in self._decoder.detections():
            theirs = each.dialect
            if number in each.hosts and theirs is not None and each.confidence >= _SURE and _differ(ours, theirs):
                return f"speaks dialect {theirs}, and we speak {ours}: {_ADVICE}"
        longest = self._longest.get(peer.address, 0)
        if longest > longest_frame(ours):
            most = longest_frame(ours)
            return f"sends frames of {longest} bytes, and our dialect {ours} has none of more than {most}: {_ADVICE}"
        return None


class Strangers:
    """Hosts that speak another dialect than we do: looked for in some of the frames of every half minute."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._hearing = Hearing(core)
        self._again = time.monotonic() + LISTEN_AGAIN
        self._known: set[bytes] = set()

    def found(self) -> list[str]:
        """What is new of them, in words; to be asked now and then."""
        now = time.monotonic()
        texts = self._newly(self._hearing)
        if now >= self._again:
            self.close()
            self._hearing = Hearing(self._core)
            self._again = now + LISTEN_AGAIN
        return texts

    def _newly(self, hearing: Hearing) -> list[str]:
        texts = []
        for peer in self._core.node.peers:
            text = None if peer.address in self._known or peer.own is not None else hearing.disagreement(peer)
            if text is not None:
                self._known.add(peer.address)
                texts.append(f"{peer.name or peer.address.hex(':')} {text}")
        return texts

    def close(self) -> None:
        """Stop listening."""
        self._hearing.close()


def _differ(ours: Dialect, theirs: Dialect) -> bool:
    if ours.family != theirs.family or ours.generation != theirs.generation:
        return True
    return theirs.frame_limit_known and ours.frame_limit != theirs.frame_limit
