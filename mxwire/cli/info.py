"""``mxwire info``: the contents of a capture at a glance."""

from __future__ import annotations

import click

from mxwire.cli.filters import FilterOptions, filter_options
from mxwire.cli.group import Command
from mxwire.cli.options import FILE, DecodingOptions, decoding_options, json_option


@click.command(cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@json_option("JSON Lines: one object per file.")
@click.option("--quick", is_flag=True, help="Do not count messages, which takes most of the time.")
@filter_options("by_name")
@decoding_options
def command(
    files: tuple[str, ...], as_json: bool, quick: bool, filters: FilterOptions, decoding: DecodingOptions
) -> None:
    """Show what is in captures: duration, hosts, dialects, endpoints, packets and messages.

    Dialects are shown with their evidence and its confidence. Keys are those presented to an endpoint by
    connect requests. Repeated frames are retransmissions and duplicates of messages already seen. With a filter only
    selected frames are counted; the dialects are those of all frames.
    """
    from mxwire.analysis.inventory import Inventory
    from mxwire.analysis.selection import FrameSelector
    from mxwire.cli.reading import Failures, capture_of, decoded_batches, refuse_empty, selection_of
    from mxwire.report.document import show
    from mxwire.report.inventory import as_object, blocks
    from mxwire.report.json_line import json_line

    filters.selection()  # mistakes are reported before anything is read
    failures = Failures()
    for path in files:
        with failures.noted(), capture_of(path, decoding.skip_damage) as reader:
            selector = FrameSelector(selection_of(filters, path, decoding))
            decoder, inventory = decoding.decoder(), Inventory(messages=not quick)
            for decoded in decoded_batches(decoder, reader):
                inventory.observe(selector.select(decoded, decoder.start_ns))
            inventory.finish(decoder)
            file = {
                "format": reader.format,
                "compression": reader.compression,
                "bytes": reader.total_bytes,
                "snap_length": reader.snap_length,
            }
            if as_json:
                click.echo(json_line(as_object(reader.name, file, inventory), decoder.start_ns))
            else:
                show(blocks(reader.name, file, inventory))
            refuse_empty(reader, decoder)
    failures.end()
