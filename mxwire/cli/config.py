"""``mxwire config``: the settings, and the places of their values."""

from __future__ import annotations

from itertools import starmap

import click

from mxwire.cli.configuration import (
    SETTINGS,
    Value,
    configuration_file,
    from_environment,
    from_file,
    from_other_programs,
    variable_of,
)
from mxwire.cli.group import Command
from mxwire.cli.options import json_option


@click.command(cls=Command)
@json_option("JSON Lines: one object per setting.")
def command(as_json: bool) -> None:
    """Show the settings (interface, name, dialect, peers, colours), and where each value comes from."""
    from mxwire.cli.notes import print_records
    from mxwire.report.document import show, tabulate

    found = {name: from_environment(name) or from_other_programs(name) or from_file(name) for name in SETTINGS}
    if as_json:
        print_records(starmap(_record, found.items()))
        return
    rows = (
        (name, value.text, value.place) if value else (name, SETTINGS[name][1], "default")
        for name, value in found.items()
    )
    show([tabulate("setting, value, from", rows)])
    file = configuration_file()
    absent = " (does not exist)" if file is not None and not file.exists() else ""
    click.echo(f"\nVariables: {', '.join(map(variable_of, SETTINGS))}\nFile: {file or 'none'}{absent}")


def _record(name: str, value: Value | None) -> dict[str, str | int | None]:
    """The JSON object of a setting."""
    in_file = value is not None and value.variable is None
    return {
        "setting": name,
        "value": value.text if value else None,
        "source": "default" if value is None else "file" if in_file else "environment",
        "variable": value.variable if value else None,
        "file": str(configuration_file()) if in_file else None,
        "line": value.line if value else None,
    }
