"""The cases: every capture, for every host in it that sent anything."""

from __future__ import annotations

from typing import Final

from tests.conformance.case import Case

NOT_PLAYED: Final = {
    "mxoe-every-type": "it is mxoe-discovery-omxoed and mxoe-no-reverse-connect in one file; both are played",
}
"""Captures that are not played, and why."""
SILENT: Final = {("mxoe-discovery-static", "B")}
"""Hosts that sent nothing."""

DAEMON: Final = "a new start of the discovery daemon, which the engine knows only with a host's own"
NAMES_LATE: Final = "the real driver looks for overdue host names at long intervals only"
GIVEN_UP: Final = """the application sends to a partner that was given up: the real library sends number 0xFFFF to
session 0xFFFFFFFF, which is refused, and the engine nothing (R-RTX-05); daemons had started long before"""
STOPPED: Final = "the discovery daemons had started long before"
SHAPED: Final = "the host's frames waited in a queue of 40 Mbit/s"
SLEEPS: Final = "the application is out of the library for 150 ms after each message"
DOUBLED: Final = "all frames of the host were doubled and delayed by 1 to 39 ms, and its acks depend on the time"
ENDED: Final = "the application ended at the first nack, so the last numbers were not repeated any more"
KILLED: Final = "nothing shows when the host was killed, but that it was before the next block was complete"

