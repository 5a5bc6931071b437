"""A host of mxwire on a link, as used by cases."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from mxwire.frames import FrameBatch
from mxwire.host.core import Core
from mxwire.host.host import BaseHost
from mxwire.interop.impairments import CuttingLink
from mxwire.interop.roles import HostSetup
from mxwire.interop.side import StageSide
from mxwire.protocol import Node

if TYPE_CHECKING:
    from mxwire.interop.live import LiveStage


class LiveSide(StageSide):
    """A host of mxwire on a link."""

    def __init__(
        self,
        stage: LiveStage,
        casting: HostSetup,
        link: CuttingLink,
        known: dict[str | bytes, str | None],
        *,
        announce: bool,
        seed: str,
    ) -> None:
        super().__init__(stage, casting.name, casting.profile, casting.dialect)
        self._stage = stage
        self.link = link
        self._known, self._announce, self._seed = known, announce, seed
        self._boots = 0
        self.core = self._boot()

    @property
    def node(self) -> Node:
        """The engine."""
        return self.core.node

    @property
    def address(self) -> bytes:
        """The Ethernet address of its interface."""
        return self.link.address

    def _boot(self) -> Core:
        self._boots += 1
        hosting = BaseHost(
            self.link,
            name=self.name,
            dialect=self.dialect,
            profile=self.profile,
            peers=self._known,
            announce=self._announce,
            on_event=self.heard,
            rng=Random(f"{self._seed}/{self._boots}"),
        )
        hosting.core.observers.append(self._watch)
        return hosting.core

    def _watch(self, batch: FrameBatch, leaving: bool) -> None:
        self._stage.seen(batch, leaving)

    def reboot(self) -> None:
        """Restart without memory."""
        self.note("restarts")
        self.ends.clear()
        self._stage.applications = [each for each in self._stage.applications if each not in self.applications]
        self.core = self._boot()
        self._stage.reboots.append((len(self._stage.frames), self.address))
        self.push()

    def push(self) -> None:
        """Transmit the frames queued by a call."""
        with self.core.section:
            self.core.transmit()

    def step(self) -> None:
        """Take received frames, and run expired timers."""
        with self.core.section:
            self.core.step()
            self.core.must_be_open()
