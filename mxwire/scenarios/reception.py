"""Reception: the selection of frames that belong to a live run, among those of other sessions, hosts or times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from mxwire.ethernet import is_group
from mxwire.scenarios.cast import Cast
from mxwire.scenarios.description import packet_of
from mxwire.scenarios.errors import ScriptError
from mxwire.scenarios.scope import RunScope
from mxwire.scenarios.script import Script
from mxwire.scenarios.steps import ExpectStep, walk
from mxwire.wire.codec import Malformed, codec_of
from mxwire.wire.numbers import NO_SESSION
from mxwire.wire.packets import ConnectReply, ConnectRequest, Frame, NackMcp, Pull, PullReply

_UNPROMPTED: Final = frozenset({"HOST_QUERY", "RAW", "RAW_OMXOED"})
"""Packets that a host sends without being addressed first."""
_ETHERNET_ADDRESSES: Final = 12


class Reception:
    """Selects the frames of the host that are meant for the testers of one run.

    A host continues what an earlier run began, for example the pulls of a closed endpoint (R-MEA-21), and communicates
    with other hosts. A frame belongs to the run if its destination is a tester's address, a group, or an address named
    by the scenario, and if its endpoint, session and pull handle are among those used by the testers in this run.
    """

    def __init__(self, script: Script, cast: Cast) -> None:
        self._codec = codec_of(cast.dialect)
        self._host = cast.target.mac
        self._addresses = {each.mac for each in cast.stations.values()}
        self._elsewhere: set[str] = set()
        """Packets that the scenario expects at an address which is known only while it runs."""
        for step in walk(script.steps):
            if isinstance(step, ExpectStep) and "dst_mac" in step.fields:
                self._expect_at(step, RunScope({}, cast.tester(step.tester)))
        self._endpoints = cast.endpoints
        self._sessions = {NO_SESSION}
        self._pulls: set[tuple[int, int]] = set()
        self.passed_over: Counter[str] = Counter()
        """Number of frames of the host to a tester's host but to none of its endpoints or sessions, by packet."""

    def _expect_at(self, step: ExpectStep, scope: RunScope) -> None:
        condition = step.fields["dst_mac"]
        try:
            values = [value.value(scope) for each in (condition, *condition.others) for value in each.values]
        except ScriptError:
            values = []
        self._addresses.update(each for each in values if isinstance(each, bytes))
        if not values:
            self._elsewhere.add(step.packet)

    def sent(self, frames: Iterable[bytes]) -> None:
        """Record frames of the testers: the host learns endpoints, sessions and handles from them."""
        for raw in frames:
            frame = self._codec.parse(raw)
            endpoint = getattr(frame, "src_endpoint", None)
            if endpoint is not None and not isinstance(frame, NackMcp):
                self._endpoints.add(endpoint)
            match frame:
                case ConnectRequest():
                    self._sessions.add(frame.src_session_id)
                case ConnectReply():
                    self._sessions.add(frame.target_session_id)
                case Pull():
                    self._pulls.add((frame.src_pull_handle, frame.src_magic))

    def takes(self, raw: bytes) -> bool:
        """Return True for a frame that belongs to the run."""
        if raw[_ETHERNET_ADDRESSES // 2 : _ETHERNET_ADDRESSES] != self._host:
            return False
        frame = self._codec.parse(raw)
        packet = packet_of(frame)
        destination = raw[: _ETHERNET_ADDRESSES // 2]
        if not (destination in self._addresses or is_group(destination) or packet in self._elsewhere):
            return False
        if isinstance(frame, Malformed) or self._is_ours(frame):
            return True
        self.passed_over[packet] += 1
        return False

    def takes_early(self, raw: bytes) -> bool:
        """Return True for a frame from before the first step that belongs to the run.

        Only a host that was created for the run sends such frames to the testers.
        """
        return self.takes(raw) and packet_of(self._codec.parse(raw)) in _UNPROMPTED

    def _is_ours(self, frame: Frame) -> bool:
        match frame:
            case PullReply():
                return (frame.dst_pull_handle, frame.dst_magic) in self._pulls
            case NackMcp():
                return (frame.src_pull_handle, frame.src_magic) in self._pulls
        if getattr(frame, "dst_endpoint", None) not in (None, *self._endpoints):
            return False
        session = frame.src_session_id if isinstance(frame, ConnectReply) else getattr(frame, "session", None)
        return session is None or session in self._sessions
