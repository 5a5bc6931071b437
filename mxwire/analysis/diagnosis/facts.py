"""Facts that several diagnoses use, gathered once per capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.analysis.conversations import CapturedMessage, Connect, Follower
from mxwire.analysis.conversations.streams import stream_of
from mxwire.analysis.diagnosis.finding import Evidence, Party, evidence
from mxwire.analysis.diagnosis.libraries import EndpointRoute, Libraries, direction_at, direction_key
from mxwire.analysis.diagnosis.message_order import MessageOrder
from mxwire.analysis.diagnosis.sequence import Sequences
from mxwire.analysis.diagnosis.traffic import Traffic
from mxwire.analysis.first_keys import FirstKeys
from mxwire.wire.codes import groups_of
from mxwire.wire.decoder import DecodedBatch, Decoder
from mxwire.wire.detection import Detection, Detector
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import NO_SESSION
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.conversations import Flow

DIRECTIONS_MAXIMUM: Final = 1 << 14
SAMPLES: Final = 4


class Facts:
    """Collector of the messages and the traffic of a capture; memory is bounded."""

    def __init__(self, decoder: Decoder, *, marks: bool = False) -> None:
        self.decoder = decoder
        """The decoder of the capture."""
        self.follower = Follower(marks=marks)
        self.traffic = Traffic()
        self.libraries = Libraries()
        self.sequences = Sequences()
        self.numberings = MessageOrder()
        self.unknown_sessions: FirstKeys[EndpointRoute, dict[str, list[tuple[int, int]]]]
        self.unknown_sessions = FirstKeys(DIRECTIONS_MAXIMUM, dict)
        """Uses of the session 0xFFFFFFFF, by direction: number and time of the first frames, by layout."""
        self.unknown_counts: FirstKeys[EndpointRoute, Counter[str]] = FirstKeys(DIRECTIONS_MAXIMUM, Counter)
        """Number of such frames, by layout."""
        self.first_ns: int | None = None
        self.last_ns = 0
        self.dropped = 0
        """Number of frames lost by the capturing program, as it reported."""
        self.starved: list[tuple[int, int]] = []
        """Start and end of the periods in which the capturing program lacked the processor."""
        self.disordered = 0
        """Number of frames of any protocol that follow later ones in the capture."""
        self.backwards = 0
        """Number of messages acknowledged before they were sent, according to capture times."""
        self.first_numbered: FirstKeys[Flow, int] = FirstKeys(DIRECTIONS_MAXIMUM)
        """Time of the first numbered packet per flow, among finished messages."""
        self._senders = Detector(by_sender=True)

    def observe(self, decoded: DecodedBatch) -> list[CapturedMessage]:
        """Process a batch; return the finished messages."""
        if not len(decoded):
            return []
        times = decoded.batch.timestamp_ns
        self.first_ns = int(times.min()) if self.first_ns is None else min(self.first_ns, int(times.min()))
        self.last_ns = max(self.last_ns, int(times.max()))
        self._senders.learn(decoded.located)
        # Cooked captures lack the destinations of frames, and so pairs and directions.
        if decoded.located.has_destination:
            self.traffic.observe(decoded)
            self.libraries.observe(decoded)
            self.sequences.observe(decoded)
            self._observe_sessions(decoded)
        return self.follower.observe(decoded)

    def _observe_sessions(self, decoded: DecodedBatch) -> None:
        keys = decoded.hosts.keys
        for block in decoded.columns.blocks:
            if "session" not in block.names:
                continue
            which = np.flatnonzero(block["session"] == NO_SESSION)
            if not len(which):
                continue
            at = block.place[which]
            for value, members in groups_of(direction_key(decoded, block, which)):
                self._uses_unknown(direction_at(value, keys), block.layout.name, decoded, at[members])

    def _uses_unknown(
        self, direction: EndpointRoute, layout: str, decoded: DecodedBatch, places: NDArray[np.intp]
    ) -> None:
        kept = self.unknown_sessions[direction].setdefault(layout, [])
        for place in places[: SAMPLES - len(kept)].tolist():
            kept.append((int(decoded.batch.number[place]), int(decoded.batch.timestamp_ns[place])))
        self.unknown_counts[direction][layout] += len(places)

    def note(self, message: CapturedMessage) -> None:
        """Process a finished message."""
        if message.ack is not None and message.ack.time_ns < message.first_ns:
            self.backwards += 1
        self.numberings.note(message)
        self._numbered(message.flow, message.first_ns)
        if message.pull is not None and message.pull.notice is not None:
            self._numbered(message.flow.back, message.pull.notice.first_ns)

    def _numbered(self, flow: Flow, time_ns: int) -> None:
        known = self.first_numbered.get(flow)
        # Messages are reported in the order in which they end, not in that of their first frames.
        if known is None or time_ns < known:
            self.first_numbered[flow] = time_ns

    def dialects(self) -> dict[tuple[int, int], Dialect]:
        """Return the known dialects of pairs of hosts, by their addresses, the lower one first."""
        found = ((sorted(each.hosts), each.dialect) for each in self.decoder.detections())
        return {(low, high): dialect for (low, high), dialect in found if dialect is not None}

    def senders(self) -> dict[int, Detection]:
        """Return the dialect of each host, by address, if its frames determine it."""
        return {each.hosts[0]: each for each in self._senders.detections() if each.dialect is not None}

    def name(self, address: int) -> str | None:
        """Return the name of a host, if known."""
        return self.follower.names.get(address)

    @property
    def duration_ns(self) -> int:
        """Time from the first MXoE frame to the last, in nanoseconds."""
        return 0 if self.first_ns is None else self.last_ns - self.first_ns

    def since_start(self, time_ns: int) -> int:
        """Return the nanoseconds since the first frame of the capture, of any protocol."""
        start = self.decoder.start_ns
        return time_ns - (start if start is not None else self.first_ns or 0)


def connects_of(facts: Facts) -> Iterator[tuple[Connect, Flow]]:
    """Yield all connects, each with the flow of its initiator."""
    for conversation in facts.follower.conversations:
        for connect in conversation.connects:
            yield connect, conversation.flows[connect.side]


def direction_of(flow: Flow) -> EndpointRoute:
    """Return the source and destination endpoints of a flow."""
    return EndpointRoute(flow.address, flow.endpoint or 0, flow.back.address, flow.back.endpoint or 0)


def sender_of(flow: Flow) -> Party:
    """Return the endpoint that sends in a flow."""
    return Party(flow.address, flow.endpoint)


def ends(flow: Flow) -> tuple[Party, Party]:
    """Return the endpoints of a flow, its sender first."""
    return sender_of(flow), sender_of(flow.back)


def waits_for_another(message: CapturedMessage) -> bool:
    """Return whether the receiver cannot acknowledge a message because an earlier one never passed (R-ACK-01)."""
    stream = stream_of(message)
    return stream is not None and stream.acked < message.position and stream.acked not in stream.entries


def first_frame(message: CapturedMessage) -> int | None:
    """Return the number of the first frame of a message."""
    return next((first for first, _ in message.frames), None)


def frames_of(messages: Iterable[CapturedMessage]) -> list[int]:
    """Return the number of the first frame of each message."""
    return [number for number in map(first_frame, messages) if number is not None]


def named(message: CapturedMessage) -> str:
    """Return the term for a message in evidence."""
    length = "" if message.length is None else f" of {count_of(message.length, 'byte')}"
    return f"message {message.number} ({message.kind}{length})"


def about(message: CapturedMessage, text: str) -> Evidence:
    """Return a message as evidence: its first frame and those that repeated it."""
    first = first_frame(message)
    repeats = [each.frame for each in message.resends]
    return evidence(f"{named(message)} {text}", [*([first] if first is not None else []), *repeats], message.first_ns)
