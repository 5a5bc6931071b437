"""All rules of the specification as data, in its order: those of the wire format first, then those of behaviour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

Force = Literal["MUST", "SHOULD", "MAY", "fact"]
Judged = Literal["wire", "inside", "not"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the specification, and how it can be judged."""

    number: str
    """As in the specification, for example ``R-SEQ-05``; ``W-6.4`` is section 6.4 of its wire format part."""
    text: str
    """The rule in one line."""
    force: Force
    """Its strictness; ``fact`` for a description of real hosts that demands nothing."""
    judged: Judged
    """``wire``: by the judge, from frames; ``inside``: only with a view of the host's state, as in a test of the
    engine; ``not``: not at all."""
    why: str = ""
    """The reason, unless ``judged`` is ``wire``."""
    checker_only: bool = False
    """Of use to a checker of real hosts only: an engine has nothing to implement. ``why`` gives the reason."""
    chapter: str = ""
    """The chapter's title."""


def _wire(number: str, force: Force, text: str) -> Rule:
    """Return a rule that the judge applies."""
    return Rule(number, text, force, "wire")


def _inside(number: str, force: Force, text: str, why: str) -> Rule:
    """Return a rule about a host's own state."""
    return Rule(number, text, force, "inside", why)


def _permits(number: str, force: Force, text: str) -> Rule:
    """Return a rule that cannot be broken."""
    return Rule(number, text, force, "not", "it permits something and demands nothing")


def _real(number: str, force: Force, text: str, why: str) -> Rule:
    """Return a rule that describes real hosts only: it binds no other host, and an engine has nothing to implement."""
    return Rule(number, text, force, "not", why, checker_only=True)


def _chapter(title: str, *rules: Rule) -> tuple[Rule, ...]:
    return tuple(replace(rule, chapter=title) for rule in rules)


# Reasons that several rules share.
_ACCEPTANCE: Final = "the wire does not show how a receiver treats a packet that it does not answer"
_MATCHING: Final = "the wire does not show which receive takes a message"
_PARTNER: Final = "a partner's stored state is not on the wire; its consequences are judged by other rules"
_STORED: Final = "a partner's stored state is not on the wire"
_COMPLETION: Final = "completions are not on the wire"
_STATUS: Final = "statuses of applications are not on the wire"
_CLOSING: Final = "closing is not on the wire"
_LOCAL: Final = "local, nothing on the wire"
_BUFFERS: Final = "buffers are not on the wire"
_INTERFACES: Final = "the wire does not show which interfaces belong to one host"
_LATE_ACKS: Final = "late acks are legal while the application is outside the library (R-GEN-01)"
_UNDEFINED: Final = "undefined bytes are not judged"
_COUNTERS: Final = "it describes counters of the real driver"

_WIRE_FORMAT: Final = _chapter(
    "Wire format",
    _wire("W-2", "MUST", "A frame has 60 to M bytes, no padding beyond 60, and one destination host."),
    _wire("W-5", "MUST", "dst_src_peer_index is the last index that the destination taught; 0xFFFF before that."),
    _wire("W-6", "MUST", "Only the packet types of Open-MX are sent."),
    _wire("W-6.1", "SHOULD", "An announcement is broadcast, with index 0 and the sender's own address as NIC id."),
    _wire("W-6.4", "MUST", "A liback has sub-type 0x55, 16 bytes of data, and the same session in both fields."),
    _wire("W-6.5", "MUST", "A CONNECT has 16 bytes of data, lib_seqnum 0, and is_reply 0 or 1."),
    _wire("W-6.7", "MUST", "All fragments of a MEDIUM have the same length and match information."),
    _wire("W-6.8", "MUST", "A RNDV has 8 bytes of data."),
    _wire("W-7", "MUST", "Lengths lie within the limits of the packet type and within the frame."),
)

