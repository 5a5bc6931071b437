"""``mxwire capture``: what passes an interface, into a capture file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.completion import interfaces, offers
from mxwire.cli.options import FILE, Amount, EtherType, dialect_option
from mxwire.ethernet import ETHERTYPE_MXOE

if TYPE_CHECKING:
    from mxwire.cli.capturing import Wishes

EPILOG = """\b
The files are pcapng with the interface, a comment, the host names that were seen, and how many frames were lost.
With -C or -G they are numbered: trace.pcapng becomes trace-00001.pcapng, trace-00002.pcapng, …

\b
Examples:
  mxwire capture -i eth0 -w trace.pcapng             until Ctrl-C
  mxwire capture -i eth0 -l                          a line a frame, no file
  mxwire capture -i eth0 -w trace.pcapng.zst -l      both, the file compressed
  mxwire capture -i eth0 -w trace.pcapng -C 100 -W 5 the last 500 MB
  mxwire capture -i eth0 -w trace.pcapng -G 3600     a file an hour
  mxwire capture -i eth0 -w - | mxwire decode -      into a pipe

\b
Exit code: 0 after -c frames or --duration, 130 after Ctrl-C and 143 after SIGTERM (the files are whole then, too),
2 if it cannot work.
"""


@click.command(epilog=EPILOG)
@click.option(
    "-i",
    "--interface",
    metavar="IF",
    shell_complete=offers(interfaces),
    required=True,
    help="The Ethernet interface, like eth0.",
)
@click.option("-w", "--write", "target", metavar="FILE", type=FILE, help="The capture file; - is standard output.")
@click.option("-l", "--lines", is_flag=True, help="Print a line a frame, as mxwire decode does.")
@click.option("-c", "--count", type=click.IntRange(1), metavar="N", help="Stop after so many frames.")
@click.option("--duration", type=Amount(0, min_open=True), metavar="S", help="Stop after so many seconds.")
@click.option(
    "-s",
    "--snap-length",
    type=click.IntRange(0, 262144),
    default=0,
    metavar="BYTES",
    help="Keep only the first bytes of each frame.  [default: all]",
)
@click.option(
    "-C",
    "--file-size",
    type=Amount(0, min_open=True),
    metavar="MB",
    help="Begin another file before it gets larger than so many million bytes (before compression).",
)
@click.option(
    "-G",
    "--file-time",
    type=Amount(0, min_open=True),
    metavar="S",
    help="Begin another file when it holds the frames of so many seconds.",
)
@click.option(
    "-W", "--file-count", type=click.IntRange(1), metavar="N", help="Keep only the newest so many files of -C and -G."
)
@click.option("-p", "--no-promiscuous", is_flag=True, help="Do not have the interface take frames for other hosts.")
@click.option(
    "--buffer", type=click.IntRange(1, 4096), default=64, show_default=True, metavar="MB", help="Memory for bursts."
)
@click.option("--comment", metavar="TEXT", help="A comment on the capture, besides where it comes from.")
@click.option(
    "--peers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Names that are known before hosts tell them: an Ethernet address and a name a line.",
)
@dialect_option
@click.option(
    "--ethertype",
    type=EtherType(),
    default=f"0x{ETHERTYPE_MXOE:04X}",
    show_default=True,
    metavar="N",
    help="EtherType.",
)
@click.option("--json", "as_json", is_flag=True, help="Frames of -l and the summary as JSON objects, a line each.")
def command(**options: Any) -> None:
    """Capture the frames of MXoE that pass an interface, in both directions.

    It only listens: nothing is sent. Frames have the kernel's times; what found no room in the buffer is counted.
    """
    from mxwire.cli.capturing import Wishes, run

    wishes: Wishes = Wishes.of(**options)
    run(wishes)
