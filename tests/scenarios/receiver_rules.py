"""The parts of the specification that the library has to cover, from the specification itself."""

from __future__ import annotations

RECEIVER_RULES = [
    "R-GEN-01",
    "R-DISC-06",
    "R-HOST-04",
    "R-HOST-05",
    "R-HOST-07",
    "R-CON-03",
    "R-CON-04",
    "R-CON-05",
    "R-CON-08",
    "R-CON-09",
    "R-CON-10",
    "R-CON-12",
    "R-CON-15",
    "R-SEQ-07",
    "R-SND-04",
    "R-ORD-01",
    "R-ORD-02",
    "R-ORD-03",
    "R-ORD-04",
    "R-MED-01",
    "R-MED-02",
    "R-MED-03",
    "R-MED-04",
    "R-ACK-02",
    "R-ACK-05",
    "R-ACK-06",
    "R-ACK-07",
    "R-RDV-03",
    "R-RDV-04",
    "R-PUL-05",
    "R-PUL-12",
    "R-PUL-14",
    "R-PUL-15",
    "R-NOT-02",
    "R-NOT-03",
    "R-NAK-01",
    "R-NAK-04",
    "R-NAK-05",
    "R-NAK-06",
    "R-NAK-07",
    "R-NAK-08",
    "R-NAK-09",
]
"""Those that the behaviour document marks [R]: what a real receiver does with input."""

NACKED = {
    ("CONNECT_REQUEST", "NACK_LIB"): (1, 2),
    ("TINY", "NACK_LIB"): (1, 2, 3),
    ("SMALL", "NACK_LIB"): (1, 2, 3),
    ("MEDIUM", "NACK_LIB"): (1, 2, 3),
    ("RNDV", "NACK_LIB"): (1, 2, 3),
    ("NOTIFY", "NACK_LIB"): (1, 2, 3),
    ("PULL", "NACK_MCP"): (1, 2, 3, 4),
}
"""The conditions of refusals, the refusing party, and the nack types (section 16.1)."""

DROPS = {
    "drop_bad_header_length": ("FRAME",),
    "drop_invalid_type": ("FRAME",),
    "drop_unknown_type": ("FRAME",),
    "drop_bad_data_length": ("CONNECT_REQUEST", "TRUC", "RNDV", "TINY", "SMALL", "MEDIUM"),
    "drop_bad_frame_length": ("TINY", "SMALL", "MEDIUM", "PULL_REPLY"),
    "drop_bad_peer_address": ("CONNECT_REQUEST", "CONNECT_REPLY", "HOST_QUERY", "HOST_REPLY", "NACK_LIB", "NACK_MCP"),
    "drop_bad_peer_index": ("TINY", "SMALL", "MEDIUM", "RNDV", "NOTIFY", "PULL", "TRUC"),
    "drop_bad_endpoint": ("CONNECT_REQUEST", "TINY", "SMALL", "MEDIUM", "RNDV", "NOTIFY", "PULL", "TRUC", "NACK_LIB"),
    "drop_bad_session": ("TINY", "SMALL", "MEDIUM", "RNDV", "NOTIFY", "PULL", "TRUC"),
    "drop_pull_bad_replies": ("PULL",),
    "drop_pull_bad_region": ("PULL",),
    "drop_pull_bad_range": ("PULL",),
    "drop_reply_bad_handle": ("PULL_REPLY", "NACK_MCP"),
    "drop_reply_bad_magic": ("PULL_REPLY", "NACK_MCP"),
    "drop_reply_wrap_around": ("PULL_REPLY",),
    "drop_reply_bad_sequence": ("PULL_REPLY",),
    "drop_reply_duplicate": ("PULL_REPLY",),
    "pull_reply_fill_failed": ("PULL_REPLY",),
    "drop_host_reply_bad_magic": ("HOST_REPLY",),
    "drop_raw_too_large": ("RAW",),
    "drop_raw_queue_full": ("RAW",),
    "drop_ring_full": ("CONNECT_REQUEST", "TINY", "SMALL", "MEDIUM", "RNDV", "NOTIFY", "TRUC", "NACK_LIB"),
}
"""The counters of section 21 with the packets that they stand for; each has to be seen counting each."""

NOT_COUNTED = {
    "peer index unusable and not 0xFFFF: NACK_LIB, NACK_MCP": ("nacks/unusable-index",),
    "TRUC sub-type not 0x55": ("acks/other-sub-type", "acks/order-of-tests"),
    "not for this MAC: HOST_QUERY": ("discovery/query-broadcast",),
    "R-ORD-01, an unknown partner": ("eager/unknown-partner", "eager/before-any-handshake"),
    "R-SEQ-07, session number": ("eager/wrong-session-number",),
    "R-SEQ-07, session number of the piggyback": ("eager/wrong-session-number-in-piggyback",),
    "obsolete and duplicate packets": ("eager/duplicate-of-older", "eager/duplicate-of-newest"),
    "unusable connect replies": (
        "connect/reply-wrong-session",
        "connect/reply-wrong-connect-number",
        "connect/reply-other-status",
    ),
    "old libacks": ("acks/acknum-must-grow", "acks/acknum-zero", "acks/of-the-past"),
}
"""The frames that section 21 drops without a counter, and the scenarios that show it: no answer, and all continues."""

ORDER_OF_TESTS = {
    "TINY, SMALL, MEDIUM, RNDV, NOTIFY": "malformed/order-of-tests",
    "CONNECT": "connect/order-of-tests",
    "TRUC": "acks/order-of-tests",
    "PULL (R-PUL-14)": "serving/order-of-tests",
    "PULL_REPLY (R-PUL-05)": "pull/order-of-tests",
    "RAW (R-MEA-10)": "discovery/raw-queue",
}
"""In which order a receiver tests, and the scenario whose frames are wrong in more than one thing."""

NOT_TO_BE_SHOWN = {
    "frame on a non-attached interface": "nobody is there who could be asked, and nothing is sent either way",
}
"""Lines of section 21 that cannot be seen from outside, and why."""

HISTORIC = (
    ("0.1.0", "last number instead of the next"),
    ("0.1.0", "pipeline"),
    ("0.1.0", "no counter"),
    ("0.1.0", "nothing to request"),
    ("0.1.0", "status numbers"),
    ("0.2.0", "same handle"),
    ("0.4.0", "nack type"),
    ("0.4.0", "session number"),
    ("0.4.0", "NOTIFY"),
    ("0.4.0", "every duplicate"),
    ("0.4.0", "immediate ack"),
    ("0.5.0", "modulo 256"),
    ("0.5.0", "duplicate NOTIFY"),
    ("0.6.0", "names"),
    ("0.6.0", "RAW"),
    ("0.7.0", "echo"),
    ("0.7.0", "handle"),
    ("0.9.1", "offset"),
    ("1.0.4", "retired"),
    ("1.0.4", "without need"),
    ("1.0.4", "consumed"),
    ("1.1.1", "per interface"),
    ("1.1.901", "beyond the buffer"),
    ("1.1.901", "wrong length"),
    ("1.3.1", "later connects"),
    ("1.3.2", "pipeline"),
    ("1.3.2", "EtherType"),
)
"""The defects of former releases (differences document, section 3), by the release that fixed each."""