# Chapters 1 to 4.
_MODEL: Final = _chapter(
    "Model",
    _inside(
        "R-GEN-01",
        "MUST",
        "The library runs only while the application calls it; peers tolerate acks of any delay.",
        "the wire does not show when an application calls its library",
    ),
    _inside(
        "R-GEN-02",
        "fact",
        "A pass of the library: received events, completions, retransmissions, delayed sends, due acks.",
        "the order of work inside a host is not on the wire, only its result",
    ),
    _inside(
        "R-GEN-03",
        "fact",
        "Time is counted in kernel ticks; divisions in formulas of ticks are integer divisions.",
        "the ticks of a host's clock are not on the wire; periods are judged with that tolerance",
    ),
)
_DISCOVERY: Final = _chapter(
    "Peer discovery",
    _inside(
        "R-DISC-01",
        "MUST",
        "A host exchanges packets only with addresses in its peer table; packets of the driver never add one.",
        "the content of a peer table is not on the wire",
    ),
    _wire("R-DISC-02", "SHOULD", "A daemon announces itself 8 times at intervals of 1000 ms, then every 180 s."),
    _inside(
        "R-DISC-03",
        "SHOULD",
        "An unknown NIC id is added to the table without a name, and a new series of 8 announcements starts.",
        "the wire does not show which daemons a daemon already knew",
    ),
    _inside(
        "R-DISC-04",
        "SHOULD",
        "A known NIC id with a changed serial starts a new series; the host's own id is ignored.",
        "a daemon's memory is not on the wire",
    ),
    _inside(
        "R-DISC-05",
        "fact",
        "Only the NIC id and serial of an announcement are evaluated; peers are never removed.",
        "the wire does not show which fields a daemon evaluates",
    ),
    _wire("R-DISC-06", "MUST", "RAW frames have at most 1024 bytes; a receiver queues 33 of them."),
    _inside(
        "R-DISC-07",
        "MUST",
        "A host announces itself in order to be found, unless its peers have static entries for it.",
        "static entries in peer tables leave no trace on the wire",
    ),
)
_NAMES: Final = _chapter(
    "Host names",
    _inside(
        "R-HOST-01",
        "SHOULD",
        "A peer without a name is queried at once, on every interface.",
        "the wire does not show when a peer enters a table",
    ),
    _wire("R-HOST-02", "SHOULD", "Nameless peers are queried again every 5 s."),
    _wire("R-HOST-03", "SHOULD", "The magic starts at 0x13052008 and is incremented whenever names are cleared."),
    _wire("R-HOST-04", "SHOULD", "A query is answered once, if it is for this address and from a known peer."),
    _inside(
        "R-HOST-05",
        "fact",
        "A query teaches the reverse index, not the querier's name.",
        "learned indexes show only in the indexes of later packets (W-5)",
    ),
    _wire("R-HOST-06", "MUST", "A reply carries the query's magic and the name of the interface."),
    _inside(
        "R-HOST-07",
        "fact",
        "A reply with another magic is dropped; others set the name and teach the index, even unrequested.",
        "a host's stored names are not on the wire",
    ),
    _wire("R-HOST-08", "MUST", "A name has 1 to 80 bytes, including the terminating NUL."),
    _permits("R-HOST-09", "fact", "Names are not needed for messages: a CONNECT alone teaches both indexes."),
)
_ENDPOINTS: Final = _chapter(
    "Endpoints",
    _wire("R-EP-01", "MUST", "Endpoint numbers beyond the host's limit get nack type 1, closed endpoints type 2."),
    _wire("R-EP-02", "MUST", "Each opening has a new session id; packets carry the destination's."),
    _inside("R-EP-03", "fact", "The generation field is neither written nor read.", _UNDEFINED),
    _inside(
        "R-EP-04",
        "fact",
        "The key is compared during connect only.",
        "the absence of further comparisons has no effect on the wire",
    ),
    _inside("R-EP-05", "fact", "An endpoint belongs to one interface.", _INTERFACES),
)

