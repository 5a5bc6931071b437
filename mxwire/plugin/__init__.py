"""The Wireshark plugin on this computer: where it goes, whether it is there and current, and whether it works."""

from __future__ import annotations

from mxwire.plugin.check import Report, check
from mxwire.plugin.folder import Place, install, places, uninstall
from mxwire.plugin.programs import Program, Tshark

__all__ = ["Place", "Program", "Report", "Tshark", "check", "install", "places", "uninstall"]
