"""The diagnoses in a table, each with a link to its section."""

from __future__ import annotations

from mxwire.analysis.diagnosis import GROUPS, catalogue


def made() -> str:
    """Return a table of names and titles, by group."""
    lines = ["| diagnosis | meaning |", "|---|---|"]
    for group, title in GROUPS.items():
        lines.append(f"| **{title}** | |")
        lines += [f"| [`{each.id}`](#{each.id}) | {each.title} |" for each in catalogue() if each.group == group]
    return "\n".join(lines)