# Chapters 5 and 6.
_CONNECT: Final = _chapter(
    "Connect",
    _wire("R-CON-01", "MUST", "A request has the sender's session, the key, the next connect number and rx_next."),
    _wire("R-CON-02", "SHOULD", "An unanswered request is retransmitted every resend delay, with the same number."),
    _inside(
        "R-CON-03",
        "fact",
        "A reply is accepted if its session and connect number are those of a pending connect.",
        _PARTNER,
    ),
    _wire("R-CON-04", "MUST", "A reply has status 0 or 11; others are ignored."),
    _inside("R-CON-05", "fact", "Effects of a reply of status 0 on the requester's state.", _PARTNER),
    _permits("R-CON-06", "MAY", "Several connects to a partner may be pending."),
    _wire("R-CON-07", "SHOULD", "An endpoint connects to itself without a packet."),
    _wire(
        "R-CON-08",
        "MUST",
        "Each request gets one reply: copied fields, own session, rx_next, and status 0 or 11 depending on the key.",
    ),
    _wire("R-CON-09", "MUST", "Only the key of a request is checked."),
    _inside("R-CON-10", "fact", "Effects of a request on the target's state.", _PARTNER),
    _permits("R-CON-11", "MAY", "After a request the target may send without connecting itself."),
    _wire(
        "R-CON-12", "SHOULD", "A host connects in its own direction before it sends, and refuses session 0xFFFFFFFF."
    ),
    _inside(
        "R-CON-13",
        "fact",
        "Traffic in one direction needs one handshake, but large messages then stall.",
        "it follows from other rules, which are judged",
    ),
    _inside("R-CON-14", "fact", "Crossing requests leave both endpoints connected.", _PARTNER),
    _inside(
        "R-CON-15",
        "fact",
        "A NACK_LIB of number 0 ends the oldest pending connect.",
        "the wire does not show which connect fails",
    ),
)
_SEQUENCE: Final = _chapter(
    "Sequence numbers",
    _wire("R-SEQ-01", "MUST", "A number has 14 bits of sequence and 2 bits of session number; 0 follows 0x3FFF."),
    _wire("R-SEQ-02", "MUST", "Differences are taken modulo 2^14."),
    _wire("R-SEQ-03", "MUST", "The receiver chooses the session number, and every sequence number carries it."),
    _wire("R-SEQ-04", "MUST", "TINY, SMALL, MEDIUM, RNDV and NOTIFY share one sequence in each direction."),
    _wire("R-SEQ-05", "MUST", "The first number is the one that the receiver requested."),
    _wire("R-SEQ-06", "MUST", "At most 8191 numbers are outstanding."),
    _inside(
        "R-SEQ-07",
        "fact",
        "A packet with another session number, in its own number or its piggyback, is dropped without an answer.",
        "a drop without an answer is not on the wire",
    ),
)

