"""Remarks to the user on standard error, in one wording for all commands."""

from __future__ import annotations

import click

from mxwire.cli import progress


def note(text: str) -> None:
    """Print a remark that is not part of the output; a progress bar stays below it."""
    shown = progress.current()
    if shown is not None:
        shown.above(f"mxwire: {text}")
    else:
        click.echo(f"mxwire: {text}", err=True)
