"""The pytest plugin: hosts for tests of other programs, and scenarios as tests.

The options and the fixtures (``mxwire_network``, ``mxwire_live_pair``, ``mxwire_external``) are below; ``testbeds.py``
opens their hosts, and ``scenario_items.py`` collects ``*.mxs`` files.

Every pytest loads this module where mxwire is installed, so it imports nothing of mxwire until a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from mxwire.interop.live_testbed import LiveTestbed
    from mxwire.pytest_plugin.testbeds import SimulatedTestbeds

SUFFIX = ".mxs"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("mxwire", "mxwire: Myrinet Express over Ethernet")
    group.addoption(
        "--mxwire-config",
        metavar="FILE",
        help="hosts to test against, in the format of mxwire interop; scenarios (*.mxs) become tests",
    )
    group.addoption(
        "--mxwire-scenarios",
        action="store_true",
        help="collect scenarios (*.mxs) as tests; without --mxwire-config they are played against the engine",
    )
    group.addoption(
        "--mxwire-profile", metavar="NAME", default="open-mx-1.5", help="profile of the engine for scenarios"
    )
    group.addoption(
        "--mxwire-dialect",
        metavar="NAME",
        default="mxoe",
        help="dialect of the engine for scenarios: mxoe, omx or omx:M",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenarios as tests if an option of the plugin enables it."""
    if file_path.suffix != SUFFIX:
        return None
    config = parent.config
    if not (config.getoption("--mxwire-scenarios") or config.getoption("--mxwire-config")):
        return None
    from mxwire.pytest_plugin.scenario_items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


@pytest.fixture
def mxwire_network(request: pytest.FixtureRequest) -> Iterator[SimulatedTestbeds]:
    """Create simulated networks of two hosts, in virtual time: ``mxwire_network(left=…, right=…, seed=…)``.

    After the test, the frames of the hosts are checked against the rules; a violation fails it.
    """
    from mxwire.pytest_plugin.testbeds import SimulatedTestbeds

    testbeds = SimulatedTestbeds()
    yield testbeds
    testbeds.judge()


@pytest.fixture
def mxwire_live_pair(request: pytest.FixtureRequest) -> Iterator[LiveTestbed]:
    """Two live hosts: on the interfaces of ``--mxwire-config``, or in two new network namespaces.

    The test is skipped, with the reason, if neither is possible.
    """
    from mxwire.pytest_plugin.testbeds import live_pair

    with live_pair(request.config) as testbed:
        yield testbed


@pytest.fixture
def mxwire_external(request: pytest.FixtureRequest) -> Iterator[LiveTestbed]:
    """A live host and the first external host of ``--mxwire-config``; the test is skipped without one.

    ``testbed.left`` is the live host; ``testbed.program("echo")`` starts a program of the external host and returns its
    address.
    """
    from mxwire.pytest_plugin.testbeds import external

    failed = request.session.testsfailed
    with external(request.config, request.node.name, lambda: request.session.testsfailed > failed) as testbed:
        yield testbed
