"""``mxwire replay``: a capture played to an Ethernet, frame by frame or as one of its hosts; a scenario likewise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from mxwire.cli.completion import catalogued, interfaces, offers, packet_types
from mxwire.cli.options import FILE, Amount, EtherType, FrameRanges, dialect_option
from mxwire.cli.serve import Number
from mxwire.errors import MxwireError

EPILOG = """\b
Without --as every frame is sent again as it is: at its recorded time, n times as fast (--speed), at a rate
(--rate) or as fast as possible (--top-speed). Nothing leaves early; how late frames were is told at the end.

\b
With --as MAC the host with that address in the capture is played against a live one: what this conversation
numbers otherwise (indexes, sessions, sequence numbers, acks, regions, handles) is rewritten, the next frame is sent
when what it answers has come, and the answers are compared with the recorded ones. On the wire we have the address
of our interface. --simulate plays against a host in virtual time, without an interface.

\b
Examples:
  mxwire replay trace.pcap -i eth0                            at the recorded pace
  mxwire replay trace.pcap -i eth0 --rate 50000/s --loop 10   or --rate 1Gbit/s, --speed 2, --top-speed
  mxwire replay trace.pcap --dry-run --type PULL              what would be sent, and when
  mxwire replay trace.pcap -i eth0 --map 52:54:00:0a:00:01=self --map 52:54:00:0a:00:02=02:00:00:00:00:07
  mxwire replay trace.pcap -i eth0 --as 52:54:00:0a:00:01     play that host against the one that is found
  mxwire replay trace.pcap -i eth0 --as 52:54:00:0a:00:01 --host alpha:0 --endpoint 1
  mxwire replay trace.pcap --as 52:54:00:0a:00:01 --simulate native-mx
  mxwire replay replay/connect/bad-key.mxs -i eth0 --host alpha:0

\b
Exit code: 0 all was sent, or all answers were the recorded ones; 1 the live host
differs (--as; what only its application does otherwise is told, and is no difference); 2 it cannot work; 130 Ctrl-C.
"""
_SCENARIO: Final = ".mxs"
_OF_SCENARIOS: Final = frozenset({"file", "interface", "hosts", "endpoints", "key", "dialect", "as_json"})
_ALWAYS: Final = frozenset({"file", "interface", "hosts", "endpoints", "dialect", "as_json", "ethertype"})
_RAW: Final = frozenset(
    {
        "speed",
        "rate",
        "top_speed",
        "loop",
        "types",
        "frames",
        "mapped",
        "new_ethertype",
        "pad",
        "dry_run",
        "linger",
    }
)
_HOST: Final = frozenset({"played", "against", "key", "name", "simulate", "timeout", "target"})


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@click.option(
    "-i", "--interface", metavar="IF", shell_complete=offers(interfaces), help="The Ethernet interface, like eth0."
)
@click.option("--speed", type=Amount(0, min_open=True), metavar="N", help="So many times as fast.")
@click.option("--rate", metavar="RATE", help="50000/s frames, or bits: 1Gbit/s; k, M and G are 10^3, 10^6 and 10^9.")
@click.option("--top-speed", is_flag=True, help="As fast as possible.")
@click.option("--loop", type=click.IntRange(0), metavar="N", help="So often; 0: until Ctrl-C.  [default: 1]")
@click.option(
    "--type",
    "types",
    metavar="TYPE",
    multiple=True,
    shell_complete=offers(packet_types),
    help="Only this packet type; may be repeated.",
)
@click.option("--frames", metavar="RANGE", type=FrameRanges(), help="Only these: 7, 10-20, 100-, or several.")
@click.option(
    "--map", "mapped", metavar="OLD=NEW", multiple=True, help="Another Ethernet address; self is our interface's."
)
@click.option("--ethertype", type=EtherType(), metavar="N", help="The capture's EtherType of MXoE, if not 0x86DF.")
@click.option("--new-ethertype", type=EtherType(), metavar="N", help="Send with this EtherType.")
@click.option("--pad", is_flag=True, help="Send frames that the capture has cut off too, filled up with zeros.")
@click.option("--dry-run", is_flag=True, help="Only say what would be sent, and when.")
@click.option("--linger", type=Amount(0), metavar="S", help="How long answers are waited for.  [default: 0.2]")
@click.option("--as", "played", metavar="MAC", help="Play this host of the capture against a live one.")
@click.option("--against", metavar="MAC", help="The other host in the capture, where there are several.")
@click.option(
    "--host",
    "hosts",
    metavar="HOST",
    multiple=True,
    help="Only frames from or to this address; may be repeated. With --as: the live host.  [default: who is found]",
)
@click.option(
    "--endpoint",
    "endpoints",
    metavar="N",
    multiple=True,
    help="Only from or to this endpoint. With --as: the live host's, or several as RECORDED=LIVE.",
)
@click.option("--key", type=Number(0xFFFF_FFFF), metavar="K", help="The key of the live host's endpoint.")
@click.option("--name", metavar="NAME", help="Our host name.  [default: that of the host in the capture]")
@click.option(
    "--simulate",
    metavar="PROFILE",
    shell_complete=offers(catalogued("profile")),
    help="Play against a simulated host: open-mx, native-mx …",
)
@click.option(
    "--timeout",
    type=Amount(0, min_open=True),
    metavar="S",
    help="How long answers are waited for.  [default: 5]",
)
@click.option("-w", "--write", "target", type=click.Path(path_type=Path), metavar="FILE", help="Record what passes.")
@dialect_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Send the frames of a capture again, or play one of its hosts against a live one.

    FILE may be a scenario (.mxs) as well: it is played to the live host that --host names.
    """
    given = {each for each in options if context.get_parameter_source(each) is ParameterSource.COMMANDLINE}
    if options["file"].endswith(_SCENARIO):
        _play_scenario(context, given, options)
    elif options["played"] is None:
        _refuse(context, given & _HOST, "plays a host of the capture: say which one with --as")
        from mxwire.cli.replaying import run
        from mxwire.cli.replaying_wishes import Wishes

        run(Wishes.of(**{name: value for name, value in options.items() if name in _ALWAYS | _RAW}))
    else:
        _refuse(context, given & _RAW, "sends frames as they are: it does not go with --as")
        from mxwire.cli.replaying_host import HostWishes, run_host

        run_host(HostWishes.of(**{name: value for name, value in options.items() if name in _ALWAYS | _HOST}))


def _play_scenario(context: click.Context, given: set[str], options: dict[str, Any]) -> None:
    from mxwire.cli.playing_live import replay_scenario

    _refuse(context, given - _OF_SCENARIOS, "does not go with a scenario; mxwire scenario run has more options")
    key = {} if options["key"] is None else {"key": options["key"]}
    fine = replay_scenario(
        options["file"],
        options["interface"],
        options["hosts"],
        dialect=options["dialect"],
        endpoints=options["endpoints"],
        as_json=options["as_json"],
        **key,
    )
    if not fine:
        sys.exit(1)


def _refuse(context: click.Context, which: set[str], why: str) -> None:
    """Options that would silently do nothing."""
    for each in context.command.params:
        if each.name in which:
            raise MxwireError(f"{each.opts[-1]} {why}")