# Chapters 7 to 12.
_SENDING: Final = _chapter(
    "Sending",
    _wire("R-SND-01", "SHOULD", "TINY up to 32 bytes, SMALL up to 128, MEDIUM up to the threshold, then RNDV."),
    _inside("R-SND-02", "MUST", "A receiver accepts every type with any length within its limit.", _ACCEPTANCE),
    _wire("R-SND-03", "SHOULD", "Fragments are sent in order; all but the last carry F bytes."),
    _real(
        "R-SND-04",
        "fact",
        "Only a debug build insists on regular fragments.",
        "it describes a debug build of the real driver; an engine has no such build",
    ),
    _permits("R-SND-05", "fact", "There are no credits or windows besides the 8191 numbers."),
    _inside(
        "R-SND-06",
        "fact",
        "TINY, SMALL and MEDIUM complete when posted, RNDV when the peer has answered.",
        _COMPLETION,
    ),
    _inside("R-SND-07", "fact", "Scatter and gather lists are invisible.", "invisible by definition"),
)
_WINDOW: Final = _chapter(
    "Receive window",
    _inside("R-ORD-01", "fact", "Packets of unknown partners are dropped without an answer.", _ACCEPTANCE),
    _inside("R-ORD-02", "fact", "The piggyback is evaluated even in early and duplicate packets.", _ACCEPTANCE),
    _inside(
        "R-ORD-03",
        "fact",
        "A packet is expected, a further fragment, a duplicate, early (up to 255 ahead) or obsolete.",
        _ACCEPTANCE,
    ),
    _inside(
        "R-ORD-04",
        "fact",
        "Stored early packets advance the window by one number per received packet.",
        "a receiver's progress shows only in acks, which may be late anyway",
    ),
    _inside("R-ORD-05", "MUST", "Every message is delivered once and in order.", "deliveries are not on the wire"),
)
_MATCH: Final = _chapter(
    "Matching",
    _inside("R-MAT-01", "fact", "A receive matches if (information AND mask) = value.", _MATCHING),
    _inside(
        "R-MAT-02",
        "fact",
        "Posted receives match in the order of posting, unexpected messages in the order of arrival.",
        _MATCHING,
    ),
    _inside("R-MAT-03", "fact", "Matching ignores the sender.", _MATCHING),
    _inside("R-MAT-04", "fact", "Each context id has its own queue, and masks must cover the context id.", _MATCHING),
    _inside("R-MAT-05", "fact", "Unexpected messages are acked; an unexpected RNDV waits to be pulled.", _MATCHING),
    _inside("R-MAT-06", "fact", "A call-back may consume a RNDV: NOTIFY with length 0.", _MATCHING),
)
_MEDIUM: Final = _chapter(
    "Medium reassembly",
    _inside("R-MED-01", "fact", "The first fragment to arrive starts the match.", _MATCHING),
    _inside(
        "R-MED-02", "fact", "A fragment's offset is its number x F, or its number shifted by the pipeline.", _ACCEPTANCE
    ),
    _wire("R-MED-03", "MUST", "Fragment numbers are below 32; duplicates are ignored."),
    _wire("R-MED-04", "MUST", "Fragments add up to the message's length exactly."),
    _inside("R-MED-05", "fact", "Several MEDIUMs may be incomplete; acks stop at the oldest.", _ACCEPTANCE),
)
_ACKS: Final = _chapter(
    "Acknowledgements",
    _wire("R-ACK-01", "MUST", "Every ack is the next expected number, and never decreases."),
    _inside("R-ACK-02", "SHOULD", "4 unacked numbers are acked at once, fewer after a delay.", _LATE_ACKS),
    _wire("R-ACK-03", "MUST", "Every numbered packet carries the current ack, retransmissions too."),
    _wire("R-ACK-04", "SHOULD", "A liback repeats its number in send_seq, has resent 0, and is sent after 16 ms."),
    _inside("R-ACK-05", "fact", "Numbers that an ack acknowledges.", "requests that it completes are not on the wire"),
    _wire("R-ACK-06", "MUST", "acknum starts at 1 after a reset and strictly increases."),
    _permits("R-ACK-07", "MAY", "The threshold of 4 can be changed per host."),
    _inside("R-ACK-08", "SHOULD", "In mxoe a NOTIFY is acked at once.", _LATE_ACKS),
    _inside("R-ACK-09", "SHOULD", "Closing an endpoint sends pending acks.", _CLOSING),
    _wire("R-ACK-10", "MUST", "A TRUC is never nacked."),
)
_RETRANSMISSION: Final = _chapter(
    "Retransmission",
    _wire("R-RTX-01", "SHOULD", "The resend delay is (HZ + 2)/2 ticks from the last transmission, without back-off."),
    _wire(
        "R-RTX-02",
        "MUST",
        "A retransmission is unchanged except for its piggyback; a MEDIUM is retransmitted with all fragments.",
    ),
    _wire("R-RTX-03", "SHOULD", "A request is transmitted at most 1001 times, by default."),
    _wire("R-RTX-04", "MUST", "Retransmissions have the session of the first transmission."),
    _wire("R-RTX-05", "SHOULD", "An abandoned partner is connected again before anything is sent to it."),
)

