"""The pages of the packet types, which exist only while the site is built."""

from __future__ import annotations

from mxwire.report.document import Heading, markdown
from mxwire.report.formats import LayoutView, details, listing, type_names, views
from mxwire.wire.dialect import omx
from mxwire.wire.formats import MEDIUM_OMX_N3
from mxwire.wire.layout import layout_of

PACKET_PAGES = "protocol/"
"""Folder of the pages of packet types; they replace the entry of the navigation with this name."""

EXAMPLE_CAPTURES = ("mxoe-every-type.pcap", "omx9000-vect.pcap")
"""Captures with the example packets: one of `mxoe` with all types, one of `omx`."""


def packet_pages() -> dict[str, str]:
    """Return the pages of the packet types by file name, in order of type."""
    return {f"{PACKET_PAGES}{name.lower()}.md": packet_page(name) for name in type_names()}


def packet_page(name: str) -> str:
    """Return the page of one packet type: purpose, diagram, fields, checks and an example."""
    shown = views(name)
    packet_type = shown[0].layout.packet_type
    blocks = details(shown, drawn=True)
    if any(view.layout.name == MEDIUM_OMX_N3.name for view in shown):
        old = LayoutView(layout_of(MEDIUM_OMX_N3), omx(generation="N3"), is_common=False)
        blocks += [Heading(f"{name}, dialect omx of Open-MX 1.0.901 to 1.3.1"), *listing(old)]
    used = EXAMPLE_CAPTURES if any(not view.is_common for view in shown) else EXAMPLE_CAPTURES[:1]
    examples = [f"<!-- output: mxwire decode -v --type {name} --count 1 captures/{capture} -->" for capture in used]
    return "\n".join(
        [
            f"# {name} ({packet_type.value})\n",
            f"Packet type {packet_type.value} (0x{packet_type.value:02X}), section {shown[0].layout.format.section} of "
            f"the wire format specification. On the command line: `mxwire formats {name}`.\n",
            markdown(blocks),
            "## Example\n",
            "\n\n".join(examples),
            "",
        ]
    )
