"""The Wireshark plugin on this computer: its folders, its installation, a check that it works, and host names."""

from __future__ import annotations

from mxwire.plugin.check import Report, check
from mxwire.plugin.folder import Place, install, places, uninstall
from mxwire.plugin.names import NameEntry, names_path, write_names
from mxwire.plugin.programs import Program, Tshark

__all__ = [
    "NameEntry",
    "Place",
    "Program",
    "Report",
    "Tshark",
    "check",
    "install",
    "names_path",
    "places",
    "uninstall",
    "write_names",
]
