"""Remarks on well-formed frames that are unusual, and the receiver's reaction to them.

These are conditions of the behaviour specification (sections 16, 21 and 23) that a single frame shows but that do not
make it malformed, because the receiver consults its own state first or accepts the frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mxwire.wire import packets
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import ConnectStatus, NackType, TrucType
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, LIBACK_LENGTH, NO_SESSION


def remarks(frame: packets.Frame, dialect: Dialect) -> list[str]:
    """Remarks on ``frame``; empty for nearly all frames."""
    judge = _JUDGES.get(type(frame))
    return [] if judge is None else [text for applies, text in judge(frame, dialect) if applies]


_Findings = list[tuple[bool, str]]


def _session(session: int) -> tuple[bool, str]:
    return session == NO_SESSION, "session unknown to the sender (R-CON-12)"


def _truc(frame: packets.Truc, dialect: Dialect) -> _Findings:
    liback = frame.liback_type == TrucType.ACK
    return [
        (not liback, f"sub-type 0x{frame.liback_type:02x} is dropped"),
        (liback and frame.length < LIBACK_LENGTH, "data length below 16 is dropped"),
        (liback and frame.session != frame.liback_session_id, "the two session ids differ"),
        _session(frame.session),
    ]


def _host_reply(frame: packets.HostReply, dialect: Dialect) -> _Findings:
    return [
        (
            not 1 <= frame.length <= HOST_NAME_MAXIMUM,
            "a name length outside 1 to 80 corrupts a real receiver (R-HOST-08)",
        ),
        (len(frame.hostname) < frame.length, "the name is longer than the frame"),
    ]


def _connect_reply(frame: packets.ConnectReply, dialect: Dialect) -> _Findings:
    known = frame.connect_status_code in tuple(ConnectStatus)
    return [(not known, "a status other than 0 and 11 is ignored (R-CON-04)")]


def _medium(frame: packets.Medium, dialect: Dialect) -> _Findings:
    return [(frame.frag_length > frame.length, "the fragment is longer than the message (R-MED-04)")]


def _pull(frame: packets.Pull, dialect: Dialect) -> _Findings:
    # The replier computes in 32 bits (R-MEA-03).
    end = frame.first_frame_offset + frame.block_length
    frames = (end + dialect.reply_payload - 1) % 2**32 // dialect.reply_payload
    return [
        (
            frames > dialect.frames_per_block,
            f"requests {frames} frames, more than {dialect.frames_per_block}: dropped (bad number of replies)",
        ),
        (frame.first_frame_offset >= dialect.reply_payload, "first_frame_offset reaches beyond the first frame (D-15)"),
        (frame.pulled_rdma_id > 0xFF, "no region has this number: refused with BAD_RDMAWIN"),
        _session(frame.session),
    ]


def _notify(frame: packets.Notify, dialect: Dialect) -> _Findings:
    return [_session(frame.session)]


def _nack_lib(frame: packets.NackLib, dialect: Dialect) -> _Findings:
    known = NackType.BAD_ENDPT <= frame.nack_type <= NackType.BAD_SESSION
    return [(not known, "this nack type aborts the receiving application (R-NAK-07)")]


def _nack_mcp(frame: packets.NackMcp, dialect: Dialect) -> _Findings:
    known = NackType.BAD_ENDPT <= frame.nack_type <= NackType.BAD_RDMAWIN
    return [(not known, "no such nack type (R-NAK-09)")]


_JUDGES: Final[dict[type[packets.Frame], Callable[[Any, Dialect], _Findings]]] = {
    packets.Truc: _truc,
    packets.HostReply: _host_reply,
    packets.ConnectReply: _connect_reply,
    packets.Medium: _medium,
    packets.Pull: _pull,
    packets.Notify: _notify,
    packets.NackLib: _nack_lib,
    packets.NackMcp: _nack_mcp,
}
