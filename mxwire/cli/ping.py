"""``mxwire ping``: round trips to the protocol stack of a host."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from mxwire.cli.group import command_with
from mxwire.cli.live_options import LiveOptions, find
from mxwire.cli.notes import print_record
from mxwire.cli.option_class import argument, group, options_class
from mxwire.cli.options import amount_option, count_option, host_type, json_option, key_option, timeout_option
from mxwire.units import MILLISECOND
from mxwire.words import count_of

if TYPE_CHECKING:
    from mxwire.analysis.host_names import HostChoice
    from mxwire.host import Host
    from mxwire.host.ping import Pinger, PingOutcome, PingStatistics
    from mxwire.protocol import Peer


@options_class
class PingOptions:
    """The options of mxwire ping."""

    destination: HostChoice = argument(metavar="HOST[:ENDPOINT]", type=host_type)
    live: LiveOptions = group(LiveOptions)
    count: int | None = count_option("Stop after N requests.  [default: until Ctrl-C]")
    interval: float = amount_option(
        "Seconds between requests; 0: send each on receipt of the previous answer.",
        "--interval",
        default=1.0,
        zero=True,
    )
    patience: float = amount_option("Seconds to wait for each answer.", "-W", "--answer-timeout", default=1.0)
    key: int = key_option
    timeout: float = timeout_option(10.0, "Seconds to look for the host.")
    as_json: bool = json_option("JSON Lines: one object per answer, and a summary.")


@command_with(PingOptions)
def command(options: PingOptions) -> None:
    """Measure round trips to the protocol stack of a host.

    Times are measured from the handover of a request to the kernel until the kernel receives the answer.
    """
    from mxwire.host.ping import Pinger

    with options.live.open(short_frames=True, background=False) as host:
        peer = find(host, options.destination, options.timeout)
        pinger = Pinger(host, _initiator(host, peer, options.destination, options.key))
        printer = _PingJson(options.destination, host) if options.as_json else _PingListing(options.destination, host)
        printer.begin(peer)
        started, interrupted = time.monotonic(), False
        try:
            for outcome in pinger.run(options.count, options.interval, options.patience):
                printer.show(outcome)
        except KeyboardInterrupt:
            interrupted = True
        printer.end(pinger.statistics, time.monotonic() - started)
        _finish(pinger, interrupted)


def _finish(pinger: Pinger, interrupted: bool) -> None:
    pinger.close()
    if interrupted:
        sys.exit(130)
    if not pinger.statistics.answered:
        sys.exit(1)


def _initiator(host: Host, peer: Peer, destination: HostChoice, key: int) -> Any:
    from mxwire.host.ping import ConnectMethod, HostQueryMethod

    if destination.endpoint is None:
        return HostQueryMethod(host, peer)
    return ConnectMethod(host.open_endpoint(), peer, destination.endpoint, key)


class _PingListing:
    """Output as text."""

    def __init__(self, destination: HostChoice, host: Host) -> None:
        self._destination = destination
        self._host = host

    def begin(self, peer: Peer) -> None:
        """Print the two hosts, and the kind of requests."""
        from mxwire.ethernet import mac_text

        endpoint = self._destination.endpoint
        what = "host queries" if endpoint is None else f"connects to endpoint {endpoint}"
        link = self._host.core.links[0]
        click.echo(
            f"PING {peer.name or '?'} ({mac_text(peer.address)}) from {self._host.name} ({mac_text(link.address)}) "
            f"on {link.name}: {what}"
        )

    def show(self, outcome: PingOutcome) -> None:
        """Print one line per outcome."""
        from mxwire.report.times import duration_text

        who = f"{self._destination}: seq={outcome.sequence}"
        if outcome.refusal is not None:
            line = f"{who} refused: {outcome.refusal}"
        elif outcome.nanoseconds is None:
            line = f"{who} no answer"
        else:
            line = f"{who} time={duration_text(outcome.nanoseconds)}" + (" (DUP!)" if outcome.duplicate else "")
        click.echo(line)

    def end(self, statistics: PingStatistics, seconds: float) -> None:
        """Print the summary, in the format of ping(8)."""
        more = f", +{count_of(statistics.duplicates, 'duplicate')}" if statistics.duplicates else ""
        more += f", {statistics.refused} refused" if statistics.refused else ""
        click.echo(f"\n--- {self._destination} ping statistics ---")
        click.echo(
            f"{statistics.sent} transmitted, {statistics.answered} received{more}, "
            f"{100 * statistics.loss:.3g}% loss, time {seconds * 1000:.0f} ms"
        )
        times = statistics.times()
        if times is not None:
            four = (times.minimum, times.average, times.maximum, times.deviation)
            click.echo(
                f"rtt min/avg/max/mdev = {'/'.join(f'{each / MILLISECOND:.3f}' for each in four)} ms, "
                f"p50/p99 = {times.median / MILLISECOND:.3f}/{times.percentile_99 / MILLISECOND:.3f} ms"
            )


class _PingJson:
    """Output as JSON Lines."""

    def __init__(self, destination: HostChoice, host: Host) -> None:
        self._host = str(destination)

    def begin(self, peer: Peer) -> None:
        """Print nothing: each object names the host."""

    def show(self, outcome: PingOutcome) -> None:
        """Print one object per outcome."""
        lost = outcome.nanoseconds is None and outcome.refusal is None
        print_record(
            {
                "type": "lost" if lost else "refused" if outcome.refusal else "answer",
                "host": self._host,
                "seq": outcome.sequence,
                "time_ns": outcome.nanoseconds,
                "refusal": outcome.refusal,
                "duplicate": outcome.duplicate,
            }
        )

    def end(self, statistics: PingStatistics, seconds: float) -> None:
        """Print the summary."""
        times = statistics.times()
        print_record(
            {
                "type": "summary",
                "host": self._host,
                "transmitted": statistics.sent,
                "received": statistics.answered,
                "refused": statistics.refused,
                "duplicates": statistics.duplicates,
                "loss": statistics.loss,
                "seconds": seconds,
                "min_ns": times and times.minimum,
                "avg_ns": times and times.average,
                "max_ns": times and times.maximum,
                "mdev_ns": times and times.deviation,
                "p50_ns": times and times.median,
                "p99_ns": times and times.percentile_99,
            }
        )
