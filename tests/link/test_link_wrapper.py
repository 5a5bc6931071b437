"""A link before another one is that one, until it does something of its own."""

from __future__ import annotations

import select

import numpy as np
import pytest

from mxwire.frames import FrameBatch
from mxwire.link import FewLink, Link, LinkError, LinkStatistics, LinkWrapper, memory_pair

from .link_frames import batch, contents, numbered


def test_it_is_the_link_behind_it() -> None:
    one, other = memory_pair(mtu=1500)
    with LinkWrapper(one) as wrapper, other:
        link: Link = wrapper
        assert (link.name, link.address, link.mtu) == (one.name, one.address, 1500)
        there, back = numbered(other.address, 3), numbered(one.address, 2)
        assert link.send(batch(there)) == 3 and contents(other.receive()) == there
        other.send(batch(back))
        assert select.select([link.fileno()], [], [], 0)[0]
        assert contents(link.receive()) == back
        assert link.statistics() == one.statistics() == LinkStatistics(received=2, sent=3)
        link.wake()
        assert len(link.receive(None)) == 0
    assert wrapper.fileno() == -1
    with pytest.raises(LinkError, match="closed"):
        one.receive(0)


def test_a_wrapper_applies_to_all_frames() -> None:
    class Halving(LinkWrapper):
        def receive(self, timeout: float | None = 0.0) -> FrameBatch:
            given = super().receive(timeout)
            return given.select(np.arange(len(given)) % 2 == 0)

    one, other = memory_pair()
    with Halving(one) as halving, other:
        sent = numbered(one.address, 4)
        other.send(batch(sent))
        assert contents(halving.receive()) == sent[::2]
        assert not isinstance(halving, FewLink), "frames by themselves would pass it by"
