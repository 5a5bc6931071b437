"""The dialects of MXoE as data: sizes and limits by the formulas of the specification (wire format, section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from mxwire.errors import MxwireError
from mxwire.wire import formats
from mxwire.wire.formats import PacketFormat
from mxwire.wire.layout import layout_of

Family = Literal["mxoe", "omx"]
Generation = Literal["N1", "N2", "N3", "N4"]

MEDIUM_DATA_OFFSET: Final = layout_of(formats.MEDIUM_MXOE).header_end
PULL_REPLY_DATA_OFFSET: Final = layout_of(formats.PULL_REPLY).header_end
DEFAULT_FRAME_LIMIT: Final = 9000
"""M of the default build of Open-MX 1.5.4."""
SMALLEST_FRAME_LIMIT: Final = 256
LARGEST_FRAME_LIMIT: Final = 65535


@dataclass(frozen=True, slots=True)
class Dialect:
    """Layouts, sizes and limits that both hosts must have been built with; no field announces them.

    All sizes are in bytes.
    """

    family: Family
    frame_limit: int
    """M: longest frame from the destination MAC up to the last payload byte, without frame check sequence."""
    fragment_payload: int
    """F: data bytes of every MEDIUM fragment except the last."""
    receive_slot: int
    """Maximum length of a MEDIUM fragment that a receiver accepts."""
    reply_payload: int
    """P: data bytes of a full PULL_REPLY."""
    frames_per_block: int
    """B: maximum PULL_REPLYs that one PULL may request."""
    fragments_maximum: int
    """Maximum fragments of a MEDIUM message."""
    generation: Generation = "N4"
    """Format generation of the `omx` dialect (differences document, section 4.2); N4 is 1.3.2 to 1.5.4."""
    frame_limit_known: bool = True
    """False if a detection had to assume M."""

    @property
    def name(self) -> str:
        """``mxoe``, ``omx:M``, or plain ``omx`` if M is assumed; older generations as ``omx:M/N3``."""
        if self.family == "mxoe":
            return "mxoe"
        limit = f":{self.frame_limit}" if self.frame_limit_known else ""
        return f"omx{limit}" + (f"/{self.generation}" if self.generation != "N4" else "")

    @property
    def block_length(self) -> int:
        """P x B: maximum bytes that one PULL requests."""
        return self.reply_payload * self.frames_per_block

    @property
    def medium_maximum(self) -> int:
        """Maximum of the configurable threshold between MEDIUM and large messages."""
        return min(self.fragment_payload * self.fragments_maximum, 0xFFFF_FFFF)

    @property
    def medium_format(self) -> PacketFormat:
        """The layout of MEDIUM, which depends on the dialect."""
        if self.family == "mxoe" or self.generation in ("N1", "N2"):
            return formats.MEDIUM_MXOE
        return formats.MEDIUM_OMX_N3 if self.generation == "N3" else formats.MEDIUM_OMX

    @property
    def pull_format(self) -> PacketFormat:
        """The layout of PULL, which depends on the dialect."""
        return formats.PULL_MXOE if self.family == "mxoe" else formats.PULL_OMX

    @property
    def formats(self) -> tuple[PacketFormat, ...]:
        """All layouts of this dialect, in order of packet type."""
        every = (*formats.COMMON_FORMATS, self.medium_format, self.pull_format)
        return tuple(sorted(every, key=lambda each: each.packet_type))

    def __str__(self) -> str:
        """The name."""
        return self.name


MXOE: Final = Dialect(
    family="mxoe",
    frame_limit=MEDIUM_DATA_OFFSET + 4096,
    fragment_payload=4096,
    receive_slot=4096,
    reply_payload=4096,
    frames_per_block=8,
    fragments_maximum=8,
)
"""The dialect that is wire compatible with native MX."""


@cache
def omx(
    frame_limit: int = DEFAULT_FRAME_LIMIT, generation: Generation = "N4", *, frame_limit_known: bool = True
) -> Dialect:
    """Open-MX's own dialect for a frame limit M, 256 to 65535 bytes.

    Raises :class:`~mxwire.errors.MxwireError` for any other limit.
    """
    if not SMALLEST_FRAME_LIMIT <= frame_limit <= LARGEST_FRAME_LIMIT:
        raise MxwireError(
            f"frame limit {frame_limit} is not possible: M of dialect omx lies between {SMALLEST_FRAME_LIMIT} "
            f"and {LARGEST_FRAME_LIMIT}, for example omx:9000"
        )
    if generation in ("N1", "N2"):
        fragment, slot = _old_fragment_payload(frame_limit), MXOE.receive_slot
        reply, blocks = (8192, 31) if generation == "N1" else (_old_reply_payload(frame_limit), 32)
    else:
        fragment = _fragment_payload(frame_limit)
        # F rounded up to a power of two (wire format, 6.7).
        slot = 1 << (fragment - 1).bit_length()
        reply, blocks = frame_limit - PULL_REPLY_DATA_OFFSET, 32
    return Dialect(
        family="omx",
        frame_limit=frame_limit,
        fragment_payload=fragment,
        receive_slot=slot,
        reply_payload=reply,
        frames_per_block=blocks,
        fragments_maximum=32,
        generation=generation,
        frame_limit_known=frame_limit_known,
    )


def _fragment_payload(frame_limit: int) -> int:
    if frame_limit - MEDIUM_DATA_OFFSET <= 4096:
        return frame_limit - MEDIUM_DATA_OFFSET
    return 8192 if frame_limit >= MEDIUM_DATA_OFFSET + 8192 else 4096


def _old_fragment_payload(frame_limit: int) -> int:
    """F of generations N1 and N2: the largest power of two that fits, at most 4096 (differences, section 4.2)."""
    room = min(frame_limit - MEDIUM_DATA_OFFSET, MXOE.fragment_payload)
    return 1 << (room.bit_length() - 1)


def _old_reply_payload(frame_limit: int) -> int:
    """P of generation N2 (differences, section 4.2)."""
    steps = ((2000, 1024), (3000, 2048), (5000, 4096))
    return next((payload for below, payload in steps if frame_limit < below), 8192)


def dialect_by_name(name: str) -> Dialect:
    """Parse the name of a dialect: ``mxoe``, ``omx`` (M = 9000) or ``omx:M``.

    Raises :class:`~mxwire.errors.MxwireError` for anything else.
    """
    family, colon, limit = name.strip().lower().partition(":")
    if family == "mxoe" and not colon:
        return MXOE
    # Nine digits at most, since Python refuses to convert thousands of them.
    if family == "omx" and (limit.isascii() and limit.isdigit() and len(limit) <= 9 if colon else True):
        return omx(int(limit)) if colon else omx()
    raise MxwireError(f"no dialect {name!r}: use mxoe, omx (frame limit 9000) or omx:M, for example omx:1500")


def as_dialect(dialect: Dialect | str) -> Dialect:
    """Return ``dialect``, or the dialect of that name.

    Raises :class:`TypeError` for another type, and :class:`~mxwire.errors.MxwireError` for an unknown name.
    """
    if isinstance(dialect, str):
        return dialect_by_name(dialect)
    if not isinstance(dialect, Dialect):
        raise TypeError(f"a dialect is MXOE, omx(M) or a name like 'omx:9000', not {dialect!r}")
    return dialect


def dialect_or_auto(name: str) -> Dialect | None:
    """:func:`dialect_by_name`, or None for ``auto``, which detects it from the frames."""
    return None if name.strip().lower() == "auto" else dialect_by_name(name)
