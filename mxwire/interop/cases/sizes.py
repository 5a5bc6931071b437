"""Boundary lengths of each kind of message, in both directions."""

from __future__ import annotations

from collections.abc import Sequence

from mxwire.interop.cases.definition import CaseGroup, Lengths, data, of
from mxwire.interop.testbed import Testbed
from mxwire.wire.dialect import Dialect
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

CASES = CaseGroup("sizes")


def _single(dialect: Dialect) -> Sequence[int]:
    return 129, 1000, min(dialect.fragment_payload, RENDEZVOUS_THRESHOLD)


def _fragments(dialect: Dialect) -> Sequence[int]:
    fragment = dialect.fragment_payload
    return fragment + 1, 2 * fragment, 2 * fragment + 1, RENDEZVOUS_THRESHOLD


def _large(dialect: Dialect) -> Sequence[int]:
    payload = dialect.reply_payload
    first = RENDEZVOUS_THRESHOLD + 1
    frames = -(-first // payload)
    return first, frames * payload, frames * payload + 1


def _blocks(dialect: Dialect) -> Sequence[int]:
    block = max(dialect.block_length, RENDEZVOUS_THRESHOLD + 1)
    return block, block + 1, 4 * block + 1


def _echoed(testbed: Testbed, lengths: Lengths) -> None:
    """Send each length to an application that echoes it."""
    where = testbed.program("echo")
    end = testbed.left.open(5)
    partner = end.connect(where)
    for number, length in enumerate(lengths(testbed.left.dialect)):
        posted = end.receive(length + 1, number)
        end.send(partner, data(number, length), number)
        end.took(posted, data(number, length))


def _case(name: str, title: str, rules: str, lengths: Lengths, description: str, *, impaired: bool = False) -> None:
    def play(testbed: Testbed) -> None:
        _echoed(testbed, lengths)

    play.__doc__ = description
    CASES.case(title, rules, name=name, lengths=lengths, answered=True, impaired=impaired)(play)


_case("size-empty", "empty messages", "R-SND-01", of(0, 0), "Two messages of 0 bytes.")
_case("size-tiny", "TINY: 1 to 32 bytes", "R-SND-01", of(1, 31, 32), "1, 31 and 32 bytes.", impaired=True)
_case("size-small", "SMALL: 33 to 128 bytes", "R-SND-01", of(33, 127, 128), "33, 127 and 128 bytes.")
_case(
    "size-fragment",
    "MEDIUM of one fragment",
    "R-SND-01 R-SND-03 R-MED-04",
    _single,
    "129 bytes, 1000 bytes, and a full fragment of the sender's dialect.",
)
_case(
    "size-medium",
    "MEDIUM of several fragments",
    "R-SND-01 R-SND-03 R-MED-01 R-MED-02 R-MED-04",
    _fragments,
    "One byte more than a fragment, two fragments, one byte more, and 32 KiB.",
    impaired=True,
)
_case(
    "size-large",
    "large: one block",
    "R-SND-01 R-RDV-01 R-PUL-01 R-PUL-12 R-PUL-13 R-NOT-01",
    _large,
    "One byte more than 32 KiB, then lengths at the boundary of a frame.",
)
_case(
    "size-blocks",
    "large: several blocks",
    "R-PUL-01 R-PUL-02 R-PUL-13 R-NOT-01",
    _blocks,
    "Exactly one block, one byte more, and one byte more than the four blocks that are pulled at a time.",
    impaired=True,
)
