"""A tester finds the live host that it is given, or lists the hosts that it has heard instead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.link import MemoryLink, MemoryNetwork
from mxwire.protocol.discovery import announcement, answer, query
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


def say(link: MemoryLink, *frames: Frame) -> None:
    link.send(FrameBatch.from_frames([build(each, MXOE) for each in frames]))


@pytest.mark.parametrize("wanted", ["alpha:0", ALPHA])
def test_it_is_found_by_its_name_and_by_its_address(links: tuple[MemoryLink, MemoryLink], wanted: str | bytes) -> None:
    ours, others = links
    say(others, announcement(BETA, 1), answer(query(OURS, ALPHA, 1), ALPHA, 1, "alpha:0"))
    found = meet(ours, wanted, omx(1500), endpoint=3, key=4)
    assert found == LiveTarget(ALPHA, omx(1500), 3, 4, name="alpha:0")


def test_the_magic_of_its_queries_is_learned(links: tuple[MemoryLink, MemoryLink]) -> None:
    """It is higher by one for each time that the host has forgotten its peers (R-HOST-03)."""
    ours, others = links
    say(others, query(ALPHA, OURS, 1, 0x13052010), answer(query(OURS, ALPHA, 1), ALPHA, 1, "alpha:0"))
    assert meet(ours, "alpha:0").magic == 0x13052010


def test_other_hosts_are_listed_instead(links: tuple[MemoryLink, MemoryLink]) -> None:
    ours, others = links
    say(others, announcement(BETA, 1), answer(query(OURS, ALPHA, 1), ALPHA, 1, "alpha:0"))
    text = (
        r"^wire0: gamma:0 did not answer within 0\.01 s; heard alpha:0 \(02:00:00:00:00:02\), 02:00:00:00:00:03 "
        r"\(try: mxwire discover -i wire0\)$"
    )
    with pytest.raises(MxwireError, match=text):
        meet(ours, "gamma:0", timeout=0.01)


def test_an_address_that_keeps_silent_was_not_heard(links: tuple[MemoryLink, MemoryLink]) -> None:
    with pytest.raises(MxwireError, match=r"02:00:00:00:00:03 did not answer within 0\.01 s; no host was heard"):
        meet(links[0], BETA, timeout=0.01)
