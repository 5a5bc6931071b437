"""A run from beginning to end: the work, the shutdown and the final checks."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, Final

from mxwire.errors import CaptureError
from mxwire.protocol import EngineEndpoint, Partner
from mxwire.simulation.application import SimulatedApplication
from mxwire.simulation.invariants import InvariantBreach, unchecked_rules
from mxwire.simulation.inventory import idle, left_in_endpoint, left_in_node
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.wire_judge import WireJudge
from mxwire.simulation.world import Tap, World
from mxwire.units import MILLISECOND, SECOND
from mxwire.wire.numbers import ABANDONED_DONE, NUMBER_MASK

_STEPS_BETWEEN_CHECKS: Final = 16
_STEPS_PER_MESSAGE: Final = 20_000
_SHOWN: Final = 5

Trace = Callable[[World], None]
"""Called before a step, with the world as the step finds it."""
Progress = Callable[[int, int], None]
"""Called with the number of settled messages and the number of all messages."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run: digest, counts, and broken invariants."""

    scenario: Scenario
    digest: str
    """SHA-256 over every frame and every event with its time."""
    duration: int
    """Virtual time in nanoseconds."""
    counts: dict[str, int] = field(default_factory=dict)
    """Counts by name: messages, frames, incidents and others."""
    unchecked: dict[str, str] = field(default_factory=dict)
    """Invariants, and rules of the wire, that need not hold in this scenario, with the reasons."""
    breaches: tuple[InvariantBreach, ...] = ()
    """The broken invariants, in the order of detection."""

    @property
    def held(self) -> bool:
        """Return whether every invariant held."""
        return not self.breaches

    def values(self) -> dict[str, Any]:
        """Return everything but the scenario, as values of JSON."""
        return {
            "digest": self.digest,
            "duration": self.duration,
            "counts": self.counts,
            "unchecked": self.unchecked,
            "breaches": [astuple(each) for each in self.breaches],
        }

    @classmethod
    def of(cls, scenario: Scenario, values: Mapping[str, Any]) -> RunOutcome:
        """Return the outcome of a scenario from its :meth:`values`."""
        return cls(scenario, **{**values, "breaches": tuple(InvariantBreach(*each) for each in values["breaches"])})

    @classmethod
    def fatal(cls, scenario: Scenario, reason: str) -> RunOutcome:
        """Return the outcome of a run that crashed every process that played it, without a digest."""
        return cls(scenario, "", 0, breaches=(InvariantBreach("exception", 0, reason),))

    def record(self) -> dict[str, Any]:
        """Return the outcome as an object for JSON."""
        return {
            "seed": self.scenario.seed,
            "held": self.held,
            "duration_ns": self.duration,
            "counts": self.counts,
            "digest": self.digest,
            "unchecked": self.unchecked,
            "breaches": [
                {"invariant": each.invariant, "time_ns": each.time, "text": each.text} for each in self.breaches
            ],
            "scenario": self.scenario.differences(),
            "command": self.scenario.command(),
        }


