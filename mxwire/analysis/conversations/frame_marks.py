"""Marks: the message, the role and the flags of each frame, as the follower assigns them.

The follower reads each frame once, so a mark depends only on the capture up to that frame: a retransmission is marked,
but not its original, nor a frame that is nacked later. Therefore marks need no memory beyond the batch, and do not
depend on how the capture is divided into batches.

Flags are bits. Their names, labels and meanings are defined here once: JSON, tables, lines, ladders and the Wireshark
plugin take them from :data:`FLAGS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mxwire.wire.checks import Reason
from mxwire.wire.numbers import ENDPOINT_MAXIMUM, NO_SESSION, QUERY_MAGICS

if TYPE_CHECKING:
    from mxwire.wire.decoder import DecodedBatch


class Role(StrEnum):
    """The role of a frame in a message."""

    DATA = "data"
    """A frame with the message, or with a fragment of it."""
    RNDV = "rndv"
    PULL = "pull"
    REPLY = "reply"
    NOTIFY = "notify"
    ACK = "ack"
    """An acknowledgement of the message, or of its NOTIFY."""
    NACK = "nack"


ROLES: Final = (None, *Role)
"""Roles by code; code 0 stands for frames without a role."""
DATA, RNDV, PULL, REPLY, NOTIFY, ACK, NACK = range(1, len(ROLES))


class FlagMeaning(NamedTuple):
    """The texts of a flag."""

    label: str
    """Text in lines of output."""
    meaning: str
    severity: Literal["note", "warn"] = "note"
    """``warn`` if it means that the capture or the receiver lacks data."""


FLAGS: Final[dict[str, FlagMeaning]] = {
    "retransmission": FlagMeaning("retransmission", "This packet was transmitted before (R-RTX-02, R-PUL-12)"),
    "re_request": FlagMeaning("re-request", "This block was requested before (R-PUL-07, R-PUL-08)"),
    "early_re_request": FlagMeaning(
        "early re-request", "This block was requested before, and a later one is already complete (R-PUL-07)"
    ),
    "duplicate": FlagMeaning(
        "duplicate", "The same packet again at once: duplicated by the network or by the capture (R-RTX-01)"
    ),
    "out_of_order": FlagMeaning("out of order", "Follows a later packet of the same direction or block"),
    "early": FlagMeaning(
        "early", "Received before an earlier message, which is missing; the receiver stores it (R-ORD-03)"
    ),
    "obsolete": FlagMeaning(
        "obsolete", "The receiver has acknowledged or ended this message already, and drops the frame (R-ORD-03)"
    ),
    "gap": FlagMeaning(
        "gap", "The previous message of this direction, or reply of this block, is not in the capture", "warn"
    ),
    "nacked": FlagMeaning("nacked", "A nack has refused this message or pull before"),
    "refused": FlagMeaning(
        "refused",
        "Session 0xFFFFFFFF: the sender never learnt the session id, and the receiver refuses it (R-CON-12)",
        "warn",
    ),
    "throttled": FlagMeaning(
        "throttled", "The maximum of messages is outstanding; further sends wait (R-SEQ-06)", "warn"
    ),
    "probe": FlagMeaning("probe", "Sent by a diagnostic tool to examine a driver; no driver sends it"),
}
"""The flags by name, from the lowest bit."""
(
    RETRANSMISSION,
    RE_REQUEST,
    EARLY_RE_REQUEST,
    DUPLICATE,
    OUT_OF_ORDER,
    EARLY,
    OBSOLETE,
    GAP,
    NACKED,
    REFUSED,
    THROTTLED,
    PROBE,
) = (1 << bit for bit in range(len(FLAGS)))
_BITS: Final = {name: 1 << bit for bit, name in enumerate(FLAGS)}
REPEATED: Final = RETRANSMISSION | DUPLICATE
_FIRST: Final = RETRANSMISSION | RE_REQUEST | EARLY_RE_REQUEST | DUPLICATE
"""Flags for kinds of repetition, which are printed first in a line."""


def flag_bit(name: str) -> int:
    """Return the bit of the flag ``name``; raise :class:`KeyError` for an unknown one."""
    return _BITS[name]


def flag_names(flags: int) -> list[str]:
    """Return the names of the flags set in ``flags``, in the order of :data:`FLAGS`."""
    return [name for name, bit in _BITS.items() if flags & bit]


def flags_text(names: Iterable[str]) -> str:
    """Return the labels of flags, separated by commas; an early re-request is not also labelled a re-request."""
    shown = [*names]
    if "early_re_request" in shown:
        shown.remove("re_request")
    return ", ".join(FLAGS[each].label for each in shown)


class MessageFacts(NamedTuple):
    """The properties of a message by which its frames are selected."""

    kind: str
    match: int | None
    address: int
    """Ethernet address of its sender."""
    endpoint: int | None
    back_endpoint: int | None
    """The endpoint of its receiver."""


def _no_facts(_number: int) -> MessageFacts | None:
    return None


@dataclass(frozen=True, slots=True, eq=False)
class FrameMarks:
    """The marks of a batch: arrays of shape (frames,)."""

    message: NDArray[np.int64]
    """Number of the message, as in ``mxwire messages``; 0 for frames without a message. An ack that is not piggybacked
    belongs to the newest message that it acknowledges."""
    role: NDArray[np.uint8]
    """Indexes into :data:`ROLES`."""
    flags: NDArray[np.uint32]
    repeat: NDArray[np.uint32]
    """Ordinal number of the retransmission or re-request, from 1; 0 for other frames."""
    acknowledges: NDArray[np.int64]
    """Number of the newest message that a frame acknowledges, explicitly or by a piggybacked ack; 0 for none."""
    acks: NDArray[np.int64]
    """Place of the frame and number of the message for each message acknowledged, in order; shape (n, 2)."""
    late: frozenset[int]
    """Places of frames whose message had already been reported."""
    facts: Callable[[int], MessageFacts | None] = _no_facts
    """Function that returns the facts of a message of this batch by its number, valid until the next batch is observed.
    Unless the follower keeps facts, it returns None for finished messages."""

    def select(self, places: NDArray[np.intp]) -> FrameMarks:
        """Return the marks of the frames at ``places``, in ascending order."""
        acks = self.acks[np.isin(self.acks[:, 0], places)]
        acks[:, 0] = np.searchsorted(places, acks[:, 0])
        return FrameMarks(
            self.message[places],
            self.role[places],
            self.flags[places],
            self.repeat[places],
            self.acknowledges[places],
            acks,
            frozenset(np.flatnonzero(np.isin(places, [*self.late])).tolist()),
            self.facts,
        )

    def role_at(self, place: int) -> str | None:
        """Return the role of the frame at ``place``; None if it has none."""
        role = ROLES[self.role[place]]
        return None if role is None else role.value

    def texts(self, places: NDArray[np.intp]) -> dict[int, str]:
        """Return the texts of the frames at ``places`` by their position in ``places``, without empty ones."""
        flags, role, acknowledges = self.flags[places], self.role[places], self.acknowledges[places]
        # Acks are frequent; other frames with a text are rare.
        plain = (flags == 0) & (role == ACK) & (acknowledges > 0)
        texts = {
            position: f"acknowledges message {number}"
            for position, number in zip(np.flatnonzero(plain).tolist(), acknowledges[plain].tolist(), strict=True)
        }
        for position in np.flatnonzero(~plain & ((flags != 0) | (role >= ACK))).tolist():
            text = self.text(places[position])
            if text:
                texts[position] = text
        return texts

    def text(self, place: int) -> str:
        """Return the mark of a frame in words; empty for a frame that is simply the next one of its message.

        Examples: ``retransmission 3 of message 4``, ``duplicate of message 1, early``, ``acknowledges message 7``.
        """
        flags, role, message = int(self.flags[place]), int(self.role[place]), int(self.message[place])
        refused = flags & REFUSED
        # The summary of the frame already states that it names no session.
        flags &= ~REFUSED
        if not flags and role < ACK:
            return ""
        parts = flags_text(flag_names(flags)).split(", ") if flags else []
        if flags & _FIRST:
            repeat = int(self.repeat[place])
            of = "" if not message else f" of message {message}"
            parts[0] += (f" {repeat}" if repeat else "") + of
        elif role == NACK and message:
            parts.insert(0, f"nack of message {message}")
        elif role == ACK:
            acknowledged = int(self.acknowledges[place])
            if acknowledged:
                parts.insert(0, f"{'refused ack of' if refused else 'acknowledges'} message {acknowledged}")
        elif message:
            parts[-1] += f": message {message}"
        return ", ".join(parts)


class MarkRecorder:
    """Recorder of the marks of a batch while the follower passes its frames."""

    def __init__(self, facts: Callable[[int], MessageFacts | None] = _no_facts) -> None:
        self._facts = facts
        self.begin(0)

    def begin(self, count: int) -> None:
        """Start a batch of ``count`` frames."""
        self._message, self._role, self._flags = [0] * count, bytearray(count), [0] * count
        self._repeats: list[tuple[int, int]] = []
        self._runs: list[
            tuple[NDArray[np.intp], NDArray[np.int64] | int, NDArray[np.uint8] | int, NDArray[np.uint32] | int]
        ] = []
        self._acks: list[NDArray[np.int64]] = []
        self.acks: list[tuple[int, int]] = []
        """The acks of frames after the last run."""
        self.late: list[int] = []

    def mark(self, place: int, message: int, role: int, flags: int = 0, repeat: int = 0) -> None:
        """Mark the frame at ``place`` of the batch."""
        self._message[place] = message
        self._role[place] = role
        if flags:
            self._flags[place] = flags
            if repeat:
                self._repeats.append((place, repeat))

    def mark_late(self, place: int, message: int, role: int, flags: int) -> None:
        """Mark a frame of a message that has already been reported."""
        self.mark(place, message, role, flags)
        self.late.append(place)

    def mark_replies(self, places: NDArray[np.intp], message: int, flags: NDArray[np.uint32] | int) -> None:
        """Mark the replies at ``places``; ``flags`` holds one value for all, or one per reply."""
        self._runs.append((places, message, REPLY, flags))

    def mark_run(
        self,
        places: NDArray[np.intp],
        message: NDArray[np.int64],
        role: NDArray[np.uint8],
        acks: NDArray[np.int64],
    ) -> None:
        """Mark the frames at ``places``, which follow all marked ones; ``acks`` as :attr:`FrameMarks.acks`."""
        self._runs.append((places, message, role, 0))
        self._acks += (_pairs(self.acks), acks)
        self.acks = []

    def take(self, decoded: DecodedBatch) -> FrameMarks:
        """Return the marks of the batch ``decoded``."""
        message = np.array(self._message, np.int64)
        role = np.frombuffer(self._role, np.uint8).copy()
        flags = np.array(self._flags, np.uint32)
        for places, number, roles, each in self._runs:
            message[places], role[places], flags[places] = number, roles, each
        repeat, acknowledges = np.zeros(len(message), np.uint32), np.zeros(len(message), np.int64)
        for place, count in self._repeats:
            repeat[place] = count
        acks = np.concatenate([*self._acks, _pairs(self.acks)])
        # If a frame acknowledges several messages, the last assignment wins: the newest message.
        acknowledges[acks[:, 0]] = acks[:, 1]
        if len(message):
            _mark_by_fields(decoded, flags)
        return FrameMarks(message, role, flags, repeat, acknowledges, acks, frozenset(self.late), self._facts)


def _pairs(acks: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(acks, np.int64).reshape(-1, 2)


def _mark_by_fields(decoded: DecodedBatch, flags: NDArray[np.uint32]) -> None:
    """Set the flags that depend on the frame alone; see :func:`mxwire.wire.probes.is_probe` for probes."""
    reason = decoded.columns.reason
    for block in decoded.columns.blocks:
        name = block.layout.name
        if name in ("truc", "pull", "notify"):
            _set(flags, block.place[block["session"] == NO_SESSION], REFUSED, reason)
        if name == "pull":
            known = np.minimum(block["src_endpoint"], block["dst_endpoint"]) < ENDPOINT_MAXIMUM
            _set(flags, block.place[~known], PROBE, reason)
        elif name == "host_query":
            magic = block["magic"]
            _set(flags, block.place[(magic >= QUERY_MAGICS.start) & (magic < QUERY_MAGICS.stop)], PROBE, reason)


def _set(flags: NDArray[np.uint32], places: NDArray[np.intp], bit: int, reason: NDArray[np.uint8]) -> None:
    if len(places):
        flags[places[reason[places] == Reason.NONE]] |= np.uint32(bit)
