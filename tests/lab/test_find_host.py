"""A live host is found by its name or address, or those that were heard instead are listed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.lab.find_host import FoundHost, find_host
from mxwire.link import MemoryLink, MemoryNetwork
from mxwire.protocol.discovery import announcement
from mxwire.protocol.name_search import answer, query
from mxwire.scenarios import LiveTarget, meet
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE, omx
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


def found(link: MemoryLink, wanted: str | bytes | None, timeout: float = 30.0) -> FoundHost:
    return find_host(link, "ours:0", wanted, timeout, index=1, serial=1)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(None, FoundHost(BETA, "beta:0")), ("alpha:0", FoundHost(ALPHA, "alpha:0")), (ALPHA, FoundHost(ALPHA, "alpha:0"))],
)
def test_it_is_found_by_its_name_or_address_or_as_the_first(
    links: tuple[MemoryLink, MemoryLink], wanted: str | bytes | None, expected: FoundHost
) -> None:
    ours, others = links
    say(others, announcement(ALPHA, 1), reported("beta:0", BETA), reported("alpha:0", ALPHA))
    assert found(ours, wanted) == expected


def test_a_tester_meets_its_target(links: tuple[MemoryLink, MemoryLink]) -> None:
    """The magic of its queries is higher by one for each time that the host has forgotten its peers (R-HOST-03)."""
    ours, others = links
    say(others, query(ALPHA, OURS, 1, 0x13052010), reported("alpha:0", ALPHA))
    target = meet(ours, "alpha:0", omx(1500), endpoint=3, key=4)
    assert target == LiveTarget(ALPHA, omx(1500), 3, 4, name="alpha:0", magic=0x13052010)


def test_other_hosts_are_listed_instead(links: tuple[MemoryLink, MemoryLink]) -> None:
    ours, others = links
    say(others, announcement(ALPHA, 1), reported("beta:0", BETA))
    text = (
        r"^wire0: gamma:0 was not found within 0\.01 s; there are \? \(02:00:00:00:00:02\), "
        r"beta:0 \(02:00:00:00:00:03\)$"
    )
    with pytest.raises(MxwireError, match=text):
        found(ours, "gamma:0", 0.01)


@pytest.mark.parametrize(("wanted", "missing"), [(None, "no host was"), (BETA, "02:00:00:00:00:03 was not")])
def test_an_ethernet_without_hosts_is_reported(
    links: tuple[MemoryLink, MemoryLink], wanted: bytes | None, missing: str
) -> None:
    text = rf"^wire0: {missing} found within 0\.01 s; nothing was heard \(mxwire doctor -i wire0 finds the reason\)$"
    with pytest.raises(MxwireError, match=text):
        found(links[0], wanted, 0.01)
