"""The advice at the end of a capture that has lost frames fits its options."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mxwire.cli import capture


@pytest.mark.parametrize("lines", [True, False])
def test_the_advice_names_only_options_that_were_given(capsys: pytest.CaptureFixture[str], lines: bool) -> None:
    options = SimpleNamespace(as_json=False, lines=lines, target="x.pcap")
    tally = capture._TypeTally(frames=3, bytes=180, dropped=2)
    capture._summarize(options, SimpleNamespace(written=["x.pcap"]), tally, {})  # type: ignore[arg-type]
    printed = capsys.readouterr().err
    assert "2 frames dropped" in printed and ("omit -l" in printed) == lines
