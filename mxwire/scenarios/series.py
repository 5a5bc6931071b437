"""Series of scenarios, played in virtual time, against a live host, or against hosts that a driver opens."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from mxwire.ethernet import mac_bytes
from mxwire.link import open_link
from mxwire.protocol import Profile, profile_by_name
from mxwire.scenarios.driver import Driver, run_driven
from mxwire.scenarios.files import load, paths_of
from mxwire.scenarios.live_run import MEETING_TIMEOUT, meet, run_live
from mxwire.scenarios.outcome import ScenarioOutcome, ScenarioVerdict
from mxwire.scenarios.script import Script
from mxwire.scenarios.simulated_run import run_simulated
from mxwire.wire.dialect import Dialect, dialect_by_name
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def scripts_of(names: Iterable[str]) -> Iterator[Script]:
    """Load scenarios by name: files, folders, names and folders of the library; without names, the whole library."""
    for path in paths_of(names):
        yield load(path)


class SimulatedPlay(NamedTuple):
    """A scenario to be played against the engine."""

    script: Script
    profile: Profile
    dialect: Dialect
    seed: int

    def play(self) -> ScenarioOutcome:
        """Play it."""
        return run_simulated(*self)

    def failed(self, reason: str) -> ScenarioOutcome:
        """Return the outcome of a play that ended for ``reason``."""
        return ScenarioOutcome(
            self.script, ScenarioVerdict.FAIL, self.dialect.name, self.profile.name, reason, seed=self.seed
        )


def simulated_plays(names: Iterable[str], profile: str, dialect: str | None, seed: int) -> list[SimulatedPlay]:
    """Return the plays of scenarios against the engine: each in one dialect, or in all that it supports."""
    chosen = profile_by_name(profile)
    only = None if dialect is None else dialect_by_name(dialect)
    return [
        SimulatedPlay(script, chosen, each, seed)
        for script in scripts_of(names)
        for each in (script.played_in() if only is None else (only,))
    ]


def play_live(
    names: Iterable[str],
    interface: str,
    host: str,
    endpoint: int,
    *,
    dialect: str = "mxoe",
    key: int = DEFAULT_KEY,
    harmful: bool = False,
    seed: int,
    via: str = "packet",
) -> Iterator[ScenarioOutcome]:
    """Play scenarios against an endpoint of a live host, by name or address; ``seed`` is that of the first scenario,
    ``via`` the kind of the link.

    Raises :class:`~mxwire.errors.MxwireError` if the host does not answer, and
    :class:`~mxwire.link.errors.LinkError` if the interface cannot be used.
    """
    scripts = _in_order(names)
    target_host = mac_bytes(host) if host.count(":") > 1 or "-" in host else host
    # Promiscuous: testers on other hosts have addresses that the interface does not have.
    with closing(open_link(interface, via, promiscuous=True)) as link:
        target = meet(link, target_host, dialect_by_name(dialect), endpoint=endpoint, key=key, timeout=MEETING_TIMEOUT)
        for number, script in enumerate(scripts):
            yield run_live(script, link, target, seed=seed + number, harmful=harmful)


def play_driven(
    names: Iterable[str],
    interface: str,
    command: str,
    *,
    dialect: str | None = None,
    harmful: bool = False,
    seed: int,
    via: str = "packet",
) -> Iterator[ScenarioOutcome]:
    """Play scenarios against hosts that a driver opens, with application calls; ``seed`` is that of the first scenario,
    ``via`` the kind of the link.

    Raises :class:`~mxwire.scenarios.driver.DriverError` if the driver does not answer, and
    :class:`~mxwire.link.errors.LinkError` if the interface cannot be used.
    """
    scripts = _in_order(names)
    only = dialect_by_name(dialect or "mxoe")
    with closing(open_link(interface, via, promiscuous=True)) as link, Driver(command) as driver:
        for number, script in enumerate(scripts):
            yield run_driven(script, link, driver, only, seed + number, harmful=harmful)


def _in_order(names: Iterable[str]) -> list[Script]:
    """The scenarios, with those that mislead a learning switch at the end."""
    return sorted(scripts_of(names), key=lambda each: each.forges_source)
