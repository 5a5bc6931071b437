"""``mxwire merge``: two captures of the two ends, as one."""

from __future__ import annotations

from pathlib import Path

import click

from mxwire.cli.options import FILE

EPILOG = """\b
Frames that both captures have show how their clocks differ; a frame cannot arrive before it was sent, at neither
end. Each is written once, as its sender's end has seen it, with the time of A's clock; so also frames that were lost
in between are there, and are counted.

\b
Examples:
  mxwire merge alpha.pcap beta.pcap -w both.pcapng
  mxwire merge alpha.pcap beta.pcap                     only compare them: clocks, delays, what was lost
  mxwire merge --keep-both alpha.pcap beta.pcap -w both.pcapng   each frame as each end has seen it
  mxwire merge alpha.pcap beta.pcap -w - | mxwire messages -
  mxwire merge --json alpha.pcap beta.pcap | jq .offset_ns
"""


@click.command(epilog=EPILOG)
@click.argument("first", metavar="A", type=FILE)
@click.argument("second", metavar="B", type=FILE)
@click.option(
    "-w",
    "--write",
    "target",
    metavar="FILE",
    type=FILE,
    help="Write the frames of both to this pcapng file, with an interface for each; - is standard output.",
)
@click.option("--keep-both", is_flag=True, help="Write frames that both have twice, as each has seen them.")
@click.option("--json", "as_json", is_flag=True, help="What was found, as one JSON object.")
def command(first: str, second: str, target: str | None, keep_both: bool, as_json: bool) -> None:
    """Put two captures of the two ends of a way together, and say how their clocks differ, how long frames took, and
    what was lost between them."""
    from mxwire.cli.merging import compare, write
    from mxwire.cli.reading import refuse_overwriting
    from mxwire.errors import MxwireError
    from mxwire.report.document import plain, show
    from mxwire.report.json_line import json_line
    from mxwire.report.merge import merge_blocks, merge_record

    if "-" in (first, second):
        raise MxwireError("captures are read twice to be merged: - cannot be one of them; write it to a file first")
    if target is not None and target.removesuffix(".gz").removesuffix(".zst").endswith((".pcap", ".cap")):
        raise MxwireError(f"{target}: only pcapng has several interfaces: name it {Path(target).stem}.pcapng")
    if target is not None and target != "-":
        refuse_overwriting((first, second), Path(target))
    if keep_both and target is None:
        raise MxwireError("--keep-both says what to write: give -w FILE too")
    made = compare(first, second, keep_both)
    written = write(first, second, made, target) if target is not None else None
    if as_json:
        record = merge_record(first, second, made, target, written)
        click.echo(json_line(record), err=target == "-")
        return
    blocks = merge_blocks(first, second, made, target, written)
    if target == "-":
        click.echo(plain(blocks), err=True, nl=False)
    else:
        show(blocks)
