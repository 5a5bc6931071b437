"""Check of the frames between the played host and the live one against the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mxwire.replay.stateful.finding import Cause, ReplayFinding
from mxwire.rules import Judge
from mxwire.rules.vantage import Vantage
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect

_VANTAGE: Final = Vantage(clock_ns=5_000_000, resends_maximum=None)
"""Vantage of the player's clock, at the played host."""

KeepCallback = Callable[[int, bytes], object]
"""Callback for each frame, with its time in ns."""


class RuleWatch:
    """Checks the frames of a live host against the rules of the specification, independently of the recording.

    ``host`` is its Ethernet address; ``keep`` receives all frames of both hosts.
    """

    def __init__(self, dialect: Dialect, host: bytes, keep: KeepCallback | None = None) -> None:
        self._codec = codec_of(dialect)
        self._judge = Judge(dialect, _VANTAGE)
        self._host = host
        self._keep = keep
        self._number = 0
        self.findings: list[ReplayFinding] = []
        """Rules that the live host has broken."""

    def see(self, now: int, raw: bytes) -> None:
        """Take a frame with its time in ns."""
        self._number += 1
        if self._keep is not None:
            self._keep(now, raw)
        for each in self._judge.observe(now, self._codec.parse(raw), raw, self._number):
            if each.host == self._host and each.severity == "violation":
                self.findings.append(ReplayFinding(Cause.RULE, each.rule, "", 0, each.expected, each.found))