# Chapters 13 to 16.
_RENDEZVOUS: Final = _chapter(
    "Rendezvous",
    _wire("R-RDV-01", "SHOULD", "A RNDV names a region and its use counter, which starts at 23 and counts uses."),
    _wire("R-RDV-02", "MUST", "The offset of the RNDV is copied into every PULL."),
    _inside(
        "R-RDV-03",
        "fact",
        "A RNDV is acked when it is matched or stored, not when it is pulled.",
        "acks may be sent at any time after that",
    ),
    _wire("R-RDV-04", "MUST", "If there is nothing to pull, no PULL is sent, only a NOTIFY."),
    _inside("R-RDV-05", "fact", "At most 128 RNDVs of an endpoint wait for their NOTIFY.", "a local limit"),
)
_PULL: Final = _chapter(
    "Pull",
    _wire("R-PUL-01", "MUST", "P, B and the offset determine the blocks; each PULL requests a whole block."),
    _wire("R-PUL-02", "SHOULD", "Up to 4 blocks are outstanding, counted from the oldest incomplete one."),
    _wire("R-PUL-03", "SHOULD", "The magic is derived from the endpoint; a handle identifies one transfer."),
    _wire(
        "R-PUL-04", "MUST", "Region, counter and offset are those of the RNDV, and each RNDV is pulled at most once."
    ),
    _inside("R-PUL-05", "fact", "A reply is accepted if it passes six tests.", _ACCEPTANCE),
    _inside("R-PUL-06", "fact", "Each accepted reply restarts the timer.", "acceptance is not on the wire"),
    _wire("R-PUL-07", "SHOULD", "When a later block is complete, older ones are re-requested once."),
    _wire("R-PUL-08", "SHOULD", "After 1000 ms all incomplete blocks are re-requested."),
    _wire("R-PUL-09", "SHOULD", "A pull is abandoned after 1000 resend delays."),
    _wire("R-PUL-10", "MUST", "The handle ends with the last frame: no PULL follows the NOTIFY."),
    _wire("R-PUL-11", "MUST", "An empty message is not pulled."),
    _wire("R-PUL-12", "MUST", "Each valid PULL is answered at once, once, and in order."),
    _wire("R-PUL-13", "MUST", "Number, length, offset and data of each reply follow from its PULL."),
    _wire("R-PUL-14", "MUST", "A PULL with a wrong endpoint, session or region is refused and not served."),
    _permits("R-PUL-15", "fact", "total_length, counter and source endpoint of a PULL are not checked."),
)
_NOTIFY: Final = _chapter(
    "Notify",
    _wire(
        "R-NOT-01",
        "MUST",
        "One NOTIFY ends each large message; it carries the number of bytes pulled or 0, the region and the counter.",
    ),
    _inside("R-NOT-02", "fact", "A NOTIFY completes the send with its region and counter.", _COMPLETION),
    _inside("R-NOT-03", "fact", "A send whose RNDV is not acked yet stays open.", _COMPLETION),
)
_NACKS: Final = _chapter(
    "Nacks",
    _wire("R-NAK-01", "MUST", "Only numbered packets, CONNECTs and PULLs are nacked."),
    _wire("R-NAK-02", "MUST", "One nack per refused packet, to the host that its index names."),
    _wire("R-NAK-03", "SHOULD", "The fields of a nack are copied from the refused packet."),
    _inside("R-NAK-04", "fact", "Nacks to closed endpoints and from unknown hosts are ignored.", _ACCEPTANCE),
    _inside("R-NAK-05", "fact", "A nack of an unacked number completes that request.", _COMPLETION),
    _inside("R-NAK-06", "fact", "Any other nack completes the oldest pending connect.", _COMPLETION),
    _wire("R-NAK-07", "MUST", "NACK_LIB has type 1, 2 or 3."),
    _inside("R-NAK-08", "fact", "A nack of a NOTIFY fails the large receive.", _COMPLETION),
    _wire("R-NAK-09", "MUST", "NACK_MCP has type 1, 2, 3 or 4; the pull then ends with a NOTIFY of 0."),
    _inside("R-NAK-10", "fact", "A nack does not reset the partner.", _STORED),
)

