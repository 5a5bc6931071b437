"""The results of applications: the receives of each recording end as in its log, with the bytes that were sent.

The logs are those of the recordings; the numbers here are from them, where the tool printed them.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from mxwire.protocol import Status
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.conformance.player import Player
from tests.conformance.words import pattern

SUCCESS, TRUNCATED, CANCELLED = Status.SUCCESS, Status.MESSAGE_TRUNCATED, Status.CANCELLED
RECEIVED = {
    host: {Status[status]: count for status, count in statuses.items()}
    for host, statuses in tomllib.loads(Path(__file__).with_name("received.toml").read_text(encoding="utf-8")).items()
}

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
