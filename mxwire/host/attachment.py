"""Attachment of a host to an agent: the channel, the node behind it, and the interfaces of the agent."""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
import select
import time
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final, NoReturn

from mxwire.errors import MxwireError
from mxwire.frames import FrameBatch
from mxwire.host.errors import HostClosedError
from mxwire.host.sharing import MachineSharing, agent_path
from mxwire.link import LinkStatistics
from mxwire.link.errors import LinkError
from mxwire.link.local import SharedMemoryChannel, SharedMemoryPath, make_memory
from mxwire.link.wakeup import Wakeup
from mxwire.protocol import LocalProtocolError, Profile, Status
from mxwire.protocol.agent.attached import AttachedNode
from mxwire.protocol.agent.attached_card import CardNode
from mxwire.protocol.agent.node import AgentNode
from mxwire.protocol.agent.records import AgentEndedError
from mxwire.protocol.card.outgoing import NO_FRAMES
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.wire.dialect import MXOE, Dialect, as_dialect

if TYPE_CHECKING:
    from mxwire.host.core import Core

_LOOKS: Final = 200
"""Polls of the channel before the caller sleeps: the answer usually takes some 50 µs."""
_PATIENCE: Final = 5.0
"""Seconds after which an agent that does not answer is left."""
_NAP: Final = 100
"""Maximum sleep in ms."""
_DEFAULT_PROFILES: Final = frozenset(("open-mx", OPEN_MX_1_5.name))


class AttachedLink:
    """An interface of an agent: its properties. All frames are the agent's."""

    def __init__(self, name: str, address: bytes, mtu: int) -> None:
        self.name = name
        """Name of the interface."""
        self.address = address
        """Ethernet address, 6 bytes."""
        self.mtu = mtu
        """Largest number of bytes in a frame after its Ethernet header."""
        # A descriptor that is never readable.
        self._wakeup = Wakeup()

    def send(self, batch: FrameBatch) -> int:
        """Refuse to send frames other than the agent's.

        Raises :class:`~mxwire.link.errors.LinkError`.
        """
        raise LinkError(f"{self.name}: an agent has the interface, so this host cannot send frames of its own")

    def receive(self, timeout: float | None = 0.0) -> FrameBatch:
        """Return no frames."""
        return NO_FRAMES

    def wake(self) -> None:
        """Do nothing, since ``receive`` never waits."""

    def fileno(self) -> int:
        """Descriptor that is never readable; -1 once closed."""
        return self._wakeup.fileno()

    def statistics(self) -> LinkStatistics:
        """Counters of this host, which are 0."""
        return LinkStatistics()

    def close(self) -> None:
        """Release the descriptor; closing again does nothing."""
        self._wakeup.close()


