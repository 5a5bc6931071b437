"""What else was wrong: all frames of a host in an outcome, held against the rules of the specification."""

from __future__ import annotations

from mxwire.rules import SENDERS, Judge, Violation
from mxwire.scenarios.outcome import Outcome
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import Dialect


def breaches(outcome: Outcome, dialect: Dialect) -> list[Violation]:
    """The rules that the host has broken, whatever the scenario is about; known defects of real hosts are not told.

    A scenario whose tester talks nonsense may make the judge misunderstand the host.
    """
    judge, codec = Judge(dialect, SENDERS), codec_of(dialect)
    frames, found = outcome.frames, []
    for place in range(len(frames)):
        raw = frames.frame(place)
        told = judge.observe(int(frames.timestamp_ns[place]), codec.parse(raw), raw, int(frames.number[place]))
        if not outcome.sent[place]:
            found += [each for each in told if each.severity != "note" and each.host == raw[6:12]]
    return found
