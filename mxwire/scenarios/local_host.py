"""A live host of mxwire as the host under test: configured for a scenario, with an application to call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any

from mxwire.host import Host
from mxwire.link import Link
from mxwire.protocol import Event, Profile, profile_by_name
from mxwire.scenarios.actions import Invocation, Query
from mxwire.scenarios.application import NodeApplication
from mxwire.scenarios.cast import known_hosts
from mxwire.scenarios.expression import Value
from mxwire.scenarios.live import Addressed, LiveTarget, address_of
from mxwire.scenarios.script import Script
from mxwire.wire.dialect import MXOE, Dialect


class HostApplication(NodeApplication):
    """Calls on the engine of a live host."""

    def __init__(self, host: Host, endpoint: Any, events: list[Event]) -> None:
        super().__init__(host.core.node, endpoint)
        self._core = host.core
        self.events = events

    def call(self, action: Invocation) -> Any:
        """Make a call, and transmit the frames that it has queued."""
        with self._core.section:
            try:
                return super().call(action)
            finally:
                self._core.transmit()

    def ask(self, action: Query) -> Mapping[str, Value]:
        """Return the values of the action's subject."""
        with self._core.section:
            return super().ask(action)

    def _new_events(self) -> list[Event]:
        return []


@contextmanager
def hosted(
    script: Script, link: Link, tester: Addressed, dialect: Dialect = MXOE, profile: Profile | str = "open-mx-1.5"
) -> Iterator[tuple[LiveTarget, HostApplication]]:
    """Open a live host on ``link``, configured for ``script``, with the tester in its peer table.

    ``tester`` is the tester's link. Closes ``link`` at the end. Raises :class:`~mxwire.errors.MxwireError` if the
    profile does not exist or the host cannot be opened.
    """
    profile = profile_by_name(script.profile or profile) if isinstance(profile, str) else profile
    events: list[Event] = []
    host = Host(
        link,
        name="host",
        dialect=dialect,
        profile=script.profile_from(profile),
        announce=script.discovery == "announce",
        on_event=events.append,
        rng=Random(0),
    )
    target = LiveTarget(link.address, dialect)
    with host:
        with host.core.section:
            for number, name in known_hosts(script).items():
                host.core.node.add_peer(address_of(tester, number), name)
            node = host.core.node
            endpoint = node.open_endpoint(target.endpoint, target.key) if script.endpoint else None
            host.core.transmit()
        yield target, HostApplication(host, endpoint, events)
