"""``mxwire report``: pages about captures, to open in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli.capture_set import CaptureSet, OpenCapture
from mxwire.cli.completion import folders
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import Command
from mxwire.cli.option_class import option, takes
from mxwire.cli.option_groups import DecodingOptions, Inputs
from mxwire.cli.options import FILE, flag_option, has_old_report, json_option
from mxwire.cli.reading import judged_batches, note_messages, refuse_empty, reopened
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.report.site.capture_site import CaptureSource
    from mxwire.wire.decoder import DecodedBatch


@click.command(cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@option(
    "Write a site to DIR: a page per capture, with scripts and data.",
    "--html DIR",
    "folder",
    required=True,
    shell_complete=folders,
)
@flag_option("Replace a report in DIR.", "--force")
@json_option("JSON Lines: one object, with the first page and the size of the report.")
@takes(FilterOptions, name="filters")
@takes(DecodingOptions, name="decoding")
def command(
    files: tuple[str, ...], folder: str, force: bool, as_json: bool, filters: FilterOptions, decoding: DecodingOptions
) -> None:
    """Write pages about captures: findings, hosts, graphs over time, and the ladder of each message.

    A filter limits the frames that are counted, and the messages and findings that are shown; all frames are followed.
    """
    from mxwire.cli.notes import counted, note, print_record
    from mxwire.extras import import_extra

    import_extra("bokeh", "report", "--html")
    from mxwire.report.site import write_report

    target = Path(folder)
    _check(files, target, force)
    captures = CaptureSet(Inputs(files), filters, decoding)
    sources = [source for source, _ in captures.run(partial(_source, decoding))]
    if sources:
        written = write_report(target, sources)
        if as_json:
            about = {"bytes": written.bytes, "messages": written.messages, "ladders": written.ladders}
            print_record({"page": str(written.index), "captures": len(sources), **about})
        else:
            ladders = f"{counted(written.messages, 'message')}, {counted(written.ladders, 'ladder')}"
            note(f"wrote {written.index}: {ladders}, {written.bytes / 1e6:.1f} MB")
    captures.end()


def _check(files: tuple[str, ...], folder: Path, force: bool) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if a capture cannot be read twice, or DIR may not be written."""
    if "-" in files:
        raise MxwireError("a report reads a capture twice, which a pipe does not allow: save it to a file first")
    has_old_report(folder, force, "assets/site.js", "report")


def _source(decoding: DecodingOptions, capture: OpenCapture) -> Iterator[CaptureSource]:
    """Analyse a capture."""
    from mxwire.analysis.capture_overview import CaptureOverview
    from mxwire.report.site.capture_site import CaptureSource

    path, reader, decoder = capture.name, capture.source, capture.decoder
    overview = CaptureOverview(decoder, capture.selection, capture.names)
    if reader.total_bytes is None:
        raise MxwireError(f"{path}: a report reads a capture twice, which a pipe does not allow: save it to a file")
    for decoded in judged_batches(decoder, reader, overview.watch):
        overview.observe(decoded)
    overview.examination.lose(reader.dropped)
    overview.finish()
    refuse_empty(reader, decoder)
    note_messages(path, overview.examination.facts.follower, decoder)
    yield CaptureSource(path, overview, lambda: _again(path, decoding))


def _again(path: str, decoding: DecodingOptions) -> Iterator[DecodedBatch]:
    """The batches of a capture that was read before, without its warnings."""

    with reopened(path, decoding.skip_damage) as reader:
        yield from judged_batches(decoding.decoder(), reader)
