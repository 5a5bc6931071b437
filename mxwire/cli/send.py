"""``mxwire send``: files or standard input as messages."""

from __future__ import annotations

import sys

import click

from mxwire.cli.live import MEETING_POINT, Destination, DestinationType, Live, live_options, timeout_option
from mxwire.cli.serve import Number
from mxwire.wire.numbers import DEFAULT_KEY

EPILOG = """\b
A file is a message, unless --chunk cuts it; standard input is read to its end.
--profile is what kind of host we are: open-mx, open-mx-1.1, native-mx …; see mxwire simulate --help.

\b
Examples:
  mxwire send alpha:0 -i veth1 picture.png
  echo hello | mxwire send alpha:0 -i veth1 --match 7
  mxwire send alpha:0:3 -i eth0 --sync *.log           to endpoint 3; each is waited for until it is taken
  mxwire send alpha:0 -i eth0 --chunk 1048576 disk.img a message a MiB

\b
Exit code: 0 if the receiver has taken all of it, 1 if not, 2 if it cannot work, 130 after Ctrl-C or SIGTERM.
"""


@click.command(epilog=EPILOG)
@click.argument("destination", metavar="HOST", type=DestinationType())
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
@live_options
@click.option(
    "--match", type=Number((1 << 64) - 1), default=0, show_default=True, metavar="N", help="Match info, 64 bits."
)
@click.option(
    "--endpoint",
    type=click.IntRange(0, 255),
    metavar="N",
    help=f"Endpoint of the receiver.  [default: {MEETING_POINT}]",
)
@click.option(
    "--key", type=Number(0xFFFF_FFFF), default=DEFAULT_KEY, metavar="K", help="Its key.  [default: 0x12345678]"
)
@click.option("--sync", "synchronous", is_flag=True, help="Wait for each message until the receiver has taken it.")
@click.option("--chunk", type=click.IntRange(1, (1 << 32) - 1), metavar="BYTES", help="Send pieces of this length.")
@timeout_option(30.0, "Seconds without any progress after which it is given up.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(
    live: Live,
    destination: Destination,
    files: tuple[str, ...],
    match: int,
    endpoint: int | None,
    key: int,
    synchronous: bool,
    chunk: int | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Send files, or standard input, to an endpoint of a host."""
    from mxwire.cli.transfer import Sending, send

    number = next((each for each in (endpoint, destination.endpoint) if each is not None), MEETING_POINT)
    wanted = Sending(destination.host, number, key, match, synchronous, chunk, timeout, as_json)
    if not send(live, wanted, files or ("-",)):
        sys.exit(1)
