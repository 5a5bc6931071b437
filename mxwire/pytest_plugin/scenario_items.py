"""Scenarios as tests: a file is a test, and what it says of the host decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.casting import Role
from mxwire.interop.implementations import dialect_of
from mxwire.interop.namespaces import inside
from mxwire.link import PacketLink
from mxwire.pytest_plugin.stages import external_of
from mxwire.scenarios import ScenarioOutcome, ScenarioVerdict, Script, load, meet, run_live, run_simulated
from mxwire.scenarios.driver import Driver, run_driven
from mxwire.scenarios.live import new_seed
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.numbers import DEFAULT_KEY


class ScenarioFailed(Exception):
    """The host has not done what the scenario expects."""

    def __init__(self, outcome: ScenarioOutcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class ScenarioFile(pytest.File):
    """A file of scenarios, which is one."""

    def collect(self) -> Iterator[pytest.Item]:
        """The test."""
        try:
            script = load(self.path)
        except MxwireError as error:
            raise self.CollectError(str(error)) from None
        yield ScenarioItem.from_parent(self, name=self.path.stem, script=script)


class ScenarioItem(pytest.Item):
    """A scenario."""

    def __init__(self, *, script: Script, **options: Any) -> None:
        super().__init__(**options)
        self.script = script

    def runtest(self) -> None:
        """Play it against the host of the configuration, or against the engine."""
        live = self.config.getoption("--mxwire-config") is not None
        outcome = _against(self.config, self.script) if live else self._simulated()
        if outcome.verdict is ScenarioVerdict.SKIPPED:
            pytest.skip(outcome.reason)
        if not outcome.passed:
            raise ScenarioFailed(outcome)

    def _simulated(self) -> ScenarioOutcome:
        dialect = dialect_by_name(str(self.config.getoption("--mxwire-dialect")))
        return run_simulated(self.script, str(self.config.getoption("--mxwire-profile")), dialect)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What was expected, and what came."""
        error = excinfo.value
        if isinstance(error, ScenarioFailed):
            outcome = error.outcome
            where = self.path if outcome.line is None else f"{self.path}:{outcome.line}"
            lines = [f"{where}: {outcome.verdict.value}: {outcome.reason}"]
            if outcome.expected:
                lines += [f"  expected: {outcome.expected}"]
            if outcome.found:
                lines += [f"  found:    {outcome.found}"]
            if not outcome.profile:
                lines += [f"  seed:     {outcome.seed}"]
            return "\n".join([*lines, f"  rules:    {' '.join(self.script.rules)}"])
        if isinstance(error, MxwireError):
            return str(error)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int, str]:
        """Where it is, and what it is called."""
        return self.path, 0, f"scenario: {self.name}"


class _Played:
    """An external host that scenarios are played against, for the whole session."""

    def __init__(self, config: pytest.Config) -> None:
        session, self.external = external_of(config)
        self.driver: Driver | None = None
        self.seed = new_seed()
        external, left = self.external, session.configuration.left
        with inside(left.namespace):
            self.link = PacketLink.open(left.interface, promiscuous=True)
        config.add_cleanup(self.link.close)
        self.dialect = dialect_of(external.implementation.dialect)
        if external.driver is not None:
            self.driver = Driver(external.driver)
            config.add_cleanup(self.driver.close)
            return
        self.role = next((each for each in _ROLES if each in external.programs), None)
        self.programs = session.player.programs(external)
        self.met: int | None = None
        """How many programs had been started when the host was met."""

    def play(self, script: Script) -> ScenarioOutcome:
        """Play one, from endpoints that the host does not remember."""
        self.seed += 1
        if self.driver is not None:
            return run_driven(script, self.link, self.driver, self.dialect, self.seed)
        if self.role is not None:
            self.programs.start(self.role)
        if self.met != self.programs.starts:
            self._meet()
        known = False
        try:
            outcome = run_live(script, self.link, self.target, seed=self.seed)
            known = outcome.passed or outcome.verdict is ScenarioVerdict.SKIPPED
        finally:
            if self.role is not None and not known:
                self.programs.suspect((self.role,), f"the scenario {script.name} did not pass")
        return outcome

    def _meet(self) -> None:
        """Learn what the host calls us; one that was started again may have another number for us."""
        program = None if self.role is None else self.external.programs[self.role]
        self.target = meet(
            self.link,
            self.external.address or self.external.host or "",
            self.dialect,
            endpoint=_ENDPOINT if program is None else program.endpoint,
            key=DEFAULT_KEY if program is None else program.key,
        )
        # It may answer more than one question for its name.
        while len(self.link.receive(_LULL)):
            pass
        self.met = self.programs.starts


_ROLES: Final[tuple[Role, ...]] = ("nothing", "sink", "echo", "perf")
"""Which program a host runs while scenarios are played: the first of these that is described."""
_ENDPOINT: Final = 1
_LULL: Final = 0.2
"""Seconds of quiet after which a host has said what it had to say."""
_PLAYED: Final = pytest.StashKey[_Played]()


def _against(config: pytest.Config, script: Script) -> ScenarioOutcome:
    """Play a scenario against the first external host of the configuration."""
    if _PLAYED not in config.stash:
        config.stash[_PLAYED] = _Played(config)
    return config.stash[_PLAYED].play(script)
