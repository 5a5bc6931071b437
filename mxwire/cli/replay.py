"""``mxwire replay``: a capture sent unchanged, or one of its hosts played against a live one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.filters import FILTERS, filter_options
from mxwire.cli.group import Command
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE

_SCENARIO: Final = ".mxs"
_RAW: Final = frozenset(
    {
        "speed",
        "rate",
        "top_speed",
        "loop",
        "mapped",
        "new_ethertype",
        "pad",
        "dry_run",
        "linger",
        *FILTERS - {"endpoint", "by_name"},
    }
)
_HOST: Final = frozenset({"played", "against", "key", "name", "simulate", "timeout", "write", "target"})
"""Options that only apply with --as; ``_RAW`` lists the options that only apply to unchanged frames."""
_PACES: Final = "--speed, --rate and --top-speed are different paces: choose one"


@click.command(cls=Command)
@click.argument("file", metavar="FILE", type=shared.FILE)
@shared.interface_option()
@shared.via_option("packet", "xdp")
@shared.amount_option("Send N times as fast as recorded.", "--speed", metavar="N")
@click.option(
    "--rate", metavar="RATE", help="Frames (50000/s) or bits (1Gbit/s) per second; k, M, G: 10^3, 10^6, 10^9."
)
@click.option("--top-speed", is_flag=True, help="Send as fast as possible.")
@click.option(
    "--loop", type=click.IntRange(0), default=1, metavar="N", help="Repeat N times; 0: until Ctrl-C.  [default: 1]"
)
@click.option(
    "--map",
    "mapped",
    metavar="OLD=NEW",
    multiple=True,
    help="Replace an Ethernet address; self is that of the interface.",
)
@click.option(
    "--ethertype",
    type=shared.ether_type,
    default=ETHERTYPE_MXOE,
    metavar="N",
    help="EtherType that MXoE uses in this capture, if not 0x86DF.",
)
@click.option("--new-ethertype", type=shared.ether_type, metavar="N", help="EtherType of the sent frames.")
@click.option("--pad", is_flag=True, help="Include frames that the capture cut off, padded with zeros.")
@click.option("--dry-run", is_flag=True, help="Only print the frames that would be sent, and when.")
@click.option(
    "--linger",
    type=shared.Amount(0),
    default=0.2,
    metavar="S",
    help="Seconds to wait for the last answers.  [default: 0.2]",
)
@click.option("--as", "played", metavar="MAC", help="Play this host of the capture against a live one.")
@click.option("--against", metavar="MAC", help="The recorded partner of that host, if there are several.")
@filter_options("endpoint", "by_name")
@click.option(
    "--target",
    metavar="HOST",
    type=shared.host_type,
    help="With --as: the live host, like alpha:0, or an address.  [default: the first one found]",
)
@click.option(
    "--endpoint",
    "endpoints",
    metavar="N",
    multiple=True,
    help="Only this endpoint number, of the source or of the destination. With --as: that of the live host, or several "
    "as RECORDED=LIVE.",
)
@click.option("--key", type=shared.number_type(0xFFFF_FFFF), metavar="K", help="Key of the endpoint.")
@click.option("--name", metavar="NAME", help="Name of the played host.  [default: as in the capture]")
@shared.name_option("Play against a simulated host: open-mx, native-mx …", "profile", "--simulate", metavar="PROFILE")
@shared.timeout_option(None, "With --as: seconds to wait for each answer.  [default: 5]")
@shared.write_option("Write all frames to FILE.", type=click.Path(path_type=Path))
@shared.dialect_option
@shared.damage_option
@shared.json_option("JSON Lines: one object per event.")
@requires(*sorted(_HOST), one_of=("--as",), error="{option} {are} for a played host: name one with --as")
@conflicts("--as", *sorted(_RAW), error="{option} {are} for unchanged frames: omit it, or --as")
@conflicts("--speed", "--rate", "--top-speed", error=_PACES)
@conflicts("--rate", "--top-speed", error=_PACES)
@conflicts("--simulate", "--target", error="--target names a live host: omit it, or --simulate")
def command(**options: Any) -> None:
    """Send the frames of a capture, or play one of its hosts against a live one.

    mxwire scenario run plays scenarios (.mxs) against a live host.
    """
    if options["file"].endswith(_SCENARIO):
        raise MxwireError(f"a scenario is played by mxwire scenario run {options['file']} -i IF --target HOST --ladder")
    if options["played"] is None:
        from mxwire.cli.replay_frames import ReplayOptions, replay_frames

        replay_frames(ReplayOptions(**{name: value for name, value in options.items() if name not in _HOST}))
    else:
        from mxwire.cli.replay_host import HostReplayOptions, replay_host

        replay_host(
            HostReplayOptions(**{name: value for name, value in options.items() if name not in _RAW | {"filters"}})
        )
