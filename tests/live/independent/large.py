"""Large messages on the wire: served as the replier, fetched as the puller (sections 6, 7 and 12 of the examples)."""

from __future__ import annotations

from collections.abc import Callable

from .frames import Frame
from .line import FOREVER, Line
from .neighbours import Neighbour
from .partner import Message, match_fields, match_of
from .transfers import FIRST_COUNTER, FIRST_GENERATION, MAGIC, WINDOW, Block, Pulling, Region, blocks, pieces

PULL_TIMER = 1.0
SLOTS = 1024
SHORT = 32768
"""A shorter message was sent as RNDV because it is synchronous."""

Refuse = Callable[[Frame, int], None]
BAD_REGION = 4


class Serving:
    """A message that was sent as RNDV, until its NOTIFY."""

    def __init__(self, line: Line, region_offset: int, refuse: Refuse) -> None:
        self._line = line
        self._journal = line.journal
        self._offset = region_offset
        self._refuse = refuse
        self.regions: dict[int, Region] = {}
        self._counters: dict[int, int] = {}

    def send(self, message: Message) -> None:
        """Announce a message."""
        place = next(each for each in range(256) if each not in self.regions)
        counter = self._counters.get(place, FIRST_COUNTER)
        self._counters[place] = (counter + 1) % 256
        taken = len(message.data) if message.taken is None else message.taken
        plan = blocks(self._line.dialect, taken, self._offset)
        number = self._line.partner.tx_next
        region = self.regions[place] = Region(counter, self._offset, message.data, taken, number, plan)
        body = {
            **match_fields(message.match),
            "msg_length": len(message.data),
            "pulled_rdma_id": place,
            "pulled_rdma_seqnum": counter,
            "pulled_rdma_offset": region.offset,
        }
        self._line.number_packets([("RNDV", body, b"")])

    def on_pull(self, host: Neighbour, frame: Frame) -> None:
        """R-PUL-12 to R-PUL-14."""
        region = self.regions.get(frame["pulled_rdma_id"])
        if region is None:
            self._line.unprovoked("PULL.pulled_rdma_id", list(self.regions), frame["pulled_rdma_id"])
            self._refuse(frame, BAD_REGION)
        elif self._line.partner_of(host, frame) is not None and self._check(region, frame):
            self._answer(region, frame)

    def _check(self, region: Region, frame: Frame) -> bool:
        expect = self._journal
        expect.expect_fields(
            frame,
            total_length=region.taken,
            pulled_rdma_seqnum=region.counter,
            pulled_rdma_offset=region.offset,
            src_magic=MAGIC ^ frame["src_endpoint"],
        )
        region.handle = frame["src_pull_handle"] if region.handle is None else region.handle
        expect.expect_fields(frame, src_pull_handle=region.handle)
        generation = frame["src_pull_handle"] & 0x3FFFFF
        expect.expect("PULL.src_pull_handle: generation is at least 0x23", True, generation >= FIRST_GENERATION)
        block = _block_of(frame)
        if not expect.expect_one_of("block of the PULL", region.plan, block):
            return False
        if block in region.asked:
            self._line.resent += 1
            return True
        region.asked.append(block)
        at = region.plan.index(block)
        if at >= WINDOW:
            expect.expect("at most 4 blocks are asked for at a time", True, region.plan[at - WINDOW] in region.asked)
        return True

    def _answer(self, region: Region, frame: Frame) -> None:
        for piece in pieces(self._line.dialect, _block_of(frame), region.offset):
            self._line.send(
                "PULL_REPLY",
                frame["src_mac"],
                region.message[piece.msg_offset : piece.msg_offset + piece.length],
                frame_seqnum=piece.number % 256,
                frame_length=piece.length,
                msg_offset=piece.msg_offset,
                dst_pull_handle=frame["src_pull_handle"],
                dst_magic=frame["src_magic"],
            )

    def on_notify(self, frame: Frame) -> None:
        """Section 6.3."""
        expect, place = self._journal, frame["pulled_rdma_id"]
        if not expect.expect_one_of("NOTIFY.pulled_rdma_id", list(self.regions), place):
            return
        region = self.regions.pop(place)
        expect.expect_fields(frame, pulled_rdma_seqnum=region.counter, total_length=region.taken)
        expect.expect("blocks asked for before the NOTIFY", len(region.plan), len(region.asked))
        covered = all(each.number != region.number for each in self._line.outstanding)
        expect.expect("the RNDV is acked by the piggyback of its NOTIFY at the latest", True, covered)
        self._journal.note("notified", bytes=frame["total_length"], blocks=len(region.asked))


