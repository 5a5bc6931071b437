"""The rules of the specification, from the catalogue."""

from __future__ import annotations

from dataclasses import asdict

from mxwire.report.document import Column, Row
from mxwire.rules.catalogue import CATALOGUE, chapters
from mxwire.rules.index import places
from rendering.tables import table_of_markdown


def made() -> str:
    """Return a table for each chapter, with the places where rules are judged and tested."""
    found = places()
    columns = (Column("rule"), Column("force"), Column("judged"), Column("requirement"), Column("where"))
    blocks = []
    for title in chapters():
        rows = []
        for rule in (each for each in CATALOGUE.values() if each.chapter == title):
            where = found[rule.number]
            named = [f"{kind}: {_places(listed)}" for kind, listed in asdict(where).items() if listed]
            text = rule.text + (f" *{rule.why}*" if rule.why else "")
            rows.append(Row((f"`{rule.number}`", rule.force, rule.judged, text, "<br>".join(named))))
        blocks.append(f"### {title}\n\n{table_of_markdown(columns, rows)}")
    return "\n".join(blocks)


def _places(listed: tuple[str, ...]) -> str:
    """Return the first two places, and the number of others."""
    shown = [f"`{each.removeprefix('mxwire/').removeprefix('tests/')}`" for each in listed[:2]]
    more = f" and {len(listed) - len(shown)} more" if len(listed) > len(shown) else ""
    return ", ".join(shown) + more
