"""A capture played again: a :class:`Node` takes one host's place and must send what that host sent.

Frames of the other host reach the node at their times in the capture; frames of the node are compared with the next
frame of the host that it stands for (``outbox``). Frames do not show the times at which the application made calls and
at which its library read the ring (``ring``). The next call of an application is made as soon as the capture shows a
frame that only a call can cause. The order and arguments of the calls thus come from the script (``programs``), their
times from the capture. A timer must not expire early, except by the irregularity of the real host's ticks
(``Case.early``), and its frames must not be late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from mxwire.frames import FrameBatch
from mxwire.protocol import Node, Profile
from mxwire.replay.stateful.records import FOR_LIBRARY, NUMBERED, Hindsight, Record, acked_by, covers, messages, read
from mxwire.units import MILLISECOND
from mxwire.wire.codec import codec_of
from mxwire.wire.enums import NackType
from mxwire.wire.packets import Announcement, ConnectReply, ConnectRequest, HostQuery, Notify, Pull, Rndv, Truc
from tests.conformance.application import Application
from tests.conformance.case import Case
from tests.conformance.outbox import CARD, Difference, LossyOutbox, Outbox
from tests.conformance.ring import Looks
from tests.conformance.words import LEAVING, QUIET, SENDING, pattern
from tests.wire.support import dialect_of, read_capture

LATER = 35 * MILLISECOND
"""Time by which a timer may expire later than the node's: an application must call the real library."""
BEFORE = 60_000 * MILLISECOND
"""Time between the start of a discovery daemon and the capture, if the daemon started first."""
REFUSALS = (NackType.ENDPT_CLOSED, NackType.BAD_SESSION)


class Serial(Random):
    """Randomness that gives the discovery daemon the serial of the real one."""

    def __init__(self, serial: int) -> None:
        super().__init__(1)
        self.serial = serial

    def getrandbits(self, _bits: int) -> int:
        return self.serial


