"""``mxwire decode``: every frame of a capture, in a line, as a tree, as JSON, as columns or into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.completion import catalogued, offers, packet_types
from mxwire.cli.options import FILE, FrameRanges, Range, dialect_option, ethertype_option, table_option
from mxwire.report.legend import legend_text

if TYPE_CHECKING:
    from mxwire.cli.decoding import Request

EPILOG = f"""\b
Lines: frame number, seconds, source → destination, endpoints, type, and the fields that matter.
Sequence numbers are shown without their two session number bits, or as SESSION/NUMBER where those are not 0.

\b
What stands in a line, and the field behind it (mxwire formats --fields lists all fields):
{legend_text()}
\b
Examples:
  mxwire decode trace.pcap                              one line per frame
  mxwire decode -v --frames 10-12 trace.pcap            every field, value, meaning and byte of three frames
  mxwire decode --type PULL --type NACK_MCP trace.pcap  only some packet types
  mxwire decode --type PULL --time delta trace.pcap     seconds from each PULL to the next
  mxwire decode --color always trace.pcap | less -R     colours through a pager
  mxwire decode --json trace.pcapng.zst | jq .fields    one JSON object per line
  mxwire decode --fields frame,lib_seqnum,length FILE   columns, tab-separated
  mxwire decode --to frames.parquet *.pcap              all columns, for polars, pandas or DuckDB
  tcpdump -i eth0 -U -w - ether proto 0x86df | mxwire decode -
"""


@click.command(epilog=EPILOG)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("-v", "--verbose", is_flag=True, help="Every field with value, meaning and bytes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option(
    "--fields",
    metavar="A,B",
    shell_complete=offers(catalogued("field"), listed=True),
    help="Only these fields, tab-separated; with --to, only these columns; with --json, only these of the fields.",
)
@table_option
@click.option(
    "--type",
    "types",
    metavar="TYPE",
    multiple=True,
    shell_complete=offers(packet_types),
    help="Only this packet type, by name or number; may be repeated.",
)
@click.option(
    "--frames",
    metavar="RANGE",
    type=FrameRanges(),
    help="Only these frame numbers: 7, 10-20, 100-, or several with commas.",
)
@click.option(
    "--host", "hosts", metavar="MAC", multiple=True, help="Only frames from or to this address; may be repeated."
)
@click.option(
    "--endpoint", metavar="N", type=click.IntRange(0, 255), help="Only frames from or to this endpoint number."
)
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="Stop after this many frames.")
@dialect_option
@ethertype_option
@click.option(
    "--time",
    "clock",
    type=click.Choice(["relative", "delta", "absolute"]),
    default="relative",
    show_default=True,
    help="Seconds since the first frame, seconds since the frame shown before, or date and time (UTC).",
)
def command(
    files: tuple[str, ...], types: tuple[str, ...], hosts: tuple[str, ...], frames: list[Range] | None, **options: Any
) -> None:
    """Decode captures (pcap, pcapng, gzip or zstd; - is standard input) frame by frame."""
    from mxwire.cli.decoding import Request, run

    request: Request = Request.of(types=types, hosts=hosts, frames=frames, **options)
    run(files, request)
