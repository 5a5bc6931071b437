"""``mxwire bench models``: the classic libraries for user-space communication side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from mxwire.cli.bench_imb import split_names
from mxwire.cli.group import Command
from mxwire.cli.live_options import end_like_interrupt
from mxwire.cli.notes import note
from mxwire.cli.options import json_option
from mxwire.errors import MxwireError, create_folder
from mxwire.extras import import_extra
from mxwire.report.json_line import json_line

_TABLES: Final = ("1", "2", "3")


@click.command(cls=Command)
@click.option(
    "--table", type=click.Choice(_TABLES), help="Print the choices of the models (1, 2), or LogP by stage (3)."
)
@click.option(
    "--model",
    "names",
    default="all",
    callback=split_names,
    metavar="LIST",
    show_default=True,
    help="Libraries, separated by commas.",
)
@json_option("JSON Lines: one object per library.")
@click.option(
    "--html",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Also write the table as a page to DIR.",
)
def models(table: str | None, names: tuple[str, ...], as_json: bool, html: Path | None) -> None:
    """Compare the classic libraries (Active Messages, BIP and others) by their promises and data paths."""
    end_like_interrupt()
    if table is None:
        raise MxwireError("nothing to do: add --table 1, 2 or 3")
    from mxwire.bench.models.catalogue import all_facts, check_model
    from mxwire.bench.models.tables import TITLES, table_blocks, table_records
    from mxwire.report.document import show

    chosen = list(all_facts()) if names == ("all",) else [check_model(each) for each in names]
    number = int(table)
    if html is not None:
        import_extra("jinja2", "report", "--html")
        create_folder(html)
    if as_json:
        for each in table_records(number, chosen):
            click.echo(json_line(each))
    else:
        show(list(table_blocks(number, chosen)))
    if html is not None:
        from mxwire.bench.record import Conditions, Recording, now_text
        from mxwire.bench.report import write_page

        recording = Recording(f"models-table-{number}", Conditions(now_text(), "from the code of the models"))
        recording.facts["rows"] = list(table_records(number, chosen))
        note(f"wrote {write_page(html, recording, TITLES[number], list(table_blocks(number, chosen)), ())}")
