"""The live host to which a recorded one is played is found, or the hosts that are there are listed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.link import MemoryLink, MemoryNetwork
from mxwire.protocol.discovery import announcement, answer, query
from mxwire.replay.stateful.live_play import FoundHost, find
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Frame

OURS, ALPHA, BETA = (bytes([2, 0, 0, 0, 0, number]) for number in (1, 2, 3))


@pytest.fixture
def links() -> Iterator[tuple[MemoryLink, MemoryLink]]:
    """The local address, and that of all other hosts."""
    network = MemoryNetwork()
    with network.attach("wire0", OURS) as ours, network.attach("others", ALPHA) as others:
        yield ours, others


def reported(name: str, host: bytes) -> Frame:
    return answer(query(OURS, host, 1), host, 1, name)


def say(link: MemoryLink, *frames: Frame) -> None:
    link.send(FrameBatch.from_frames([build(each, MXOE) for each in frames]))


@pytest.mark.parametrize(
    ("wanted", "found"), [(None, FoundHost(BETA, "beta:0")), ("alpha:0", FoundHost(ALPHA, "alpha:0"))]
)
def test_it_is_found_by_its_name_or_by_being_the_first(
    links: tuple[MemoryLink, MemoryLink], wanted: str | None, found: FoundHost
) -> None:
    ours, others = links
    say(others, announcement(ALPHA, 1), reported("beta:0", BETA), reported("alpha:0", ALPHA))
    assert find(ours, "ours:0", wanted, 30.0, Random(1)) == found


def test_other_hosts_are_listed_instead(links: tuple[MemoryLink, MemoryLink]) -> None:
    ours, others = links
    say(others, announcement(ALPHA, 1), reported("beta:0", BETA))
    text = (
        r"^wire0: gamma:0 was not found within 0\.01 s; there are \? \(02:00:00:00:00:02\), "
        r"beta:0 \(02:00:00:00:00:03\)$"
    )
    with pytest.raises(MxwireError, match=text):
        find(ours, "ours:0", "gamma:0", 0.01, Random(1))


def test_an_ethernet_without_hosts_is_reported(links: tuple[MemoryLink, MemoryLink]) -> None:
    text = r"^wire0: no host was found within 0\.01 s; nothing was heard \(mxwire doctor -i wire0 finds the reason\)$"
    with pytest.raises(MxwireError, match=text):
        find(links[0], "ours:0", None, 0.01, Random(1))
