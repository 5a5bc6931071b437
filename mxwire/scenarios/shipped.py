"""The scenario library in an installed package or a checkout; it has no slow imports, because shell completion uses
it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SCENARIO_SUFFIX: Final = ".mxs"
_PACKAGED: Final = Path(__file__).parent / "library"
_CHECKOUT: Final = Path(__file__).parents[2] / "replay"


def scenario_folder() -> Path:
    """Return the folder of the library."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def scenario_names() -> list[str]:
    """Return the names of the library's scenarios (``connect/bad-key``), in order."""
    folder = scenario_folder()
    return sorted(each.relative_to(folder).with_suffix("").as_posix() for each in folder.rglob(f"*{SCENARIO_SUFFIX}"))
