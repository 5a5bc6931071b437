"""``mxwire simulate``: hosts in a network with faults, in virtual time, and whether everything holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from mxwire.cli.completion import catalogued, live_dialects, offers
from mxwire.cli.options import Amount

EPILOG = """\b
Examples:
  mxwire simulate                                          two hosts, a hundred messages, no faults
  mxwire simulate --seed 7 --hosts 3 --loss 0.05 --duplicate 0.02 --reorder 0.05 --kill 1
  mxwire simulate --profile native-mx,open-mx --dialect mxoe --pcap out.pcapng
  mxwire simulate --seeds 0-1999 --jobs 2                  two thousand runs, each with faults of its own
  mxwire simulate --seeds 0-1999 --dialect omx:1500 --kill 2
"""


class SeedRange(click.ParamType):  # type: ignore[type-arg]
    """``0-9999``, or one number."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """The seeds."""
        if isinstance(value, range):
            return value
        first, dash, last = str(value).partition("-")
        if not first.isdecimal() or not (last.isdecimal() if dash else not last):
            self.fail(f"{value!r} is not a range of seeds: write 0-9999, or one number", param, ctx)
        found = range(int(first), int(last or first) + 1)
        if not found:
            self.fail(f"{value!r} ends before it starts", param, ctx)
        return found


def _rate(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", type=Amount(0, 1, max_open=True), metavar="P", help=text)


def _count(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", type=click.IntRange(0, 100), metavar="N", help=text)


def _microseconds(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", type=click.IntRange(0, 10**9), metavar="US", help=text)


@click.command(epilog=EPILOG)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="What all chance comes from.  [default: 0]")
@click.option("--seeds", type=SeedRange(), metavar="A-B", help="A campaign: many runs, each with faults of its own.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Processes of a campaign.  [default: one a processor]"
)
@click.option("--hosts", type=click.IntRange(2, 8), metavar="N", help="Hosts, 2 to 8.  [default: 2]")
@click.option("--messages", type=click.IntRange(1), metavar="N", help="Messages.  [default: 100]")
@click.option(
    "--workload",
    metavar="NAME",
    shell_complete=offers(catalogued("workload")),
    help="ping-pong, stream, many-to-one or all-to-all.  [default: all-to-all]",
)
@click.option(
    "--dialect", metavar="mxoe|omx|omx:M", shell_complete=live_dialects, help="What the hosts speak.  [default: mxoe]"
)
@click.option(
    "--profile",
    metavar="NAME[/HZ],…",
    shell_complete=offers(catalogued("profile"), listed=True),
    help="What the hosts are, in turn; see below.  [default: open-mx]",
)
@click.option("--processes", type=click.IntRange(1, 4), metavar="N", help="Applications a host.  [default: 1]")
@click.option("--interfaces", type=click.IntRange(1, 4), metavar="N", help="Interfaces a host.  [default: 1]")
@click.option(
    "--discovery",
    metavar="NAME",
    shell_complete=offers(catalogued("discovery")),
    help="How hosts meet: static, nameless or announce.  [default: static]",
)
@click.option("--largest", type=click.IntRange(0), metavar="BYTES", help="Longest message.  [default: 1048576]")
@click.option("--resend-maximum", type=click.IntRange(1), metavar="N", help="Resends before a partner is given up.")
@_rate("loss", "Frames that are lost, 0 to 1.")
@_rate("duplicate", "Frames that arrive twice.")
@_rate("reorder", "Frames that are held back.")
@_rate("corrupt", "Frames whose damage the frame check finds.")
@_rate("tamper", "Frames with changed bytes that no check finds.")
@_microseconds("delay", "How long a frame is on its way, in microseconds.")
@_microseconds("jitter", "How much longer it may be.")
@_microseconds("held", "How long reordered frames and duplicates are held back.")
@_microseconds("coalescing", "Frames of such an interval are handed over at once.")
@_microseconds("gap", "How long applications wait between two calls.")
@_count("kill", "Applications that die, and start anew.")
@_count("crash", "Hosts that lose power, and start anew.")
@_count("pause", "Hosts whose libraries stop for a while.")
@_count("stall", "Applications that do something else for a while.")
@_count("partition", "Times that one host does not reach another.")
@_count("filter", "Times that a packet type is dropped.")
@_count("mtu", "Times that long frames do not pass.")
@click.option("--judge/--no-judge", "judged", default=None, help="Hold all frames against the rules, or do not.")
@click.option("--pcap", type=click.Path(dir_okay=False), metavar="FILE", help="Write all frames to a capture file.")
@click.option(
    "--at", type=click.IntRange(0), metavar="HOST", help="With --pcap: capture on one host, what it sends and receives."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a run, a line each.")
def command(
    seed: int | None,
    seeds: range | None,
    jobs: int | None,
    pcap: str | None,
    at: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run hosts in a simulated network, and check that everything holds that must.

    Applications connect, send and receive as the seed says, while frames are lost and applications die. The same
    options and version give the same frames and the same digest on any machine. A campaign draws for each seed what
    no option fixes; the first seed that fails is made smaller before it is shown. Exit code 1: an invariant did not
    hold.

    Profiles: open-mx (the newest without its defects), open-mx-1.5-as-found, open-mx-1.1, open-mx-1.0, open-mx-0.6,
    open-mx-0.5, native-mx; with /HZ behind it, the ticks of the host's clock a second.
    """
    from mxwire.cli import simulating
    from mxwire.errors import MxwireError

    fixed = simulating.fixed_by(options)
    if seeds is None:
        outcome = simulating.run_one(simulating.scenario_of(seed or 0, fixed), pcap, at)
        failed = simulating.tell(outcome, as_json)
    elif seed is not None or pcap is not None:
        raise MxwireError("--seeds makes many runs: use it without --seed and --pcap")
    else:
        failed = simulating.campaign(seeds, jobs, fixed, as_json)
    if failed:
        sys.exit(1)
