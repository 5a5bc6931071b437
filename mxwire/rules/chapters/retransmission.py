"""Retransmission (behaviour, chapter 12)."""

from __future__ import annotations

from typing import Final

from mxwire.rules.registry import NUMBERED, Breach, judges
from mxwire.rules.state.frame import FrameStatus, JudgedFrame
from mxwire.rules.state.numbered import content
from mxwire.units import MILLISECOND
from mxwire.wire.enums import packet_type_name
from mxwire.wire.packets import Medium

_AGAIN: Final = (FrameStatus.REPEAT, FrameStatus.DUPLICATE)
_PATIENCE: Final = 9
"""Transmissions of a message after which an earlier unacked one must have been retransmitted as well. If a share p of
all frames is lost before it is observed, all retransmissions of the earlier one are missed with a probability of
p^(8/(1-p)), which is at most 1 in 2000."""


@judges("R-RTX-01", *NUMBERED, severity="deviation", when=(FrameStatus.REPEAT,))
def resend_delay(seen: JudgedFrame) -> Breach | None:
    """Nothing is retransmitted before the resend delay has passed."""
    message = seen.message
    if message is None:
        return None
    since = seen.time_ns - message.last_ns
    if since < seen.resend_delay:
        return Breach(
            "a retransmission after the resend delay of about 500 ms",
            f"after {since / MILLISECOND:.1f} ms",
            frames=(message.last_number,),
        )
    return None


@judges("R-RTX-02", *NUMBERED, when=_AGAIN)
def same_content(seen: JudgedFrame) -> Breach | None:
    """A retransmission repeats type, length, match information, region and data."""
    message, frame = seen.message, seen.frame
    if message is None:
        return None
    again = content(frame)
    if again == message.content:
        return None
    names = ("type", "length", "match or region", "region", "data")
    different = next(name for name, old, new in zip(names, message.content, again, strict=True) if old != new)
    return Breach(
        f"0x{frame.lib_seqnum:04x} retransmitted unchanged, as {packet_type_name(message.kind)}",
        f"{packet_type_name(frame.ptype)} with different {different}",
        frames=(message.first_number,),
    )


@judges("R-RTX-02", Medium, when=(*_AGAIN, FrameStatus.FRAGMENT))
def same_fragment(seen: JudgedFrame) -> Breach | None:
    """A retransmitted fragment carries the same data."""
    message, frame = seen.message, seen.frame
    if message is None:
        return None
    known = message.fragments.get(frame.frag_seqnum)
    if known is None or (known[0] == frame.frag_length and known[1] == seen.crc):
        return None
    return Breach(
        f"fragment {frame.frag_seqnum} retransmitted unchanged, with {known[0]} bytes",
        f"{frame.frag_length} bytes" + (" of other data" if known[0] == frame.frag_length else ""),
        frames=(message.first_number,),
    )


@judges("R-RTX-02", Medium, when=(FrameStatus.REPEAT,), as_sent=True, sized=True)
def all_fragments(seen: JudgedFrame) -> Breach | None:
    """Every transmission contains all fragments, never a subset."""
    message = seen.message
    if message is None:
        return None
    size = seen.pair.dialect.fragment_payload if seen.frame.frag_pipeline is None else 1 << seen.frame.frag_pipeline
    required = max(1, -(-message.length // size))
    sent = message.round.bit_count()
    if sent < required:
        return Breach(
            f"all {required} fragments before the next transmission",
            f"{sent} fragments in transmission {message.transmissions}",
            frames=(message.last_number,),
        )
    return None


@judges("R-RTX-02", *NUMBERED, when=(FrameStatus.REPEAT,))
def nothing_left_out(seen: JudgedFrame) -> Breach | None:
    """Every unacked message is retransmitted, not only its successors.

    Silence proves nothing, but an endpoint that retransmits one message is running, and must retransmit the others too.
    """
    message = seen.message
    if message is None or message.transmissions != _PATIENCE - 1:
        return None
    stream = seen.flow.stream
    if stream is None:
        return None
    oldest = stream.message(stream.acknowledged)
    if oldest is None or oldest.position >= message.position or oldest.last_ns >= message.first_ns:
        return None
    if oldest.nacks or not oldest.acceptable or oldest.session != message.session:
        return None
    return Breach(
        f"retransmissions of 0x{stream.number(oldest.position):04x} until it is acknowledged",
        f"none since 0x{stream.number(message.position):04x}, which is now transmitted for the {_PATIENCE}th time",
        frames=(oldest.last_number, message.first_number),
    )


@judges("R-RTX-03", *NUMBERED, severity="deviation", when=(FrameStatus.REPEAT,))
def resend_limit(seen: JudgedFrame) -> Breach | None:
    """A request is transmitted at most 1001 times, by default."""
    message, most = seen.message, seen.vantage.resends_maximum
    if message is None or most is None:
        return None
    if message.transmissions > most:
        return Breach(f"at most {most + 1} transmissions", f"transmission {message.transmissions + 1}")
    return None


@judges("R-RTX-04", *NUMBERED, when=(*_AGAIN, FrameStatus.FRAGMENT))
def same_session(seen: JudgedFrame) -> Breach | None:
    """Retransmissions have the session id of the first transmission."""
    message = seen.message
    if message is None or seen.frame.session == message.session:
        return None
    return Breach(
        f"session 0x{message.session:08x} as in the first transmission",
        f"session 0x{seen.frame.session:08x}",
        frames=(message.first_number,),
    )
