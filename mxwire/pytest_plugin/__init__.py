"""The pytest plugin: hosts for tests of other programs, and scenarios as tests.

It is loaded by every pytest that finds it installed, so nothing of mxwire is imported before it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from mxwire.interop.live import LiveStage
    from mxwire.pytest_plugin.stages import SimulatedStages

SUFFIX = ".mxs"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    group = parser.getgroup("mxwire", "mxwire: Myrinet Express over Ethernet")
    group.addoption(
        "--mxwire-config",
        metavar="FILE",
        help="hosts to test against, as mxwire interop has them; scenarios (*.mxs) become tests",
    )
    group.addoption(
        "--mxwire-scenarios",
        action="store_true",
        help="collect scenarios (*.mxs) as tests; without a file of hosts they are played against the engine",
    )
    group.addoption("--mxwire-profile", metavar="NAME", default="open-mx-1.5", help="what the engine is then")
    group.addoption("--mxwire-dialect", metavar="NAME", default="mxoe", help="what it speaks: mxoe, omx or omx:M")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Scenarios are tests where somebody has asked for it."""
    if file_path.suffix != SUFFIX:
        return None
    config = parent.config
    if not (config.getoption("--mxwire-scenarios") or config.getoption("--mxwire-config")):
        return None
    from mxwire.pytest_plugin.scenario_items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


@pytest.fixture
def mxwire_network(request: pytest.FixtureRequest) -> Iterator[SimulatedStages]:
    """Makes simulated networks of two hosts in virtual time: ``mxwire_network(left=…, right=…, impairment=…, seed=…)``.

    What the hosts have sent is held against the rules when the test is over; a violation fails it.
    """
    from mxwire.pytest_plugin.stages import SimulatedStages

    stages = SimulatedStages()
    yield stages
    stages.judge()


@pytest.fixture
def mxwire_live_pair(request: pytest.FixtureRequest) -> Iterator[LiveStage]:
    """Two live hosts of ours: on the interfaces of ``--mxwire-config``, or in two network namespaces that are made.

    Skipped, with the reason, where neither is possible.
    """
    from mxwire.pytest_plugin.stages import live_pair

    with live_pair(request.config) as stage:
        yield stage


@pytest.fixture
def mxwire_external(request: pytest.FixtureRequest) -> Iterator[LiveStage]:
    """A live host of ours against the first external host of ``--mxwire-config``; skipped without one.

    ``stage.left`` is ours, and ``stage.far("echo")`` says where a program of the other side is, which it starts.
    """
    from mxwire.pytest_plugin.stages import external

    failed = request.session.testsfailed
    with external(request.config, request.node.name, lambda: request.session.testsfailed > failed) as stage:
        yield stage
