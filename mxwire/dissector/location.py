"""Paths of the plugin's files, in an installed package or in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PLUGIN_NAME: Final = "mxoe.lua"

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parents[1] / "dissectors" / "wireshark"


def plugin_path() -> Path:
    """Return the Lua file to copy into Wireshark's plugin folder."""
    return _shipped(PLUGIN_NAME)


def colour_rules_path() -> Path:
    """Return the colouring rules that Wireshark can import (View, Coloring Rules)."""
    return _shipped("colorfilters")


def filter_buttons_path() -> Path:
    """Return the display-filter buttons, in the format of Wireshark's file ``dfilter_buttons``."""
    return _shipped("dfilter_buttons")


def source_path() -> Path:
    """Return the Lua file of the checkout, which the generator reads and writes."""
    return _CHECKOUT / PLUGIN_NAME


def documentation_path() -> Path:
    """Return the page of the documentation, in the checkout."""
    return _PACKAGE.parents[1] / "docs" / "wireshark.md"


def _shipped(name: str) -> Path:
    """Return the copy in the package, or else the checkout's."""
    packaged = _PACKAGE / name
    return packaged if packaged.exists() else _CHECKOUT / name
