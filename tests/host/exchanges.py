"""Messages of every kind and size, over any network: in memory, in another process, through an agent, by AF_XDP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from mxwire.protocol import Status

SIZES = (0, 1, 32, 33, 128, 129, 1452, 1453, 4096, 4097, 8193, 32768, 32769, 300_001)
"""Both sides of every edge: of the kinds of messages, and of the fragments of both dialects."""
every_kind = pytest.mark.parametrize(
    ("synchronous", "expected"),
    [(False, True), (False, False), (True, True), (True, False)],
    ids=["plain-expected", "plain-unexpected", "synchronous-expected", "synchronous-unexpected"],
)
"""For a test that calls :func:`exchange`."""


def content(size: int, seed: int = 0) -> bytes:
    """The bytes of a message."""
    return Random(f"{size} {seed}").randbytes(size)


def exchange(
    ways: Sequence[tuple[Any, Any, Any]],
    synchronous: bool,
    expected: bool,
    patience: float,
    sizes: Sequence[int] = SIZES,
) -> None:
    """Send messages of all sizes, at once in all ways: sender, receiver as a partner, and receiver.

    They are ``expected`` if their receives are posted before; ``synchronous`` sends end when they are matched.
    """
    for match, size in enumerate(sizes):

        def receives(match: int = match, size: int = size) -> list[Any]:
            return [receiver.ireceive(match, maximum=size) for _, _, receiver in ways]

        posted = receives() if expected else []
        sends = []
        for seed, (sender, partner, _) in enumerate(ways):
            send: Callable[..., Any] = sender.issend if synchronous else sender.isend
            sends.append(send(partner, content(size, seed), match))
        if not expected:
            assert [receiver.probe(match, timeout=patience).length for _, _, receiver in ways] == [size] * len(ways)
            if synchronous:
                assert not any(sender.test(sent) for (sender, _, _), sent in zip(ways, sends, strict=True)), size
            posted = receives()
        for seed, ((sender, _, receiver), receive, sent) in enumerate(zip(ways, posted, sends, strict=True)):
            message = receiver.wait(receive, patience)
            assert (bytes(message), message.match_info) == (content(size, seed), match)
            assert message.status == sender.wait(sent, patience) == Status.SUCCESS
