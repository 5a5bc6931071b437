"""All rules of the specification as data, in its order: those of the wire format first, then those of behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

Force = Literal["MUST", "SHOULD", "MAY", "fact"]
Judged = Literal["wire", "inside", "not"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the specification, and how it can be judged."""

    number: str
    """Number in the specification, for example ``R-SEQ-05``; ``W-6.4`` is section 6.4 of its wire format part."""
    text: str
    """The rule in one line."""
    force: Force
    """Strictness of the rule; ``fact`` for a description of real hosts that requires nothing."""
    judged: Judged
    """``wire``: by the judge, from frames; ``inside``: only with a view of the host's state, as in a test of the
    engine; ``not``: not at all."""
    why: str = ""
    """The reason, unless ``judged`` is ``wire``."""
    checker_only: bool = False
    """True if only a checker of real hosts can use the rule, because an engine has nothing to implement. ``why`` gives
    the reason."""
    chapter: str = ""
    """The chapter's title."""


@dataclass(frozen=True, slots=True)
class _Strictness:
    """Rules of one strictness; the catalogue adds their numbers and chapters."""

    force: Force

    def wire(self, text: str) -> Rule:
        """Return a rule that the judge applies."""
        return Rule("", text, self.force, "wire")

    def inside(self, text: str, why: str) -> Rule:
        """Return a rule about a host's own state."""
        return Rule("", text, self.force, "inside", why)

    def permits(self, text: str) -> Rule:
        """Return a rule that cannot be broken."""
        return Rule("", text, self.force, "not", "it permits something and demands nothing")

    def real(self, text: str, why: str) -> Rule:
        """Return a rule that describes real hosts only: it binds no other host, and an engine has nothing to
        implement."""
        return Rule("", text, self.force, "not", why, checker_only=True)


_MUST, _SHOULD, _MAY, _FACT = map(_Strictness, get_args(Force))

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

