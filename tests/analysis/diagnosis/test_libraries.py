"""The state kept of cards and libraries is bounded, and describes the most recent past."""

from __future__ import annotations

import pytest

from mxwire.analysis.diagnosis import libraries
from mxwire.analysis.diagnosis.libraries import BUCKET_NS, EndpointRoute, Libraries
from mxwire.wire.decoder import Decoder
from tests.wire.support import split

from .scene import START_NS, Scene

HOSTS, PERIODS = 8, 100


def heard(scene: Scene) -> Libraries:
    found = Libraries()
    for decoded in Decoder().decode_all(split(scene.batch(), HOSTS * 10)):
        found.observe(decoded)
    return found


@pytest.mark.parametrize(("of_all", "each"), [(1 << 19, PERIODS), (HOSTS * 40, 40), (1, 32)])
def test_many_cards_share_the_memory(monkeypatch, of_all, each):
    monkeypatch.setattr(libraries, "BUCKETS_OF_ALL", of_all)
    scene = Scene()
    hosts = [scene.host(number) for number in range(HOSTS)]
    for _ in range(PERIODS):
        for host in hosts:
            scene.send(host.pull(10_000), after_ms=BUCKET_NS / HOSTS / 1e6)
    kept, to = heard(scene), int.from_bytes(scene.b.mac, "big")
    for host in hosts:
        since, until = START_NS - BUCKET_NS, scene.time_ns + 2 * BUCKET_NS
        frames = kept.card_frames(int.from_bytes(host.mac, "big"), to, since, until)
        assert each - 2 <= frames <= each + 1


def test_the_longest_silences_and_the_latest_are_remembered():
    scene, silences = Scene(), []
    for number in range(200):
        since = scene.time_ns
        scene.send(scene.a.tiny(), after_ms=20_000 if number == 20 else 500)
        silences.append((since, scene.time_ns))
    kept = heard(scene)
    direction = EndpointRoute(
        int.from_bytes(scene.a.mac, "big"), scene.a.endpoint, int.from_bytes(scene.b.mac, "big"), scene.b.endpoint
    )
    for since, until in (silences[20], *silences[-libraries.SILENCES_KEPT // 2 :]):
        assert kept.silence(direction, since + 1, until - 1) == (since, until)