class Fetching:
    """The large message that we pull, one at a time; ``deliver`` gets it when it is complete. More than
    ``limit`` bytes are not requested. ``fresh`` is true if the partner's endpoint has sent nothing before."""

    def __init__(self, line: Line, deliver: Callable[..., None], limit: int, *, fresh: bool) -> None:
        self._line = line
        self._fresh = fresh
        self._limit = limit
        self._journal = line.journal
        self._deliver = deliver
        self._pulling: Pulling | None = None
        self._rndv: Frame | None = None
        self._pull_at = FOREVER
        self._pulls = 0
        self._unacked = 0
        self._counters: dict[int, int] = {}

    @property
    def busy(self) -> bool:
        return self._pulling is not None

    def forget(self) -> None:
        """Note a restart of the partner."""
        self._pulling = None
        self._pull_at = FOREVER

    def start(self, rndv: Frame) -> None:
        """Fetch what a RNDV announces."""
        line, wanted = self._line, min(rndv["msg_length"], self._limit)
        handle = self._pulls % SLOTS << 22 | FIRST_GENERATION + self._pulls // SLOTS
        self._pulls += 1 if wanted else 0
        self._rndv = rndv
        self._unacked = len(line.outstanding)
        self._check_counter(rndv)
        self._pulling = Pulling(line.dialect, wanted, rndv["pulled_rdma_offset"], handle, MAGIC ^ line.number)
        self._go_on(self._pulling, rndv)

    def _check_counter(self, rndv: Frame) -> None:
        """Every region counts its uses (R-RDV-01)."""
        place = rndv["pulled_rdma_id"]
        if place in self._counters or self._fresh:
            self._journal.expect_fields(rndv, pulled_rdma_seqnum=self._counters.get(place, FIRST_COUNTER))
        self._counters[place] = (rndv["pulled_rdma_seqnum"] + 1) % 256

    def pull_from_nowhere(self, region: int, handle: int) -> None:
        """Send a PULL for a region that the partner does not have."""
        self._send_pull(Block(0, 0, 100), 100, region, FIRST_COUNTER, 0, handle)

    def on_time(self, now: float) -> float:
        """Re-request the missing replies; return the time of the next re-request."""
        if self._pulling is not None and now >= self._pull_at:
            self._line.resent += 1
            self._journal.note("pulling again")
            for block in self._pulling.repeat_requests():
                self._ask_for(block)
            self._pull_at = now + PULL_TIMER
        return self._pull_at

    def on_reply(self, frame: Frame) -> None:
        """R-PUL-05, and that it is exactly the requested part."""
        pulling, expect = self._pulling, self._journal
        if pulling is None or self._rndv is None or frame["dst_pull_handle"] != pulling.handle:
            if not self._line.resent:
                expect.deviation("PULL_REPLY", "an answer to a running PULL", f"handle {frame['dst_pull_handle']:#x}")
            return
        expect.expect_fields(frame, dst_magic=pulling.magic, src_mac=self._line.partner.host.mac)
        piece = next((each for each in pulling.awaited if each.msg_offset == frame["msg_offset"]), None)
        if piece is None:
            expect.deviation("PULL_REPLY.msg_offset", "that of a frame that was asked for", frame["msg_offset"])
            return
        if not pulling.repeated and piece is not pulling.awaited[0]:
            expect.deviation("order of PULL_REPLYs", f"frame {pulling.awaited[0].number}", f"frame {piece.number}")
        good = expect.expect_fields(frame, frame_seqnum=piece.number % 256, frame_length=piece.length)
        if good and pulling.store(piece, frame.data):
            self._go_on(pulling, self._rndv)

    def _go_on(self, pulling: Pulling, rndv: Frame) -> None:
        for block in pulling.next_requests():
            self._ask_for(block)
        self._pull_at = self._line.now() + PULL_TIMER
        if pulling.complete:
            self.forget()
            self._journal.note("pulled", bytes=pulling.total, blocks=len(pulling.blocks), again=pulling.repeated)
            short = pulling.total <= SHORT
            self._deliver(match_of(rndv), bytes(pulling.message), synchronous=short, unacked=self._unacked)
            self._line.when_connected(lambda: self._notify(rndv, pulling.total))

    def _notify(self, rndv: Frame, total: int) -> None:
        copied = {name: rndv[name] for name in ("pulled_rdma_id", "pulled_rdma_seqnum")}
        self._line.number_packets([("NOTIFY", {"total_length": total, **copied}, b"")])

    def _ask_for(self, block: Block) -> None:
        pulling, rndv = self._pulling, self._rndv
        assert pulling is not None and rndv is not None
        region, counter, offset = (rndv[f"pulled_rdma_{name}"] for name in ("id", "seqnum", "offset"))
        self._send_pull(block, pulling.total, region, counter, offset, pulling.handle)

    def _send_pull(self, block: Block, total: int, region: int, counter: int, offset: int, handle: int) -> None:
        self._line.addressed(
            "PULL",
            session=self._line.partner.rev,
            total_length=total,
            pulled_rdma_id=region,
            pulled_rdma_seqnum=counter,
            pulled_rdma_offset=offset,
            src_pull_handle=handle,
            src_magic=MAGIC ^ self._line.number,
            first_frame_offset=block.first_frame_offset,
            block_length=block.block_length,
            frame_index=block.frame_index,
        )


def _block_of(frame: Frame) -> Block:
    return Block(frame["frame_index"], frame["first_frame_offset"], frame["block_length"])
