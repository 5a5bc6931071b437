"""A stand-in for a real host behind a driver: our own host, with what makes a real one hard to test.

Calls take time, and closing takes longer (R-MEA-20); frames of the time before a scenario arrive when it begins; the
pulls of closed endpoints continue every 1.024 s (R-MEA-21); a nameless peer with the address zero is queried
(R-MEA-22); counters have the names of the real driver, and some are missing.

As a program it is a driver: ``python -m tests.scenarios.stand_in INTERFACE``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from random import Random
from threading import Event, Lock, Thread
from typing import Any, Final

from mxwire.frames import FrameBatch
from mxwire.link import Link, LinkWrapper, PacketLink
from mxwire.protocol import Counter
from mxwire.scenarios.local_host import DrivenHost
from mxwire.scenarios.vocabulary import COUNTERS
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import ConnectReply, ConnectRequest, Frame, HostQuery, Pull, Tiny, Truc
from tests.frames import make_frame

CALL: Final = (0.001, 0.006)
CLOSE: Final = (0.013, 0.05)
"""Seconds that calls take."""
AGAIN: Final = 1.024
"""Seconds after which a pull is repeated."""
UNKNOWN: Final = frozenset({Counter.DROP_INVALID_TYPE, Counter.RECV_RAW, Counter.DROP_BAD_SESSION})
"""Counters that this driver does not report."""
_REAL_NAMES: Final = {name: each.value for name, each in COUNTERS.items() if each not in UNKNOWN}


class _Witness(LinkWrapper):
    """Notes the endpoints and sessions that testers connect with."""

    def __init__(self, link: Link, met: Callable[[Frame], None]) -> None:
        super().__init__(link)
        self._met = met

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        batch = self.link.receive(timeout)
        for place in range(len(batch)):
            frame = codec_of(MXOE).parse(batch.frame(place))
            if isinstance(frame, ConnectRequest | ConnectReply):
                self._met(frame)
        return batch


class StandIn(DrivenHost):
    """Answers a tester's questions; ``open_link`` gives the link of each new host, ``ghost`` sends for former ones."""

    def __init__(
        self,
        open_link: Callable[[], Link],
        ghost: Link,
        profile: str = "open-mx-1.5-as-found",
        *,
        call: tuple[float, float] = CALL,
        seed: int = 0,
    ) -> None:
        super().__init__(lambda: _Witness(open_link(), self._meet), profile)
        self._ghost = ghost
        self._call_takes = call
        self._rng = Random(seed)
        self._lock = Lock()
        self._present: set[tuple[bytes, bytes, int, int]] = set()
        self._past: set[tuple[bytes, bytes, int, int]] = set()
        """Host, tester, endpoint and session of former scenarios."""
        self._over = Event()
        self._haunting = Thread(target=self._haunt, daemon=True)
        self._haunting.start()

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer, after a while, and with what a real host does besides."""
        match question.get("do"):
            case "host":
                with self._lock:
                    self._past |= self._present
                    self._present.clear()
                self._send(self._stale())
            case "call":
                time.sleep(self._rng.uniform(*(CLOSE if question["verb"] in ("close", "reopen") else self._call_takes)))
        found = super().answer(question)
        if question.get("do") == "host":
            # Frames of the former host arrive when the new one is there.
            self._send(self._stale())
        if question.get("do") == "ask" and question["subject"] == "counters":
            known = found["known"]
            return {"known": {real: known[name] for name, real in _REAL_NAMES.items()}}
        return found

    def end(self) -> None:
        """Close the stand-in, and wait for the end of its thread."""
        self.close()
        self._over.set()
        self._haunting.join()
        self._ghost.close()

    def _meet(self, frame: Frame) -> None:
        assert isinstance(frame, ConnectRequest | ConnectReply)
        session = frame.src_session_id if isinstance(frame, ConnectRequest) else frame.target_session_id
        if frame.src_mac == frame.dst_mac:
            return
        with self._lock:
            self._present.add((frame.dst_mac, frame.src_mac, frame.src_endpoint, session))

    def _haunt(self) -> None:
        while not self._over.wait(AGAIN):
            with self._lock:
                past = list(self._past)
            pulls: list[Frame] = [_pull(*each) for each in past]
            hosts = {each[0] for each in past}
            self._send([*pulls, *(_query(each) for each in hosts)])

    def _stale(self) -> list[Frame]:
        """Frames that were under way to the testers of former scenarios."""
        found: list[Frame] = []
        with self._lock:
            past = list(self._past)
        for host, tester, endpoint, session in past:
            head: dict[str, Any] = {
                "dst_mac": tester, "src_mac": host, "dst_endpoint": endpoint, "src_endpoint": 1, "session": session,
            }  # fmt: skip
            found.append(make_frame(Tiny, head, lib_seqnum=9, data=b"stale"))
            found.append(
                make_frame(
                    Truc, head, liback_session_id=session, liback_lib_seqnum=7, liback_send_seq=7, liback_acknum=9
                )
            )
        return found

    def _send(self, frames: list[Frame]) -> None:
        if frames:
            codec = codec_of(self._dialect)
            self._ghost.send(FrameBatch.from_frames([codec.build(each) for each in frames]))


def _query(host: bytes) -> HostQuery:
    return make_frame(HostQuery, dst_mac=bytes(6), src_mac=host, src_dst_peer_index=9)


def _pull(host: bytes, tester: bytes, endpoint: int, session: int) -> Pull:
    return make_frame(
        Pull, dst_mac=tester, src_mac=host, dst_endpoint=endpoint, session=session, total_length=4096, block_length=4096
    )


def main(interface: str) -> None:
    """Answer the questions on standard input until it ends."""
    stand_in = StandIn(lambda: PacketLink.open(interface), PacketLink.open(interface))
    try:
        for line in sys.stdin:
            print(json.dumps(stand_in.answer(json.loads(line))), flush=True)
    finally:
        stand_in.end()


if __name__ == "__main__":
    main(sys.argv[1])