CASES: Final = (
    # Dialect mxoe.
    Case("mxoe-burst", "A", 140),
    Case("mxoe-burst", "B", 24, shift_ms=1, early_ms=2),
    Case("mxoe-cancel", "A", 20),
    Case("mxoe-cancel", "B", 6, shift_ms=3, early_ms=4),
    Case("mxoe-connect", "A", 6),
    Case("mxoe-connect", "B", 6),
    Case("mxoe-connect-cross", "A", 5),
    Case("mxoe-connect-cross", "B", 6, shift_ms=0.5),
    Case("mxoe-discovery-omxoed", "A", 18, daemon="starts", strangers=True, delay_ms=250, why=NAMES_LATE),
    Case("mxoe-discovery-omxoed", "B", 11, daemon="starts", strangers=True, until=25, why=DAEMON),
    Case("mxoe-discovery-static", "A", 6),
    Case("mxoe-driver-load", "A", 6, daemon="before"),
    Case("mxoe-driver-load", "B", 7, daemon="starts", strangers=True),
    Case("mxoe-early", "real", 13, shift_ms=0.5, early_ms=2),
    Case("mxoe-echo-checksum-debug", "A", 87),
    Case("mxoe-echo-checksum-debug", "B", 87),
    Case("mxoe-lossy-1M", "A", 380, again=11, lost=7, lossy=True),
    Case("mxoe-lossy-1M", "B", 460, again=9, lost=13, lossy=True),
    Case("mxoe-many", "A", 691),
    Case("mxoe-many", "B", 94, left=1, why=ENDED),
    Case("mxoe-many-small", "A", 21),
    Case("mxoe-many-small", "B", 2),
    Case("mxoe-medium-pipeline11", "real", 6, shift_ms=0.5, early_ms=1),
    Case("mxoe-nack-lib", "A", 15),
    Case("mxoe-nack-lib", "B", 15),
    Case("mxoe-nack-mcp-closed", "A", 359),
    Case("mxoe-nack-mcp-closed", "B", 51),
    Case("mxoe-nack-mcp-rdmawin", "A", 74),
    Case("mxoe-nack-mcp-rdmawin", "B", 62, again=31, lost=9, lossy=True, modulo_acks=True, why=DOUBLED),
    Case("mxoe-nack-mcp-session", "A", 567),
    Case(
        "mxoe-nack-mcp-session",
        "B",
        77,
        lost=8,
        lossy=True,
        unheard=range(604, 635),
        why="the host was cut off from the network, while the other one, at whose end was recorded, went on",
    ),
    Case("mxoe-no-reverse-connect", "A", 30),
    Case("mxoe-no-reverse-connect", "B", 23),
    Case("mxoe-pingpong-small-medium", "A", 147),
    Case("mxoe-pingpong-small-medium", "B", 158, shift_ms=2.5),
    Case("mxoe-resends-exhausted", "A", 35, resends=5, unsent=(38,), why=GIVEN_UP),
    Case("mxoe-resends-exhausted", "B", 7, shift_ms=0.5, early_ms=1, why=STOPPED),
    Case("mxoe-rndv-offset", "real", 34),
    Case("mxoe-stopped-receiver", "A", 47),
    Case("mxoe-stopped-receiver", "B", 7, shift_ms=3),
    Case("mxoe-truncated", "A", 17),
    Case("mxoe-truncated", "B", 6),
    Case("mxoe-unexpected", "A", 30),
    Case("mxoe-unexpected", "B", 11),
    Case("mxoe-uninit", "A", 128, daemon="starts", strangers=True),
    Case("mxoe-uninit", "B", 127, daemon="starts", strangers=True),
    # Dialect omx:1500.
    Case("omx1500-connect", "A", 6),
    Case("omx1500-connect", "B", 6, shift_ms=3.5),
    Case("omx1500-early", "real", 13, shift_ms=0.5),
    Case("omx1500-echo-pattern", "A", 294),
    Case("omx1500-echo-pattern", "B", 295),
    Case("omx1500-pingpong-small-medium", "A", 219, shift_ms=2.5, early_ms=2),
    Case("omx1500-pingpong-small-medium", "B", 216, shift_ms=2.5, early_ms=2),
    # Dialect omx:9000.
    Case("omx9000-cancel", "A", 13),
    Case("omx9000-cancel", "B", 6, shift_ms=1, early_ms=6),
    Case("omx9000-connect", "A", 6),
    Case("omx9000-connect", "B", 6),
    Case("omx9000-discovery-omxoed", "A", 18, daemon="starts", strangers=True, delay_ms=250, why=NAMES_LATE),
    Case("omx9000-discovery-omxoed", "B", 11, early_ms=1, daemon="starts", strangers=True, until=25, why=DAEMON),
    Case("omx9000-driver-load", "A", 6, daemon="before"),
    Case("omx9000-driver-load", "B", 7, daemon="starts", strangers=True),
    Case("omx9000-lossy-1M", "A", 162, shift_ms=1, again=1, lost=1, lossy=True),
    Case("omx9000-lossy-1M", "B", 224, again=3, lost=5, lossy=True),
    Case("omx9000-many", "A", 322),
    Case("omx9000-many", "B", 20, shift_ms=1, early_ms=3, left=2, why=ENDED),
    Case("omx9000-many-small", "A", 21),
    Case("omx9000-many-small", "B", 3),
    Case("omx9000-nack-lib", "A", 13),
    Case("omx9000-nack-lib", "B", 13),
    Case("omx9000-nack-mcp-closed", "A", 263, delay_ms=300, why=SHAPED),
    Case("omx9000-nack-mcp-closed", "B", 15),
    Case("omx9000-nack-mcp-rdmawin", "A", 61, delay_ms=150, why=SLEEPS),
    Case("omx9000-nack-mcp-rdmawin", "B", 62, again=31, lost=7, lossy=True, modulo_acks=True, why=DOUBLED),
    Case("omx9000-pingpong-sync", "A", 52, shift_ms=0.5),
    Case(
        "omx9000-pingpong-sync",
        "B",
        60,
        delay_ms=500,
        why="the library slept in the driver while the application waited, and sent an ack when it woke up to resend",
    ),
    Case("omx9000-receiver-killed", "A", 1031, delay_ms=300, why=SHAPED),
    Case("omx9000-receiver-killed", "B", 39, early_ms=4, killed=304, why=KILLED),
    Case("omx9000-resends-exhausted", "A", 29, resends=5, unsent=(31,), why=GIVEN_UP),
    Case("omx9000-resends-exhausted", "B", 7, shift_ms=1.5, early_ms=1, why=STOPPED),
    Case("omx9000-stopped-receiver", "A", 33, shift_ms=0.5),
    Case("omx9000-stopped-receiver", "B", 6, shift_ms=0.5),
    Case("omx9000-truncated", "A", 13, shift_ms=2, early_ms=2),
    Case("omx9000-truncated", "B", 6, shift_ms=2, early_ms=2),
    Case("omx9000-vect", "A", 30, shift_ms=0.5),
    Case("omx9000-vect", "B", 7),
)
