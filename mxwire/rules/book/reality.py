"""Chapters 23 and 25: defects of real hosts, and what was measured on them."""

from __future__ import annotations

from typing import Final

from mxwire.rules.book.entry import chapter, inside, of_real_hosts, on_wire

_DROP = "what a receiver does with a packet that it does not answer is not on the wire"
_COUNTERS = "speaks of the counters of the real driver"

RULES: Final = (
    *chapter(
        "Defects of real hosts",
        on_wire("D-1", "fact", "A connect reply does not tell where libacks, PULLs and NOTIFYs go: 0xFFFFFFFF."),
        inside("D-2", "fact", "A wrong key changes the target's state all the same.", "state is not on the wire"),
        inside(
            "D-3", "fact", "Reconnecting to a restarted host leaves a hole in the numbers.", "follows from R-CON-05"
        ),
        inside(
            "D-4",
            "fact",
            "After giving up on one side the session numbers disagree.",
            "who has given up is not on the wire",
        ),
        inside("D-5", "fact", "The early queue is drained by one number only.", "late acks are legal (R-GEN-01)"),
        on_wire("D-6", "fact", "The nack for a wrong index goes to the wrong host."),
        on_wire("D-7", "fact", "A puller of fewer than 4 blocks may send a nonsensical PULL when its timer expires."),
        inside("D-8", "fact", "Undefined bytes leak old buffers.", "undefined bytes are not judged"),
        of_real_hosts(
            "D-9",
            "fact",
            "Short frames crash a receiver, unknown nack types abort applications.",
            "crashing is no behaviour to implement; the frames that cause it are judged by W-2 and R-NAK-07",
        ),
        inside("D-10", "fact", "frame_length of pull replies is not validated.", _DROP),
        of_real_hosts(
            "D-11",
            "fact",
            "A benchmark of the driver broadcasts frames of undefined content.",
            "the benchmark is a tool of the real driver; its frames are judged by W-2 and W-6",
        ),
        inside("D-12", "fact", "A CONNECT may be forgotten by a disconnect that follows.", "disconnects are local"),
        inside(
            "D-13", "fact", "Handles are not unique over an endpoint's life.", "openings may follow each other unseen"
        ),
        on_wire("D-14", "fact", "A HOST_REPLY from the receiver's own address renames it."),
        on_wire("D-15", "fact", "A PULL beyond its first frame is served all the same."),
    ),
    *chapter(
        "Measured on a real host",
        of_real_hosts(
            "R-MEA-01",
            "fact",
            "The network card filters addresses first; what it passes is accepted, but for HOST_QUERY.",
            "speaks of network cards, which an engine does not have",
        ),
        inside("R-MEA-02", "fact", "A CONNECT from the own address is accepted.", _DROP),
        inside("R-MEA-03", "fact", "Offsets of a PULL are computed modulo 2^32.", "no sound PULL comes that far"),
        inside("R-MEA-04", "fact", "How PULLs beyond their first frame are answered.", "judged as D-15 at the puller"),
        inside("R-MEA-05", "fact", "A HOST_REPLY from the own address renames (D-14).", "names are not on the wire"),
        of_real_hosts(
            "R-MEA-06",
            "fact",
            "VLAN tags that the card passes are ignored, and not in the answer.",
            "tags are taken off before frames reach an engine or the judge",
        ),
        of_real_hosts(
            "R-MEA-07",
            "fact",
            "A HOST_QUERY padded to 1500 bytes is answered with magic 0.",
            "comes from buffers of the real driver; overlong frames are judged by W-2",
        ),
        inside(
            "R-MEA-08", "fact", "'Outside the region' means outside the posted buffer.", "buffers are not on the wire"
        ),
        of_real_hosts(
            "R-MEA-09",
            "fact",
            "'Bad header length' is counted below 17 bytes only; other short frames may stop a host.",
            f"{_COUNTERS}; short frames are judged by W-2",
        ),
        inside("R-MEA-10", "fact", "RAW: 'queue full' is tested before 'too large'.", _DROP),
        inside("R-MEA-11", "fact", "Some packets count as received even when dropped.", _COUNTERS),
        inside("R-MEA-12", "fact", "An unknown nack type aborts only if it comes from a known partner.", _DROP),
        inside("R-MEA-13", "fact", "A MEDIUM with one fragment of a high number, or of length 0, is complete.", _DROP),
        on_wire("R-MEA-14", "fact", "The NOTIFY of a refused pull goes to the next session of the sender's endpoint."),
        inside(
            "R-MEA-15",
            "fact",
            "A busy host sends the first PULLs of a transfer out of order.",
            "a replier assumes no order of PULLs, and the network may have changed it",
        ),
        of_real_hosts(
            "R-MEA-16",
            "fact",
            "The receiver of omx_perf answers with content of its own.",
            "speaks of an application of the real stack",
        ),
        inside(
            "R-MEA-17",
            "fact",
            "The library gives slots of the event ring back in batches of 256.",
            "how much room a ring has is not on the wire",
        ),
        inside(
            "R-MEA-18",
            "fact",
            "A truncated large receive is reported as success until its NOTIFY is acked.",
            "statuses of applications are not on the wire",
        ),
        inside(
            "R-MEA-19",
            "fact",
            "A non-blocking connect ends as unreachable at the resend limit, a blocking one as timed out.",
            "statuses of applications are not on the wire",
        ),
        inside(
            "R-MEA-20",
            "fact",
            "Timers are late by up to their granularity, pulls by up to 32 ms.",
            "it widens the periods of R-PUL-08, R-HOST-02 and R-ACK-04, which are judged",
        ),
        inside(
            "R-MEA-21",
            "fact",
            "The PULLs of an endpoint that was closed go on for about 512 s.",
            "the endpoint may be open all the time; their end is judged by R-PUL-09",
        ),
        inside(
            "R-MEA-22",
            "fact",
            "The discovery program takes any RAW frame for an announcement.",
            "whom a host enters into its peer table is not on the wire",
        ),
    ),
)
