"""The captures: a node in the place of a real host sends what that host sent."""

from __future__ import annotations

import pytest

from mxwire.protocol.counters import Counter
from mxwire.units import SECOND
from tests.conformance.case import Case
from tests.conformance.cases import CASES, NOT_PLAYED, SILENT
from tests.conformance.outbox import LossyOutbox
from tests.conformance.player import Player
from tests.wire.support import CAPTURES, read_capture

SHOWS = {
    "burst": ("R-ACK-02", "R-ACK-04", "R-ACK-06", "R-SND-01", "R-SEQ-04", "R-PUL-04"),
    "cancel": ("R-MSC-02", "R-MAT-02"),
    "connect": ("R-CON-01", "R-CON-05", "R-CON-08", "R-CON-10", "R-CLS-03", "R-CLS-04"),
    "connect-cross": ("R-CON-14", "R-ACK-03"),
    "discovery-omxoed": ("R-DISC-02", "R-DISC-03", "R-DISC-04", "R-HOST-01", "R-HOST-02", "R-HOST-06"),
    "discovery-static": ("R-CON-02",),
    "driver-load": ("R-DISC-03", "R-DISC-04", "R-HOST-01", "R-HOST-06"),
    "early": ("R-ORD-03", "R-ORD-04", "R-ACK-02"),
    "echo-checksum-debug": ("R-SND-01", "R-SND-03", "R-RDV-01", "R-PUL-01", "R-PUL-12", "R-PUL-13"),
    "echo-pattern": ("R-SND-01", "R-SND-03", "R-RDV-01", "R-PUL-01", "R-PUL-02", "R-PUL-12", "R-PUL-13"),
    "lossy-1M": ("R-PUL-06", "R-PUL-07", "R-PUL-08", "R-RTX-02"),
    "many": ("R-RDV-01", "R-PUL-02", "R-PUL-03", "R-NAK-03"),
    "many-small": ("R-SND-01", "R-ACK-02"),
    "medium-pipeline11": ("R-MED-02", "R-MED-03", "R-MED-04"),
    "nack-lib": ("R-NAK-02", "R-NAK-03", "R-NAK-05", "R-NAK-07", "R-CON-15", "R-CLS-02"),
    "nack-mcp-closed": ("R-NAK-03", "R-NAK-09", "R-PUL-14"),
    "nack-mcp-rdmawin": ("R-NAK-03", "R-PUL-14", "R-ORD-03"),
    "nack-mcp-session": ("R-NAK-03", "R-NAK-09", "R-PUL-08", "R-PUL-14"),
    "no-reverse-connect": ("R-CON-11", "R-CON-13", "R-NAK-03", "R-NAK-08"),
    "pingpong-small-medium": ("R-SND-01", "R-ACK-03", "R-ACK-08", "R-ACK-09", "D-1"),
    "pingpong-sync": ("R-RDV-01", "R-PUL-11", "R-RTX-01", "D-1"),
    "receiver-killed": ("R-CLS-02", "R-CLS-08", "R-PUL-06", "R-PUL-08"),
    "resends-exhausted": ("R-RTX-01", "R-RTX-02", "R-RTX-03", "R-RTX-05"),
    "rndv-offset": ("R-RDV-02", "R-PUL-01"),
    "stopped-receiver": ("R-RTX-01", "R-RTX-02", "R-ORD-03"),
    "truncated": ("R-MSC-01", "R-RDV-04"),
    "unexpected": ("R-MAT-02", "R-MAT-05", "R-RDV-03"),
    "uninit": ("R-DISC-02", "R-HOST-01", "R-HOST-06", "R-CON-15"),
    "vect": ("R-SND-07", "R-MSC-03"),
}
"""The rules that each capture shows."""

PLAYED = [
    pytest.param(case, id=f"{case.capture}-{case.host}", marks=pytest.mark.rule(*SHOWS[case.subject])) for case in CASES
]


@pytest.mark.parametrize("case", PLAYED)
def test_a_node_sends_the_same_as_the_real_host(case: Case) -> None:
    player = Player(case)
    outbox = player.run()
    sent = sum(each.is_played for each in player.records)
    assert outbox.equal == case.frames > 0, f"{outbox.equal} of {sent} frames were compared"
    assert case.frames == sent or case.why, f"only {case.frames} of {sent} frames are compared, and nothing says why"
    if isinstance(outbox, LossyOutbox):
        assert (outbox.again, outbox.lost) == (case.again, case.lost)


def test_every_host_of_every_capture_is_played() -> None:
    assert {case.capture for case in CASES} | NOT_PLAYED.keys() == set(CAPTURES)
    for capture in {case.capture for case in CASES}:
        hosts = {case.host for case in CASES if case.capture == capture}
        assert hosts == {"real"} or hosts | {host for other, host in SILENT if other == capture} == {"A", "B"}
    assert len(CASES) == len({(case.capture, case.host) for case in CASES})


@pytest.mark.rule("R-DISC-01")
def test_a_host_that_does_not_know_the_sender_is_silent() -> None:
    player = Player(Case("mxoe-discovery-static", "B", strangers=True))
    node, now = player.node, player.now
    node.open_endpoint(3)
    node.receive(read_capture("mxoe-discovery-static"), now)
    assert not len(node.transmit(now + SECOND))
    assert node.counters[Counter.DROP_BAD_PEER_ADDRESS] == 6
