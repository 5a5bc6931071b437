"""Stamp of a build: the version of mxwire and of the sources in C, so that a stale library is detected."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import mxwire

SOURCES: Final = Path(__file__).with_name("c")
"""The sources of the library and its headers."""


def stamp() -> str:
    """Return the stamp of a library built from this mxwire."""
    digest = hashlib.sha256()
    for each in sorted(SOURCES.rglob("*.*")):
        digest.update(each.read_bytes())
    return f"{mxwire.__version__}-{digest.hexdigest()[:12]}"