# Chapters 17 to 19.
_TRUNCATION: Final = _chapter(
    "Truncation, cancel, vectors",
    _inside(
        "R-MSC-01",
        "fact",
        "A message longer than its receive is truncated; only for large messages is the sender notified.",
        _BUFFERS,
    ),
    _inside("R-MSC-02", "fact", "Unmatched receives and unanswered connects can be cancelled.", _LOCAL),
    _inside("R-MSC-03", "fact", "Vectors are invisible.", _LOCAL),
)
_CLOSE: Final = _chapter(
    "Close, disconnect, restart",
    _inside("R-CLS-01", "fact", "There is no close or disconnect packet.", _CLOSING),
    _inside("R-CLS-02", "fact", "Closing drops all unfinished work; packets are nacked from then on.", _CLOSING),
    _inside("R-CLS-03", "fact", "Disconnect forgets the partner completely.", _LOCAL),
    _inside(
        "R-CLS-04",
        "fact",
        "A restart is detected by a CONNECT with another session, or suspected after nacks.",
        "a host's suspicions are not on the wire",
    ),
    _inside("R-CLS-05", "fact", "Effects of a full reset of a partner.", _STORED),
    _real("R-CLS-06", "fact", "Waking an application up is local.", "calls of the engine never block"),
    _inside(
        "R-CLS-07",
        "SHOULD",
        "After a restart the surviving host waits for the restarted host's CONNECT.",
        "the wire does not show when a host detects a restart",
    ),
    _inside("R-CLS-08", "fact", "A pull continues after its endpoint was closed, until the time limit.", _CLOSING),
)
_NEVER: Final = _chapter(
    "Never on the wire",
    _wire("R-LOC-01", "MUST", "Messages of an endpoint to itself never reach the wire."),
    _wire("R-LOC-02", "SHOULD", "Messages between endpoints of one host never reach it either."),
    _inside("R-LOC-03", "fact", "Each interface is a peer of its own.", _INTERFACES),
)

