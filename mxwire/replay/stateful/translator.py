"""Translation of recorded frames of the played host into the live conversation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.protocol.library.reliability import number
from mxwire.replay.stateful.conversation import EndpointPair, LiveConversation, region_of
from mxwire.replay.stateful.records import NUMBERED
from mxwire.wire import packets
from mxwire.wire.numbers import FIRST_NUMBER, NO_SESSION


class NotPlayed(Exception):
    """A frame cannot be sent because the frame that it answers has not arrived; the text names it."""


class FrameTranslator:
    """Rewrites frames of the played host: addresses, indexes, endpoints, sessions, numbers, acks, regions, handles."""

    def __init__(self, conversation: LiveConversation) -> None:
        self._with = conversation
        self._rewrite: Final[dict[type[packets.Frame], Callable[[Any], dict[str, Any]]]] = {
            packets.ConnectRequest: self._connect,
            packets.ConnectReply: self._accept,
            packets.Tiny: self._message,
            packets.Small: self._message,
            packets.Medium: self._message,
            packets.Rndv: self._message,
            packets.Notify: self._notify,
            packets.Truc: self._ack,
            packets.Pull: self._pull,
            packets.NackLib: self._nack,
            packets.NackMcp: self._nack_pull,
        }

    def live(self, recorded: packets.Frame) -> Any:
        """Return the frame to send. Raises :class:`NotPlayed`; the number of an unsent message is then left out."""
        state = self._with
        try:
            changed = self._rewrite[type(recorded)](recorded)
        except NotPlayed:
            if isinstance(recorded, NUMBERED):
                self._pair(recorded).skip(recorded.lib_seqnum)
            raise
        head: dict[str, Any] = {
            "ethertype": ETHERTYPE_MXOE,
            "dst_mac": state.other,
            "src_mac": state.address,
            "dst_src_peer_index": state.live_index,
        }
        if hasattr(recorded, "dst_endpoint"):
            head["dst_endpoint"] = state.live_endpoint(recorded.dst_endpoint)
        return replace(recorded, **head | changed)

    def _pair(self, frame: Any) -> EndpointPair:
        return self._with.pair(frame.src_endpoint, frame.dst_endpoint)

    def _session(self, recorded: int) -> int:
        session = self._with.live_session(recorded)
        if session is None:
            raise NotPlayed("the live endpoint has not announced a session for it")
        return session

    def _connect(self, frame: packets.ConnectRequest) -> dict[str, Any]:
        state, pair = self._with, self._pair(frame)
        session = state.played_session(frame.src_session_id)
        start = pair.expected
        if state.present.get(frame.src_endpoint) != session:
            self._opened(frame.src_endpoint, session)
            start = frame.target_recv_seqnum_start
            pair.expect_from(start)
        return {
            "src_dst_peer_index": state.index,
            "src_session_id": session,
            "app_key": state.key(frame.app_key),
            "target_recv_seqnum_start": start,
        }

    def _opened(self, played: int, session: int) -> None:
        """Handle a new session of a played endpoint."""
        state = self._with
        if played in state.present:
            for pair in state.pairs.values():
                if pair.played == played:
                    pair.unacked.clear()
        state.present[played] = session

    def _accept(self, frame: packets.ConnectReply) -> dict[str, Any]:
        state, pair = self._with, self._pair(frame)
        place = frame.src_endpoint, frame.dst_endpoint, frame.src_session_id, frame.connect_seqnum
        request = state.requests.get(place)
        if request is None:
            raise NotPlayed("the connect that it answers has not arrived")
        session = state.played_session(frame.target_session_id)
        if state.present.get(frame.src_endpoint) != session:
            self._opened(frame.src_endpoint, session)
        if number(frame.target_recv_seqnum_start) == FIRST_NUMBER and pair.expected != frame.target_recv_seqnum_start:
            # The played host took the partner for a new one, and reset its receive state (R-CON-10).
            pair.expect_from(frame.target_recv_seqnum_start)
        return {
            "src_dst_peer_index": state.index,
            "src_session_id": request.src_session_id,
            "target_session_id": session,
            "target_recv_seqnum_start": pair.expected,
            "connect_seqnum": request.connect_seqnum,
        }

    def _message(self, frame: Any) -> dict[str, Any]:
        pair = self._pair(frame)
        session = self._session(frame.session)
        live = pair.live_number(frame.lib_seqnum)
        if live is None:
            raise NotPlayed("the partner has not yet announced its first expected number")
        return {"session": session, "lib_seqnum": live, "lib_piggyack": pair.ack(frame.lib_piggyack)}

    def _notify(self, frame: packets.Notify) -> dict[str, Any]:
        announced = self._announced(frame)
        region = {"pulled_rdma_id": announced.pulled_rdma_id, "pulled_rdma_seqnum": announced.pulled_rdma_seqnum}
        return self._message(frame) | region

    def _announced(self, frame: Any) -> packets.Rndv:
        region = self._with.live_regions.get(region_of(frame, frame.src_endpoint, frame.dst_endpoint))
        if region is None:
            raise NotPlayed("the large message that it refers to has not arrived")
        return region

    def _ack(self, frame: packets.Truc) -> dict[str, Any]:
        pair = self._pair(frame)
        session = self._session(frame.session)
        value = pair.ack(frame.liback_lib_seqnum)
        if session == NO_SESSION:
            # It will be refused, so its content does not matter.
            return {"liback_lib_seqnum": value, "liback_send_seq": value}
        pair.acknum += 1
        return {
            "session": session,
            "liback_session_id": session,
            "liback_lib_seqnum": value,
            "liback_send_seq": value,
            "liback_acknum": pair.acknum,
        }

    def _pull(self, frame: packets.Pull) -> dict[str, Any]:
        announced = self._announced(frame)
        if (announced.pulled_rdma_offset - frame.pulled_rdma_offset) % self._with.script.dialect.reply_payload:
            raise NotPlayed("the live message has another offset in its region, and therefore other blocks")
        return {
            "session": self._session(frame.session),
            "pulled_rdma_id": announced.pulled_rdma_id,
            "pulled_rdma_seqnum": announced.pulled_rdma_seqnum,
            "pulled_rdma_offset": announced.pulled_rdma_offset,
        }

    def _nack(self, frame: packets.NackLib) -> dict[str, Any]:
        state, pair = self._with, self._pair(frame)
        copy = {"dst_src_peer_index_copy": state.live_index}
        if not number(frame.lib_seqnum):
            if not any(place[:2] == (pair.played, pair.live) for place in state.requests):
                raise NotPlayed("the connect that it refuses has not arrived")
            return copy
        live = state.live_numbers.get((pair.played, pair.live, frame.lib_seqnum))
        if live is None:
            raise NotPlayed("the packet that it refuses has not arrived")
        return copy | {"lib_seqnum": live}

    def _nack_pull(self, frame: packets.NackMcp) -> dict[str, Any]:
        handle = self._with.live_handles.get((frame.src_pull_handle, frame.src_magic))
        if handle is None:
            raise NotPlayed("the PULL that it refuses has not arrived")
        return {
            "src_endpoint": self._with.live_endpoint(frame.src_endpoint),
            "src_pull_handle": handle[0],
            "src_magic": handle[1],
        }

    def own_ack(self, pair: EndpointPair) -> packets.Truc | None:
        """Return an ack of everything received, where the recording has none."""
        state = self._with
        if pair.live_session is None:
            return None
        pair.acknum += 1
        value = pair.ack()
        return packets.Truc(
            dst_mac=state.other,
            src_mac=state.address,
            dst_src_peer_index=state.live_index,
            dst_endpoint=state.live_endpoint(pair.live),
            src_endpoint=pair.played,
            session=pair.live_session,
            liback_session_id=pair.live_session,
            liback_lib_seqnum=value,
            liback_send_seq=value,
            liback_acknum=pair.acknum,
        )

    def own_accept(self, request: packets.ConnectRequest, pair: EndpointPair) -> packets.ConnectReply | None:
        """Return an answer to a connect that is not in the recording; None before the played endpoint is open."""
        state = self._with
        session = state.present.get(pair.played)
        if session is None:
            return None
        return packets.ConnectReply(
            dst_mac=state.other,
            src_mac=state.address,
            dst_src_peer_index=state.live_index,
            dst_endpoint=request.src_endpoint,
            src_endpoint=pair.played,
            src_dst_peer_index=state.index,
            src_session_id=request.src_session_id,
            target_session_id=session,
            target_recv_seqnum_start=pair.expected,
            connect_seqnum=request.connect_seqnum,
            connect_status_code=0,
        )
