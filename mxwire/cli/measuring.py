"""What ``mxwire perf`` does: the two roles, and what they say."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from mxwire.cli.live import Live, end_like_interrupt
from mxwire.cli.notes import note
from mxwire.cli.transfer import connect
from mxwire.errors import MxwireError, OutputError
from mxwire.host import Endpoint, Host
from mxwire.host.errors import HostClosedError, HostError, HostTimeoutError
from mxwire.host.perf import PerfParameters, PerfReceiver, PerfResult, PerfSender
from mxwire.host.perf.parameters import SETTLE
from mxwire.host.perf.preemption import PreemptionMeter
from mxwire.host.perf.receiver import PerfRequest
from mxwire.host.perf.waiter import PerfWaiter
from mxwire.host.requests import place_of
from mxwire.host.stall import DialectMonitor
from mxwire.protocol import Partner, Status
from mxwire.report.json_line import json_line
from mxwire.wire.numbers import DEFAULT_KEY
from mxwire.words import count_of

_NAME_TIME: Final = 0.2
_STARTING: Final = 5.0
_AGAIN: Final = 0.1
_OTHER_KEY: Final = "no omx_perf waits there"


@dataclass(frozen=True, slots=True)
class Manner:
    """How it is measured, and how it is told."""

    sleep: bool = False
    yielding: bool = False
    silence: float | None = None
    verbose: bool = False
    as_json: bool = False

    @property
    def polls(self) -> bool:
        """Whether waits poll all the time, as omx_perf does by default."""
        return not (self.sleep or self.yielding)

    def open(self, live: Live) -> Host:
        """Our host, which looks for frames as asked for; the thread that measures does all the work."""
        return live.open(spin=self.polls, background=False)

    def tell(self, event: str, **what: Any) -> None:
        """A line for programs."""
        if self.as_json:
            click.echo(json_line({"event": event, **what}))

    def remark(self, text: str) -> None:
        """A line for people, beside the results."""
        if self.verbose:
            note(text)


class _PreemptionWarning:
    """One warning per measurement if it polls and others take its CPU: then it measures the scheduler."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._meter = PreemptionMeter() if manner.polls else None
        self.resume()

    def resume(self) -> None:
        """Measuring begins, or goes on after output."""
        if self._meter is not None:
            self._meter.start()

    def check(self) -> None:
        """Look at the time since `resume`, and warn at the first preemption."""
        found = self._meter.stop() if self._meter is not None else None
        if found is None:
            return
        self._meter = None
        note(
            f"preempted: this side had a CPU for only {found.cpu_share:.0%} of the time, so the times are too long; "
            "use -w on both sides where there are fewer CPUs than busy programs"
        )
        self._manner.tell(
            "preempted", cpu_share=round(found.cpu_share, 3), involuntary_switches=found.switches, advice="-w"
        )


def send(
    live: Live,
    manner: Manner,
    host: str,
    remote: int,
    endpoint: int | None,
    parameters: PerfParameters,
    pause: float,
    plot: Path | None,
) -> bool:
    """Measure against a receiver, and say what was found; returns whether it ended early."""
    results: list[PerfResult] = []
    with manner.open(live) as ours:
        opened = ours.open_endpoint(endpoint, DEFAULT_KEY)
        partner = _connect(opened, host, remote, manner.silence)
        manner.remark(
            f"connected to {place_of(partner)} from endpoint {opened.number}, dialect {live.dialect or 'mxoe'}"
        )
        sender = PerfSender(PerfWaiter(opened, yielding=manner.yielding, silence=manner.silence), partner, parameters)
        failed = False
        try:
            sender.agree()
            manner.tell("begun", **_about(live, place_of(partner), parameters))
            warning = _PreemptionWarning(manner)
            for result in sender.measure(pause):
                warning.check()
                results.append(result)
                _say(manner, result)
                warning.resume()
        except HostClosedError:
            raise
        except HostError as error:
            failed = True
            _say_end(manner, error, len(results))
        opened.close(0 if failed else SETTLE)
    if plot is not None and results:
        _draw(plot, live, host, parameters, results)
        manner.remark(f"drawn into {plot}")
    if not failed:
        manner.tell("ended", lengths=len(results), status="success")
    return failed


