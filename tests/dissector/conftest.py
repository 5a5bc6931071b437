"""Captures for several modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from .support import DIALECTS, captures_of, join


@pytest.fixture(scope="module", params=DIALECTS)
def captures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All captures of a dialect in one, one after the other, each between hosts of its own: it takes tshark longer to
    start than to read them all."""
    path = tmp_path_factory.mktemp("captures") / f"{request.param}.pcap"
    join(path, captures_of(request.param))
    return path
