"""Reports of the independent peer, and the judgement of frames that were recorded beside it."""

from __future__ import annotations

from typing import Any

from mxwire.rules import Vantage
from mxwire.wire.dialect import dialect_by_name

from .commands import Running
from .recorder import Recorder
from .referee import findings


def deviations(peer: Running) -> list[str]:
    """The deviations from the specification that a peer has reported."""
    return [each["deviation"] for each in peer.objects if "deviation" in each]


def assert_clean(peer: Running, event: str = "") -> list[dict[str, Any]]:
    """Require that a peer ends by itself without a deviation; returns its reports of an event."""
    done = peer.finish()
    assert (done.code, deviations(peer)) == (0, []), done.err
    return [each for each in done.objects if each.get("event") == event]


def assert_judged(recorder: Recorder, dialect: str) -> None:
    """Require that no recorded frame is malformed or breaks a rule."""
    assert recorder.frames and not recorder.dropped
    assert findings(recorder.frames, dialect_by_name(dialect), Vantage(from_start=True, empty_tables=True)) == []
