"""The Wireshark plugin on this computer, for ``mxwire plugin``.

``programs.py`` finds tshark and its folders, ``folder.py`` installs the plugin, ``check.py`` tests it, and ``names.py``
enters host names for the columns Source and Destination.
"""

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
