"""Finds the files of the plugin, in an installed package or in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PLUGIN_NAME: Final = "mxoe.lua"

_PACKAGE: Final = Path(__file__).parent
_CHECKOUT: Final = _PACKAGE.parents[1] / "dissectors" / "wireshark"


def plugin_path() -> Path:
    """The Lua file to copy into Wireshark's plugin folder."""
    return _shipped(PLUGIN_NAME)


def colour_rules_path() -> Path:
    """Colouring rules that Wireshark can import (View, Coloring Rules)."""
    return _shipped("colorfilters")


def filter_buttons_path() -> Path:
    """Display-filter buttons, in the form of Wireshark's own file ``dfilter_buttons``."""
    return _shipped("dfilter_buttons")


def source_path() -> Path:
    """The Lua file of the checkout: the one that the generator reads and writes."""
    return _CHECKOUT / PLUGIN_NAME


def documentation_path() -> Path:
    """The page of the documentation, in the checkout."""
    return _PACKAGE.parents[1] / "docs" / "wireshark.md"


def _shipped(name: str) -> Path:
    """The copy inside the package where a wheel brought one, else the checkout's."""
    packaged = _PACKAGE / name
    return packaged if packaged.exists() else _CHECKOUT / name
