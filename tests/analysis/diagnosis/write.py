"""Saves the plays that are examples in the documentation: ``python -m tests.analysis.diagnosis.write``."""

from __future__ import annotations

from pathlib import Path

from .plays import SHOWS

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
REAL = {
    "mute-peer": "mxoe-discovery-static",
    "wrong-key": "mxoe-connect",
    "endpoint-closed": "mxoe-nack-lib",
    "endpoint-out-of-range": "mxoe-nack-lib",
    "session-changed": "mxoe-nack-mcp-session",
    "session-number-differs": "mxoe-resends-exhausted",
    "partner-given-up": "omx9000-resends-exhausted",
    "no-reverse-connect": "mxoe-no-reverse-connect",
    "late-reverse-connect": "mxoe-pingpong-small-medium",
    "receiver-not-progressing": "omx9000-stopped-receiver",
    "zombie-pull": "omx9000-receiver-killed",
    "frames-lost": "mxoe-lossy-1M",
    "tail-loss": "mxoe-lossy-1M",
    "frames-duplicated": "mxoe-nack-mcp-rdmawin",
    "frames-out-of-order": "mxoe-early",
    "capture-frames-cut": "mxoe-many",
}
"""Diagnoses of which a real capture is the example; the same as in docs/generate.py."""


def saved(folder: Path) -> list[Path]:
    """Save the examples in a folder."""
    made = []
    for name, case in SHOWS.items():
        if name not in REAL:
            path = folder / f"{name}.pcap"
            case.scene().save(path)
            made.append(path)
    return made


if __name__ == "__main__":
    EXAMPLES.mkdir(exist_ok=True)
    for each in saved(EXAMPLES):
        print(each.name, each.stat().st_size)
