"""A recording that shows frames twice, or in the wrong order, makes no host look wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from mxwire.analysis.conversations import Follower
from mxwire.analysis.verification import HELD, OrderedVerification
from mxwire.capture.time_order import in_time_order
from mxwire.rules import CAPTURE, Violation
from mxwire.wire.decoder import Decoder
from mxwire.wire.enums import PacketType
from tests.captures import CAPTURES, batch_of, records_of
from tests.rules.testbed import Testbed

from .mangling import HARMLESS, Frames, Mangler, mirrored, neighbours_swapped, queues

NAMES = sorted(path.name for path in CAPTURES.glob("*.pcap"))


def verified(frames: Frames, **options: object) -> tuple[OrderedVerification, list[Violation]]:
    verification = OrderedVerification(**options)
    found = [
        each
        for decoded in Decoder().decode_all(in_time_order([batch_of(frames)]))
        for each in verification.observe(decoded)
    ]
    return verification, [*found, *verification.finish()]


def against_hosts(found: list[Violation]) -> Counter[tuple[str, str]]:
    return Counter((each.rule, each.severity) for each in found if each.severity != "note")


@pytest.mark.parametrize("name", NAMES)
def test_no_host_is_blamed_for_the_recording(name: str) -> None:
    frames = list(records_of(name))
    _, right = verified(frames)
    for mangler in HARMLESS:
        # Two copies of a frame that deviates deviate twice.
        found = against_hosts(verified(mangler(frames))[1])
        assert found.keys() <= against_hosts(right).keys(), mangler.__name__


@pytest.mark.parametrize("mangler", [mirrored, queues])
@pytest.mark.parametrize("name", ["mxoe-every-type.pcap", "mxoe-lossy-1M.pcap", "omx9000-many.pcap"])
def test_messages_are_the_same_in_such_a_recording(name: str, mangler: Mangler) -> None:
    def messages(frames: Frames) -> list[tuple[object, ...]]:
        follower = Follower()
        found = [
            each
            for decoded in Decoder().decode_all(in_time_order([batch_of(frames)]))
            for each in follower.observe(decoded)
        ]
        found += follower.finish()
        return sorted((each.number, each.kind, each.length, each.sender, each.receiver) for each in found)

    frames = list(records_of(name))
    assert messages(mangler(frames)) == messages(frames)


def test_frames_that_cannot_be_judged_are_noted_with_the_reason() -> None:
    frames = list(records_of("omx9000-many.pcap"))
    verification, found = verified(neighbours_swapped(frames))
    assert verification.disordered
    noted = [each for each in found if "wrong order" in each.found]
    assert {each.rule for each in noted} == {"R-NOT-01", "R-PUL-02"} and not verification.violations


@pytest.mark.rule("R-RDV-01", "R-PUL-03", "R-EP-02")
def test_causes_behind_their_effects_blame_no_host() -> None:
    """A region and a handle are used again before the NOTIFY, and a session is named before its connect is seen."""
    on = Testbed(vantage=CAPTURE)
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply(), on.b.tiny())
    on.send(on.a.rndv(4000), on.b.pull(4000), on.a.data(4000, 0), on.b.notify(4000))
    on.send(on.a.rndv(5000), on.b.pull(5000), on.a.data(5000, 0), on.a.data(5000, 1), on.b.notify(5000))
    frames = [(time, raw, len(raw)) for time, raw in on.sent]
    order = [0, 4, 1, 2, 3, 5, 6, 7, 9, 10, 8, *range(11, len(frames))]
    moved = [(frames[place][0], *frames[each][1:]) for place, each in enumerate(order)]
    assert {"R-RDV-01", "R-PUL-03"} <= {rule for rule, _ in against_hosts(verified(moved)[1])}
    verification, found = verified(moved, disordered=True)
    assert not verification.violations and not against_hosts(found)
    assert {"R-RDV-01", "R-PUL-03"} <= {each.rule for each in found}


@pytest.mark.rule("R-RTX-02")
def test_numbers_that_begin_again_before_their_connect_is_seen_are_not_changed_retransmissions() -> None:
    on = Testbed(vantage=CAPTURE)
    on.send(on.a.request(), on.b.reply(), on.b.request(), on.a.reply(), on.a.tiny(b"first"), on.b.liback())
    on.send(on.b.request(target_recv_seqnum_start=1), on.a.reply(), after_ms=600)
    on.send(on.a.tiny(b"other", lib_seqnum=1))
    frames = [(time, raw, len(raw)) for time, raw in on.sent]
    assert not against_hosts(verified(frames)[1])
    order = [*range(6), 8, 6, 7]
    moved = [(frames[place][0], *frames[each][1:]) for place, each in enumerate(order)]
    assert ("R-RTX-02", "violation") in against_hosts(verified(moved)[1])
    assert not against_hosts(verified(moved, disordered=True)[1])


def test_an_order_that_is_right_lets_nothing_pass() -> None:
    """An answer before its question in a capture that is otherwise in order is a violation, as without all this."""
    frames = list(records_of("mxoe-every-type.pcap"))
    notify = next(place for place, (_, data, _) in enumerate(frames) if data[16] == PacketType.NOTIFY)
    replies = [place for place in range(notify) if frames[place][1][16] == PacketType.PULL_REPLY]
    moved = [*frames]
    moved.insert(replies[-3], (frames[replies[-3]][0], *moved.pop(notify)[1:]))
    verification, found = verified(moved)
    assert not verification.disordered
    assert "R-NOT-01" in {each.rule for each in found if each.severity == "violation"}
    reported = verified(moved, disordered=True)[1]
    assert "R-NOT-01" in {each.rule for each in reported if each.severity == "note"}


def test_pending_findings_are_reported_when_their_time_is_over_and_are_bounded() -> None:
    frames = list(records_of("mxoe-many.pcap"))
    early = [(time - 10**7 if data[16] == PacketType.NOTIFY else time, data, length) for time, data, length in frames]
    patient, waited = verified(early)
    hasty, reported = verified(early, patience_ns=0)
    assert against_hosts(waited) == against_hosts(reported) and patient.violations == hasty.violations > 0
    assert HELD > 100
