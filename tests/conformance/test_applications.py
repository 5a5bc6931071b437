"""The results of applications: the receives of each recording end as in its log, with the bytes that were sent.

The logs are those of the recordings; the numbers here are from them, where the tool printed them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from mxwire.protocol import Status
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.conformance.player import Player
from tests.conformance.words import pattern

SUCCESS, TRUNCATED, CANCELLED = Status.SUCCESS, Status.MESSAGE_TRUNCATED, Status.CANCELLED
RECEIVED = {
    "burst B": {SUCCESS: 74},
    "cancel B": {SUCCESS: 2, CANCELLED: 3},
    "connect B": {SUCCESS: 1},
    "connect-cross A": {SUCCESS: 3},
    "connect-cross B": {SUCCESS: 3},
    "early real": {SUCCESS: 13},
    "echo-checksum-debug A": {SUCCESS: 15},
    "echo-checksum-debug B": {SUCCESS: 15},
    "echo-pattern A": {SUCCESS: 22},
    "echo-pattern B": {SUCCESS: 22},
    "lossy-1M A": {SUCCESS: 1},
    "lossy-1M B": {SUCCESS: 1},
    "many B": {SUCCESS: 12},
    "many-small B": {SUCCESS: 20},
    "medium-pipeline11 real": {SUCCESS: 5},
    "nack-mcp-closed B": {Status.REMOTE_ENDPOINT_CLOSED: 1},
    "nack-mcp-rdmawin B": {SUCCESS: 14},
    "nack-mcp-session B": {Status.REMOTE_ENDPOINT_BAD_SESSION: 1},
    "no-reverse-connect A": {SUCCESS: 5, Status.REMOTE_ENDPOINT_BAD_SESSION: 1},
    "no-reverse-connect B": {SUCCESS: 6},
    "pingpong-small-medium A": {SUCCESS: 48},
    "pingpong-small-medium B": {SUCCESS: 48},
    "pingpong-sync A": {SUCCESS: 12},
    "pingpong-sync B": {SUCCESS: 12},
    "receiver-killed B": {CANCELLED: 1},
    "resends-exhausted B": {SUCCESS: 3, Status.REMOTE_RDMA_WINDOW_BAD_ID: 1},
    "rndv-offset real": {SUCCESS: 5},
    "stopped-receiver B": {SUCCESS: 4},
    # The two large messages among them end as successes with the shorter length (R-MEA-18).
    "truncated B": {TRUNCATED: 4, SUCCESS: 2},
    "unexpected B": {SUCCESS: 6},
    "uninit A": {SUCCESS: 14},
    "uninit B": {SUCCESS: 14},
    "vect B": {SUCCESS: 6},
}
"""The results of the receives of each host that ended."""

RECEIVING = [
    pytest.param(case, id=f"{case.capture}-{case.host}") for case in CASES if f"{case.subject} {case.host}" in RECEIVED
]


@pytest.mark.rule("R-ORD-05", "R-MED-02", "R-PUL-13", "R-MSC-01", "R-MEA-18", "R-NAK-09")
@pytest.mark.parametrize("case", RECEIVING)
def test_receives_end_as_they_did(case: Case) -> None:
    player = Player(case)
    player.run()
    application = player.application
    ended = [request for request in application.buffers if request.done]
    assert Counter(application.reported[request] for request in ended) == RECEIVED[f"{case.subject} {case.host}"]
    if case.real_payload or any(record.cut for record in player.records):
        # The contents of these messages are unknown.
        return
    for request in ended:
        if request.status in (SUCCESS, TRUNCATED):
            data = application.data_of(request)
            assert data == pattern(request.match_info, len(data)), f"{request!r} holds something else"


def test_all_receives_are_listed() -> None:
    listed = {f"{case.subject} {case.host}" for case in CASES}
    assert listed >= RECEIVED.keys()
    calling = {f"{case.subject} {case.host}" for case in CASES if any(map(receives, case.programs))}
    assert calling == RECEIVED.keys()


def receives(program: str) -> bool:
    return any(word.partition(":")[0] in ("irecv", "recv", "ivrecv", "pong", "pong0") for word in program.split())
