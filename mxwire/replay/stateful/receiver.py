"""Receiver of the live host's frames, which finds the recorded counterpart of each and compares the two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mxwire.protocol.library.reliability import number
from mxwire.replay.stateful.comparison import Cause, FieldRelation, ReplayFinding, compare
from mxwire.replay.stateful.conversation import EndpointPair, LiveConversation, region_of
from mxwire.replay.stateful.expectations import (
    Expectation,
    Expectations,
    Key,
    RecordedMessage,
    key_of,
    length_of,
    match_of,
)
from mxwire.replay.stateful.regions import PlayedRegions
from mxwire.wire import packets
from mxwire.wire.enums import NackType
from mxwire.wire.numbers import FIRST_NUMBER, SESSION_NUMBER_MASK

_UNASKED: Final[dict[type[packets.Frame], tuple[Cause, str, str]]] = {
    packets.ConnectRequest: (Cause.APPLICATION, "R-CON-12", "connects to endpoint {src}"),
    packets.ConnectReply: (Cause.PROTOCOL, "R-CON-08", "answers a connect of endpoint {src} that was not made"),
    packets.Notify: (Cause.PROTOCOL, "R-NOT-01", "reports that a large message of endpoint {src} was pulled"),
    packets.PullReply: (Cause.PROTOCOL, "R-PUL-12", "answers a PULL that was not sent"),
    packets.NackLib: (Cause.PROTOCOL, "R-NAK-03", "refuses a frame of endpoint {src} (nack type {nack})"),
    packets.NackMcp: (Cause.PROTOCOL, "R-NAK-03", "refuses a PULL (nack type {nack})"),
    packets.Pull: (Cause.PROTOCOL, "R-PUL-02", "requests {block} bytes from frame {index} on"),
}
"""Findings on frames that the recorded host did not send: cause, rule and text."""


SettleCallback = Callable[[tuple[Any, ...]], bool]
"""Callback for the key of an answer to a connect of the played host; returns whether there is such a connect."""
ConnectCallback = Callable[[packets.ConnectRequest, EndpointPair, Expectation | None, bool], None]
"""Callback for each connect of the live host, with the recorded one, and whether it is a repetition."""
PullCallback = Callable[[packets.Pull, Expectation | None], None]
"""Callback for each PULL for a region of the played host, with its recorded counterpart."""


class FrameReceiver:
    """Takes frames of the live host one by one, finds the recorded counterpart of each, and compares them.

    ``report`` is called with each finding, ``arrived`` with each recorded frame received; for the others see
    :data:`SettleCallback`, :data:`ConnectCallback` and :data:`PullCallback`. ``regions`` are those of the played host.
    """

    def __init__(
        self,
        conversation: LiveConversation,
        expectations: Expectations,
        regions: PlayedRegions,
        *,
        report: Callable[[ReplayFinding], None],
        arrived: Callable[[Expectation], None],
        settled: SettleCallback,
        on_connect: ConnectCallback,
        pulled: PullCallback,
    ) -> None:
        self._with = conversation
        self._expected = expectations
        self._regions = regions
        self._report: Final = report
        self._arrived: Final = arrived
        self._settled: Final = settled
        self._on_connect: Final = on_connect
        self._pulled: Final = pulled
        self._requests: set[tuple[int, ...]] = set()
        """Properties shared by repetitions of each connect."""
        self._found: dict[tuple[int, ...], tuple[RecordedMessage | None, set[int], int]] = {}
        """Messages by pair, sessions and number: the recorded one, fragments and bytes received so far."""
        self._surplus: set[tuple[int, ...]] = set()
        """NOTIFYs that were not recorded."""
        self._rooms: dict[tuple[int, ...], int] = {}
        """Lengths of receives that differ from the recorded ones, by pair and region."""
        self._receivers: Final[dict[type[packets.Frame], Callable[[Any, int], None]]] = {
            packets.ConnectReply: self._connect_reply,
            packets.ConnectRequest: self._connect_request,
            packets.NackLib: self._nack,
            packets.Tiny: self._message,
            packets.Small: self._message,
            packets.Medium: self._message,
            packets.Rndv: self._message,
            packets.Truc: self._ack,
            packets.Notify: self._notify,
            packets.Pull: self._pull,
            packets.PullReply: self._pull_reply,
            packets.NackMcp: self._refusal,
        }

    def receive(self, frame: Any, now: int) -> None:
        """Take a frame of the live host."""
        receiver = self._receivers.get(type(frame))
        if receiver is not None:
            receiver(frame, now)

    # Counterparts and findings.

    def _pair(self, frame: Any) -> EndpointPair:
        """Return the endpoints of a frame of the live host."""
        return self._with.pair(frame.dst_endpoint, self._with.recorded_endpoint(frame.src_endpoint))

    def _meet(self, expectation: Expectation, frame: Any, pair: EndpointPair | None) -> None:
        """Compare a live frame with the recorded one."""
        record, script = expectation.record, self._with.script
        cut, where = record.cut, script.place(record)
        for each in compare(frame, record.frame, cut, where, partial(self._with.meaning, pair)):
            self._report(each)
        expectation.met = True
        self._arrived(expectation)

    def _note_arrived(self, frame: Any, expectation: Expectation, pair: EndpointPair) -> None:
        """Record the arrival of a recorded number, unless only the session is current: then no refusal follows."""
        was: Any = expectation.record.frame
        if self._with.meaning(pair, FieldRelation.SESSION, was.session) == frame.session:
            self._with.live_numbers[pair.played, pair.live, was.lib_seqnum] = frame.lib_seqnum

    def _hear_once(self, key: Key, frame: Any, pair: EndpointPair | None) -> None:
        """Compare a frame with the recorded one of the same key; report it if none was recorded."""
        expectation = self._expected.take(key)
        if expectation is not None:
            self._meet(expectation, frame, pair)
        elif not self._expected.last_known(key):
            self._unasked(frame)

    def _unasked(self, frame: Any, application: bool = False) -> None:
        """Report a frame that the recorded host did not send; ``application`` if its application had ended before."""
        kind, rule, text = _UNASKED[type(frame)]
        if application:
            kind = Cause.APPLICATION
        if isinstance(frame, packets.NackLib) and frame.nack_type in (NackType.ENDPT_CLOSED, NackType.BAD_ENDPT):
            kind = Cause.APPLICATION
        words = text.format(
            src=getattr(frame, "dst_endpoint", ""),
            nack=int(getattr(frame, "nack_type", 0)),
            block=getattr(frame, "block_length", 0),
            index=getattr(frame, "frame_index", 0),
        )
        self._report(
            ReplayFinding(kind, rule, "", 0, "nothing of the kind, as in the recording", f"the live host {words}")
        )

    def _is_current(self, frame: Any) -> bool:
        """Return whether a frame carries the session of the played endpoint."""
        return bool(self._with.present.get(frame.dst_endpoint) == frame.session)

    # Connects and refusals.

    def _connect_reply(self, frame: packets.ConnectReply, _now: int) -> None:
        """Take an answer to a played connect: it gives the live session, and the first number that is expected."""
        state, pair = self._with, self._pair(frame)
        recorded = state.recorded_session(frame.src_session_id)
        key = packets.ConnectReply, pair.played, pair.live, recorded, frame.connect_seqnum
        was_made = self._settled(key)
        expectation = self._expected.take(key)
        was = None
        if expectation is not None:
            was = expectation.record.frame
            self._meet(expectation, frame, pair)
        elif was_made:
            expected = "no answer, as in the recording"
            self._report(ReplayFinding(Cause.APPLICATION, "R-CON-08", "", 0, expected, "ConnectReply"))
        elif not self._expected.last_known(key):
            self._unasked(frame)
            return
        # A refusal announces neither a session nor a number.
        if frame.connect_status_code:
            return
        session = frame.target_session_id
        if was is not None and not was.connect_status_code:
            state.live_sessions[was.target_session_id] = session
            is_new = was.target_session_id != pair.live_recorded_session
            pair.live_recorded_session = was.target_session_id
        else:
            is_new = pair.live_session is None
        if session != pair.live_session:
            start = was.target_recv_seqnum_start if was is not None else FIRST_NUMBER
            pair.begin(start, frame.target_recv_seqnum_start)
        elif is_new and was is not None:
            # In the recording the endpoint had been reopened by now; the live one has not.
            pair.begin(was.target_recv_seqnum_start, pair.next or frame.target_recv_seqnum_start)
        pair.live_session = session

    def _connect_request(self, frame: packets.ConnectRequest, _now: int) -> None:
        """Take a connect of the live host, which may be a restart."""
        state, pair = self._with, self._pair(frame)
        place = state.connect_of(pair, frame)
        # The recording may have another number of repetitions: they depend on the time of the answer.
        if place in self._requests:
            self._on_connect(frame, pair, None, True)
            return
        self._requests.add(place)
        if frame.src_session_id != pair.live_session:
            pair.expect_from((pair.expected & SESSION_NUMBER_MASK) | FIRST_NUMBER)
        present = state.present.get(pair.played)
        key = packets.ConnectRequest, pair.played, pair.live
        expectation = self._expected.take_connect(key, state.played_sessions, present)
        start = FIRST_NUMBER
        if expectation is None:
            self._unasked(frame)
        else:
            was: Any = expectation.record.frame
            start = was.target_recv_seqnum_start
            state.live_sessions[was.src_session_id] = frame.src_session_id
            pair.live_recorded_session = was.src_session_id
            state.requests[pair.played, pair.live, was.src_session_id, was.connect_seqnum] = frame
            self._meet(expectation, frame, pair)
        if frame.src_session_id != pair.live_session:
            pair.begin(start, frame.target_recv_seqnum_start)
            pair.live_session = frame.src_session_id
        # No longer waited for: its recorded answer has been left out.
        waited_for = expectation is not None and not expectation.missed
        self._on_connect(frame, pair, expectation if waited_for else None, False)

    def _nack(self, frame: packets.NackLib, _now: int) -> None:
        """Take a refusal of a played connect or message."""
        pair = self._pair(frame)
        recorded = 0
        if number(frame.lib_seqnum):
            recorded = pair.recorded_of.get(frame.lib_seqnum, frame.lib_seqnum)
            pair.unacked.pop(frame.lib_seqnum, None)
        else:
            self._settled((packets.NackLib, pair.played, pair.live))
        self._hear_once((packets.NackLib, pair.played, pair.live, recorded), frame, pair)

    # Messages and acks.

    def _message(self, frame: Any, now: int) -> None:
        """Take a TINY, SMALL or RNDV, or a fragment of a MEDIUM message."""
        pair = self._pair(frame)
        sessions = self._with.present.get(pair.played, 0), pair.live_session or 0
        place = pair.played, pair.live, *sessions, frame.lib_seqnum
        is_current = self._is_current(frame)
        if is_current:
            pair.acknowledged(frame.lib_piggyack)
        known = self._found.get(place)
        if known is None:
            message = self._expected.message_for((pair.played, pair.live), frame)
            known = self._found[place] = message, set(), 0
            if message is None:
                self._report_surplus(frame)
            else:
                self._take(message, frame, pair)
        message, fragments, size = known
        fragment = frame.frag_seqnum if isinstance(frame, packets.Medium) else 0
        # A retransmission, whose first receipt was compared.
        if fragment in fragments:
            return
        fragments.add(fragment)
        size += frame.frag_length if isinstance(frame, packets.Medium) else 0
        self._found[place] = message, fragments, size
        if message is not None:
            expectation = message.frames.get(fragment)
            if expectation is not None and isinstance(frame, message.kind) and expectation.open:
                self._meet(expectation, frame, pair)
        complete = not isinstance(frame, packets.Medium) or size >= frame.length
        if is_current:
            pair.arrive(frame.lib_seqnum, None if message is None else message.number, now, complete)
        if message is not None:
            self._note_arrived(frame, message.first, pair)

    def _take(self, message: RecordedMessage, frame: Any, pair: EndpointPair) -> None:
        message.taken = True
        if isinstance(frame, packets.Rndv) and message.kind is packets.Rndv:
            region = region_of(message.first.record.frame, pair.played, pair.live)
            self._with.live_regions[region] = frame
        if not isinstance(frame, message.kind):
            where = self._with.script.place(message.first.record)
            found = f"{type(frame).__name__} of {message.length} bytes"
            self._report(ReplayFinding(Cause.PROTOCOL, "R-SND-01", "type", where, message.kind.__name__, found))
            for each in message.frames.values():
                each.met = True
                self._arrived(each)

    def _report_surplus(self, frame: Any) -> None:
        found = f"a {type(frame).__name__} of {length_of(frame)} bytes, match information {match_of(frame):#x}"
        expected = "no such message now, as in the recording"
        self._report(ReplayFinding(Cause.APPLICATION, "", "message", 0, expected, found))

    def _ack(self, frame: packets.Truc, _now: int) -> None:
        """Take an ack of played messages."""
        if self._is_current(frame):
            self._pair(frame).acknowledged(frame.liback_lib_seqnum)

    # Transfers of large messages.

    def _notify(self, frame: packets.Notify, now: int) -> None:
        """Take a NOTIFY: the live host has pulled all of a large message."""
        pair = self._pair(frame)
        is_current = self._is_current(frame)
        if is_current:
            pair.acknowledged(frame.lib_piggyack)
        if frame.lib_seqnum in pair.arrived:
            return
        region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
        key = packets.Notify, pair.played, pair.live, *region
        expectation = self._expected.take(key)
        was = None
        room = self._rooms.pop((pair.played, pair.live, *region), None)
        if expectation is not None:
            recorded: Any = expectation.record.frame
            was = int(recorded.lib_seqnum)
            is_room = room is not None and frame.total_length == room
            normalised = replace(frame, total_length=recorded.total_length) if is_room else frame
            self._meet(expectation, normalised, pair)
        elif not self._expected.last_known(key) and room is None and not self._regions.ended(frame):
            sender = pair.played, pair.live, frame.session, frame.lib_seqnum
            # Reported once, although it is retransmitted until it is acknowledged.
            if sender not in self._surplus:
                self._surplus.add(sender)
                self._unasked(frame, self._regions.is_there(frame))
        if is_current:
            pair.arrive(frame.lib_seqnum, was, now)
        if expectation is not None:
            self._note_arrived(frame, expectation, pair)

    def _pull(self, frame: packets.Pull, _now: int) -> None:
        """Take a request for a block of a large message of the played host."""
        pair = self._pair(frame)
        region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
        key = packets.Pull, pair.played, pair.live, *region, frame.frame_index
        expectation = self._expected.take(key)
        place = pair.played, pair.live, *region
        if expectation is not None:
            was: Any = expectation.record.frame
            handle = frame.src_pull_handle, frame.src_magic
            self._with.live_handles[was.src_pull_handle, was.src_magic] = handle
            # The length is a choice of the application: it is reported once per receive, not with each block.
            if was.total_length != frame.total_length:
                self._report_room(place, frame, str(was.total_length))
                frame_as_recorded = replace(frame, total_length=was.total_length, block_length=was.block_length)
                self._meet(expectation, frame_as_recorded, pair)
            else:
                self._meet(expectation, frame, pair)
        elif not self._expected.last_known((packets.Pull, *place, 0)):
            self._report_room(place, frame, "none, or none with room")
        elif not self._expected.last_known(key) and place not in self._rooms and not self._regions.ended(frame):
            self._unasked(frame, not self._expected.last_known((packets.Notify, *place)))
        if self._is_current(frame):
            self._pulled(frame, expectation)

    def _report_room(self, place: tuple[int, ...], pull: packets.Pull, expected: str) -> None:
        """Report a receive of another length than the recorded one, which changes its blocks."""
        if self._rooms.get(place) != pull.total_length:
            self._rooms[place] = pull.total_length
            found = f"a receive that takes {pull.total_length} bytes of a large message"
            self._report(ReplayFinding(Cause.APPLICATION, "", "receive", 0, expected, found))

    def _pull_reply(self, frame: packets.PullReply, _now: int) -> None:
        """Take a part of a large message of the live host."""
        expectation = self._expected.take(key_of(frame))
        if expectation is not None:
            self._meet(expectation, frame, None)
        elif not self._expected.last_known(key_of(frame)) and not self._expected.is_played_pull(frame):
            self._unasked(frame)

    def _refusal(self, frame: packets.NackMcp, _now: int) -> None:
        """Take a refusal of a PULL of the played host."""
        self._hear_once(key_of(frame), frame, None)
