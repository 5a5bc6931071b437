"""The rules that the host breaks besides, in all frames of an outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mxwire.ethernet import SOURCE
from mxwire.rules import SENDERS, Judge, Violation
from mxwire.scenarios.outcome import Outcome
from mxwire.scenarios.provocations import Provocations
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect

_LIVE: Final = replace(SENDERS, clock_ns=10_000_000)
"""Live frames are dated where they arrive, and those of the tester before they leave."""


def breaches(outcome: Outcome, dialect: Dialect) -> list[Violation]:
    """Return the rules that the host breaks, whatever the scenario is about.

    Known defects of real hosts are left out, and so is what the tester provokes: the judge examines its frames too, and
    one that breaks a rule excuses the answers to it (:class:`~mxwire.scenarios.provocations.Provocations`).
    """
    judge, codec = Judge(dialect, SENDERS if outcome.profile else _LIVE), codec_of(dialect)
    frames, found = outcome.frames, []
    hosts = {frames.frame(place)[SOURCE] for place in range(len(frames)) if not outcome.sent[place]}
    provocations = Provocations(hosts)
    for place in range(len(frames)):
        raw = frames.frame(place)
        frame = codec.parse(raw)
        told = judge.observe(int(frames.timestamp_ns[place]), frame, raw, int(frames.number[place]))
        if outcome.sent[place]:
            provocations.sent(frame, proper=all(each.severity == "note" for each in told))
            continue
        found += [
            each
            for each in told
            if each.severity != "note" and each.host == raw[SOURCE] and not provocations.excuse(frame, each.rule)
        ]
        provocations.heard(frame)
    return found
