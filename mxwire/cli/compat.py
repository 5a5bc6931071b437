"""``mxwire compat``: can two hosts talk?"""

from __future__ import annotations

import sys

import click

from mxwire.cli.options import FILE, ethertype_option

EPILOG = """\b
Nothing on the wire is negotiated: two hosts must have been built alike. What each shows of that is listed with the
frames that show it; from it follows what they can exchange, and what to change. What the captures do not show is
called unknown.

\b
Examples:
  mxwire compat alpha.pcap beta.pcap        a host in each: would they understand each other?
  mxwire compat both.pcap                   the two hosts of one capture
  mxwire compat --hosts 52:54:00:0a:00:01 52:54:00:0a:00:02 FILE
  mxwire compat --json alpha.pcap beta.pcap | jq 'select(.record == "class")'

\b
Exit code: 0 nothing speaks against it, 1 something does not work between them, 2 something could not be read.
"""


@click.command(epilog=EPILOG)
@click.argument("first", metavar="FILE", type=FILE)
@click.argument("second", metavar="[FILE]", required=False, type=FILE)
@click.option("--hosts", metavar="MAC MAC", nargs=2, help="The two hosts, in this order.  [default: the busiest]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: sides, classes, the conclusion.")
@ethertype_option
def command(
    first: str, second: str | None, hosts: tuple[str, str] | None, as_json: bool, ethertypes: tuple[int, ...]
) -> None:
    """Say what two hosts were built as, whether they can talk, about what, and what to change."""
    from mxwire.analysis.compatibility import judge_sides
    from mxwire.cli.comparing import sides_of
    from mxwire.report.compatibility import compatibility_blocks, compatibility_records
    from mxwire.report.document import show
    from mxwire.report.json_line import json_line

    one, other, exchanged = sides_of(first, second, hosts, ethertypes)
    judgement = judge_sides(one, other, {name for (_, name), (count, _) in (exchanged or {}).items() if count})
    if as_json:
        for record in compatibility_records(one, other, judgement, exchanged):
            click.echo(json_line(record))
    else:
        show(compatibility_blocks(one, other, judgement, exchanged))
    if any(answer.word in ("no", "partly") for answer in judgement.values()):
        sys.exit(1)