# Chapters 23 and 25.
_DEFECTS: Final = _chapter(
    "Defects of real hosts",
    _wire("D-1", "fact", "A connect reply does not teach the session of libacks, PULLs and NOTIFYs: 0xFFFFFFFF."),
    _inside("D-2", "fact", "A wrong key still changes the target's state.", "state is not on the wire"),
    _inside("D-3", "fact", "Reconnecting to a restarted host leaves a gap in the numbers.", "follows from R-CON-05"),
    _inside(
        "D-4",
        "fact",
        "After one host abandons its partner, the session numbers disagree.",
        "the wire does not show which host has abandoned the other",
    ),
    _inside("D-5", "fact", "The early queue is drained by one number only.", "late acks are legal (R-GEN-01)"),
    _wire("D-6", "fact", "The nack for a wrong index goes to the wrong host."),
    _wire("D-7", "fact", "A puller of fewer than 4 blocks may send a nonsensical PULL when its timer expires."),
    _inside("D-8", "fact", "Undefined bytes leak old buffers.", _UNDEFINED),
    _real(
        "D-9",
        "fact",
        "Short frames crash a receiver, unknown nack types abort applications.",
        "a crash is not a behaviour to implement; the frames that cause it are judged by W-2 and R-NAK-07",
    ),
    _inside("D-10", "fact", "frame_length of pull replies is not validated.", _ACCEPTANCE),
    _real(
        "D-11",
        "fact",
        "A benchmark of the driver broadcasts frames of undefined content.",
        "the benchmark is a tool of the real driver; its frames are judged by W-2 and W-6",
    ),
    _inside("D-12", "fact", "A CONNECT may be forgotten by a disconnect that follows.", "disconnects are local"),
    _inside(
        "D-13",
        "fact",
        "Handles are not unique during an endpoint's lifetime.",
        "one opening may follow another without a trace",
    ),
    _wire("D-14", "fact", "A HOST_REPLY from the receiver's own address renames it."),
    _wire("D-15", "fact", "A PULL beyond its first frame is still served."),
)
_MEASURED: Final = _chapter(
    "Measured on a real host",
    _real(
        "R-MEA-01",
        "fact",
        "The network card filters addresses first; all frames that it passes are accepted, except HOST_QUERY.",
        "it describes network cards, which an engine does not have",
    ),
    _inside("R-MEA-02", "fact", "A CONNECT from the receiver's own address is accepted.", _ACCEPTANCE),
    _inside("R-MEA-03", "fact", "Offsets of a PULL are computed modulo 2^32.", "no sound PULL reaches that offset"),
    _inside("R-MEA-04", "fact", "Answers to PULLs beyond their first frame.", "judged as D-15 at the puller"),
    _inside(
        "R-MEA-05",
        "fact",
        "A HOST_REPLY from the receiver's own address renames it (D-14).",
        "names are not on the wire",
    ),
    _real(
        "R-MEA-06",
        "fact",
        "VLAN tags that the card passes are ignored, and absent from the answer.",
        "tags are removed before frames reach an engine or the judge",
    ),
    _real(
        "R-MEA-07",
        "fact",
        "A HOST_QUERY padded to 1500 bytes is answered with magic 0.",
        "caused by buffers of the real driver; overlong frames are judged by W-2",
    ),
    _inside("R-MEA-08", "fact", "'Outside the region' means outside the posted buffer.", _BUFFERS),
    _real(
        "R-MEA-09",
        "fact",
        "'Bad header length' is counted only below 17 bytes; other short frames may stop a host.",
        f"{_COUNTERS}; short frames are judged by W-2",
    ),
    _inside("R-MEA-10", "fact", "RAW: 'queue full' is tested before 'too large'.", _ACCEPTANCE),
    _inside("R-MEA-11", "fact", "Some packets count as received even when dropped.", _COUNTERS),
    _inside("R-MEA-12", "fact", "An unknown nack type aborts only if its sender is a known partner.", _ACCEPTANCE),
    _inside(
        "R-MEA-13",
        "fact",
        "A MEDIUM with one fragment of a high number, or of length 0, is complete.",
        _ACCEPTANCE,
    ),
    _wire("R-MEA-14", "fact", "The NOTIFY of a refused pull goes to the next session of the sender's endpoint."),
    _inside(
        "R-MEA-15",
        "fact",
        "A busy host sends the first PULLs of a transfer out of order.",
        "a responder assumes no order of PULLs, and the network may have changed it",
    ),
    _real(
        "R-MEA-16",
        "fact",
        "The receiver of omx_perf answers with content of its own.",
        "it describes an application of the real stack",
    ),
    _inside(
        "R-MEA-17",
        "fact",
        "The library returns slots of the event ring in batches of 256.",
        "the free space of a ring is not on the wire",
    ),
    _inside(
        "R-MEA-18",
        "fact",
        "A truncated large receive is reported as success until its NOTIFY is acked.",
        _STATUS,
    ),
    _inside(
        "R-MEA-19",
        "fact",
        "A non-blocking connect ends as unreachable at the resend limit, a blocking one as timed out.",
        _STATUS,
    ),
    _inside(
        "R-MEA-20",
        "fact",
        "Timers are late by up to their granularity, pulls by up to 32 ms.",
        "it widens the periods of R-PUL-08, R-HOST-02 and R-ACK-04, which are judged",
    ),
    _inside(
        "R-MEA-21",
        "fact",
        "The PULLs of a closed endpoint continue for about 512 s.",
        "the endpoint may still be open; the last PULL is judged by R-PUL-09",
    ),
    _inside(
        "R-MEA-22",
        "fact",
        "The discovery program treats any RAW frame as an announcement.",
        "the content of a peer table is not on the wire",
    ),
)

_CHAPTERS: Final = (
    *(_WIRE_FORMAT, _MODEL, _DISCOVERY, _NAMES, _ENDPOINTS, _CONNECT, _SEQUENCE, _SENDING, _WINDOW, _MATCH, _MEDIUM),
    *(_ACKS, _RETRANSMISSION, _RENDEZVOUS, _PULL, _NOTIFY, _NACKS, _TRUNCATION, _CLOSE, _NEVER, _DEFECTS, _MEASURED),
)
CATALOGUE: Final[dict[str, Rule]] = {rule.number: rule for chapter in _CHAPTERS for rule in chapter}
"""All rules by number: those of the wire format, then those of behaviour in the order of the specification."""


def chapters() -> list[str]:
    """Return the titles of the chapters, in order."""
    return list(dict.fromkeys(rule.chapter for rule in CATALOGUE.values()))
