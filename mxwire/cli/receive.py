"""``mxwire receive``: messages into files, or to standard output."""

from __future__ import annotations

import sys

import click

from mxwire.cli.live import MEETING_POINT, Live, live_options
from mxwire.cli.options import FILE, Amount
from mxwire.cli.serve import Number
from mxwire.wire.numbers import DEFAULT_KEY

EPILOG = """\b
All messages go into one file, one behind the other, or each into its own where the name has {} in it, which stands
for the number of the message. What is said about them goes to standard error where the data goes to standard output.
--profile is what kind of host we are: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help.

\b
Examples:
  mxwire receive -i veth0 --name alpha:0 > message
  mxwire receive -i eth0 --endpoint 3 --count 10 -o 'part-{}'
  mxwire receive -i eth0 --match 0x100 --mask 0xff00 --count 0 -o all     until Ctrl-C
  mxwire receive -i eth0 -o data --json | jq .bytes

\b
Exit code: 0 if all is there, 1 if a message was longer than --maximum or broke off, 2 if it cannot work, 130 after
Ctrl-C or SIGTERM.
"""
_ALL = (1 << 64) - 1


@click.command(epilog=EPILOG)
@live_options
@click.option(
    "-o", "output", default="-", metavar="FILE|-", type=FILE, help="Where the data goes.  [default: standard output]"
)
@click.option(
    "--endpoint",
    type=click.IntRange(0, 255),
    default=MEETING_POINT,
    show_default=True,
    metavar="N",
    help="Our endpoint.",
)
@click.option(
    "--key", type=Number(0xFFFF_FFFF), default=DEFAULT_KEY, metavar="K", help="Key of connects.  [default: 0x12345678]"
)
@click.option(
    "--match", type=Number(_ALL), metavar="N", help="Take only messages with this match info.  [default: all]"
)
@click.option("--mask", type=Number(_ALL), metavar="N", help="Which bits of it count.  [default: all]")
@click.option("--count", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="Messages; 0: no end.")
@click.option(
    "--maximum",
    type=click.IntRange(0, (1 << 32) - 1),
    default=1 << 30,
    show_default=True,
    metavar="BYTES",
    help="Longest message; longer ones are cut.",
)
@click.option(
    "--timeout",
    type=Amount(0, min_open=True),
    metavar="S",
    help="Seconds without a message or progress after which it ends.  [default: none for a message, 30 within one]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a message; the data only goes where -o says.")
def command(
    live: Live,
    output: str,
    endpoint: int,
    key: int,
    match: int | None,
    mask: int | None,
    count: int,
    maximum: int,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Receive messages, and write them to files or standard output."""
    from mxwire.cli.transfer import Receiving, receive
    from mxwire.errors import MxwireError

    if mask is not None and match is None:
        raise MxwireError("--mask says which bits of --match count: give that too")
    if match is not None and mask is not None and match & ~mask:
        raise MxwireError(f"--match {match:#x} has bits outside of --mask {mask:#x}: no message would match")
    wanted = Receiving(output, endpoint, key, match, _ALL if mask is None else mask, count, maximum, timeout, as_json)
    if not receive(live, wanted):
        sys.exit(1)