class Player:
    """One capture, played for one of its hosts."""

    def __init__(self, case: Case, profile: Profile | None = None) -> None:
        self.case = case
        self.dialect = dialect_of(case.capture)
        self.codec = codec_of(self.dialect)
        self.records = read(read_capture(case.capture), self.dialect, case.address, case.shift)
        self.profile = profile or case.profile
        self.hindsight = Hindsight(self.records, self.dialect)
        self.node = self._host()
        self.now = self.records[0].time - MILLISECOND
        self.outbox = (LossyOutbox if case.lossy else Outbox)(self.codec, LATER + case.delay, case.modulo_acks)
        self.patience = 0 if case.lossy else LATER + case.delay
        """Time within which the capture must show a timer's frame, in ns."""
        self.pending: deque[Record] = deque()
        """Frames for the library that it has not read yet."""
        self.unread: list[Record] = []
        """Announcements that the discovery daemon has not read yet."""
        payload = messages(self.records) if case.real_payload else pattern
        self.application = Application(self.node, case.programs, self.hindsight.sessions(), payload)
        self.looks = Looks([] if case.lossy else self.records, self.dialect, case.profile)
        self._teach()
        self._run_daemon()

    # Before the first frame.

    def _host(self) -> Node:
        case = self.case
        first = next(
            (each.frame for each in self.records if each.is_played and isinstance(each.frame, Announcement)), None
        )
        return Node(
            case.address,
            case.hostname,
            dialect=self.dialect,
            profile=self.profile,
            rng=Serial(getattr(first, "serial", 1)),
            peers=case.peers,
            announce=bool(case.daemon),
        )

    def _teach(self) -> None:
        """Set the index that the real host had learned before the capture."""
        first = next(
            (each.frame for each in self.records if each.is_played and hasattr(each.frame, "dst_endpoint")), None
        )
        index = getattr(first, "dst_src_peer_index", 0xFFFF)
        if first is not None and index != 0xFFFF and self.case.peers:
            magic = self.node.magic
            query = HostQuery(dst_mac=first.src_mac, src_mac=first.dst_mac, src_dst_peer_index=index, magic=magic)
            self._receive([self.codec.build(query)])
            self.node.transmit(self.now)

    def _run_daemon(self) -> None:
        """Let a daemon that had started before the capture send its first series."""
        if self.case.daemon == "before":
            start = self.now
            for second in range(BEFORE // (1000 * MILLISECOND)):
                self.node.transmit(start - BEFORE + second * 1000 * MILLISECOND)

    @property
    def _started(self) -> int:
        """The number of the frame with which the host begins."""
        if self.case.daemon != "starts":
            return 0
        return next(each.number for each in self.records if each.is_played)

    # Time.

    def _progress(self, time: int) -> None:
        """Let the library make a pass."""
        self.now = max(self.now, time)
        self._let_work(True)
        self._collect()
        self._let_work(False)
        self.application.go_on()

    def _let_work(self, progressing: bool) -> None:
        for endpoint in self.node.endpoints.values():
            endpoint.progressing = progressing

    def _collect(self) -> None:
        batch = self.node.transmit(self.now)
        for index in range(len(batch)):
            self.outbox.put(self.now, batch.frame(index))

    def _deadline(self) -> int | None:
        self._let_work(True)
        found = self.node.deadline()
        self._let_work(False)
        return found

    def _overdue(self, time: int) -> None:
        """Expire overdue timers: the capture must show their frames next."""
        if self.application.next == "sleep":
            # It is out of the library.
            return
        while (due := self._deadline()) is not None and 0 < due < time - self.patience:
            self._progress(due)

    # Frames of the other host.

    def _receive(self, frames: list[bytes]) -> None:
        self.node.receive(FrameBatch.from_frames(frames), self.now)

    def _hear(self, record: Record) -> None:
        self.now = max(self.now, record.time)
        frame = record.frame
        if record.number < self._started:
            self.unread.append(record)
            return
        if isinstance(frame, (*FOR_LIBRARY, Pull)):
            self._open_or_close(record)
        if isinstance(frame, Pull) and self.hindsight.refusal(record) == NackType.BAD_RDMAWIN:
            self._look_at_end_of(frame)
        if not isinstance(frame, FOR_LIBRARY) or not self._is_open(frame):
            self._receive([record.whole])
            self._collect()
            return
        self.pending.append(record)
        if self.looks.after.get(record.number) == 0:
            self._look_until(record)
        elif self.case.lossy or not any(isinstance(each.frame, (*NUMBERED, ConnectRequest)) for each in self.pending):
            self._look(lambda _: True)
            self._progress(self.now)

    def _look_at_end_of(self, pull: Pull) -> None:
        """Process the NOTIFY that released the region of a refused PULL."""
        region = pull.pulled_rdma_id, pull.pulled_rdma_seqnum
        for waiting in list(self.pending):
            notify = waiting.frame
            if not waiting.news or not isinstance(notify, Notify):
                continue
            if (notify.pulled_rdma_id, notify.pulled_rdma_seqnum) == region:
                self._look_until(waiting)
                return

    def _is_open(self, frame: Any) -> bool:
        card = self.node.interfaces[0].endpoints.get(frame.dst_endpoint)
        return card is not None and getattr(frame, "session", card.session) == card.session

    def _open_or_close(self, record: Record) -> None:
        """Open or close the endpoint to which a frame is addressed, as the answer to it shows."""
        application = self.application
        refused = self.hindsight.refusal(record)
        if refused in REFUSALS:
            self._leave(lambda: self._is_open(record.frame))
        programs, number = application.programs, record.frame.dst_endpoint
        if not programs or programs[0].endpoint != number or refused in (NackType.ENDPT_CLOSED, NackType.BAD_ENDPT):
            return
        card = self.node.interfaces[0].endpoints.get(number)
        if card is None or self.hindsight.answering_session(record) not in (None, card.session):
            self._leave(lambda: application.endpoint is not None)
            application.begin()

    def _leave(self, wanted: Callable[[], bool]) -> None:
        """Make the final calls of the application while ``wanted`` returns True."""
        while wanted() and self.application.next in LEAVING:
            self._settle()
            self.application.call()

    def _look(self, wanted: Callable[[Record], bool]) -> None:
        """Move queued frames into the ring, up to the last one for which ``wanted`` returns True."""
        places = [place for place, each in enumerate(self.pending) if wanted(each)]
        if places:
            self._receive([self.pending.popleft().whole for _ in range(places[-1] + 1)])

    def _look_until(self, record: Record) -> None:
        """Have the library read the queued frames up to ``record``."""
        self._look(lambda each: each is record)
        self._progress(self.now)

    def _settle(self) -> None:
        """Run the library if the application is waiting."""
        if self.application.blocked:
            self._progress(self.now)
        while self.application.blocked and self.pending:
            self._look_until(self.pending[0])

    # Frames of the host that the node stands for.

    def _expect(self, record: Record) -> None:
        self.now = max(self.now, record.time)
        if self._waits(record):
            self._produce(record)
        self.outbox.take(record)
        if any(self.looks.after.get(each.number) == record.number for each in self.pending):
            self._look(lambda each: self.looks.after.get(each.number) == record.number)
            self._progress(self.now)

    def _waits(self, record: Record) -> bool:
        """Return whether nothing that may be the captured frame has been sent yet."""
        return self.outbox.place(record) is None

    def _answers_connect(self, record: Record) -> bool:
        """Return whether the library's next frame answers a connect request in the same pass."""
        after = (
            each.frame for each in self.hindsight.after(record) if each.is_played and not isinstance(each.frame, CARD)
        )
        return isinstance(next(after, None), ConnectReply)

    def _produce(self, record: Record) -> None:
        """Drive the library and the application until they cause a frame."""
        frame = record.frame
        value = acked_by(frame)
        if value is not None:
            self._look(lambda each: self._is_acked(each, record, value))
        if isinstance(frame, ConnectReply):
            self._look(lambda each: isinstance(each.frame, ConnectRequest))
        if isinstance(frame, HostQuery) and self.unread:
            self._receive([each.whole for each in self.unread])
            self.unread.clear()
        if record.news and not isinstance(frame, (Notify, Pull)):
            self._call_until_sending(record)
            return
        self._progress(self.now)
        if self._waits(record) and record.news and isinstance(frame, (Pull, Notify)):
            answered = self._answers_connect(record)
            self._look(lambda each: isinstance(each.frame, (Rndv, ConnectRequest) if answered else Rndv))
            self._progress(self.now)
            self._call_quietly(record, "irecv", "recv", "cancel")
        due = self._deadline() if self._waits(record) else None
        if due is not None and due <= record.time + self.case.early:
            self._progress(due)
        if self._waits(record) and isinstance(frame, Truc) and self.application.next == "end":
            # An endpoint that is closed sends the acks that it owes (R-ACK-09).
            self.application.call()
            self._collect()

    def _is_acked(self, heard: Record, record: Record, value: int) -> bool:
        """Return whether a frame had been read when ``record`` was sent, which acknowledges all before ``value``."""
        if self.looks.held.get(heard.number, 0) > record.number or not isinstance(heard.frame, NUMBERED):
            return False
        return covers(value, heard.frame.lib_seqnum)

    def _call_quietly(self, record: Record, *names: str) -> None:
        """Make calls that no frame shows, those named included, until the frame is sent."""
        while self._waits(record) and self.application.next in (*QUIET, *names):
            self._settle()
            if self.application.blocked:
                return
            self.application.call()
            self._progress(self.now)

    def _call_until_sending(self, record: Record) -> None:
        """Make calls until the frame is sent."""
        while self._waits(record) and self.application.next:
            self._settle()
            last = self.application.next
            self.application.call()
            if last in SENDING:
                self._progress(self.now)

    # All of it.

    def run(self) -> Outbox:
        """Play the capture. Raises :class:`Difference`, with its place and contents."""
        place = f"{self.case.capture}, host {self.case.host}"
        for record in self.records[: self.case.until]:
            if self._is_left_out(record):
                continue
            try:
                self._meet(record)
            except Difference as problem:
                raise Difference(f"{place}, frame {record.number}: {problem}") from None
        try:
            self.outbox.finish(self.case.left)
        except Difference as problem:
            raise Difference(f"{place}, at the end: {problem}") from None
        return self.outbox

    def _meet(self, record: Record) -> None:
        self._overdue(record.time)
        if record.number == self.case.killed:
            self._leave(lambda: self.application.endpoint is not None)
        (self._expect if record.is_played else self._hear)(record)

    def _is_left_out(self, record: Record) -> bool:
        """Announcements of a daemon that is not played, acks that are not compared, and frames named by the case."""
        case, frame = self.case, record.frame
        if isinstance(frame, Announcement) and not case.daemon:
            return True
        if record.is_played and isinstance(frame, Truc) and case.modulo_acks:
            return True
        return record.number in case.unheard or record.number in case.unsent