class Attachment:
    """A connection to the agent of ``interfaces``, at which this process opens endpoints, or with ``sharing`` only the
    card's side of endpoints: their library is in this process, and their local path that of ``sharing``.

    Raises :class:`~mxwire.link.errors.LinkError` if there is none, if it has other interfaces, or another version.
    """

    def __init__(self, interfaces: Sequence[str], sharing: MachineSharing | None = None) -> None:
        first = interfaces[0]
        place = agent_path(first)
        self.path = SharedMemoryPath(lambda _interface, _endpoint: place) if sharing is None else sharing.path
        """The path with the channel to the agent."""
        self._core: Core | None = None
        self._left = False
        self._allocated: list[mmap.mmap] = []
        channel = self.path.connect(place)
        if channel is None:
            self.path.close()
            raise LinkError(f"{first}: no agent of this user has the interface: start one (mxwire agent -i {first})")
        self._channel: SharedMemoryChannel = channel
        self.agent = f"the agent of {first} (process {channel.process})"
        """The agent, for errors."""
        self._poller = select.poll()
        self._poller.register(self.path.fileno(), select.POLLIN)
        try:
            self.node: AgentNode = (
                AttachedNode(channel, self._wait, self.agent)
                if sharing is None
                else CardNode(channel, self._wait, self.agent, path=sharing.path, rng=Random(secrets.randbits(64)))
            )
        except (LocalProtocolError, AgentEndedError) as error:
            self.path.close()
            text = f"{first}: {self.agent} refuses: {error}; end it and start it again"
            raise LinkError(text if isinstance(error, LocalProtocolError) else f"{first}: {error}") from None
        except BaseException:
            self.path.close()
            raise
        facts = self.node.facts
        if facts.interfaces != list(interfaces):
            self.close()
            raise LinkError(
                f"{self.agent} has {', '.join(facts.interfaces)}, not {', '.join(interfaces)}: name its interfaces"
            )
        self.links = [AttachedLink(*each) for each in zip(facts.interfaces, facts.addresses, facts.mtus, strict=True)]
        """Its interfaces."""

    def check_options(self, name: str | None, dialect: Dialect | str, profile: Profile | str, announce: bool) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` if the options of a host contradict the agent's."""
        facts = self.node.facts
        wanted, profile_name = as_dialect(dialect), profile if isinstance(profile, str) else profile.name
        if name is not None and name != facts.name:
            raise MxwireError(f"{self.agent} has the name {facts.name}, not {name}: omit the name")
        if wanted not in (MXOE, facts.dialect):
            raise MxwireError(f"{self.agent} uses dialect {facts.dialect.name}, not {wanted.name}: omit the dialect")
        if profile_name not in _DEFAULT_PROFILES and profile_name != facts.profile.name:
            raise MxwireError(f"{self.agent} has profile {facts.profile.name}, not {profile_name}: omit the profile")
        if not announce:
            raise MxwireError(f"{self.agent} decides whether it announces itself: omit announce")

    def begin(self, core: Core) -> None:
        """Serve a core."""
        self._core = core
        self.node.on_end = self._end_host

    def _end_host(self, error: AgentEndedError) -> NoReturn:
        """End the host within a call, which raises :class:`~mxwire.host.errors.HostClosedError`."""
        ended = HostClosedError(Status.REMOTE_ENDPOINT_CLOSED, str(error))
        if self._core is not None:
            self._core.end(ended)
        raise ended from None

    def _wait(self) -> None:
        """Wait within the section until the agent has sent records, or has ended.

        Raises :class:`~mxwire.host.errors.HostClosedError` if it does not answer.
        """
        core, channel, path = self._core, self._channel, self.path
        if core is not None:
            core.check_deadline()
        for _ in range(_LOOKS):
            if channel.waits():
                return
        limit = time.monotonic() + _PATIENCE
        while True:
            path.poll(time.monotonic_ns())
            if channel.waits() or path.arm():
                return
            if time.monotonic() > limit:
                error = HostClosedError(
                    Status.REMOTE_ENDPOINT_CLOSED,
                    f"endpoint closed: {self.agent} has not answered for {_PATIENCE:g} s: is it stopped?",
                )
                channel.ended = True
                if core is not None:
                    core.end(error)
                raise error
            self._poller.poll(_NAP)

    def allocate(self, length: int) -> memoryview:
        """Memory that the agent maps too, unless it has mapped too many areas; within the section.

        Mapped memory exists until the host is closed. Raises :class:`~mxwire.errors.MxwireError` if there is no memory.
        """
        try:
            descriptor, memory = make_memory(max(length, 1))
        except (OSError, OverflowError, ValueError) as error:
            raise MxwireError(f"no memory of {length} bytes: {error}") from None
        try:
            place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            if self._channel.pass_memory(descriptor) and self.node.share(place, len(memory)):
                # Other memory at the same address would be taken for this one.
                self._allocated.append(memory)
        finally:
            os.close(descriptor)
        return memoryview(memory)[:length]

    def close(self) -> None:
        """Leave the agent; closing again does nothing."""
        if self._left:
            return
        self._left = True
        self.node.leave()
        self.path.close()
