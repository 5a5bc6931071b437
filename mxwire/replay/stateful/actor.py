"""The played host: a recorded host that communicates with a live one.

The actor is sans-IO: its inputs are received frames and the time, its outputs are frames to transmit and findings. In
the names of this room "played" refers to the played host, "live" to the live host in the place of the other recorded
host. The script (``script.py``) is followed record by record. A record of the played host is rewritten for the live
conversation (``translator.py``) and transmitted once every earlier record that may have caused it has been received
(``awaited.py``); frames of the live host are matched to records by their meaning, not by their order
(``expectations.py``, ``receiver.py``), and compared with them field by field (``comparison.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from mxwire.ethernet import BROADCAST
from mxwire.protocol import discovery, introduction, name_search
from mxwire.replay.stateful.awaited import AwaitedFrames
from mxwire.replay.stateful.comparison import ReplayFinding
from mxwire.replay.stateful.conversation import EndpointPair, LiveConversation
from mxwire.replay.stateful.expectations import Expectation, Expectations
from mxwire.replay.stateful.pending import ConnectAnswers, OwnConnects, OwnPulls
from mxwire.replay.stateful.receiver import FrameReceiver
from mxwire.replay.stateful.records import NUMBERED, Record
from mxwire.replay.stateful.regions import PlayedRegions
from mxwire.replay.stateful.script import ReplayScript
from mxwire.replay.stateful.translator import FrameTranslator, NotPlayed
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire import packets
from mxwire.wire.codec import Malformed, codec_of

SHORT_PATIENCE: Final = 300 * MILLISECOND
"""Time to wait for an application that has already diverged from the recording."""
QUIET: Final = 100 * MILLISECOND
"""Time to wait at the end for unexpected frames."""
WINDOW: Final = 256
"""Maximum unacknowledged messages of the played host: less than the event ring of a live host holds."""
TIMEOUT: Final = 5 * SECOND


class ReplayActor:
    """Plays one host of a script against a live one.

    ``address`` is the played host's address on the wire and ``other`` the live host's; ``endpoints`` and ``keys`` map
    recorded endpoints and keys to those of the live host. An answer may take ``timeout`` ns; until then, frames that
    may have been lost are retransmitted as the protocol requires. Times are ns of any monotonic clock.
    """

    def __init__(
        self,
        script: ReplayScript,
        address: bytes,
        other: bytes,
        *,
        rng: Random,
        name: str = "",
        endpoints: Mapping[int, int] | None = None,
        keys: Mapping[int, int] | None = None,
        timeout: int = TIMEOUT,
    ) -> None:
        self.script = script
        self.codec = codec_of(script.dialect)
        self.conversation = LiveConversation(script, address, other, rng, endpoints or {}, keys or {})
        self.expectations = Expectations(script.records)
        self.findings: list[ReplayFinding] = []
        """Differences so far."""
        self.failure = ""
        """Reason why the replay could not continue; empty if it could."""
        self.played = 0
        """Recorded frames of the played host that were transmitted."""
        self.skipped: list[tuple[Record, str]] = []
        """Recorded frames of the played host that were not transmitted, with the reason."""
        self.met = 0
        """Recorded frames of the replaced host that the live host has sent as well."""
        self.position = 0
        """Index of the next record in the script."""
        self.done = False
        self._name = name or script.name or "replay:0"
        self._timeout = timeout
        self._speaker = FrameTranslator(self.conversation)
        self._regions = PlayedRegions(script.records, script.dialect)
        self._receiver = FrameReceiver(
            self.conversation,
            self.expectations,
            self._regions,
            report=lambda each: self.findings.append(each),
            arrived=self._arrived,
            settled=self._settled,
            on_connect=self._reply_to_connect,
            pulled=self._reply_to_pull,
        )
        self._awaited = AwaitedFrames(self.conversation, self.expectations)
        self._outgoing: list[bytes] = []
        self._introduced = False
        self._next_introduction: int | None = None
        self._connects = OwnConnects()
        self._answers = ConnectAnswers(script.records)
        self._pulls = OwnPulls(self.expectations, script.dialect)
        self._progress_ns = self._now = 0
        self._blocks: set[tuple[int, int, int]] = set()
        """Blocks requested by PULLs so far: handle, magic and first frame."""
        self._quiet_since: int | None = None
        self._diverged = False

    # Frames and time.

    def receive(self, raw: bytes, now: int) -> None:
        """Take a frame from the wire."""
        self._now = now
        frame = self.codec.parse(raw)
        state = self.conversation
        # On a shared network, frames of other hosts arrive as well.
        if isinstance(frame, Malformed) or frame.src_mac != state.other:
            return
        if frame.dst_mac not in (state.address, BROADCAST):
            return
        if isinstance(frame, packets.HostQuery):
            state.live_index = frame.src_dst_peer_index
            answer = name_search.answer(frame, state.address, state.index, self._name)
            self._outgoing.append(self.codec.build(answer))
        elif isinstance(frame, packets.HostReply):
            state.live_index = frame.src_dst_peer_index
            self._introduced = True
        else:
            if isinstance(frame, (packets.ConnectRequest, packets.ConnectReply)):
                state.live_index = frame.src_dst_peer_index
            # Silence counts from the last frame.
            self._quiet_since = None
            self._receiver.receive(frame, now)
            if isinstance(frame, packets.ConnectReply) and frame.connect_status_code:
                self._check_key()

    def transmit(self, now: int, at_most: int = 64) -> list[bytes]:
        """Return the frames to transmit now: answers, and the next records of the script."""
        # Time begins with the first call, as the clock may be any.
        self._progress_ns = self._progress_ns or now
        if not self._introduced:
            self._introduce(now)
        elif not self.done:
            self._play(now, at_most)
            self._repeat(now)
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def deadline(self, now: int) -> int:
        """Return the time by which ``transmit`` should be called."""
        times = [self._progress_ns + self._patience, now + SECOND]
        if self._next_introduction is not None and not self._introduced:
            times.append(self._next_introduction)
        if self._quiet_since is not None:
            times.append(self._quiet_since + QUIET)
        times += [*self._connects.deadlines(), *self._answers.deadlines(), *self._pulls.deadlines()]
        for pair in self.conversation.pairs.values():
            times += pair.deadlines()
        # All expired timers have just run, so the next deadline must not be in the past.
        return min(each for each in times if each > now)

    @property
    def _patience(self) -> int:
        return min(self._timeout, SHORT_PATIENCE) if self._diverged else self._timeout

    def _introduce(self, now: int) -> None:
        """Announce the played host to the live one, and learn the peer index that it assigns."""
        if self._next_introduction is not None and now < self._next_introduction:
            return
        if now - self._progress_ns >= self._timeout:
            self._stop("it does not answer: no reply to a host query")
            return
        state = self.conversation
        announcement = discovery.announcement(state.address, state.rng.getrandbits(32))
        query = name_search.query(state.address, state.other, state.index)
        self._outgoing += [self.codec.build(announcement), self.codec.build(query)]
        self._next_introduction = now + introduction.EVERY

    # The script.

    def _play(self, now: int, at_most: int) -> None:
        records, end = self.script.records, self.played + at_most
        while self.position < len(records) and self.played < end:
            record = records[self.position]
            if record.is_played:
                if self._must_wait(record, now):
                    return
                self._perform(record, now)
            self.position += 1
            self._progress_ns = now
        if self.position == len(records):
            self._end(now)

    def _must_wait(self, record: Record, now: int) -> bool:
        """Return whether a frame that preceded a record of the played host is still missing."""
        missing = self._awaited.before(record)
        full = isinstance(record.frame, NUMBERED) and len(self._pair(record.frame).unacked) >= WINDOW
        # A new session ends the retransmission of messages of the old one, which the recorded host had received.
        busy = isinstance(record.frame, packets.ConnectRequest) and record.news and bool(self._awaited.unacked())
        if not missing and not full and not busy:
            return False
        if now - self._progress_ns < self._patience:
            return True
        if full:
            self._stop("it no longer acknowledges messages")
            return True
        is_reply = isinstance(record.frame, packets.PullReply)
        self._give_up(self.expectations.pulls_of(missing[0]) if is_reply else missing)
        self._progress_ns = now
        return self.done

    def _pair(self, frame: Any) -> EndpointPair:
        return self.conversation.pair(frame.src_endpoint, frame.dst_endpoint)

    def _perform(self, record: Record, now: int) -> None:
        """Send a recorded frame, unless it is an answer that is sent on request."""
        if not isinstance(record.frame, packets.PullReply) and not self._answers.is_early(record):
            self._send(record, now)

    def _send(self, record: Record, now: int) -> None:
        frame = record.frame
        try:
            live = self._speaker.live(frame)
        except NotPlayed as why:
            self.skipped.append((record, str(why)))
            for each in self.expectations.give_up(frame):
                self._awaited.forget(each)
            return
        built = self.codec.build(live)
        self._outgoing.append(built)
        self.played += 1
        self._note(record, live, built, now)

    def _note(self, record: Record, live: Any, built: bytes, now: int) -> None:
        frame = record.frame
        if isinstance(frame, packets.ConnectRequest):
            self._connects.note(frame, built, now)
        elif isinstance(frame, packets.ConnectReply):
            self._answers.leaves(record, self.conversation.connect_of(self._pair(frame), live), built)
        elif isinstance(frame, NUMBERED):
            pair = self._pair(frame)
            pair.note_sent(frame.lib_seqnum, live.lib_seqnum, built, now)
            pair.note_ack(live.lib_piggyack)
            if isinstance(frame, packets.Rndv):
                self._regions.announced(record)
            elif isinstance(frame, packets.Notify):
                self._pulls.end(frame)
        elif isinstance(frame, packets.Truc):
            self._pair(frame).note_ack(live.liback_lib_seqnum)
        elif isinstance(frame, packets.Pull):
            self._pulls.note(frame, built, now)

    def _arrived(self, expectation: Expectation) -> None:
        self.met += 1
        self._progress_ns = self._now
        late = self._awaited.arrived(expectation)
        if late is not None:
            self.findings = [each for each in self.findings if each is not late]
        frame = expectation.record.frame
        if isinstance(frame, packets.PullReply):
            self._pulls.arrived(frame)

    # Frames sent in answer to received ones.

    def _settled(self, key: tuple[Any, ...]) -> bool:
        """Settle a connect of the played host that was answered or refused; return whether there was one."""
        if key[0] is not packets.NackLib:
            return self._connects.answered(key)
        answer = self._connects.refused(*key[1:])
        if answer is not None:
            self._refused(answer)
        return answer is not None

    def _refused(self, key: tuple[Any, ...]) -> None:
        """Handle a connect refused by the card: no reply will follow, and without any reply so far, nothing else."""
        reply = self.expectations.take(key)
        if reply is None:
            return
        reply.missed = True
        self._awaited.forget(reply)
        if not self.conversation.live_sessions:
            number = self.conversation.live_endpoint(key[2])
            self._stop(f"its endpoint {number} is not open (--endpoint gives another one)")

    def _check_key(self) -> None:
        """Stop if the live host has refused the key: it will refuse everything that follows."""
        wrong = any(each.field == "ConnectReply.connect_status_code" for each in self.findings)
        if wrong and not self.conversation.live_sessions:
            self._stop("it refuses the key of the connect (--key gives another one)")

    def _reply_to_connect(
        self, request: packets.ConnectRequest, pair: EndpointPair, expectation: Expectation | None, again: bool
    ) -> None:
        connect = self.conversation.connect_of(pair, request)
        recorded = self._answers.given(connect)
        if recorded is not None:
            self._outgoing.append(recorded)
        elif expectation is not None:
            self._answers.owe(expectation.record, self._now)
        elif not again:
            reply = self._speaker.own_accept(request, pair)
            if reply is not None:
                built = self.codec.build(reply)
                self._answers.note(connect, built)
                self._outgoing.append(built)

    def _reply_to_pull(self, pull: packets.Pull, expectation: Expectation | None) -> None:
        block = pull.src_pull_handle, pull.src_magic, pull.frame_index
        if block not in self._blocks:
            # The transfer makes progress, so its duration is not limited.
            self._blocks.add(block)
            self._progress_ns = self._now
        recorded = None if expectation is None else expectation.record.frame
        self._outgoing += [self.codec.build(each) for each in self._regions.replies(pull, recorded)]

    def _repeat(self, now: int) -> None:
        """Retransmit frames that may have been lost, and acks that are due but not in the recording."""
        for reply in self._answers.overdue(now):
            self._send(reply, now)
        self._outgoing += [*self._connects.due(now), *self._pulls.due(now)]
        for pair in self.conversation.pairs.values():
            self._outgoing += pair.due(now)
            if pair.owes_ack(now):
                ack = self._speaker.own_ack(pair)
                if ack is not None:
                    self._outgoing.append(self.codec.build(ack))
                pair.note_ack(pair.expected)

    # Missing frames.

    def _give_up(self, missing: list[Expectation]) -> None:
        """Continue without missing frames."""
        self._diverged = self._diverged or bool(missing)
        for each in missing:
            self.findings += self._awaited.given_up(each)
        first = next((each for each in missing if isinstance(each.record.frame, packets.ConnectReply)), None)
        if first is not None and not self.conversation.live_sessions:
            frame: Any = first.record.frame
            number = self.conversation.live_endpoint(frame.src_endpoint)
            self._stop(f"its endpoint {number} does not answer a connect")

    def _stop(self, why: str) -> None:
        self.failure = why
        self.done = True

    def _end(self, now: int) -> None:
        """Wait for missing frames, then for unexpected ones, then finish."""
        if self._awaited.is_anything() and now - self._progress_ns < self._patience:
            return
        if self._quiet_since is None:
            self._quiet_since = now
        if now - self._quiet_since < QUIET:
            return
        self.done = True
        self.findings += self._awaited.left()
