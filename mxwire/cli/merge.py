"""``mxwire merge``: captures from both ends of a path as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli.conflicts import requires
from mxwire.cli.filters import FilterOptions
from mxwire.cli.group import command_with
from mxwire.cli.notes import print_record
from mxwire.cli.option_class import argument, group, options_class
from mxwire.cli.option_groups import DecodingOptions
from mxwire.cli.options import FILE, as_pcapng, flag_option, is_plain_pcap, json_option, write_option
from mxwire.cli.reading import capture_of, reading_bar, refuse_overwriting, refuse_twice, reopened, selection_of

if TYPE_CHECKING:
    from mxwire.analysis.merging import MergePlan


@requires("--keep-both", one_of=("--write",), error="--keep-both needs -w FILE: give both")
@options_class
class MergeOptions:
    """The options of mxwire merge."""

    first: str = argument(metavar="A", type=FILE)
    second: str = argument(metavar="B", type=FILE)
    target: str | None = write_option(
        "Write all frames to FILE (pcapng), with one interface per capture; - is standard output."
    )
    keep_both: bool = flag_option("Write frames that are in both captures twice, once from each.", "--keep-both")
    as_json: bool = json_option("Print the result as one JSON object.")
    filters: FilterOptions = group(FilterOptions, "by_name")
    decoding: DecodingOptions = group(DecodingOptions)


@command_with(MergeOptions)
def command(options: MergeOptions) -> None:
    """Merge captures taken at both ends of a path, and report clock differences, transit times and losses.

    All frames are compared; a filter limits the frames that are written with -w. Frame and message numbers are those of
    the merged capture.
    """
    from mxwire.errors import MxwireError
    from mxwire.report.document import plain, show
    from mxwire.report.merge import MergedCaptures, merge_blocks

    if "-" in (options.first, options.second):
        raise MxwireError("captures are read twice to be merged: - cannot be one of them; write it to a file first")
    if options.target is not None and is_plain_pcap(options.target):
        raise MxwireError(f"{options.target}: only pcapng has several interfaces: name it {as_pcapng(options.target)}")
    if options.target is not None and options.target != "-":
        refuse_overwriting((options.first, options.second), Path(options.target))
    if options.filters.selection().is_limited and options.target is None:
        raise MxwireError("a filter limits the frames that are written: give -w FILE as well")
    comparison = _compare(options.first, options.second, options.keep_both, options.decoding.skip_damage)
    written = (
        _write(options.first, options.second, comparison, options.target, options.filters, options.decoding)
        if options.target is not None
        else None
    )
    if options.as_json:
        record = MergedCaptures.of(options.first, options.second, comparison, options.target, written).record()
        print_record(record, err=options.target == "-")
        return
    blocks = merge_blocks(options.first, options.second, comparison, options.target, written)
    if options.target == "-":
        click.echo(plain(blocks), err=True, nl=False)
    else:
        show(blocks)


def _compare(first: str, second: str, keep_both: bool, skip_damage: bool) -> MergePlan:
    """Match the frames of two captures; raise :class:`~mxwire.errors.MxwireError` if they do not fit together."""
    from mxwire.analysis.merging import Fingerprints, plan
    from mxwire.capture.time_order import in_time_order

    def fingerprints(path: str) -> Fingerprints:
        prints = Fingerprints(path)
        with capture_of(path, skip_damage) as reader, reading_bar(reader) as update:
            for batch in in_time_order(reader):
                prints.add(batch)
                update()
        return prints

    refuse_twice(first, second, "name the captures of two ends")
    return plan(fingerprints(first), fingerprints(second), keep_both=keep_both)


def _write(
    first: str, second: str, made: MergePlan, target: str, filters: FilterOptions, decoding: DecodingOptions
) -> int:
    """Write the selected frames of both captures; return their number."""
    from dataclasses import replace

    import numpy as np

    from mxwire.analysis.merging import merged
    from mxwire.analysis.selection import FrameSelector
    from mxwire.capture import create_capture
    from mxwire.capture.time_order import in_time_order

    selection = selection_of(filters.selection(), filters.host_names(), (first, second), decoding)
    selector, decoder = FrameSelector(selection), decoding.decoder()
    names = [f"{which}: {Path(path).name}" for which, path in (("A", first), ("B", second))]
    comment = f"{names[0]}; {names[1]}, its clock set back by {made.alignment.clock.offset_ns} ns"
    with (
        reopened(first, decoding.skip_damage) as one,
        reopened(second, decoding.skip_damage) as other,
        create_capture(target, format="pcapng", comment=comment) as writer,
        reading_bar(one, other) as update,
    ):
        numbers = [writer.add_interface(name) for name in names]
        assert numbers == [0, 1]
        number = 0
        for each in merged(made, in_time_order(one), in_time_order(other)):
            batch, origin = replace(each.batch, number=np.arange(number, number + len(each.batch)) + 1), each.origin
            number += len(batch)
            if selection.is_limited:
                decoded = decoder.decode(batch)
                found = decoded.batch.number[selector.places(decoded, decoder.start_ns)] - batch.number[:1]
                batch, origin = each.batch.select(found), origin[found]
            writer.write(batch, interfaces=origin)
            update()
        return writer.frames