class Simulation:
    """One run of a scenario. ``tap`` receives all frames as they are sent; with ``at``, the frames that the host of
    that number sends and receives, as in a capture on it. ``trace`` sees the world before each step of the work."""

    def __init__(
        self,
        scenario: Scenario,
        tap: Tap | None = None,
        progress: Progress | None = None,
        *,
        at: int | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.scenario = scenario
        self.world = World(scenario, tap, at)
        self._progress = progress
        self._trace = trace
        self._judge = WireJudge(scenario, self.world.ledger, self.world.schedule) if scenario.judged else None
        if self._judge is not None:
            self.world.network.observers.append(self._judge.observe)
            self.world.restart_listeners.append(self._judge.restarted)

    def run(self) -> RunOutcome:
        """Run until every request has ended, or until a breach makes it pointless to continue."""
        world = self.world
        try:
            world.start()
            self._work()
            self._wind_up()
            self._check_end()
        except (OSError, CaptureError):
            # From ``tap``: the engines do no input and output.
            raise
        except Exception as error:
            world.ledger.breach("exception", _text(error))
        if self._judge is not None:
            self._judge.finish()
        return self._outcome()

    # The three parts of a run.

    def _work(self) -> None:
        """Run until every message has been delivered or excused."""
        world, schedule = self.world, self.world.schedule
        limit: int | None = None
        steps = (len(world.ledger.messages) + 50) * _STEPS_PER_MESSAGE
        while not self._finished():
            for _ in range(_STEPS_BETWEEN_CHECKS):
                if not len(schedule):
                    break
                if world.incidents.planned:
                    world.incidents.reached(schedule.done + 1)
                if self._trace is not None:
                    self._trace(world)
                schedule.step()
            if limit is None and schedule.now >= self.scenario.faults_end and not world.incidents.pending:
                world.incidents.cancel()
                limit = schedule.now + self._patience()
            too_long = not len(schedule) or (limit is not None and schedule.now > limit) or schedule.done > steps
            if too_long and not self._finished():
                self._report_stuck(schedule.done > steps)
                return
            if self._progress is not None:
                total = len(world.ledger.messages)
                self._progress(total - len(world.ledger.unsettled()), total)

    def _finished(self) -> bool:
        world = self.world
        return (
            world.ledger.finished
            and not world.incidents.pending
            and not world.network.down
            and all(each.calm for each in world.applications)
        )

    def _patience(self) -> int:
        """Return the longest time that the remaining work may take without further faults."""
        scenario = self.scenario
        longest = 30 * SECOND + scenario.messages * 300 * MILLISECOND
        if self.world.disturbances:
            # Endpoints detect a forgotten partner at the resend limit, one after the other.
            limits = [host.profile for host in self.world.hosts]
            longest += 2 * max((each.resend_maximum + 2) * each.resend_delay * each.tick for each in limits)
        return longest

    def _report_stuck(self, storm: bool) -> None:
        """Record the causes of a run that takes too long; ``storm`` if the limit of steps was exceeded."""
        world = self.world
        if storm:
            world.ledger.breach("liveness", f"{world.schedule.done} steps without an end")
        world.ledger.judge_missing()
        for application in world.applications:
            if not application.calm:
                world.ledger.breach("liveness", f"application {application.number} does not come to rest")
            if application.endpoint is not None:
                for name, count in left_in_endpoint(application.endpoint).items():
                    world.ledger.breach("liveness", f"application {application.number} still has {count} {name}")

    def _wind_up(self) -> None:
        """Cancel receives without a message, and wait until all hosts are idle."""
        world, schedule = self.world, self.world.schedule
        if world.ledger.breaches and not self._finished():
            return
        world.incidents.cancel()
        world.network.faults_until = schedule.now
        for application in world.applications:
            application.wind_up()
        for host in world.hosts:
            host.step()
        limit = schedule.now + self._patience()
        while not self._quiet():
            if not len(schedule) or schedule.now > limit:
                self._report_stuck(storm=False)
                world.ledger.breach("liveness", "the hosts do not come to rest")
                return
            schedule.step()

    def _quiet(self) -> bool:
        world = self.world
        if world.network.in_flight or any(each.connecting for each in world.applications):
            return False
        return all(host.node is None or (idle(host.node) and not host.noticed) for host in world.hosts)

    def _check_end(self) -> None:
        """Check the final state: no resources are held, and all hosts agree."""
        world, ledger = self.world, self.world.ledger
        ledger.judge_orders()
        touched = world.buffers.touched()
        if touched:
            ledger.breach("memory", f"{touched} buffers were written to after their receive had ended")
        if ledger.breaches:
            return
        for application in world.applications:
            if application.endpoint is not None:
                for name, count in left_in_endpoint(application.endpoint).items():
                    ledger.breach("leftovers", f"application {application.number} still has {count} {name}")
                self._compare_numbers(application, application.endpoint)
        for application in world.applications:
            if application.endpoint is not None:
                application.endpoint.close()
        for host in world.hosts:
            host.take_last_records()
        for host in world.hosts:
            assert host.node is not None
            host.node.events()
            for interface in range(len(host.node.interfaces)):
                host.node.transmit(world.schedule.now, interface)
            for name, count in left_in_node(host.node).items():
                if name != "orphaned pulls" or not world.disturbances:
                    ledger.breach(
                        "leftovers", f"host {host.number} still has {count} {name} after all endpoints were closed"
                    )

    def _compare_numbers(self, application: SimulatedApplication, endpoint: EngineEndpoint) -> None:
        """Check that both endpoints agree on the numbers that were sent and received (R-ACK-05)."""
        for partner in endpoint.partners.values():
            remote = self.world.application_at(partner)
            if remote is None or remote.endpoint is None or partner.local or partner.fwd != remote.endpoint.session:
                continue
            other = _partner_for(remote.endpoint, application)
            if other is None or other.fwd != endpoint.session:
                continue
            # After a partner was abandoned, nothing counts as received until the next message (R-RTX-05).
            done = other.rx_next if other.rx_done & NUMBER_MASK == ABANDONED_DONE else other.rx_done
            numbers = partner.tx_una, partner.tx_next, done, other.rx_next
            if len(set(numbers)) != 1:
                una, following, complete, awaited = (f"{each:#06x}" for each in numbers)
                self.world.ledger.breach(
                    "numbers",
                    f"application {application.number} to {remote.number}: sent up to {following}, acked up to {una}; "
                    f"received up to {awaited}, complete up to {complete}",
                )

    def _outcome(self) -> RunOutcome:
        world = self.world
        counts = {
            "messages": len(world.ledger.messages),
            "delivered": world.ledger.counts["delivered"],
            "excused": sum(bool(each.excuse) and not each.delivered for each in world.ledger.messages),
            "frames": world.network.frames,
            "frames lost": world.network.lost,
            "incidents": len(world.disturbances),
            "steps": world.schedule.done,
            "unchecked": world.ledger.counts["unchecked"],
            "deviations": self._judge.deviations if self._judge is not None else 0,
        }
        breaches = tuple(world.ledger.breaches)
        unchecked = world.ledger.unchecked | unchecked_rules(self.scenario)
        return RunOutcome(self.scenario, world.digest.text(), world.schedule.now, counts, unchecked, breaches)


def _partner_for(endpoint: EngineEndpoint, application: SimulatedApplication) -> Partner | None:
    for partner in endpoint.partners.values():
        if partner.peer.address == application.address and partner.number == application.endpoint_number:
            return partner
    return None


def _text(error: Exception) -> str:
    """Return an exception in one line, with its place in the source."""
    frames = traceback.extract_tb(error.__traceback__)[-_SHOWN:]
    trace = " > ".join(f"{each.filename.rpartition('mxwire/')[2]}:{each.lineno}" for each in frames)
    return f"{type(error).__name__}: {error} ({trace})"
