"""``mxwire formats``: the layouts of the packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import Command
from mxwire.cli.notes import print_result
from mxwire.cli.option_class import option
from mxwire.cli.options import json_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mxwire.report.formats import DialectChoice


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of TYPE, in upper or lower case as typed."""
    from click.shell_completion import CompletionItem

    from mxwire.report.formats import layout_names, type_names

    names = [*type_names(), *layout_names()] if incomplete.isupper() or not incomplete else layout_names()
    return [CompletionItem(each) for each in dict.fromkeys(names) if each.startswith(incomplete)]


@click.command("formats", cls=Command)
@click.argument("packet_type", metavar="[TYPE]", required=False, shell_complete=_complete)
@option(
    "Show one dialect only: mxoe (compatible with native MX) or omx (Open-MX's own).",
    "--dialect [both|mxoe|omx]",
    default="both",
)
@option("Draw packets, four bytes per row, instead of listing fields.", "--diagram", "drawn", is_flag=True)
@option("List the names for mxwire decode --fields, with their meanings.", "--fields", "named", is_flag=True)
@json_option("JSON Lines: one object per field.")
@conflicts("--diagram", "--json", error="--diagram and --json cannot be combined: choose one")
@conflicts(
    "--fields", "TYPE", "--dialect", "--diagram", error="--fields lists the fields of all packets: omit {option}"
)
def command(packet_type: str | None, dialect: DialectChoice, drawn: bool, named: bool, as_json: bool) -> None:
    """Show the layouts of packets.

    TYPE is a packet type (MEDIUM, or its number) or one layout of a type that has several (connect_reply), in any
    case. Without it, all packet types are listed. Offsets count from the first byte of the Ethernet frame ("frame")
    and from the packet type ("body").
    """
    from mxwire.report.formats import details, field_records, overview, views

    if named:
        from mxwire.report.fields import fields_overview, named_field_records

        print_result(as_json, named_field_records(), fields_overview)
    elif packet_type is None and not drawn:
        print_result(as_json, field_records(None, dialect), lambda: overview(dialect))
    else:
        found = views(packet_type, dialect)
        print_result(
            as_json, field_records(packet_type, dialect), lambda: details(found, drawn=drawn, listed=not drawn)
        )