_CHAPTERS: Final[Mapping[str, Mapping[str, Rule]]] = {
    "Wire format": {
        "W-2": _MUST.wire("A frame has 60 to M bytes, no padding beyond 60, and one destination host."),
        "W-5": _MUST.wire("dst_src_peer_index is the last index that the destination announced; 0xFFFF before that."),
        "W-6": _MUST.wire("Only the packet types of Open-MX are sent."),
        "W-6.1": _SHOULD.wire("An announcement is broadcast, with index 0 and the sender's own address as NIC id."),
        "W-6.4": _MUST.wire(
            "A liback (an ack in a frame of its own) has sub-type 0x55, 16 bytes of data, and the same session twice."
        ),
        "W-6.5": _MUST.wire("A CONNECT has 16 bytes of data, lib_seqnum 0, and is_reply 0 or 1."),
        "W-6.7": _MUST.wire("All fragments of a MEDIUM have the same length and match information."),
        "W-6.8": _MUST.wire("A RNDV has 8 bytes of data."),
        "W-7": _MUST.wire("Lengths lie within the limits of the packet type and within the frame."),
    },
    # Chapters 1 to 4.
    "Model": {
        "R-GEN-01": _MUST.inside(
            "The library runs only while the application calls it; peers tolerate acks of any delay.",
            "the wire does not show when an application calls its library",
        ),
        "R-GEN-02": _FACT.inside(
            "A pass of the library: received events, completions, retransmissions, delayed sends, due acks.",
            "the order of work inside a host is not on the wire, only its result",
        ),
        "R-GEN-03": _FACT.inside(
            "Time is counted in kernel ticks; divisions in formulas of ticks are integer divisions.",
            "the ticks of a host's clock are not on the wire; periods are judged with that tolerance",
        ),
    },
    "Peer discovery": {
        "R-DISC-01": _MUST.inside(
            "A host exchanges packets only with addresses in its peer table; packets of the driver never add one.",
            "the content of a peer table is not on the wire",
        ),
        "R-DISC-02": _SHOULD.wire("A daemon announces itself 8 times at intervals of 1000 ms, then every 180 s."),
        "R-DISC-03": _SHOULD.inside(
            "An unknown NIC id is added to the table without a name, and a new series of 8 announcements starts.",
            "the wire does not show which daemons a daemon already knew",
        ),
        "R-DISC-04": _SHOULD.inside(
            "A known NIC id with a changed serial starts a new series; the host's own id is ignored.",
            "a daemon's memory is not on the wire",
        ),
        "R-DISC-05": _FACT.inside(
            "Only the NIC id and serial of an announcement are evaluated; peers are never removed.",
            "the wire does not show which fields a daemon evaluates",
        ),
        "R-DISC-06": _MUST.wire("RAW frames have at most 1024 bytes; a receiver queues 33 of them."),
        "R-DISC-07": _MUST.inside(
            "A host announces itself in order to be found, unless its peers have static entries for it.",
            "static entries in peer tables leave no trace on the wire",
        ),
    },
    "Host names": {
        "R-HOST-01": _SHOULD.inside(
            "A peer without a name is queried at once, on every interface.",
            "the wire does not show when a peer enters a table",
        ),
        "R-HOST-02": _SHOULD.wire("Nameless peers are queried again every 5 s."),
        "R-HOST-03": _SHOULD.wire("The magic starts at 0x13052008 and is incremented whenever names are cleared."),
        "R-HOST-04": _SHOULD.wire("A query is answered once, if it is for this address and from a known peer."),
        "R-HOST-05": _FACT.inside(
            "A query teaches the reverse index, not the querier's name.",
            "learned indexes show only in the indexes of later packets (W-5)",
        ),
        "R-HOST-06": _MUST.wire("A reply carries the query's magic and the name of the interface."),
        "R-HOST-07": _FACT.inside(
            "A reply with another magic is dropped; others set the name and teach the index, even unrequested.",
            "a host's stored names are not on the wire",
        ),
        "R-HOST-08": _MUST.wire("A name has 1 to 80 bytes, including the terminating NUL."),
        "R-HOST-09": _FACT.permits("Names are not needed for messages: a CONNECT alone teaches both indexes."),
    },
    "Endpoints": {
        "R-EP-01": _MUST.wire("Endpoint numbers beyond the host's limit get nack type 1, closed endpoints type 2."),
        "R-EP-02": _MUST.wire("Each opening has a new session id; packets carry the destination's."),
        "R-EP-03": _FACT.inside("The generation field is neither written nor read.", _UNDEFINED),
        "R-EP-04": _FACT.inside(
            "The key is compared during connect only.", "the absence of further comparisons has no effect on the wire"
        ),
        "R-EP-05": _FACT.inside("An endpoint belongs to one interface.", _INTERFACES),
    },
    # Chapters 5 and 6.
    "Connect": {
        "R-CON-01": _MUST.wire("A request has the sender's session, the key, the next connect number and rx_next."),
        "R-CON-02": _SHOULD.wire("An unanswered request is retransmitted every resend delay, with the same number."),
        "R-CON-03": _FACT.inside(
            "A reply is accepted if its session and connect number are those of a pending connect.", _PARTNER
        ),
        "R-CON-04": _MUST.wire("A reply has status 0 or 11; others are ignored."),
        "R-CON-05": _FACT.inside("Effects of a reply of status 0 on the requester's state.", _PARTNER),
        "R-CON-06": _MAY.permits("Several connects to a partner may be pending."),
        "R-CON-07": _SHOULD.wire("An endpoint connects to itself without a packet."),
        "R-CON-08": _MUST.wire(
            "Each request gets one reply: copied fields, own session, rx_next, and status 0 or 11 depending on the key."
        ),
        "R-CON-09": _MUST.wire("Only the key of a request is checked."),
        "R-CON-10": _FACT.inside("Effects of a request on the target's state.", _PARTNER),
        "R-CON-11": _MAY.permits("After a request the target may send without connecting itself."),
        "R-CON-12": _SHOULD.wire(
            "A host connects in its own direction before it sends, and refuses session 0xFFFFFFFF (none is known)."
        ),
        "R-CON-13": _FACT.inside(
            "Traffic in one direction needs one handshake, but large messages then stall.",
            "it follows from other rules, which are judged",
        ),
        "R-CON-14": _FACT.inside("Crossing requests leave both endpoints connected.", _PARTNER),
        "R-CON-15": _FACT.inside(
            "A NACK_LIB of number 0 ends the oldest pending connect.", "the wire does not show which connect fails"
        ),
    },
    "Sequence numbers": {
        "R-SEQ-01": _MUST.wire("A number has 14 bits of sequence and 2 bits of session number; 0 follows 0x3FFF."),
        "R-SEQ-02": _MUST.wire("Differences are taken modulo 2^14."),
        "R-SEQ-03": _MUST.wire("The receiver chooses the session number, and every sequence number carries it."),
        "R-SEQ-04": _MUST.wire("TINY, SMALL, MEDIUM, RNDV and NOTIFY share one sequence in each direction."),
        "R-SEQ-05": _MUST.wire("The first number is the one that the receiver requested."),
        "R-SEQ-06": _MUST.wire("At most 8191 numbers are outstanding."),
        "R-SEQ-07": _FACT.inside(
            "A packet with another session number, in its own number or its piggyback (ack), is dropped silently.",
            "a drop without an answer is not on the wire",
        ),
    },
    # Chapters 7 to 12.
    "Sending": {
        "R-SND-01": _SHOULD.wire("TINY up to 32 bytes, SMALL up to 128, MEDIUM up to the threshold, then RNDV."),
        "R-SND-02": _MUST.inside("A receiver accepts every type with any length within its limit.", _ACCEPTANCE),
        "R-SND-03": _SHOULD.wire("Fragments are sent in order; all but the last carry F bytes."),
        "R-SND-04": _FACT.real(
            "Only a debug build insists on regular fragments.",
            "it describes a debug build of the real driver; an engine has no such build",
        ),
        "R-SND-05": _FACT.permits("There are no credits or windows besides the 8191 numbers."),
        "R-SND-06": _FACT.inside(
            "TINY, SMALL and MEDIUM complete when posted, RNDV when the peer has answered.", _COMPLETION
        ),
        "R-SND-07": _FACT.inside("Scatter and gather lists are invisible.", "invisible by definition"),
    },
    "Receive window": {
        "R-ORD-01": _FACT.inside("Packets of unknown partners are dropped without an answer.", _ACCEPTANCE),
        "R-ORD-02": _FACT.inside("The piggyback is evaluated even in early and duplicate packets.", _ACCEPTANCE),
        "R-ORD-03": _FACT.inside(
            "A packet is expected, a further fragment, a duplicate, early (up to 255 ahead) or obsolete.", _ACCEPTANCE
        ),
        "R-ORD-04": _FACT.inside(
            "Stored early packets advance the window by one number per received packet.",
            "a receiver's progress shows only in acks, which may be late anyway",
        ),
        "R-ORD-05": _MUST.inside("Every message is delivered once and in order.", "deliveries are not on the wire"),
    },
    "Matching": {
        "R-MAT-01": _FACT.inside("A receive matches if (information AND mask) = value.", _MATCHING),
        "R-MAT-02": _FACT.inside(
            "Posted receives match in the order of posting, unexpected messages in the order of arrival.", _MATCHING
        ),
        "R-MAT-03": _FACT.inside("Matching ignores the sender.", _MATCHING),
        "R-MAT-04": _FACT.inside("Each context id has its own queue, and masks must cover the context id.", _MATCHING),
        "R-MAT-05": _FACT.inside("Unexpected messages are acked; an unexpected RNDV waits to be pulled.", _MATCHING),
        "R-MAT-06": _FACT.inside("A call-back may consume a RNDV: NOTIFY with length 0.", _MATCHING),
    },
    "Medium reassembly": {
        "R-MED-01": _FACT.inside("The first fragment to arrive starts the match.", _MATCHING),
        "R-MED-02": _FACT.inside(
            "A fragment's offset is its number x F, or its number shifted by the pipeline.", _ACCEPTANCE
        ),
        "R-MED-03": _MUST.wire("Fragment numbers are below 32; duplicates are ignored."),
        "R-MED-04": _MUST.wire("Fragments add up to the message's length exactly."),
        "R-MED-05": _FACT.inside("Several MEDIUMs may be incomplete; acks stop at the oldest.", _ACCEPTANCE),
    },
    "Acknowledgements": {
        "R-ACK-01": _MUST.wire("Every ack is the next expected number, and never decreases."),
        "R-ACK-02": _SHOULD.inside("4 unacked numbers are acked at once, fewer after a delay.", _LATE_ACKS),
        "R-ACK-03": _MUST.wire("Every numbered packet carries the current ack, retransmissions too."),
        "R-ACK-04": _SHOULD.wire("A liback repeats its number in send_seq, has resent 0, and is sent after 16 ms."),
        "R-ACK-05": _FACT.inside("Numbers that an ack acknowledges.", "requests that it completes are not on the wire"),
        "R-ACK-06": _MUST.wire("acknum starts at 1 after a reset and strictly increases."),
        "R-ACK-07": _MAY.permits("The threshold of 4 can be changed per host."),
        "R-ACK-08": _SHOULD.inside("In mxoe a NOTIFY is acked at once.", _LATE_ACKS),
        "R-ACK-09": _SHOULD.inside("Closing an endpoint sends pending acks.", _CLOSING),
        "R-ACK-10": _MUST.wire("A TRUC is never nacked."),
    },
    "Retransmission": {
        "R-RTX-01": _SHOULD.wire("The resend delay is (HZ + 2)/2 ticks from the last transmission, without back-off."),
        "R-RTX-02": _MUST.wire(
            "A retransmission is unchanged except for its piggyback; a MEDIUM is retransmitted with all fragments."
        ),
        "R-RTX-03": _SHOULD.wire("A request is transmitted at most 1001 times, by default."),
        "R-RTX-04": _MUST.wire("Retransmissions have the session of the first transmission."),
        "R-RTX-05": _SHOULD.wire("An abandoned partner is connected again before anything is sent to it."),
    },
    # Chapters 13 to 16.
    "Rendezvous": {
        "R-RDV-01": _SHOULD.wire("A RNDV names a region and its use counter, which starts at 23 and counts uses."),
        "R-RDV-02": _MUST.wire("The offset of the RNDV is copied into every PULL."),
        "R-RDV-03": _FACT.inside(
            "A RNDV is acked when it is matched or stored, not when it is pulled.",
            "acks may be sent at any time after that",
        ),
        "R-RDV-04": _MUST.wire("If there is nothing to pull, no PULL is sent, only a NOTIFY."),
        "R-RDV-05": _FACT.inside("At most 128 RNDVs of an endpoint wait for their NOTIFY.", "a local limit"),
    },
    "Pull": {
        "R-PUL-01": _MUST.wire(
            "P (reply payload), B (replies per block) and the offset determine the blocks; "
            "each PULL requests a whole block."
        ),
        "R-PUL-02": _SHOULD.wire("Up to 4 blocks are outstanding, counted from the oldest incomplete one."),
        "R-PUL-03": _SHOULD.wire("The magic is derived from the endpoint; a handle identifies one transfer."),
        "R-PUL-04": _MUST.wire(
            "Region, counter and offset are those of the RNDV, and each RNDV is pulled at most once."
        ),
        "R-PUL-05": _FACT.inside("A reply is accepted if it passes six tests.", _ACCEPTANCE),
        "R-PUL-06": _FACT.inside("Each accepted reply restarts the timer.", "acceptance is not on the wire"),
        "R-PUL-07": _SHOULD.wire("When a later block is complete, older ones are re-requested once."),
        "R-PUL-08": _SHOULD.wire("After 1000 ms all incomplete blocks are re-requested."),
        "R-PUL-09": _SHOULD.wire("A pull is abandoned after 1000 resend delays."),
        "R-PUL-10": _MUST.wire("The handle ends with the last frame: no PULL follows the NOTIFY."),
        "R-PUL-11": _MUST.wire("An empty message is not pulled."),
        "R-PUL-12": _MUST.wire("Each valid PULL is answered at once, once, and in order."),
        "R-PUL-13": _MUST.wire("Number, length, offset and data of each reply follow from its PULL."),
        "R-PUL-14": _MUST.wire("A PULL with a wrong endpoint, session or region is refused and not served."),
        "R-PUL-15": _FACT.permits("total_length, counter and source endpoint of a PULL are not checked."),
    },
    "Notify": {
        "R-NOT-01": _MUST.wire(
            "One NOTIFY ends each large message; it carries the number of bytes pulled or 0, the region and the "
            "counter."
        ),
        "R-NOT-02": _FACT.inside("A NOTIFY completes the send with its region and counter.", _COMPLETION),
        "R-NOT-03": _FACT.inside("A send whose RNDV is not acked yet stays open.", _COMPLETION),
    },
    "Nacks": {
        "R-NAK-01": _MUST.wire("Only numbered packets, CONNECTs and PULLs are nacked."),
        "R-NAK-02": _MUST.wire("One nack per refused packet, to the host that its index names."),
        "R-NAK-03": _SHOULD.wire("The fields of a nack are copied from the refused packet."),
        "R-NAK-04": _FACT.inside("Nacks to closed endpoints and from unknown hosts are ignored.", _ACCEPTANCE),
        "R-NAK-05": _FACT.inside("A nack of an unacked number completes that request.", _COMPLETION),
        "R-NAK-06": _FACT.inside("Any other nack completes the oldest pending connect.", _COMPLETION),
        "R-NAK-07": _MUST.wire("NACK_LIB has type 1, 2 or 3."),
        "R-NAK-08": _FACT.inside("A nack of a NOTIFY fails the large receive.", _COMPLETION),
        "R-NAK-09": _MUST.wire("NACK_MCP has type 1, 2, 3 or 4; the pull then ends with a NOTIFY of 0."),
        "R-NAK-10": _FACT.inside("A nack does not reset the partner.", _STORED),
    },
    # Chapters 17 to 19.
    "Truncation, cancel, vectors": {
        "R-MSC-01": _FACT.inside(
            "A message longer than its receive is truncated; only for large messages is the sender notified.", _BUFFERS
        ),
        "R-MSC-02": _FACT.inside("Unmatched receives and unanswered connects can be cancelled.", _LOCAL),
        "R-MSC-03": _FACT.inside("Vectors are invisible.", _LOCAL),
    },
    "Close, disconnect, restart": {
        "R-CLS-01": _FACT.inside("There is no close or disconnect packet.", _CLOSING),
        "R-CLS-02": _FACT.inside("Closing drops all unfinished work; packets are nacked from then on.", _CLOSING),
        "R-CLS-03": _FACT.inside("Disconnect forgets the partner completely.", _LOCAL),
        "R-CLS-04": _FACT.inside(
            "A restart is detected by a CONNECT with another session, or suspected after nacks.",
            "a host's suspicions are not on the wire",
        ),
        "R-CLS-05": _FACT.inside("Effects of a full reset of a partner.", _STORED),
        "R-CLS-06": _FACT.real("Waking an application up is local.", "calls of the engine never block"),
        "R-CLS-07": _SHOULD.inside(
            "After a restart the surviving host waits for the restarted host's CONNECT.",
            "the wire does not show when a host detects a restart",
        ),
        "R-CLS-08": _FACT.inside("A pull continues after its endpoint was closed, until the time limit.", _CLOSING),
    },
    "Never on the wire": {
        "R-LOC-01": _MUST.wire("Messages of an endpoint to itself never reach the wire."),
        "R-LOC-02": _SHOULD.wire("Messages between endpoints of one host never reach it either."),
        "R-LOC-03": _FACT.inside("Each interface is a peer of its own.", _INTERFACES),
    },
    # Chapters 23 and 25.
    "Defects of real hosts": {
        "D-1": _FACT.wire("A connect reply does not teach the session for libacks, PULLs and NOTIFYs (0xFFFFFFFF)."),
        "D-2": _FACT.inside("A wrong key still changes the target's state.", "state is not on the wire"),
        "D-3": _FACT.inside("Reconnecting to a restarted host leaves a gap in the numbers.", "follows from R-CON-05"),
        "D-4": _FACT.inside(
            "After one host abandons its partner, the session numbers disagree.",
            "the wire does not show which host has abandoned the other",
        ),
        "D-5": _FACT.inside("The early queue is drained by one number only.", "late acks are legal (R-GEN-01)"),
        "D-6": _FACT.wire("The nack for a wrong index goes to the wrong host."),
        "D-7": _FACT.wire("A puller of fewer than 4 blocks may send a nonsensical PULL when its timer expires."),
        "D-8": _FACT.inside("Undefined bytes leak old buffers.", _UNDEFINED),
        "D-9": _FACT.real(
            "Short frames crash a receiver, unknown nack types abort applications.",
            "a crash is not a behaviour to implement; the frames that cause it are judged by W-2 and R-NAK-07",
        ),
        "D-10": _FACT.inside("frame_length of pull replies is not validated.", _ACCEPTANCE),
        "D-11": _FACT.real(
            "A benchmark of the driver broadcasts frames of undefined content.",
            "the benchmark is a tool of the real driver; its frames are judged by W-2 and W-6",
        ),
        "D-12": _FACT.inside("A CONNECT may be forgotten by a disconnect that follows.", "disconnects are local"),
        "D-13": _FACT.inside(
            "Handles are not unique during an endpoint's lifetime.", "one opening may follow another without a trace"
        ),
        "D-14": _FACT.wire("A HOST_REPLY from the receiver's own address renames it."),
        "D-15": _FACT.wire("A PULL beyond its first frame is still served."),
    },
    "Measured on a real host": {
        "R-MEA-01": _FACT.real(
            "The network card filters addresses first; all frames that it passes are accepted, except HOST_QUERY.",
            "it describes network cards, which an engine does not have",
        ),
        "R-MEA-02": _FACT.inside("A CONNECT from the receiver's own address is accepted.", _ACCEPTANCE),
        "R-MEA-03": _FACT.inside("Offsets of a PULL are computed modulo 2^32.", "no sound PULL reaches that offset"),
        "R-MEA-04": _FACT.inside("Answers to PULLs beyond their first frame.", "judged as D-15 at the puller"),
        "R-MEA-05": _FACT.inside(
            "A HOST_REPLY from the receiver's own address renames it (D-14).", "names are not on the wire"
        ),
        "R-MEA-06": _FACT.real(
            "VLAN tags that the card passes are ignored, and absent from the answer.",
            "tags are removed before frames reach an engine or the judge",
        ),
        "R-MEA-07": _FACT.real(
            "A HOST_QUERY padded to 1500 bytes is answered with magic 0.",
            "caused by buffers of the real driver; overlong frames are judged by W-2",
        ),
        "R-MEA-08": _FACT.inside("'Outside the region' means outside the posted buffer.", _BUFFERS),
        "R-MEA-09": _FACT.real(
            "'Bad header length' is counted only below 17 bytes; other short frames may stop a host.",
            f"{_COUNTERS}; short frames are judged by W-2",
        ),
        "R-MEA-10": _FACT.inside("RAW: 'queue full' is tested before 'too large'.", _ACCEPTANCE),
        "R-MEA-11": _FACT.inside("Some packets count as received even when dropped.", _COUNTERS),
        "R-MEA-12": _FACT.inside("An unknown nack type aborts only if its sender is a known partner.", _ACCEPTANCE),
        "R-MEA-13": _FACT.inside(
            "A MEDIUM with one fragment of a high number, or of length 0, is complete.", _ACCEPTANCE
        ),
        "R-MEA-14": _FACT.wire("The NOTIFY of a refused pull goes to the next session of the sender's endpoint."),
        "R-MEA-15": _FACT.inside(
            "A busy host sends the first PULLs of a transfer out of order.",
            "a responder assumes no order of PULLs, and the network may have changed it",
        ),
        "R-MEA-16": _FACT.real(
            "The receiver of omx_perf answers with content of its own.", "it describes an application of the real stack"
        ),
        "R-MEA-17": _FACT.inside(
            "The library returns slots of the event ring in batches of 256.",
            "the free space of a ring is not on the wire",
        ),
        "R-MEA-18": _FACT.inside(
            "A truncated large receive is reported as success until its NOTIFY is acked.", _STATUS
        ),
        "R-MEA-19": _FACT.inside(
            "A non-blocking connect ends as unreachable at the resend limit, a blocking one as timed out.", _STATUS
        ),
        "R-MEA-20": _FACT.inside(
            "Timers are late by up to their granularity, pulls by up to 32 ms.",
            "it widens the periods of R-PUL-08, R-HOST-02 and R-ACK-04, which are judged",
        ),
        "R-MEA-21": _FACT.inside(
            "The PULLs of a closed endpoint continue for about 512 s.",
            "the endpoint may still be open; the last PULL is judged by R-PUL-09",
        ),
        "R-MEA-22": _FACT.inside(
            "The discovery program treats any RAW frame as an announcement.",
            "the content of a peer table is not on the wire",
        ),
        "R-MEA-23": _FACT.real("A truncated large receive from the same host ends as success.", _STATUS),
        "R-MEA-24": _FACT.real("A large local send stays pending when its receiver closes.", _STATUS),
        "R-MEA-25": _FACT.real("A large local message without a connect ends the receive as bad session.", _STATUS),
        "R-MEA-26": _FACT.inside(
            "A name is queried after 0.17 s, then every 5 s; a known name is not queried again.",
            "the intervals are judged by R-HOST-02",
        ),
        "R-MEA-27": _FACT.real(
            "A puller may request a block up to three times within 2 ms around its timer.",
            "in a capture such requests look like frames that the network duplicates",
        ),
        "R-MEA-28": _FACT.real(
            "Handles repeat between processes that use one endpoint number.",
            "R-PUL-13 and R-PUL-14 distinguish pulls by the sessions of their endpoints",
        ),
        "R-MEA-29": _FACT.real(
            "The receiver of omx_perf sleeps for 500 ms, and then disconnects its partner.",
            "it describes an application of the real stack",
        ),
        "R-MEA-30": _FACT.real(
            "The receiver of omx_perf exits when its partner is killed.",
            "it describes an application of the real stack",
        ),
        "R-MEA-31": _FACT.real(
            "A receiver ends the pulls of a dead sender by nack, and accepts its next process at once.",
            "when a receiver ends a pull is not on the wire",
        ),
    },
}
CATALOGUE: Final[dict[str, Rule]] = {
    number: replace(rule, number=number, chapter=title)
    for title, rules in _CHAPTERS.items()
    for number, rule in rules.items()
}
"""All rules by number: those of the wire format, then those of behaviour in the order of the specification."""


def chapters() -> list[str]:
    """Return the titles of the chapters, in order."""
    return list(_CHAPTERS)
