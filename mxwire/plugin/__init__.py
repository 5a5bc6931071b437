"""The Wireshark plugin on this computer: its folders, its installation, and a check that it works."""

from __future__ import annotations

from mxwire.plugin.check import Report, check
from mxwire.plugin.folder import Place, install, places, uninstall
from mxwire.plugin.programs import Program, Tshark

__all__ = ["Place", "Program", "Report", "Tshark", "check", "install", "places", "uninstall"]
