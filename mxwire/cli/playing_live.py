"""What ``mxwire scenario run`` and ``mxwire replay`` do with scenarios and live hosts, and ``mxwire scenario host``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from mxwire.cli.playing import Telling, scripts_of
from mxwire.errors import MxwireError
from mxwire.scenarios import Remark, ScenarioOutcome, ScenarioVerdict, Script
from mxwire.scenarios.live import new_seed
from mxwire.wire.dialect import dialect_by_name
from mxwire.wire.numbers import DEFAULT_KEY

if TYPE_CHECKING:
    from mxwire.cli.live import Destination

_FORGED: Final = (
    "played last: it sends with a source address that is not the tester's, "
    "and a learning switch may deliver that host's frames to the tester for a while"
)


def play_live(
    names: tuple[str, ...],
    interface: str,
    host: Destination,
    *,
    dialect: str = "mxoe",
    key: int = DEFAULT_KEY,
    timeout: float | None = None,
    harmful: bool = False,
    seed: int,
) -> Iterator[ScenarioOutcome]:
    """Play scenarios against a live host on an interface of this machine; ``seed`` is that of the first one.

    Raises :class:`~mxwire.errors.MxwireError` where the host does not answer, and
    :class:`~mxwire.link.errors.LinkError` where the interface cannot be used.
    """
    from mxwire.cli.live import MEETING_POINT
    from mxwire.ethernet import mac_bytes
    from mxwire.link import PacketLink
    from mxwire.scenarios.live import MEETING_TIMEOUT, meet, run_live

    scripts = _in_turn(names)
    who = mac_bytes(host.host) if host.host.count(":") > 1 or "-" in host.host else host.host
    endpoint = MEETING_POINT if host.endpoint is None else host.endpoint
    link = PacketLink.open(interface, promiscuous=True)
    try:
        target = meet(
            link, who, dialect_by_name(dialect), endpoint=endpoint, key=key, timeout=timeout or MEETING_TIMEOUT
        )
        for number, script in enumerate(scripts):
            yield _noted(run_live(script, link, target, seed=seed + number, harmful=harmful))
    finally:
        link.close()


def play_driven(
    names: tuple[str, ...],
    interface: str,
    command: str,
    *,
    dialect: str | None = None,
    harmful: bool = False,
    seed: int,
) -> Iterator[ScenarioOutcome]:
    """Play scenarios against hosts that a driver makes, with the calls of their applications; ``seed`` is that of the
    first one.

    Raises :class:`~mxwire.scenarios.driver.DriverError` where that does not answer, and
    :class:`~mxwire.link.errors.LinkError` where the interface cannot be used.
    """
    from mxwire.link import PacketLink
    from mxwire.scenarios.driver import Driver, run_driven

    scripts = _in_turn(names)
    only = dialect_by_name(dialect or "mxoe")
    with closing(PacketLink.open(interface, promiscuous=True)) as link, Driver(command) as driver:
        for number, script in enumerate(scripts):
            yield _noted(run_driven(script, link, driver, only, seed + number, harmful=harmful))


def _in_turn(names: tuple[str, ...]) -> list[Script]:
    """The scenarios in the order in which they are played: those that mislead a learning switch come last."""
    return sorted(scripts_of(names), key=lambda each: each.forges_source)


def _noted(outcome: ScenarioOutcome) -> ScenarioOutcome:
    """The outcome with a remark on what it may do to later runs."""
    if outcome.verdict is ScenarioVerdict.SKIPPED or not outcome.script.forges_source:
        return outcome
    return replace(outcome, remarks=(*outcome.remarks, Remark(0, _FORGED)))


def be_driven(interface: str, profile: str) -> None:
    """Answer the questions of a tester on standard input until it ends.

    Raises :class:`~mxwire.errors.MxwireError` for what is no question.
    """
    from mxwire.cli.live import Live
    from mxwire.link import PacketLink
    from mxwire.scenarios.driven_host import DrivenHost

    Live(interface).check()
    with closing(DrivenHost(lambda: PacketLink.open(interface), profile)) as driven:
        for line in sys.stdin:
            try:
                question = json.loads(line)
            except ValueError:
                question = line.strip()
            click.echo(json.dumps(driven.answer(question)))
            sys.stdout.flush()


def replay_scenario(
    file: str,
    interface: str | None,
    hosts: tuple[str, ...],
    *,
    dialect: str = "mxoe",
    key: int = DEFAULT_KEY,
    endpoints: tuple[str, ...] = (),
    as_json: bool = False,
) -> bool:
    """``mxwire replay FILE.mxs -i IF --host HOST``: play a scenario against a live host; whether it has not failed.

    Raises :class:`~mxwire.errors.MxwireError` where it is not said against whom.
    """
    from mxwire.cli.live import DestinationType

    if interface is None or len(hosts) != 1:
        raise MxwireError(f"{file} is a scenario: say against whom it is played, like -i eth0 --host alpha:0")
    if len(endpoints) > 1 or not all(each.isdecimal() and int(each) < 256 for each in endpoints):
        raise MxwireError(f"a scenario is played to one endpoint, not to {', '.join(endpoints)}: use --endpoint 3")
    destination = DestinationType().convert(hosts[0], None, None)
    if endpoints:
        destination = replace(destination, endpoint=int(endpoints[0]))
    spoken = "mxoe" if dialect == "auto" else dialect
    seed = new_seed()
    outcomes = play_live((file,), interface, destination, dialect=spoken, key=key, seed=seed)
    return Telling(as_json=as_json, ladder=True, seed=seed).tell(outcomes)
