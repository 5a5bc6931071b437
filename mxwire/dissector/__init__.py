"""The Wireshark plugin: its location, and the generator of its tables.

The plugin is one Lua file, ``dissectors/wireshark/mxoe.lua``. Its tables come from the formats in
:mod:`mxwire.wire` (see ``build.py``); its logic is hand-written in the same file. The colours of rows and the filter
buttons are beside it, in ``dissectors/wireshark/colorfilters`` and ``dissectors/wireshark/dfilter_buttons``.
"""

from __future__ import annotations

from mxwire.dissector.filter_names import EXPERT_PREFIX, ExpertRow, FilterRow, expert_rows, filter_rows
from mxwire.dissector.location import colour_rules_path, filter_buttons_path, plugin_path

__all__ = [
    "EXPERT_PREFIX",
    "ExpertRow",
    "FilterRow",
    "colour_rules_path",
    "expert_rows",
    "filter_buttons_path",
    "filter_rows",
    "plugin_path",
]
