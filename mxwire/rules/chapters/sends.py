"""Packet types by message length, and fragments (behaviour, chapters 7 and 10)."""

from __future__ import annotations

from mxwire.rules.registry import Breach, judges
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.wire.numbers import FRAGMENTS_TRACKED, SMALL_MAXIMUM, TINY_MAXIMUM
from mxwire.wire.packets import Medium, Small


@judges("R-SND-01", Small, Medium, severity="deviation", alone=True)
def packet_by_length(seen: JudgedFrame) -> Breach | None:
    """TINY up to 32 bytes, SMALL up to 128, MEDIUM beyond (a receiver also accepts shorter messages, R-SND-02)."""
    frame = seen.frame
    most = TINY_MAXIMUM if isinstance(frame, Small) else SMALL_MAXIMUM
    if frame.length <= most:
        return Breach(f"a smaller packet type for at most {most} bytes", f"{frame.length} bytes")
    return None


def _fragment_size(seen: JudgedFrame) -> int:
    pipeline = seen.frame.frag_pipeline
    # Bounded, since a forged pipeline of 255 would be a number of 32 bytes.
    return seen.pair.dialect.fragment_payload if pipeline is None else 1 << min(pipeline, 16)


@judges("R-SND-03", Medium, severity="deviation", alone=True, sized=True)
def fragment_length(seen: JudgedFrame) -> Breach | None:
    """All fragments except the last carry F bytes, the last one the rest."""
    frame = seen.frame
    size = _fragment_size(seen)
    required = frame.length - frame.frag_seqnum * size
    required = size if required > size else required
    if frame.frag_length != required:
        return Breach(f"fragment {frame.frag_seqnum} carries {max(required, 0)} bytes", f"{frame.frag_length} bytes")
    return None


@judges("R-SND-03", Medium, severity="deviation", as_sent=True)
def fragment_order(seen: JudgedFrame) -> Breach | None:
    """Fragments are sent in order, from 0 on."""
    if seen.status is FrameStatus.STALE:
        return None
    message = seen.message
    required = message.round.bit_count() if message is not None and seen.status is FrameStatus.FRAGMENT else 0
    if seen.frame.frag_seqnum != required:
        return Breach(f"fragment {required}, which is next", f"fragment {seen.frame.frag_seqnum}")
    return None


@judges("R-MED-03", Medium, alone=True)
def fragment_number(seen: JudgedFrame) -> Breach | None:
    """Receivers track 32 fragments of a message."""
    if seen.frame.frag_seqnum >= FRAGMENTS_TRACKED:
        return Breach(f"fragment numbers are below {FRAGMENTS_TRACKED}", f"fragment {seen.frame.frag_seqnum}")
    return None


@judges("R-MED-04", Medium, alone=True, sized=True)
def fragment_inside(seen: JudgedFrame) -> Breach | None:
    """The lengths of the fragments add up to the message's: no fragment extends beyond it."""
    frame = seen.frame
    end = frame.frag_seqnum * _fragment_size(seen) + frame.frag_length
    if end > frame.length:
        return Breach(f"the message ends after {frame.length} bytes", f"fragment {frame.frag_seqnum} ends at {end}")
    return None


@judges("W-6.7", Medium, when=(FrameStatus.FRAGMENT,))
def same_header(seen: JudgedFrame) -> Breach | None:
    """Length and match information are the same in all fragments of a message."""
    message, frame = seen.message, seen.frame
    if message is None:
        return None
    if (message.length, message.match) != (frame.length, (frame.match_a, frame.match_b)):
        return Breach(
            f"length {message.length}, match {_match(message.match)} as in the other fragments",
            f"length {frame.length}, match {_match((frame.match_a, frame.match_b))}",
            frames=(message.last_number,),
        )
    return None


def _match(halves: tuple[int, int]) -> str:
    return f"0x{halves[0]:08x}{halves[1]:08x}"
