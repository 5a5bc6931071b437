"""The cases: every capture, for every host in it that sent anything."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from tests.conformance.case import Case

NOT_PLAYED: Final = {
    "mxoe-every-type": "it is mxoe-discovery-omxoed and mxoe-no-reverse-connect in one file; both are played"
}
"""Captures that are not played, and why."""
SILENT: Final = {("mxoe-discovery-static", "B")}
"""Hosts that sent nothing."""

CASES: Final = tuple(
    Case(capture, host, **fields)
    for capture, hosts in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
    for host, fields in hosts.items()
)
