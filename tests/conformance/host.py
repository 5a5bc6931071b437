"""The host under test: a :class:`Node` in the state that the real host had when a frame was sent to it.

The state is reached as it was on the real host, by calls and frames. :class:`Host` has the clock, and plays the other
hosts where they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np

from mxwire.frames import FrameBatch
from mxwire.protocol import EngineEndpoint, Node, Profile
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    HostQuery,
    HostReply,
    NackMcp,
    PullReply,
    Rndv,
    Truc,
)
from tests.conformance.verdicts import Verdict

ADDRESS = bytes.fromhex("5254000a00aa")
PARTNER = bytes.fromhex("020000000099")
TAUGHT = {PARTNER: 7, bytes.fromhex("020000000098"): 9, bytes.fromhex("020000000097"): 0xFFFF}
"""The name of the host under test in the tables of the other hosts; the last has never announced it."""
KEY = 0x12345678
REMOTE = 21
"""The partner's endpoint in the states where there is a connection."""
REMOTE_SESSION = 0x0A0B0C00
"""Its session, to which the number of the local endpoint is added."""
PAUSE = 17_000_000
"""Time between two frames in ns: more than an ack may wait, much less than any other timer."""
SESSIONS = {"mxoe": (0x07521C2D, 0x0E15D35D), "omx9000": (0x044AEF5C, 0xA4BE471F), "omx1500": (0x4D3D5BE1, 0x8E1419D6)}
"""Sessions of endpoints 3 and 5 in state `idle`."""
LONG = 3 << 20
"""Length in bytes of a receive that accepts every message."""
RECEIVES = 100
"""Receives that wait in the states where there is a connection: enough for all messages."""


def pattern(seed: int, length: int) -> bytes:
    """Byte i is (seed + 7 i + (i >> 8)) modulo 256."""
    places = np.arange(length, dtype=np.int64)
    return ((seed + 7 * places + (places >> 8)) & 0xFF).astype(np.uint8).tobytes()


@dataclass
class Outcome:
    """The fate of one frame."""

    counters: dict[str, int]
    replies: tuple[bytes, ...]


