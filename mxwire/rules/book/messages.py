"""Chapters 7 to 12: sending, receive window, matching, medium, acks, retransmission."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book.entry import chapter, inside, of_real_hosts, on_wire, permits

_DROP = "what a receiver does with a packet that it does not answer is not on the wire"
_MATCHING = "which receive takes a message is not on the wire"

RULES: Final = (
    *chapter(
        "Sending",
        on_wire("R-SND-01", "SHOULD", "TINY up to 32 bytes, SMALL up to 128, MEDIUM up to the threshold, then RNDV."),
        inside("R-SND-02", "MUST", "A receiver takes any type with any length within its limit.", _DROP),
        on_wire("R-SND-03", "SHOULD", "Fragments are sent in order; all but the last carry F bytes."),
        of_real_hosts(
            "R-SND-04",
            "fact",
            "Only a debug build insists on regular fragments.",
            "says what a debug build of the real driver does; an engine has no such build",
        ),
        permits("R-SND-05", "fact", "No credits or windows but the 8191 numbers."),
        inside(
            "R-SND-06",
            "fact",
            "TINY, SMALL and MEDIUM complete when posted, RNDV when the peer has answered.",
            "completions are not on the wire",
        ),
        inside("R-SND-07", "fact", "Scatter and gather lists are invisible.", "invisible by definition"),
    ),
    *chapter(
        "Receive window",
        inside("R-ORD-01", "fact", "Packets of unknown partners are dropped silently.", _DROP),
        inside("R-ORD-02", "fact", "The piggyback counts even in early and duplicate packets.", _DROP),
        inside("R-ORD-03", "fact", "Expected, fragment, duplicate, early (255 ahead) or obsolete.", _DROP),
        inside(
            "R-ORD-04",
            "fact",
            "Stored early packets move the window by one number for each packet received.",
            "how far a receiver got shows only in acks, which may come late anyway",
        ),
        inside("R-ORD-05", "MUST", "Every message is delivered once and in order.", "deliveries are not on the wire"),
    ),
    *chapter(
        "Matching",
        inside("R-MAT-01", "fact", "(information AND mask) = value.", _MATCHING),
        inside(
            "R-MAT-02", "fact", "Posted receives in posting order, unexpected messages in order of arrival.", _MATCHING
        ),
        inside("R-MAT-03", "fact", "Matching never looks at the sender.", _MATCHING),
        inside("R-MAT-04", "fact", "Context ids: one queue for each, masks must cover them.", _MATCHING),
        inside("R-MAT-05", "fact", "Unexpected messages are acked; an unexpected RNDV waits to be pulled.", _MATCHING),
        inside("R-MAT-06", "fact", "A call-back may consume a RNDV: NOTIFY with length 0.", _MATCHING),
    ),
    *chapter(
        "Medium reassembly",
        inside("R-MED-01", "fact", "The first fragment to arrive starts the match.", _MATCHING),
        inside("R-MED-02", "fact", "A fragment belongs at its number x F, or shifted by the pipeline.", _DROP),
        on_wire("R-MED-03", "MUST", "Fragment numbers are below 32; repeated ones are ignored."),
        on_wire("R-MED-04", "MUST", "Fragments add up to the message's length exactly."),
        inside("R-MED-05", "fact", "Several mediums may be incomplete; acks stop at the oldest.", _DROP),
    ),
    *chapter(
        "Acknowledgements",
        on_wire("R-ACK-01", "MUST", "Every ack is the next expected number, and never goes back."),
        inside(
            "R-ACK-02",
            "SHOULD",
            "4 unacked numbers are acked at once, fewer after a delay.",
            "late acks are legal while the application is away (R-GEN-01)",
        ),
        on_wire("R-ACK-03", "MUST", "Every numbered packet carries the present ack, resent ones too."),
        on_wire("R-ACK-04", "SHOULD", "A liback repeats its number in send_seq, has resent 0, and comes after 16 ms."),
        inside("R-ACK-05", "fact", "What an ack acknowledges.", "requests completed by it are not on the wire"),
        on_wire("R-ACK-06", "MUST", "acknum begins with 1 after a reset and grows strictly."),
        permits("R-ACK-07", "MAY", "The threshold of 4 can be changed on each host."),
        inside(
            "R-ACK-08",
            "SHOULD",
            "In mxoe a NOTIFY is acked at once.",
            "late acks are legal while the application is away (R-GEN-01)",
        ),
        inside("R-ACK-09", "SHOULD", "Closing an endpoint sends pending acks.", "closing is not on the wire"),
        on_wire("R-ACK-10", "MUST", "A TRUC is never nacked."),
    ),
    *chapter(
        "Retransmission",
        on_wire(
            "R-RTX-01", "SHOULD", "The resend delay is (HZ + 2)/2 ticks from the last transmission, without back-off."
        ),
        on_wire("R-RTX-02", "MUST", "What is resent is the same, with a new piggyback; of a MEDIUM all fragments."),
        on_wire("R-RTX-03", "SHOULD", "At most 1001 transmissions of a request, by default."),
        on_wire("R-RTX-04", "MUST", "Retransmissions keep the session of the first one."),
        on_wire("R-RTX-05", "SHOULD", "A partner that was given up is connected anew before anything is sent to it."),
    ),
)
