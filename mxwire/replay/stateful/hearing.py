"""Frames of the live host: what they teach us, which recorded ones they are, and how they differ from these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from mxwire.protocol.sequence import FIRST, SESSION_MASK, number
from mxwire.replay.stateful.comparing import How, compare
from mxwire.replay.stateful.conversation import Conversation, region_of
from mxwire.replay.stateful.expectations import (
    Expectation,
    Expectations,
    Message,
    key_of,
    length_of,
    match_of,
)
from mxwire.replay.stateful.finding import Finding, Kind
from mxwire.replay.stateful.pair import Pair
from mxwire.wire.enums import NackType
from mxwire.wire.packets import (
    ConnectReply,
    ConnectRequest,
    Frame,
    Medium,
    NackLib,
    NackMcp,
    Notify,
    Pull,
    PullReply,
    Rndv,
    Small,
    Tiny,
    Truc,
)

_UNASKED: Final[dict[type[Frame], tuple[Kind, str, str]]] = {
    ConnectRequest: (Kind.APPLICATION, "R-CON-12", "connects to endpoint {src}"),
    ConnectReply: (Kind.PROTOCOL, "R-CON-08", "answers a connect of endpoint {src} that was not made"),
    Notify: (Kind.PROTOCOL, "R-NOT-01", "says that a large message of endpoint {src} was pulled"),
    PullReply: (Kind.PROTOCOL, "R-PUL-12", "answers a PULL that was not sent"),
    NackLib: (Kind.PROTOCOL, "R-NAK-03", "refuses a frame of endpoint {src} (nack type {nack})"),
    NackMcp: (Kind.PROTOCOL, "R-NAK-03", "refuses a PULL (nack type {nack})"),
    Pull: (Kind.PROTOCOL, "R-PUL-02", "asks for {block} bytes from frame {index} on"),
}
"""What is said of a frame that the recorded host did not send."""


class Listener:
    """Takes the live host's frames one by one.

    ``tell`` is called with each finding, ``came`` with each recorded frame that has come, ``settled`` with the key of
    what answers a connect of ours (it says whether there is such a connect), ``pulled`` with each PULL for a region of
    ours, and ``asked`` with each connect of theirs, the recorded one that it is, and whether it comes again. ``ended``
    says of a PULL or NOTIFY whether the recording shows the end of its region, ``announced`` whether it is ours at all.
    """

    def __init__(
        self,
        conversation: Conversation,
        expectations: Expectations,
        *,
        tell: Callable[[Finding], None],
        came: Callable[[Expectation], None],
        settled: Callable[[tuple[Any, ...]], bool],
        pulled: Callable[[Pull, Expectation | None], None],
        asked: Callable[[ConnectRequest, Pair, Expectation | None, bool], None],
        ended: Callable[[Pull | Notify], bool],
        announced: Callable[[Notify], bool],
    ) -> None:
        self._with = conversation
        self._expected = expectations
        self._tell = tell
        self._came = came
        self._settled = settled
        self._pulled = pulled
        self._asked = asked
        self._ended = ended
        self._announced = announced
        self._found: dict[tuple[int, ...], tuple[Message | None, set[int], int]] = {}
        """Their messages by pair, sessions and number: which recorded one it is, its fragments and bytes so far."""
        self._requests: set[tuple[int, ...]] = set()
        self._surplus: set[tuple[int, ...]] = set()
        """Their NOTIFYs that were not recorded."""
        self._rooms: dict[tuple[int, ...], int] = {}
        """How many bytes the receives take that are not the recorded ones, by pair and region."""
        self._hear: Final[dict[type[Frame], Callable[[Any, int], None]]] = {
            ConnectReply: self._reply,
            ConnectRequest: self._request,
            Tiny: self._message,
            Small: self._message,
            Medium: self._message,
            Rndv: self._message,
            Notify: self._notify,
            Truc: self._ack,
            Pull: self._pull,
            PullReply: self._pull_reply,
            NackLib: self._nack,
            NackMcp: self._nack_pull,
        }

    def hear(self, frame: Any, now: int) -> None:
        """Take a frame that came from the live host."""
        heard = self._hear.get(type(frame))
        if heard is not None:
            heard(frame, now)

    # Which recorded frame it is.

    def _pair(self, frame: Any) -> Pair:
        return self._with.pair(frame.dst_endpoint, self._with.recorded_endpoint(frame.src_endpoint))

    def _meet(self, expectation: Expectation, frame: Any, pair: Pair | None) -> None:
        """A recorded frame has come: compare."""
        record, script = expectation.record, self._with.script
        cut, where = record.cut, script.place(record)
        for each in compare(frame, record.frame, cut, where, lambda how, was: self._with.meaning(pair, how, was)):
            self._tell(each)
        expectation.met = True
        self._came(expectation)

    def _unasked(self, frame: Any, application: bool = False) -> None:
        """The recorded host sent nothing of the kind; ``application`` says that its application ended before."""
        kind, rule, text = _UNASKED[type(frame)]
        if application:
            kind = Kind.APPLICATION
        if isinstance(frame, NackLib) and frame.nack_type in (NackType.ENDPT_CLOSED, NackType.BAD_ENDPT):
            kind = Kind.APPLICATION
        words = text.format(
            src=getattr(frame, "dst_endpoint", ""),
            nack=int(getattr(frame, "nack_type", 0)),
            block=getattr(frame, "block_length", 0),
            index=getattr(frame, "frame_index", 0),
        )
        self._tell(Finding(kind, rule, "", 0, "nothing of the kind, as in the recording", f"the live host {words}"))

    def _is_ours(self, frame: Any) -> bool:
        """Whether a frame carries the session of our endpoint."""
        return bool(self._with.present.get(frame.dst_endpoint) == frame.session)

    # Connects.

    def _reply(self, frame: ConnectReply, _now: int) -> None:
        state, pair = self._with, self._pair(frame)
        recorded = state.recorded_session(frame.src_session_id)
        key = ConnectReply, pair.mine, pair.theirs, recorded, frame.connect_seqnum
        was_made = self._settled(key)
        expectation = self._expected.take(key)
        was = None
        if expectation is not None:
            was = expectation.record.frame
            self._meet(expectation, frame, pair)
        elif was_made:
            self._tell(Finding(Kind.APPLICATION, "R-CON-08", "", 0, "no answer, as in the recording", "ConnectReply"))
        elif not self._expected.last_known(key):
            self._unasked(frame)
            return
        if frame.connect_status_code:
            return
        session = frame.target_session_id
        if was is not None and not was.connect_status_code:
            state.their_sessions[was.target_session_id] = session
            is_new = was.target_session_id != pair.their_recorded_session
            pair.their_recorded_session = was.target_session_id
        else:
            is_new = pair.their_session is None
        if session != pair.their_session:
            start = was.target_recv_seqnum_start if was is not None else FIRST
            pair.begin(start, frame.target_recv_seqnum_start)
        elif is_new and was is not None:
            # The recorded endpoint was opened anew meanwhile, and this one was not.
            pair.begin(was.target_recv_seqnum_start, pair.next or frame.target_recv_seqnum_start)
        pair.their_session = session

    def _request(self, frame: ConnectRequest, _now: int) -> None:
        state, pair = self._with, self._pair(frame)
        place = state.connect_of(pair, frame)
        if place in self._requests:
            self._asked(frame, pair, None, True)
            return
        self._requests.add(place)
        if frame.src_session_id != pair.their_session:
            pair.expect_from((pair.expected & SESSION_MASK) | FIRST)
        present = state.present.get(pair.mine)
        key = ConnectRequest, pair.mine, pair.theirs
        expectation = self._expected.take_connect(key, state.my_sessions, present)
        start = FIRST
        if expectation is None:
            self._unasked(frame)
        else:
            was: Any = expectation.record.frame
            start = was.target_recv_seqnum_start
            state.their_sessions[was.src_session_id] = frame.src_session_id
            pair.their_recorded_session = was.src_session_id
            state.requests[pair.mine, pair.theirs, was.src_session_id, was.connect_seqnum] = frame
            self._meet(expectation, frame, pair)
        if frame.src_session_id != pair.their_session:
            pair.begin(start, frame.target_recv_seqnum_start)
            pair.their_session = frame.src_session_id
        # Where nobody waits for it any more, its recorded answer has been left out.
        waited_for = expectation is not None and not expectation.missed
        self._asked(frame, pair, expectation if waited_for else None, False)

    # Numbered.

    def _message(self, frame: Any, now: int) -> None:
        pair = self._pair(frame)
        sessions = self._with.present.get(pair.mine, 0), pair.their_session or 0
        place = pair.mine, pair.theirs, *sessions, frame.lib_seqnum
        ours = self._is_ours(frame)
        if ours:
            pair.acknowledged(frame.lib_piggyack)
        known = self._found.get(place)
        if known is None:
            message = self._expected.message_for((pair.mine, pair.theirs), frame)
            known = self._found[place] = message, set(), 0
            if message is None:
                self._tell_surplus(frame)
            else:
                self._take(message, frame, pair)
        message, fragments, size = known
        fragment = frame.frag_seqnum if isinstance(frame, Medium) else 0
        if fragment in fragments:
            return
        fragments.add(fragment)
        size += frame.frag_length if isinstance(frame, Medium) else 0
        self._found[place] = message, fragments, size
        if message is not None:
            expectation = message.frames.get(fragment)
            if expectation is not None and isinstance(frame, message.kind) and expectation.open:
                self._meet(expectation, frame, pair)
        complete = not isinstance(frame, Medium) or size >= frame.length
        if ours:
            pair.arrive(frame.lib_seqnum, None if message is None else message.number, now, complete)
        if message is not None:
            self._note_came(frame, message.first, pair)

    def _note_came(self, frame: Any, expectation: Expectation, pair: Pair) -> None:
        """Note that a recorded number has come, unless only its session is right now: then nobody refuses it."""
        was: Any = expectation.record.frame
        if self._with.meaning(pair, How.SESSION, was.session) == frame.session:
            self._with.came[pair.mine, pair.theirs, was.lib_seqnum] = frame.lib_seqnum

    def _take(self, message: Message, frame: Any, pair: Pair) -> None:
        message.taken = True
        if isinstance(frame, Rndv) and message.kind is Rndv:
            region = region_of(message.first.record.frame, pair.mine, pair.theirs)
            self._with.their_regions[region] = frame
        if not isinstance(frame, message.kind):
            where = self._with.script.place(message.first.record)
            kind, found = message.kind.__name__, type(frame).__name__
            self._tell(Finding(Kind.PROTOCOL, "R-SND-01", "type", where, kind, f"{found} of {message.length} bytes"))
            for each in message.frames.values():
                each.met = True
                self._came(each)

    def _tell_surplus(self, frame: Any) -> None:
        found = f"a {type(frame).__name__} of {length_of(frame)} bytes, match information {match_of(frame):#x}"
        self._tell(Finding(Kind.APPLICATION, "", "message", 0, "no such message now, as in the recording", found))

    def _notify(self, frame: Notify, now: int) -> None:
        pair = self._pair(frame)
        ours = self._is_ours(frame)
        if ours:
            pair.acknowledged(frame.lib_piggyack)
        if frame.lib_seqnum in pair.arrived:
            return
        region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
        key = Notify, pair.mine, pair.theirs, *region
        expectation = self._expected.take(key)
        was = None
        room = self._rooms.pop((pair.mine, pair.theirs, *region), None)
        if expectation is not None:
            recorded: Any = expectation.record.frame
            was = int(recorded.lib_seqnum)
            is_room = room is not None and frame.total_length == room
            told = replace(frame, total_length=recorded.total_length) if is_room else frame
            self._meet(expectation, told, pair)
        elif not self._expected.last_known(key) and room is None and not self._ended(frame):
            sender = pair.mine, pair.theirs, frame.session, frame.lib_seqnum
            if sender not in self._surplus:
                self._surplus.add(sender)
                self._unasked(frame, self._announced(frame))
        if ours:
            pair.arrive(frame.lib_seqnum, was, now)
        if expectation is not None:
            self._note_came(frame, expectation, pair)

    def _ack(self, frame: Truc, _now: int) -> None:
        if self._is_ours(frame):
            self._pair(frame).acknowledged(frame.liback_lib_seqnum)

    # Pulls and refusals.

    def _pull(self, frame: Pull, _now: int) -> None:
        pair = self._pair(frame)
        region = frame.pulled_rdma_id, frame.pulled_rdma_seqnum
        key = Pull, pair.mine, pair.theirs, *region, frame.frame_index
        expectation = self._expected.take(key)
        place = pair.mine, pair.theirs, *region
        if expectation is not None:
            was: Any = expectation.record.frame
            handle = frame.src_pull_handle, frame.src_magic
            self._with.their_handles[was.src_pull_handle, was.src_magic] = handle
            if was.total_length != frame.total_length:
                self._tell_room(place, frame, str(was.total_length))
                frame_as_recorded = replace(frame, total_length=was.total_length, block_length=was.block_length)
                self._meet(expectation, frame_as_recorded, pair)
            else:
                self._meet(expectation, frame, pair)
        elif not self._expected.last_known((Pull, *place, 0)):
            self._tell_room(place, frame, "none, or none with room")
        elif not self._expected.last_known(key) and place not in self._rooms and not self._ended(frame):
            self._unasked(frame, not self._expected.last_known((Notify, *place)))
        if self._is_ours(frame):
            self._pulled(frame, expectation)

    def _tell_room(self, place: tuple[int, ...], pull: Pull, expected: str) -> None:
        """A receive of theirs has other room than the recorded one: so are its blocks."""
        if self._rooms.get(place) != pull.total_length:
            self._rooms[place] = pull.total_length
            found = f"a receive that takes {pull.total_length} bytes of a large message"
            self._tell(Finding(Kind.APPLICATION, "", "receive", 0, expected, found))

    def _pull_reply(self, frame: PullReply, _now: int) -> None:
        expectation = self._expected.take(key_of(frame))
        if expectation is not None:
            self._meet(expectation, frame, None)
        elif not self._expected.last_known(key_of(frame)) and not self._expected.is_pull_of_ours(frame):
            self._unasked(frame)

    def _nack(self, frame: NackLib, _now: int) -> None:
        pair = self._pair(frame)
        recorded = 0
        if number(frame.lib_seqnum):
            recorded = pair.recorded_of.get(frame.lib_seqnum, frame.lib_seqnum)
            pair.unacked.pop(frame.lib_seqnum, None)
        else:
            self._settled((NackLib, pair.mine, pair.theirs))
        key = NackLib, pair.mine, pair.theirs, recorded
        expectation = self._expected.take(key)
        if expectation is not None:
            self._meet(expectation, frame, pair)
        elif not self._expected.last_known(key):
            self._unasked(frame)

    def _nack_pull(self, frame: NackMcp, _now: int) -> None:
        key = key_of(frame)
        expectation = self._expected.take(key)
        if expectation is not None:
            self._meet(expectation, frame, None)
        elif not self._expected.last_known(key):
            self._unasked(frame)