class Host:
    """The host under test and its clock."""

    def __init__(self, dialect: Dialect, profile: Profile) -> None:
        self.dialect = dialect
        self.codec = codec_of(dialect)
        peers = {address: f"peer{index}:0" for index, address in enumerate(TAUGHT)}
        self.node = Node(ADDRESS, "omxvm", dialect=dialect, profile=profile, rng=Random(4), peers=peers)
        self.now = 10**12
        self.memory = bytearray(LONG)
        """The buffer of received messages, whose contents do not matter here."""
        self._pull: tuple[int, int, int] | None = None
        self.teach()

    @property
    def card(self):
        return self.node.interfaces[0]

    # Frames.

    def hear(self, *frames: bytes) -> list[bytes]:
        """Let frames arrive in one batch, wait, and return the frames that the host sends in that time."""
        self.node.receive(FrameBatch.from_frames(frames), self.now)
        return self.wait()

    def wait(self) -> list[bytes]:
        """Let some time pass."""
        sent: list[bytes] = []
        end = self.now + PAUSE
        while True:
            batch = self.node.transmit(self.now)
            sent += [batch.frame(index) for index in range(len(batch))]
            due = self.node.deadline()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
        self.now = end
        return sent

    def say(self, kind: type[Frame], source: bytes = PARTNER, **fields: object) -> list[bytes]:
        """Let a frame of another host arrive."""
        return self.hear(self.codec.build(kind(dst_mac=ADDRESS, src_mac=source, **fields)))

    def judge(self, *frames: bytes) -> Outcome:
        """The counters and frames that result from frames that arrive together."""
        before = dict(self.node.counters.items())
        replies = self.hear(*frames)
        grown = {name: count - before.get(name, 0) for name, count in self.node.counters.items()}
        return Outcome({str(name): count for name, count in grown.items() if count}, tuple(replies))

    # Actions of the experimenter between the frames.

    def tidy(self, verdict: Verdict) -> None:
        """Undo the changes made by a frame: learned indexes, the queue of RAW frames."""
        self.card.raw.take()
        frame = self.codec.parse(verdict.frame)
        if isinstance(frame, NackMcp) and frame.nack_type in (0, 5, 6) and verdict.state == "danger":
            # End the pull, which would otherwise send frames later.
            self.hear(self.codec.build(replace(frame, nack_type=2)))
        if verdict.state != "teach":
            self.teach()

    def teach(self) -> None:
        """Teach the host the indexes that it is to use."""
        for address, index in TAUGHT.items():
            if self.node.peer(address).index_for(0) != index:
                self.say(HostQuery, address, src_dst_peer_index=index, magic=self.node.magic)

    # States.

    def prepare(self, verdict: Verdict, name: str) -> None:
        """Bring the host into the state in which a frame of the oracle finds it."""
        self.card.promiscuous = verdict.state == "promisc"
        if not verdict.sessions or 3 in verdict.sessions:
            if not self.node.endpoints and verdict.state in ("idle", "promisc"):
                self._idle(name)
            if "carries the new own name" in verdict.what:
                # The reply that renamed the host is not among the verdicts.
                self.say(HostReply, ADDRESS, length=5, src_dst_peer_index=0, magic=self.node.magic, hostname=b"evil\0")
            return
        for number, session in verdict.sessions.items():
            if number not in self.card.endpoints:
                self._connected(number, session)
        if verdict.pull is not None and verdict.pull != self._pull:
            self._pull = verdict.pull
            self._rendezvous(verdict)
        if "last frame of block 1" in verdict.what:
            self._fill_block(verdict)
        elif verdict.what.startswith("danger: NACK_MCP type"):
            # Four transfers in sequence, each started after a nack ended the previous one.
            number = 1 + "0567".index(verdict.what.split()[3])
            self._announce(7, number, min(number, 4), 10_000, 0, LONG)

    def _idle(self, name: str) -> None:
        """Endpoint 3 idle; endpoint 5 with two large sends, acknowledged and waiting to be pulled."""
        three, five = SESSIONS[name]
        self.node.open_endpoint(3, KEY, session=three)
        sender = self.node.open_endpoint(5, KEY, session=five)
        request = sender.connect(PARTNER, 1, KEY)
        self.wait()
        head = {"dst_src_peer_index": 1, "src_dst_peer_index": 7, "dst_endpoint": 5, "src_endpoint": 1}
        self.say(
            ConnectReply,
            **head,
            src_session_id=five,
            target_session_id=REMOTE_SESSION,
            target_recv_seqnum_start=1,
            connect_seqnum=0,
            connect_status_code=0,
        )
        assert request.done and request.partner is not None
        second = pattern(2, 50_010)
        sender.send(request.partner, pattern(1, 400_000 if name == "omx9000" else 50_000))
        sender.send(request.partner, [second[:10], second[10:30_000], second[30_000:]])
        assert len(self.wait()) == 2
        self.say(
            Truc,
            dst_src_peer_index=1,
            dst_endpoint=5,
            src_endpoint=1,
            session=five,
            liback_session_id=five,
            liback_lib_seqnum=3,
            liback_send_seq=3,
            liback_acknum=1,
        )

    def _connected(self, number: int, session: int) -> EngineEndpoint:
        """An endpoint that a partner has connected to, with receives for all that may come."""
        endpoint = self.node.open_endpoint(number, KEY, session=session)
        for _ in range(RECEIVES):
            endpoint.receive(self.memory, 0, 0)
        if number < 12:
            self.say(
                ConnectRequest,
                dst_src_peer_index=1,
                src_dst_peer_index=7,
                dst_endpoint=number,
                src_endpoint=REMOTE,
                src_session_id=REMOTE_SESSION + number,
                app_key=KEY,
                target_recv_seqnum_start=1,
                connect_seqnum=0,
            )
        if number < 12 and self.node.profile.connects_back:
            self._connect_back(endpoint)
        return endpoint

    def _connect_back(self, endpoint: EngineEndpoint) -> None:
        """Answers that the real host omits, but that a correct host sends before any other frame (R-CON-12)."""
        request = endpoint.connect(PARTNER, REMOTE, KEY)
        self.wait()
        self.say(
            ConnectReply,
            dst_src_peer_index=1,
            src_dst_peer_index=7,
            dst_endpoint=endpoint.number,
            src_endpoint=REMOTE,
            src_session_id=endpoint.session,
            target_session_id=REMOTE_SESSION + endpoint.number,
            target_recv_seqnum_start=1,
            connect_seqnum=0,
            connect_status_code=0,
        )
        assert request.done

    def _rendezvous(self, verdict: Verdict) -> None:
        """A RNDV of the partner to endpoint 6, which starts the pull that the next frames are about."""
        assert verdict.pull is not None
        handle, total, offset = verdict.pull
        posted = verdict.context.get("posted_buffer", 0)
        number, acked = verdict.context["lib_tx_next"] - 1, verdict.context["lib_rx_next"]
        self._announce(6, number, acked, total, offset, posted if posted >= total else LONG)
        assert handle in self.card.endpoints[6].pulls, f"before {verdict.id}: no pull with handle {handle:#x}"

    def _fill_block(self, verdict: Verdict) -> None:
        """All frames of the second block but the last, which is the verdict's."""
        last = self.codec.parse(verdict.frame)
        assert isinstance(last, PullReply)
        count, payload = self.dialect.frames_per_block, self.dialect.reply_payload
        for frame in range(count, 2 * count - 1):
            self.hear(self.codec.build(replace(last, frame_seqnum=frame, msg_offset=frame * payload)))

    def _announce(self, number: int, sequence: int, acked: int, length: int, offset: int, room: int) -> None:
        endpoint = self.node.endpoints[self.card.endpoints[number]]
        for waiting in [each for each in endpoint.requests if str(each.state) == "posted"]:
            endpoint.cancel(waiting)
        endpoint.receive(memoryview(self.memory)[:room], 0, 0)
        self.say(
            Rndv,
            dst_src_peer_index=1,
            dst_endpoint=number,
            src_endpoint=REMOTE,
            lib_seqnum=sequence,
            lib_piggyack=acked,
            match_a=0,
            match_b=0,
            session=endpoint.session,
            msg_length=length,
            pulled_rdma_id=7,
            pulled_rdma_seqnum=23,
            pulled_rdma_offset=offset,
        )
