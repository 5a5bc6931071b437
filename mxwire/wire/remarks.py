"""Remarks on well-formed frames that are unusual, and the receiver's reaction to them.

These are conditions of the behaviour specification (sections 16, 21 and 23) that a single frame shows but that do not
make it malformed, because the receiver consults its own state first or accepts the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import Any, Final

from mxwire.wire import packets
from mxwire.wire.dialect import Dialect
from mxwire.wire.enums import ConnectStatus, NackType, TrucType
from mxwire.wire.numbers import HOST_NAME_MAXIMUM, LIBACK_LENGTH, NO_SESSION

_Condition = Callable[[Any, Dialect], Any]
"""A condition on the fields of a frame; on arrays of them it returns an array."""
_Text = str | Callable[[Any, Dialect], str]


def remarks(frame: packets.Frame, dialect: Dialect) -> list[str]:
    """Remarks on ``frame``; empty for nearly all frames."""
    judged = _REMARKS.get(type(frame))
    return [] if judged is None else [*_applying(judged, frame, dialect)]


def is_remarkable(frame_class: type[packets.Frame], fields: Any, dialect: Dialect) -> Any:
    """Return which frames have remarks: a mask of shape (n,), or False.

    ``fields`` has the attributes of ``frame_class`` as signed arrays of shape (n,).
    """
    judged = _REMARKS.get(frame_class, ())
    return reduce(or_, (applies(fields, dialect) for applies, _ in judged), False)


def _applying(judged: tuple[tuple[_Condition, _Text], ...], frame: packets.Frame, dialect: Dialect) -> Iterator[str]:
    for applies, text in judged:
        if applies(frame, dialect):
            yield text if isinstance(text, str) else text(frame, dialect)


def _requested(pull: Any, dialect: Dialect) -> Any:
    """The number of frames that a PULL requests, as the replier computes it, in 32 bits (R-MEA-03)."""
    end = pull.first_frame_offset + pull.block_length
    return (end + dialect.reply_payload - 1) % 2**32 // dialect.reply_payload


_SESSION: Final = (lambda frame, _: frame.session == NO_SESSION, "session unknown to the sender (R-CON-12)")

# The operators & and | also work on arrays, unlike and, or and chained comparisons.
_REMARKS: Final[dict[type[packets.Frame], tuple[tuple[_Condition, _Text], ...]]] = {
    packets.Truc: (
        (
            lambda truc, _: truc.liback_type != TrucType.ACK,
            lambda truc, _: f"sub-type 0x{truc.liback_type:02x} is dropped",
        ),
        (
            lambda truc, _: (truc.liback_type == TrucType.ACK) & (truc.length < LIBACK_LENGTH),
            "data length below 16 is dropped",
        ),
        (
            lambda truc, _: (truc.liback_type == TrucType.ACK) & (truc.session != truc.liback_session_id),
            "the two session ids differ",
        ),
        _SESSION,
    ),
    packets.HostReply: (
        (
            lambda reply, _: (reply.length < 1) | (reply.length > HOST_NAME_MAXIMUM),
            "a name length outside 1 to 80 corrupts a real receiver (R-HOST-08)",
        ),
        (lambda reply, _: len(reply.hostname) < reply.length, "the name is longer than the frame"),
    ),
    packets.ConnectReply: (
        (
            lambda reply, _: (
                (reply.connect_status_code != ConnectStatus.SUCCESS)
                & (reply.connect_status_code != ConnectStatus.BAD_KEY)
            ),
            "a status other than 0 and 11 is ignored (R-CON-04)",
        ),
    ),
    packets.Medium: (
        (
            lambda medium, _: medium.frag_length > medium.length,
            "the fragment is longer than the message (R-MED-04)",
        ),
    ),
    packets.Pull: (
        (
            lambda pull, dialect: _requested(pull, dialect) > dialect.frames_per_block,
            lambda pull, dialect: (
                f"requests {_requested(pull, dialect)} frames, more than "
                f"{dialect.frames_per_block}: dropped (bad number of replies)"
            ),
        ),
        (
            lambda pull, dialect: pull.first_frame_offset >= dialect.reply_payload,
            "first_frame_offset reaches beyond the first frame (D-15)",
        ),
        (
            lambda pull, _: pull.pulled_rdma_id > 0xFF,
            "no region has this number: refused with BAD_RDMAWIN",
        ),
        _SESSION,
    ),
    packets.Notify: (_SESSION,),
    packets.NackLib: (
        (
            lambda nack, _: (nack.nack_type < NackType.BAD_ENDPT) | (nack.nack_type > NackType.BAD_SESSION),
            "this nack type aborts the receiving application (R-NAK-07)",
        ),
    ),
    packets.NackMcp: (
        (
            lambda nack, _: (nack.nack_type < NackType.BAD_ENDPT) | (nack.nack_type > NackType.BAD_RDMAWIN),
            "no such nack type (R-NAK-09)",
        ),
    ),
}