def _connect(endpoint: Endpoint, host: str, remote: int, timeout: float | None) -> Partner:
    """Connect; a receiver that is being started at the same time gets a while to open its endpoint."""
    end = time.monotonic() + _STARTING
    while True:
        try:
            return connect(endpoint, host, remote, DEFAULT_KEY, timeout, other_key=_OTHER_KEY)
        except HostError as error:
            if error.status != Status.REMOTE_ENDPOINT_CLOSED or time.monotonic() >= end:
                raise
        time.sleep(_AGAIN)


def _about(live: Live, partner: str, parameters: PerfParameters) -> dict[str, Any]:
    return {"partner": partner, "dialect": live.dialect or "mxoe", "parameters": asdict(parameters)}


def _say(manner: Manner, result: PerfResult) -> None:
    if manner.as_json:
        manner.tell("length", **result.record())
        return
    click.echo(result.line())
    if manner.verbose:
        low, high = result.times[0], result.times[-1]
        middle, late = result.percentile(50), result.percentile(99)
        note(f"  least {low:.3f}, median {middle:.3f}, 99 % {late:.3f}, most {high:.3f} us")


def _say_end(manner: Manner, error: HostError, lengths: int) -> None:
    """Something went wrong in the middle; what was measured before stays true."""
    note(f"the measurement ended after {count_of(lengths, 'length')}: {error} ({error.status.text})")
    manner.tell("ended", lengths=lengths, status=error.status.text, reason=str(error))


def receive(live: Live, manner: Manner, endpoint: int, slave: bool) -> bool:
    """Wait for a sender and answer it; as a slave, for one after the other. Returns whether it ended early."""
    end_like_interrupt()
    with manner.open(live) as ours:
        opened = ours.open_endpoint(endpoint, DEFAULT_KEY)
        note(
            f"waiting for a sender on {live.interface}: mxwire perf -i IF -d {ours.name}"
            + (f" -r {endpoint}" * bool(endpoint))
        )
        manner.tell("waiting", host=ours.name, endpoint=endpoint, dialect=live.dialect or "mxoe")
        strangers = DialectMonitor(ours.core)

        def idle() -> None:
            for text in strangers.found():
                note(text)

        receiver = PerfReceiver(PerfWaiter(opened, yielding=manner.yielding, silence=manner.silence))
        while True:
            try:
                wish = receiver.wait(idle)
            except HostClosedError:
                raise
            except HostError as error:
                note(f"a message broke off before all of it was here, and is not served: {error}")
                continue
            except MxwireError as error:
                note(f"somebody wants what cannot be measured: {error}")
                continue
            failed = _serve(manner, ours, receiver, wish)
            receiver.forget(wish)
            if not slave:
                return failed


def _serve(manner: Manner, host: Host, receiver: PerfReceiver, wish: PerfRequest) -> bool:
    """One measurement; returns whether it ended early."""
    # Only to be told: a host that does not give its name in time is called by its address.
    with suppress(HostTimeoutError):
        host.wait_for_peer(wish.partner.peer.address, _NAME_TIME)
    who, done = place_of(wish.partner), 0
    manner.tell("begun", partner=who, parameters=asdict(wish.parameters))
    manner.remark(f"{who} measures {wish.parameters.start} to {wish.parameters.end} bytes")
    try:
        warning = _PreemptionWarning(manner)
        for length in receiver.serve(wish):
            warning.check()
            done += 1
            manner.tell("length", length=length)
            manner.remark(f"length {length} done")
            warning.resume()
    except HostClosedError:
        raise
    except HostError as error:
        _say_end(manner, error, done)
        return True
    manner.tell("ended", lengths=done, status="success")
    return False


def check_writable(path: Path) -> None:
    """Raises :class:`~mxwire.errors.OutputError` where a file could not be written, without touching it."""
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(f"{path}: cannot be written: there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK, effective_ids=True):
        raise OutputError(f"{path}: cannot be written: permission denied")


def _draw(path: Path, live: Live, host: str, parameters: PerfParameters, results: list[PerfResult]) -> None:
    from mxwire.report.plot import Measurement, draw
    from mxwire.wire.dialect import dialect_by_name

    measured = [
        Measurement(each.length, each.microseconds, each.percentile(50), each.percentile(99), each.megabytes)
        for each in results
    ]
    draw(path, measured, dialect_by_name(live.dialect or "mxoe"), host, unidirectional=parameters.unidirectional)
