"""Every capture, each of its hosts played in turn against a simulated host that takes the other's place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.protocol import Profile
from mxwire.protocol.profile import OPEN_MX_0_5, OPEN_MX_1_0, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.replay.stateful.comparison import Cause, ReplayFinding
from mxwire.replay.stateful.script import script_of
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import PullReply
from tests.replay.testbed import BY_HAND, HOSTS, A, B, live_node, played, script
from tests.wire.support import CAPTURES, frames_of, read_capture

HAND_MADE = "the live host is no hand-made peer, and sends fragments and regions as any host does"
STOPPED = "the played host had been stopped for seconds, which no frame shows: here it answers"
UNSUITABLE = {
    ("mxoe-medium-pipeline11", "real"): HAND_MADE,
    ("mxoe-rndv-offset", "real"): HAND_MADE,
    ("mxoe-resends-exhausted", "B"): STOPPED,
    ("omx9000-resends-exhausted", "B"): STOPPED,
    ("mxoe-nack-mcp-session", "A"): "the met host was cut off from what the played one sent: here it is not",
}
"""Events that cannot be repeated as recorded, and the reason."""
ONLY_DISCOVERY = ("discovery-omxoed", "driver-load")


def hosts_of(capture: str) -> tuple[str, ...]:
    return ("by-hand", "real") if capture.endswith(("early", "pipeline11", "rndv-offset")) else ("A", "B")


def cases() -> list[tuple[str, str]]:
    found = [(capture, host) for capture in CAPTURES for host in hosts_of(capture)]
    silent = ("mxoe-discovery-static", "B")
    return [each for each in found if not each[0].endswith(ONLY_DISCOVERY) and each != silent]


@pytest.mark.rule("R-CON-12", "R-DISC-01", "R-HOST-05")
@pytest.mark.parametrize(
    ("capture", "host"), [each for each in cases() if each not in UNSUITABLE], ids=lambda each: str(each)
)
def test_a_host_that_acts_as_the_recorded_one_shows_no_difference(capture: str, host: str) -> None:
    chosen = script(capture, host)
    actor = played(chosen, live_node(chosen))
    assert actor.findings == []
    assert not actor.failure and not actor.skipped
    assert actor.played == sum(each.is_played and not isinstance(each.frame, PullReply) for each in chosen.records) > 0
    missing = [each for each in actor.expectations.all.values() if not each.met]
    assert all(each.again for each in missing), f"{len(missing)} answers were not found"


@pytest.mark.parametrize(("capture", "host"), UNSUITABLE, ids=lambda each: str(each))
def test_differences_are_reported(capture: str, host: str) -> None:
    chosen = script(capture, host)
    assert played(chosen, live_node(chosen)).findings, "it goes as it went: it is suitable"


def test_all_hosts_of_all_captures_are_played_or_excused() -> None:
    assert len(cases()) == 2 * (len(CAPTURES) - 4) - 1
    assert set(UNSUITABLE) <= set(cases())


@pytest.mark.parametrize("capture", ["mxoe-connect", "mxoe-unexpected", "omx9000-vect", "omx1500-echo-pattern"])
def test_a_second_replay_to_the_same_host_goes_as_the_first(capture: str) -> None:
    # Its peer table, endpoints, sessions and regions are those that the first one has left.
    chosen = script(capture, "A")
    node = live_node(chosen)
    assert played(chosen, node, seed=1).findings == []
    for endpoint in list(node.endpoints.values()):
        endpoint.close()
    assert played(chosen, node, seed=3).findings == []


def test_a_recording_with_another_ethertype_is_played_with_the_usual_one() -> None:
    batch = read_capture("mxoe-connect-cross")
    other = [each[:12] + b"\x88\xb5" + each[14:] for each in frames_of(batch)]
    decoded = Decoder(MXOE, (0x88B5,)).decode(FrameBatch.from_frames(other, batch.timestamp_ns.tolist()))
    chosen = script_of([decoded], "private", A, dialect=MXOE)
    actor = played(chosen, live_node(chosen))
    assert not actor.findings and actor.played == 5


def test_a_missing_endpoint_is_reported_at_once() -> None:
    chosen = script("mxoe-echo-checksum-debug", "A")
    assert chosen.endpoints == {3} and chosen.keys == {0x12345678}
    actor = played(chosen, live_node(chosen), endpoints={3: 9})
    assert actor.failure == "its endpoint 9 is not open (--endpoint gives another one)"
    assert {each.kind for each in actor.findings} <= {Cause.APPLICATION}


def test_a_wrong_key_is_reported_at_once() -> None:
    chosen = script("mxoe-echo-checksum-debug", "A")
    actor = played(chosen, live_node(chosen), keys={0x12345678: 0xABCD})
    assert actor.failure == "it refuses the key of the connect (--key gives another one)"


# Hosts of another kind.

OTHERWISE: dict[str, tuple[str, str, Profile, set[str]]] = {
    "pulls one block at a time, as 0.5 did": ("omx1500-echo-pattern", "A", OPEN_MX_0_5, set()),
    "has messages within regions": ("omx9000-vect", "B", OPEN_MX_1_0, set()),
    "has other fragments": (
        "mxoe-echo-checksum-debug",
        "A",
        replace(OPEN_MX_1_5_AS_FOUND, fragment_pipeline=11),
        {"Medium.frag_length", "Medium.frag_pipeline", "type"},
    ),
    "has another threshold": (
        "omx1500-echo-pattern",
        "A",
        replace(OPEN_MX_1_5_AS_FOUND, medium_threshold=16384),
        {"type"},
    ),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_another_kind_of_host_is_reported_by_its_actions(what: str) -> None:
    capture, host, profile, fields = OTHERWISE[what]
    chosen = script(capture, host)
    actor = played(chosen, live_node(chosen, profile), timeout=10**9)
    assert {each.field for each in actor.findings if each.kind is Cause.PROTOCOL and each.field} == fields, summary(
        actor.findings
    )


WITHOUT_DEFECTS = {("mxoe-every-type", "B"), ("mxoe-no-reverse-connect", "B")}
"""Recordings of a host that did not connect back, and so sent to no session."""


@pytest.mark.rule("R-CON-12")
@pytest.mark.parametrize(
    ("capture", "host"), [each for each in cases() if each not in UNSUITABLE], ids=lambda each: str(each)
)
def test_the_engine_as_it_should_be_differs_only_in_the_known_defect(capture: str, host: str) -> None:
    chosen = script(capture, host)
    actor = played(chosen, live_node(chosen, OPEN_MX_1_5))
    own = {each.field for each in actor.findings if each.kind is not Cause.APPLICATION}
    assert own == ({"Pull.session", "Notify.session"} if (capture, host) in WITHOUT_DEFECTS else set())
    assert not actor.failure


def test_a_host_without_the_known_defect_differs_in_it() -> None:
    chosen = script("mxoe-no-reverse-connect", "A")
    actor = played(chosen, live_node(chosen, replace(OPEN_MX_1_5, connects_back=True)), timeout=10**9)
    assert "R-CON-12" in {each.rule for each in actor.findings}


def summary(findings: list[ReplayFinding]) -> str:
    return "\n".join(sorted({f"{each.kind} {each.rule} {each}" for each in findings}))


# Hosts that cannot be played.


def test_a_capture_without_the_host_lists_its_hosts() -> None:
    decoded_hosts = r"there are 52:54:00:0a:00:01, 52:54:00:0a:00:02"
    with pytest.raises(MxwireError, match=rf"it has no frame of 02:00:00:00:00:99; {decoded_hosts}"):
        script("mxoe-connect", "by-hand")


def test_discovery_alone_is_nothing_to_play() -> None:
    with pytest.raises(MxwireError, match="there is only discovery, which every host does by itself"):
        script("mxoe-driver-load", "A")


def test_a_host_that_sent_nothing_is_not_played() -> None:
    with pytest.raises(MxwireError, match="it has no frame of 52:54:00:0a:00:02; there are 52:54:00:0a:00:01"):
        script("mxoe-discovery-static", "B")


def test_a_capture_that_begins_after_the_connect_is_refused() -> None:
    batch = read_capture("mxoe-connect")
    later = Decoder(MXOE).decode(batch.select(np.arange(10, 12)))
    with pytest.raises(MxwireError, match="had connected before it begins"):
        script_of([later], "later", A)


def test_hosts_have_their_addresses() -> None:
    assert script("mxoe-early", "real").met == BY_HAND == HOSTS["by-hand"]
    assert (script("mxoe-connect", "A").met, script("mxoe-connect", "B").met) == (B, A)
