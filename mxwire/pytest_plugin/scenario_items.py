"""Scenarios as tests: one test per file, which passes if the host meets the scenario's expectations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from mxwire.errors import MxwireError
from mxwire.interop.implementations import dialect_of
from mxwire.interop.roles import Role
from mxwire.lab.namespaces import inside
from mxwire.link import PacketLink
from mxwire.pytest_plugin.testbeds import external_of
from mxwire.scenarios import ScenarioOutcome, ScenarioVerdict, Script, load, meet, run_live, run_simulated
from mxwire.scenarios.driver import Driver, run_driven
from mxwire.scenarios.live_run import new_seed
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.numbers import DEFAULT_KEY


class ScenarioFailed(Exception):
    """A host that did not meet the expectations of a scenario."""

    def __init__(self, outcome: ScenarioOutcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class ScenarioFile(pytest.File):
    """A file with one scenario."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the test."""
        try:
            script = load(self.path)
        except MxwireError as error:
            raise self.CollectError(str(error)) from None
        yield ScenarioItem.from_parent(self, name=self.path.stem, script=script)


class ScenarioItem(pytest.Item):
    """A scenario as a test."""

    def __init__(self, *, script: Script, **options: Any) -> None:
        super().__init__(**options)
        self.script = script

    def runtest(self) -> None:
        """Play the scenario against the host of the configuration, or against the engine."""
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
        """Return a report with the expected and the actual frame."""
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
        """Return the path, line and name of the test."""
        return self.path, 0, f"scenario: {self.name}"


class _Played:
    """An external host for scenarios, kept for the whole session."""

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
        """Number of program starts when the target was last discovered."""

    def play(self, script: Script) -> ScenarioOutcome:
        """Play a scenario from endpoints with new sessions, so that the host has no state for them."""
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
        """Discover the host and the index it uses for the tester, which may change with each restart."""
        program = None if self.role is None else self.external.programs[self.role]
        self.target = meet(
            self.link,
            self.external.address or self.external.host or "",
            self.dialect,
            endpoint=_ENDPOINT if program is None else program.endpoint,
            key=DEFAULT_KEY if program is None else program.key,
        )
        # The host may answer more than one query for its name.
        while len(self.link.receive(_LULL)):
            pass
        self.met = self.programs.starts


_ROLES: Final[tuple[Role, ...]] = ("nothing", "sink", "echo", "perf")
"""Roles of the program that runs during scenarios, in order of preference."""
_ENDPOINT: Final = 1
_LULL: Final = 0.2
"""Seconds of silence after which no further answer is expected."""
_PLAYED: Final = pytest.StashKey[_Played]()


def _against(config: pytest.Config, script: Script) -> ScenarioOutcome:
    """Play a scenario against the first external host of the configuration."""
    if _PLAYED not in config.stash:
        config.stash[_PLAYED] = _Played(config)
    return config.stash[_PLAYED].play(script)
