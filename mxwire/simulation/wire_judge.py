"""The judge of the rules, as an observer of the simulated network."""

from __future__ import annotations

from mxwire.protocol import Profile
from mxwire.rules import LOST as NEVER
from mxwire.rules import Judge, Vantage, Violation
from mxwire.simulation.invariants import unchecked_rules
from mxwire.simulation.ledger import Ledger
from mxwire.simulation.network import LOST
from mxwire.simulation.scenario import Scenario
from mxwire.simulation.schedule import Schedule
from mxwire.wire.codec import codec_of


class WireJudge:
    """Passes every frame to the judge as it is sent; a broken MUST is a breach of the invariant ``rules``."""

    def __init__(self, scenario: Scenario, ledger: Ledger, schedule: Schedule) -> None:
        profiles = [scenario.profile_of(number) for number in range(scenario.hosts)]
        self._judge = Judge(scenario.dialect, vantage_of(profiles))
        self._codec = codec_of(scenario.dialect)
        self._ledger = ledger
        self._schedule = schedule
        self._unchecked = unchecked_rules(scenario)
        self._slowest = scenario.slowest
        self._number = 0
        self.deviations = 0
        """Broken SHOULDs and notes."""

    def observe(self, frame: bytes, arrival: int, arrivals: int) -> None:
        """Judge a frame with its time of arrival (or ``LOST``) and the number of copies that arrive."""
        self._number += 1
        found = self._judge.observe(
            self._schedule.now,
            self._codec.parse(frame),
            frame,
            self._number,
            delivered_ns=NEVER if arrival == LOST else arrival,
            arrivals=arrivals,
        )
        for each in found:
            self._take(each)

    def restarted(self, address: bytes) -> None:
        """Forget the state of a host that has been switched on again."""
        self._judge.restarted(address, self._schedule.now - self._slowest)

    def finish(self) -> None:
        """Judge the end of the run."""
        for each in self._judge.finish():
            self._take(each)

    def _take(self, found: Violation) -> None:
        if found.severity == "violation" and found.rule in self._unchecked:
            self._ledger.counts["unchecked"] += 1
        elif found.severity == "violation":
            self._ledger.breach("rules", str(found), found.rule)
        else:
            self.deviations += 1


def vantage_of(profiles: list[Profile]) -> Vantage:
    """Return the vantage of a simulation: every frame as it is sent, with exact times."""
    rates = {profile.hz for profile in profiles}
    limits = {profile.resend_maximum for profile in profiles}
    return Vantage(
        as_sent=True,
        from_start=True,
        clock_ns=0,
        reorder_ns=0,
        hz=rates.pop() if len(rates) == 1 else None,
        resends_maximum=limits.pop() if len(limits) == 1 else None,
        excused=frozenset(defect.value for profile in profiles for defect in profile.defects),
    )
