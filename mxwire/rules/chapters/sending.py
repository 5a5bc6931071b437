"""What a message is sent as, and fragments (behaviour, chapters 7 and 10)."""

from __future__ import annotations

from mxwire.rules.registry import Breach, judges
from mxwire.rules.state.sighting import Sighting, Status
from mxwire.wire.numbers import FRAGMENTS_TRACKED, SMALL_MAXIMUM, TINY_MAXIMUM
from mxwire.wire.packets import Medium, Small


@judges("R-SND-01", Small, Medium, severity="deviation", alone=True)
def packet_by_length(seen: Sighting) -> Breach | None:
    """TINY up to 32 bytes, SMALL up to 128, MEDIUM beyond (any receiver takes less, R-SND-02)."""
    frame = seen.frame
    most = TINY_MAXIMUM if isinstance(frame, Small) else SMALL_MAXIMUM
    if frame.length <= most:
        return Breach(f"a message of at most {most} bytes goes into a smaller packet", f"{frame.length} bytes")
    return None


def _fragment_size(seen: Sighting) -> int:
    pipeline = seen.frame.frag_pipeline
    return seen.pair.dialect.fragment_payload if pipeline is None else 1 << min(pipeline, 16)


@judges("R-SND-03", Medium, severity="deviation", alone=True, sized=True)
def fragment_length(seen: Sighting) -> Breach | None:
    """All fragments but the last carry F bytes, the last one the rest."""
    frame = seen.frame
    size = _fragment_size(seen)
    wanted = frame.length - frame.frag_seqnum * size
    wanted = size if wanted > size else wanted
    if frame.frag_length != wanted:
        return Breach(f"fragment {frame.frag_seqnum} carries {max(wanted, 0)} bytes", f"{frame.frag_length} bytes")
    return None


@judges("R-SND-03", Medium, severity="deviation", as_sent=True)
def fragment_order(seen: Sighting) -> Breach | None:
    """Fragments are sent in order, from 0 on."""
    if seen.status is Status.STALE:
        return None
    message = seen.message
    wanted = message.round.bit_count() if message is not None and seen.status is Status.FRAGMENT else 0
    if seen.frame.frag_seqnum != wanted:
        return Breach(f"fragment {wanted} comes next", f"fragment {seen.frame.frag_seqnum}")
    return None


@judges("R-MED-03", Medium, alone=True)
def fragment_number(seen: Sighting) -> Breach | None:
    """Receivers track 32 fragments of a message."""
    if seen.frame.frag_seqnum >= FRAGMENTS_TRACKED:
        return Breach(f"fragment numbers are below {FRAGMENTS_TRACKED}", f"fragment {seen.frame.frag_seqnum}")
    return None


@judges("R-MED-04", Medium, alone=True, sized=True)
def fragment_inside(seen: Sighting) -> Breach | None:
    """The fragments' lengths add up to the message's: none reaches beyond it."""
    frame = seen.frame
    end = frame.frag_seqnum * _fragment_size(seen) + frame.frag_length
    if end > frame.length:
        return Breach(f"the message ends after {frame.length} bytes", f"fragment {frame.frag_seqnum} ends at {end}")
    return None


@judges("W-6.7", Medium, when=(Status.FRAGMENT,))
def same_header(seen: Sighting) -> Breach | None:
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
