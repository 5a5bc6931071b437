"""Retransmission (behaviour, chapter 12)."""

from __future__ import annotations

from typing import Final

from mxwire.rules.registry import NUMBERED, Breach, judges
from mxwire.rules.state.numbered import content
from mxwire.rules.state.sighting import Sighting, Status
from mxwire.units import MILLISECOND
from mxwire.wire.enums import packet_type_name
from mxwire.wire.packets import Medium

_AGAIN: Final = (Status.REPEAT, Status.DUPLICATE)
_PATIENCE: Final = 9
"""Transmissions of a message after which an earlier one must have come again. Where a share p of all frames is lost
before they are observed, all repetitions of the earlier one are with a chance of p^(8/(1-p)): in 2000 at the most."""


@judges("R-RTX-01", *NUMBERED, severity="deviation", when=(Status.REPEAT,))
def resend_delay(seen: Sighting) -> Breach | None:
    """Nothing is sent again before the resend delay has passed."""
    message = seen.message
    if message is None:
        return None
    since = seen.time_ns - message.last_ns
    if since < seen.resend_delay:
        return Breach(
            "sent again after the resend delay of about 500 ms",
            f"after {since / MILLISECOND:.1f} ms",
            frames=(message.last_number,),
        )
    return None


@judges("R-RTX-02", *NUMBERED, when=_AGAIN)
def same_content(seen: Sighting) -> Breach | None:
    """What is sent again is the same: type, length, match information, region, data."""
    message, frame = seen.message, seen.frame
    if message is None:
        return None
    made = content(frame)
    if made == message.content:
        return None
    names = ("type", "length", "match or region", "region", "data")
    different = next(name for name, old, new in zip(names, message.content, made, strict=True) if old != new)
    return Breach(
        f"0x{frame.lib_seqnum:04x} is sent again as the {packet_type_name(message.kind)} that it was",
        f"a {packet_type_name(frame.ptype)} with another {different}",
        frames=(message.first_number,),
    )


@judges("R-RTX-02", Medium, when=(*_AGAIN, Status.FRAGMENT))
def same_fragment(seen: Sighting) -> Breach | None:
    """A fragment that is sent again carries the same data."""
    message, frame = seen.message, seen.frame
    if message is None:
        return None
    known = message.fragments.get(frame.frag_seqnum)
    if known is None or (known[0] == frame.frag_length and known[1] == seen.crc):
        return None
    return Breach(
        f"fragment {frame.frag_seqnum} is sent again as it was, {known[0]} bytes",
        f"{frame.frag_length} bytes" + (" of other data" if known[0] == frame.frag_length else ""),
        frames=(message.first_number,),
    )


@judges("R-RTX-02", Medium, when=(Status.REPEAT,), as_sent=True, sized=True)
def all_fragments(seen: Sighting) -> Breach | None:
    """All fragments are sent each time, never a subset."""
    message = seen.message
    if message is None:
        return None
    size = seen.pair.dialect.fragment_payload if seen.frame.frag_pipeline is None else 1 << seen.frame.frag_pipeline
    wanted = max(1, -(-message.length // size))
    sent = message.round.bit_count()
    if sent < wanted:
        return Breach(
            f"all {wanted} fragments before the message is sent again",
            f"{sent} of them in transmission {message.transmissions}",
            frames=(message.last_number,),
        )
    return None


@judges("R-RTX-02", *NUMBERED, when=(Status.REPEAT,))
def nothing_left_out(seen: Sighting) -> Breach | None:
    """Everything that is not acknowledged is sent again, not only what came after it.

    Silence proves nothing, but whoever repeats one message is awake, and owes the others too.
    """
    message = seen.message
    if message is None or message.transmissions != _PATIENCE - 1:
        return None
    stream = seen.flow.stream
    if stream is None:
        return None
    oldest = stream.messages.get(stream.acknowledged)
    if oldest is None or oldest.position >= message.position or oldest.last_ns >= message.first_ns:
        return None
    if oldest.nacks or not oldest.acceptable or oldest.session != message.session:
        return None
    return Breach(
        f"0x{stream.number(oldest.position):04x} is sent again until it is acknowledged",
        f"not since 0x{stream.number(message.position):04x} was sent, which is sent for the {_PATIENCE}th time",
        frames=(oldest.last_number, message.first_number),
    )


@judges("R-RTX-03", *NUMBERED, severity="deviation", when=(Status.REPEAT,))
def resend_limit(seen: Sighting) -> Breach | None:
    """A request is transmitted 1001 times at most, by default."""
    message, most = seen.message, seen.vantage.resends_maximum
    if message is None or most is None:
        return None
    if message.transmissions > most:
        return Breach(f"at most {most + 1} transmissions", f"transmission {message.transmissions + 1}")
    return None


@judges("R-RTX-04", *NUMBERED, when=(*_AGAIN, Status.FRAGMENT))
def same_session(seen: Sighting) -> Breach | None:
    """The session id of the first transmission is kept."""
    message = seen.message
    if message is None or seen.frame.session == message.session:
        return None
    return Breach(
        f"session 0x{message.session:08x} as in the first transmission",
        f"session 0x{seen.frame.session:08x}",
        frames=(message.first_number,),
    )
