"""The suite can fail: a node that errs anywhere is detected, and the difference names the place."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from mxwire.protocol.profile import OPEN_MX_0_5, OPEN_MX_1_0, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.packets import HostQuery, PullReply, Truc
from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.conformance.outbox import UNDEFINED, Difference, Outbox
from tests.conformance.player import LATER, Player

SHORT = (("mxoe-connect", "A"), ("mxoe-driver-load", "B"), ("mxoe-nack-lib", "B"), ("omx9000-truncated", "A"))
"""Captures with many kinds of frames, and few frames."""


def case_of(capture: str, host: str) -> Case:
    return next(case for case in CASES if (case.capture, case.host) == (capture, host))


def fails(player: Player) -> str:
    """The description of the first difference."""
    with pytest.raises(Difference) as problem:
        player.run()
    return str(problem.value)


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    return int(value) ^ 1


class Erring(Outbox):
    """The frames of a node that errs in one frame."""

    def __init__(self, player: Player, place: int, error: str) -> None:
        super().__init__(player.codec, LATER)
        self.left = place
        self.error = error
        """The name of the field that is wrong, or `missing`, `twice`, `long`."""

    def put(self, time: int, data: bytes) -> None:
        super().put(time, data)
        self.left -= 1
        if self.left == -1:
            _, length, frame = self.sent.pop()
            if self.error in ("twice", "missing"):
                self.sent += [(time, length, frame)] * ("missing", "", "twice").index(self.error)
            elif self.error == "long":
                self.sent.append((time, length + 1, frame))
            else:
                wrong = changed(getattr(frame, self.error))
                self.sent.append((time, length, replace(frame, **{self.error: wrong})))


def erring(capture: str, host: str, place: int, error: str) -> Player:
    player = Player(case_of(capture, host))
    player.outbox = Erring(player, place, error)
    return player


def sent_by(capture: str, host: str) -> list[Any]:
    """The frames of the node in the order in which it sends them."""
    found: list[Any] = []

    class Keeping(Outbox):
        def put(self, time: int, data: bytes) -> None:
            super().put(time, data)
            found.append(self.sent[-1][2])

    player = Player(case_of(capture, host))
    player.outbox = Keeping(player.codec, LATER)
    player.run()
    return found


@pytest.mark.parametrize(("capture", "host"), SHORT)
def test_any_wrong_field_of_any_frame_is_found(capture: str, host: str) -> None:
    tried = 0
    for place, frame in enumerate(sent_by(capture, host)):
        for field in fields(frame):
            value = getattr(frame, field.name)
            if field.name in UNDEFINED or not isinstance(value, (int, bytes)) or value == b"":
                continue
            tried += 1
            output = fails(erring(capture, host, place, field.name))
            assert output.startswith(f"{capture}, host {host}, frame "), output
            wrong = f"{type(frame).__name__}.{field.name} is {changed(value)!r:.60}, expected {value!r:.60}"
            assert wrong in output, f"{wrong}: {output}"
    assert tried > 50


@pytest.mark.parametrize("error", ["missing", "twice", "long"])
@pytest.mark.parametrize(("capture", "host"), SHORT)
def test_any_missing_additional_or_longer_frame_is_found(capture: str, host: str, error: str) -> None:
    for place, _ in enumerate(sent_by(capture, host)):
        output = fails(erring(capture, host, place, error))
        assert output.startswith(f"{capture}, host {host}, "), output


OTHERWISE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "acks every number at once": ("omx9000-truncated", "B", {"ack_threshold": 1}),
    "acks every eighth number at once": ("mxoe-burst", "B", {"ack_threshold": 8}),
    "lets NOTIFYs wait for their ack": ("mxoe-pingpong-small-medium", "B", {"notify_acked_at_once": False}),
    "resends once less": ("mxoe-resends-exhausted", "A", {"resend_maximum": 4}),
    "ticks slowly": ("omx9000-stopped-receiver", "A", {"hz": 10}),
    "pulls two blocks at a time": ("omx1500-echo-pattern", "A", {"blocks_in_flight": OPEN_MX_0_5.blocks_in_flight}),
    "pulls again too early": ("omx9000-receiver-killed", "B", {"pull_timer": SECOND // 2}),
    "has other fragments": ("mxoe-echo-checksum-debug", "A", {"fragment_pipeline": 11}),
    "has another threshold": ("omx1500-echo-pattern", "B", {"medium_threshold": 16384}),
    "has messages within regions": ("omx9000-vect", "A", {"region_offset": OPEN_MX_1_0.region_offset}),
    "counts regions from 0": ("omx9000-pingpong-sync", "B", {"region_first_use": 0}),
    "announces itself four times": ("mxoe-discovery-omxoed", "A", {"announcement_count": 4}),
    "announces itself slowly": ("mxoe-driver-load", "B", {"announcement_interval": 1100 * MILLISECOND}),
    "asks for names every second": ("omx9000-discovery-omxoed", "A", {"query_interval": SECOND}),
    "keeps nothing that is early": ("mxoe-early", "real", {"early_window": 0}),
    "has none of the defects": ("omx9000-pingpong-sync", "A", {"defects": OPEN_MX_1_5.defects}),
    "connects back by itself": ("mxoe-no-reverse-connect", "B", {"connects_back": True}),
}
"""Nodes with another implementation than the captured one, and a capture that shows the difference."""


@pytest.mark.parametrize("what", OTHERWISE)
def test_another_implementation_is_found(what: str) -> None:
    capture, host, otherwise = OTHERWISE[what]
    case = case_of(capture, host)
    output = fails(Player(case, replace(case.profile, **otherwise)))
    assert output.startswith(f"{capture}, host {host}, "), output
    assert OPEN_MX_1_5_AS_FOUND.name == case.profile.name


def test_a_frame_that_the_host_sent_too_early_is_found() -> None:
    player = Player(case_of("mxoe-stopped-receiver", "A"))
    repeated = next(each for each in player.records if each.is_played and not each.news and each.number > 3)
    repeated.time -= 100 * MILLISECOND
    assert f"frame {repeated.number}: nothing is sent" in fails(player)


TIMED = (("omx9000-vect", "A", PullReply), ("omx9000-truncated", "A", Truc), ("mxoe-driver-load", "B", HostQuery))
"""Frames whose time no application decides."""


@pytest.mark.parametrize(("capture", "host", "kind"), TIMED)
def test_a_frame_that_the_host_sent_too_late_is_found(capture: str, host: str, kind: type) -> None:
    player = Player(case_of(capture, host))
    first = next(each for each in player.records if each.is_played and isinstance(each.frame, kind))
    for each in player.records[first.number - 1 :]:
        each.time += 100 * MILLISECOND
    assert f"frame {first.number}: {kind.__name__} is sent " in fails(player)
