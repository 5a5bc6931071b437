"""``mxwire info``: the contents of a capture at a glance."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from mxwire.cli.capture_set import CaptureSet, OpenCapture, print_results
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import Command
from mxwire.cli.option_class import takes
from mxwire.cli.option_groups import DecodingOptions, Inputs
from mxwire.cli.options import FILE, flag_option, json_option
from mxwire.cli.reading import decoded_batches, refuse_empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mxwire.report.inventory import CaptureContents


@click.command(cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@json_option("JSON Lines: one object per file.")
@flag_option("Do not count messages, which takes most of the time.", "--quick")
@takes(FilterOptions, "by_name", name="filters")
@takes(DecodingOptions, name="decoding")
def command(
    files: tuple[str, ...], as_json: bool, quick: bool, filters: FilterOptions, decoding: DecodingOptions
) -> None:
    """Show what is in captures: duration, hosts, dialects, endpoints, packets and messages.

    Dialects are shown with their evidence and its confidence. Keys are those presented to an endpoint by
    connect requests. Repeated frames are retransmissions and duplicates of messages already seen. With a filter only
    selected frames are counted; the dialects are those of all frames.
    """
    from mxwire.report.document import show
    from mxwire.report.inventory import blocks

    captures = CaptureSet(Inputs(files), filters, decoding)
    for contents, origin in captures.run(partial(_inventory, quick)):
        if as_json:
            print_results([contents], origin.start_ns)
        else:
            show(blocks(contents))
    captures.end()


def _inventory(quick: bool, capture: OpenCapture) -> Iterator[CaptureContents]:
    """Yield the contents of a capture."""
    from mxwire.analysis.inventory import Inventory
    from mxwire.analysis.selection import FrameSelector
    from mxwire.capture import CaptureReader
    from mxwire.report.inventory import CaptureContents

    selector, inventory = FrameSelector(capture.selection), Inventory(messages=not quick)
    for decoded in decoded_batches(capture.decoder, capture.source):
        inventory.observe(selector.select(decoded, capture.start_ns))
    inventory.finish(capture.decoder)
    reader = capture.source
    assert isinstance(reader, CaptureReader)
    yield CaptureContents.of(
        inventory,
        file=reader.name,
        format=reader.format,
        compression=reader.compression,
        bytes=reader.total_bytes,
        snap_length=reader.snap_length,
    )
    refuse_empty(reader, capture.decoder)
