"""``mxwire replay``: a capture played to an Ethernet, frame by frame."""

from __future__ import annotations

import sys
from typing import Any

import click

from mxwire.cli.options import EtherType, FrameRanges, dialect_option

EPILOG = """\b
Every frame is sent again as it is: at its recorded time, n times as fast (--speed), at a rate
(--rate) or as fast as possible (--top-speed). Nothing leaves early; how late frames were is told at the end.

\b
Examples:
  mxwire replay trace.pcap -i eth0                            at the recorded pace
  mxwire replay trace.pcap -i eth0 --rate 50000/s --loop 10   or --rate 1Gbit/s, --speed 2, --top-speed
  mxwire replay trace.pcap --dry-run --type PULL              what would be sent, and when
  mxwire replay connect/bad-key.mxs -i eth0 --host alpha:0    a scenario (mxwire scenario) to a live host
  mxwire replay trace.pcap -i eth0 --map 52:54:00:0a:00:01=self --map 52:54:00:0a:00:02=02:00:00:00:00:07

\b
Exit code: 0 all was sent; 2 it cannot work; 130 Ctrl-C.
"""


@click.command(epilog=EPILOG)
@click.argument("file")
@click.option("-i", "--interface", metavar="IF", help="The Ethernet interface, like eth0.")
@click.option("--speed", type=click.FloatRange(0, min_open=True), metavar="N", help="So many times as fast.")
@click.option("--rate", metavar="RATE", help="50000/s frames, or bits: 1Gbit/s; k, M and G are 10^3, 10^6 and 10^9.")
@click.option("--top-speed", is_flag=True, help="As fast as possible.")
@click.option("--loop", type=click.IntRange(0), metavar="N", help="So often; 0: until Ctrl-C.  [default: 1]")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only this packet type; may be repeated.")
@click.option("--frames", metavar="RANGE", type=FrameRanges(), help="Only these: 7, 10-20, 100-, or several.")
@click.option(
    "--map", "mapped", metavar="OLD=NEW", multiple=True, help="Another Ethernet address; self is our interface's."
)
@click.option("--ethertype", type=EtherType(), metavar="N", help="The capture's EtherType of MXoE, if not 0x86DF.")
@click.option("--new-ethertype", type=EtherType(), metavar="N", help="Send with this EtherType.")
@click.option("--pad", is_flag=True, help="Send frames that the capture has cut off too, filled up with zeros.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent, and when.")
@click.option(
    "--linger", type=click.FloatRange(0), metavar="S", help="How long answers are waited for.  [default: 0.2]"
)
@click.option("--host", "hosts", metavar="MAC", multiple=True, help="Only from or to this address; may be repeated.")
@click.option("--endpoint", "endpoints", metavar="N", multiple=True, help="Only from or to this endpoint number.")
@dialect_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(**options: Any) -> None:
    """Send the frames of a capture again, at a pace of your choice."""
    if options["file"].endswith(".mxs"):
        from mxwire.cli.playing import replay_scenario

        wanted = {name: options[name] for name in ("file", "interface", "hosts", "dialect", "endpoints", "as_json")}
        if not replay_scenario(**wanted):
            sys.exit(1)
        return

    from mxwire.cli.replaying import Wishes, run

    run(Wishes.of(**options))
