"""The packet types, each with a link to its page."""

from __future__ import annotations

from mxwire.report.document import markdown
from mxwire.report.formats import overview_table, type_names


def made() -> str:
    """Return the table of packet types, its names as links to their pages."""
    table = markdown([overview_table()])
    for name in type_names():
        table = table.replace(f"| `{name}`", f"| [{name}]({name.lower()}.md)")
    return table
