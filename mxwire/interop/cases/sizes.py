"""Boundary lengths of each kind of message, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from mxwire.interop.cases.definition import CaseGroup, Lengths, data, of
from mxwire.interop.testbed import Testbed
from mxwire.texts import table_rows
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


_BY_DIALECT: Final[dict[str, Lengths]] = {
    "fragment": _single,
    "fragments": _fragments,
    "large": _large,
    "blocks": _blocks,
}
"""Lengths that depend on the sender's dialect, by their names in ``sizes.md``."""

for _, (_name, _title, _rules, _named, _impaired, _about) in table_rows(__file__, "sizes.md"):
    _lengths = _BY_DIALECT[_named] if _named in _BY_DIALECT else of(*map(int, _named.split(", ")))
    _played, _needs = partial(_echoed, lengths=_lengths), {"answered": True, "impaired": _impaired == "yes"}
    CASES.enter(_name, _title, _rules, _about, _played, lengths=_lengths, **_needs)
