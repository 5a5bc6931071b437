"""``mxwire ping``: round trips to the protocol stack of a host."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from mxwire.cli.group import command_with
from mxwire.cli.live_options import LiveOptions, find
from mxwire.cli.notes import EventReport, print_record
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

    # The thread that measures also runs the host: a change of threads would be part of the times.
    with options.live.open(short_frames=True, background=False) as host:
        peer = find(host, options.destination, options.timeout)
        pinger = Pinger(host, _initiator(host, peer, options.destination, options.key))
        printer = _PingReport(options.destination, host, options.as_json)
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


class _PingReport(EventReport):
    """Output as lines of text in the format of ping(8), or as JSON Lines."""

    def __init__(self, destination: HostChoice, host: Host, as_json: bool) -> None:
        super().__init__(as_json)
        self._destination = destination
        self._host = host

    def begin(self, peer: Peer) -> None:
        """Print the two hosts, and the kind of requests; each JSON object names the host."""
        from mxwire.ethernet import mac_text

        endpoint = self._destination.endpoint
        what = "host queries" if endpoint is None else f"connects to endpoint {endpoint}"
        link = self._host.core.links[0]
        self.print(
            f"PING {peer.name or '?'} ({mac_text(peer.address)}) from {self._host.name} ({mac_text(link.address)}) "
            f"on {link.name}: {what}"
        )

    def _emit(self, kind: str, **what: Any) -> None:
        if self.as_json:
            print_record({"type": kind, "host": str(self._destination), **what})

    def show(self, outcome: PingOutcome) -> None:
        """Print an outcome."""
        from mxwire.report.times import duration_text

        time_ns, refusal, duplicate = outcome.nanoseconds, outcome.refusal, outcome.duplicate
        if refusal is not None:
            kind, text = "refused", f" refused: {refusal}"
        elif time_ns is None:
            kind, text = "lost", " no answer"
        else:
            kind, text = "answer", f" time={duration_text(time_ns)}" + (" (DUP!)" if duplicate else "")
        self.print(f"{self._destination}: seq={outcome.sequence}{text}")
        self._emit(kind, seq=outcome.sequence, time_ns=time_ns, refusal=refusal, duplicate=duplicate)

    def end(self, statistics: PingStatistics, seconds: float) -> None:
        """Print the summary."""
        times = statistics.times()
        self._emit(
            "summary",
            transmitted=statistics.sent,
            received=statistics.answered,
            refused=statistics.refused,
            duplicates=statistics.duplicates,
            loss=statistics.loss,
            seconds=seconds,
            min_ns=times and times.minimum,
            avg_ns=times and times.average,
            max_ns=times and times.maximum,
            mdev_ns=times and times.deviation,
            p50_ns=times and times.median,
            p99_ns=times and times.percentile_99,
        )
        more = f", +{count_of(statistics.duplicates, 'duplicate')}" if statistics.duplicates else ""
        more += f", {statistics.refused} refused" if statistics.refused else ""
        self.print(f"\n--- {self._destination} ping statistics ---")
        self.print(
            f"{statistics.sent} transmitted, {statistics.answered} received{more}, "
            f"{100 * statistics.loss:.3g}% loss, time {seconds * 1000:.0f} ms"
        )
        if times is not None:
            four = (times.minimum, times.average, times.maximum, times.deviation)
            self.print(
                f"rtt min/avg/max/mdev = {'/'.join(f'{each / MILLISECOND:.3f}' for each in four)} ms, "
                f"p50/p99 = {times.median / MILLISECOND:.3f}/{times.percentile_99 / MILLISECOND:.3f} ms"
            )
