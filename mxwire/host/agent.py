"""Agents: hosts whose endpoints belong to other processes.

Theory of operation
-------------------
An agent is a host (``host.py``) that opens no endpoint for itself. Applications of the same user connect to a Unix
socket in the runtime folder, and exchange records with it through shared memory (``link/local.py``), as neighbours do;
``protocol/agent/records.py`` describes the records, ``protocol/agent/served.py`` handles those of one application, and
``attachment.py`` is the other side. Card and library run here, for all endpoints: acks, pulls, matching and
retransmissions continue while an application computes, and no application needs a permission for the interface.

**The loop** takes records of the applications, steps the host, and sleeps until a frame, a record, or a deadline. All
applications share its processor; at most 256 records of one are taken before the next has its turn. With ``spin`` it
polls without sleeping for some time after the last frame or record.

**Garbage collection.** Python searches new objects for cycles each time there are some number of them, and now and then
all objects, which takes tens of ms if programs have posted 100,000 receives. A process that only runs an agent
(``dedicated``) therefore searches new objects in small steps, and all objects only while there are few requests.

**The end of an application** is reported by the kernel, on its socket and on its pidfd. Its endpoints are closed as if
it had closed them: its receives are cancelled, its pulls end, its memory is released, and its partners notice nothing
but the missing endpoint. If it leaves many requests, they end in steps, between which others have their turn. A process
that is stopped (SIGSTOP, a debugger) could hold messages and pulls without limit, so it is dropped too, after half a
second; it finds its endpoints closed when it continues. An application that does not read its records is dropped when
131,072 of them wait.

**The end of the agent** is reported to the applications likewise: all their requests and waits end with REMOTE ENDPOINT
CLOSED. Partners retransmit; an application may open the host again as soon as another agent runs.

**Memory.** Long messages are read from and written to the memory of the application, through /proc/PID/mem, which is
opened when it attaches: unlike a process id, it never becomes that of another process. Where it may not be opened, the
agent calls process_vm_readv and process_vm_writev, while the pidfd of the application shows that it lives. A page that
the application has mapped from a slow file system, or that it handles itself (userfaultfd), delays the agent.

**Trust.** Only processes of the same user can reach the socket. The process id of an application comes from the
kernel. Its records are checked in full before anything is done; one that sends an impossible record is dropped, and the
reason is logged. It names only its own memory, and memory of others that they have registered, by tokens that it cannot
guess (``protocol/agent/tokens.py``).
"""

from __future__ import annotations

import gc
import logging
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from mxwire import __version__
from mxwire.errors import MxwireError
from mxwire.host.base_endpoint import BaseEndpoint
from mxwire.host.errors import HostError
from mxwire.host.host import Host
from mxwire.host.sharing import process_text
from mxwire.link.listeners import program_of
from mxwire.link.local import SharedMemoryChannel, SharedMemoryPath
from mxwire.link.process_memory import CalledMemory, ProcessMemory
from mxwire.protocol import EngineEndpoint, Event, EventKind, LocalProtocolError, Status
from mxwire.protocol.agent.served import ServedClient
from mxwire.protocol.agent.tokens import TokenTable
from mxwire.units import MILLISECOND, SECOND

_CHECK_INTERVAL: Final = SECOND // 4
"""Nanoseconds between two checks for stopped applications and for new peers."""
_CHECKS_STOPPED: Final = 2
"""Successive checks after which a stopped application is dropped."""
_STEPS: Final = 512
"""Requests of an application that has gone that end before others have their turn, within some 3 ms."""
_COLLECTION: Final = 1000, 10, 1 << 30
"""Thresholds of the garbage collector of a process that only runs an agent: some ms per search, none of all objects."""
_SEARCHES: Final = 100
"""Searches of young objects after which all objects are searched, too."""
_FEW: Final = 1000
"""Number of requests up to which a search of all objects does not delay the applications."""
_LONGEST: Final = 100
"""Maximum sleep in ms."""
_NEWS_OF_PEERS: Final = (EventKind.PEER_FOUND, EventKind.PEER_NAMED)
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class AgentClient:
    """One application."""

    served: ServedClient
    channel: SharedMemoryChannel
    memory: ProcessMemory | CalledMemory | None
    """Its memory, if the agent may access it."""
    program: str
    """Name of its program, or an empty text."""
    attached_at: float
    """Time at which it has attached, on the monotonic clock."""
    stopped: int = 0
    """Number of successive checks at which it was stopped."""
    warned: int = 0
    """Number of refused requests that were logged."""

    @property
    def refused(self) -> int:
        """Number of requests, and of passed descriptors, that were refused because of a limit."""
        return self.served.refused_count + self.channel.discarded

    @property
    def process(self) -> int:
        """Its process id."""
        return self.channel.process


class Agent:
    """Serves applications on ``host``, which must have interfaces of this machine; close it before the host.

    ``spin`` is the number of seconds after the last frame or record for which the loop does not sleep; True: always.
    With ``single_copy=False`` long messages pass through the channels, as where processes may not access each other's
    memory. With ``dedicated`` the process does nothing but run this agent, which sets its garbage collector for short
    delays. ``on_change`` is called with True for each application that attaches, with False and the reason for each
    that is dropped or leaves. Raises :class:`~mxwire.host.errors.HostError` if an interface has an agent already.
    """

    def __init__(
        self,
        host: Host,
        *,
        spin: bool | float = False,
        single_copy: bool = True,
        dedicated: bool = False,
        on_change: Callable[[AgentClient, bool, str], object] | None = None,
    ) -> None:
        if host.sharing is None:
            raise MxwireError("an agent needs a host on interfaces of this machine: see Host.open")
        self.host = host
        self.core = host.core
        self.clients: list[AgentClient] = []
        """The applications, in the order in which they have attached."""
        self.dropped = 0
        """Number of applications that were dropped because of their records, or because they were stopped."""
        self._spin = float("inf") if spin is True else float(spin) * SECOND
        self._dedicated = dedicated
        self._on_change = on_change
        self._by_channel: dict[int, AgentClient] = {}
        self._leaving: list[tuple[AgentClient, Iterator[None]]] = []
        """The applications that have gone, and the steps in which their endpoints are closed."""
        self._tokens = TokenTable(SystemRandom())
        self._path = SharedMemoryPath(lambda _interface, _endpoint: Path())
        self._path.single_copy = single_copy
        self._path.takes_memory = True
        self._check_at = 0
        self._active = 0
        self._new_peers = False
        self._closed = False
        links = host.core.links
        self._facts = {
            "version": __version__,
            "name": host.name.rpartition(":")[0],
            "interfaces": [each.name for each in links],
            "addresses": [each.address.hex() for each in links],
            "mtus": [each.mtu for each in links],
            "dialect": self.core.node.dialect.name,
            "profile": self.core.node.profile.name,
        }
        try:
            for listener in host.sharing.listen_as_agent():
                self._path.listen(listener)
        except BaseException:
            self._path.close()
            raise
        self._poller = select.poll()
        for descriptor in (*self.core.descriptors(), self._path.fileno()):
            self._poller.register(descriptor, select.POLLIN)
        with self.core.section:
            self.core.after = self._report
        host.observe_events(self._take_event)
        host.clients = self._states
        self._thresholds = gc.get_threshold() if dedicated else None
        if dedicated:
            # In this order: what is garbage now would otherwise be frozen, and never be found.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*_COLLECTION)

    def run(self, seconds: float | None = None, over: Callable[[], bool] | None = None) -> None:
        """Serve for ``seconds`` (None: without limit), or until ``over`` returns True; it is called after each step.

        Raises :class:`~mxwire.host.errors.HostClosedError` if the host loses an interface.
        """
        core = self.core
        limit = None if seconds is None else core.clock() + int(seconds * SECOND)
        while True:
            with core.section:
                core.must_be_open()
                # Before the step, which then transmits what the records have queued.
                self._serve()
                core.step()
                core.must_be_open()
                pause = self._pause()
            if over is not None and over():
                return
            if limit is not None:
                left = limit - core.clock()
                if left <= 0:
                    return
                pause = min(pause, left)
            if pause > 0:
                self._poller.poll(pause / MILLISECOND)

    def _pause(self) -> int:
        """Nanoseconds for which the loop may sleep; within the section."""
        core = self.core
        if self._leaving or core.now - max(core.active, self._active) < self._spin:
            return 0
        pause = core.pause()
        # After the deadline, and last: a record that comes from now on wakes the poll.
        if self._path.arm():
            return 0
        longest = min(_LONGEST * MILLISECOND, max(0, self._check_at - core.clock()))
        return longest if pause is None else min(longest, pause)

    def _serve(self) -> None:
        """Take records of the applications, and check whether any has stopped."""
        now = self.core.clock()
        channels = self._path.poll(now)
        for channel in channels:
            self._active = now
            client = self._by_channel.get(id(channel)) or self._admit(channel)
            if not client.served.receive(now):
                self._drop(client, client.served.fault)
        self._close_some()
        if channels:
            self.core.check_deadline()
            self.core.transmit()
        if now >= self._check_at:
            self._check_at = now + _CHECK_INTERVAL
            self._check_clients()
            self._new_peers = True
        if self._new_peers:
            self._new_peers = False
            if self.host.query_shared_peers():
                self.core.transmit()
            for client in self.clients:
                if client.served.attached:
                    client.served.report_peers()

    def _admit(self, channel: SharedMemoryChannel) -> AgentClient:
        memory = channel.open_memory()
        calls = self._open_endpoint, self._close_endpoint
        served = ServedClient(self.core.node, channel, self._facts, *calls, self._tokens, memory, channel.take_memory)
        client = AgentClient(served, channel, memory, program_of(channel.process) or "", time.monotonic())
        self._by_channel[id(channel)] = client
        self.clients.append(client)
        self._tell(client, True, "")
        return client

    def _drop(self, client: AgentClient, reason: str) -> None:
        # Only applications that are dropped deserve a warning, not those that leave by themselves.
        gone = client.channel.ended and not client.stopped
        if not gone:
            _log.warning("process %d (%s) %s: its endpoints are closed", client.process, client.program, reason)
            self.dropped += 1
        del self._by_channel[id(client.channel)]
        self.clients.remove(client)
        self._leaving.append((client, client.served.leave()))
        self._close_some()
        self._tell(client, False, reason)

    def _close_some(self, limit: int | None = _STEPS) -> None:
        """Close endpoints of applications that have gone, for up to ``limit`` steps each (None: all)."""
        for client, steps in self._leaving[:]:
            taken = sum(1 for _ in islice(steps, limit))
            if limit is None or taken < limit:
                self._leaving.remove((client, steps))
                if client.memory is not None:
                    # Not before: the steps may still read the messages of sends that end.
                    client.memory.close()

    def _tell(self, client: AgentClient, attached: bool, reason: str) -> None:
        if self._on_change is not None:
            self._on_change(client, attached, reason)

    def _check_clients(self) -> None:
        for client in list(self.clients):
            refused = client.refused
            if refused > client.warned:
                # Once per doubling, since a program may continue beyond its limit.
                client.warned = 2 * refused
                text = "process %d (%s) has reached a limit: %d of its requests were refused so far"
                _log.warning(text, client.process, client.program, refused)
            client.stopped = client.stopped + 1 if _is_stopped(client.process) else 0
            if client.stopped >= _CHECKS_STOPPED:
                self._drop(client, "is stopped")
        requests = sum(each.served.request_count for each in self.clients)
        if self._dedicated and gc.get_count()[2] >= _SEARCHES and requests <= _FEW and not self._leaving:
            gc.collect()

    def _open_endpoint(self, number: int | None, key: int, interface: int, **options: Any) -> EngineEndpoint:
        for client in self.clients:
            for side in client.served.sides.values():
                if (side.number, side.interface) == (number, interface):
                    name = self.core.links[interface].name
                    owner = process_text(client.process)
                    raise HostError(Status.BUSY, f"endpoint {number} of {name} is taken by {owner}: choose another")
        if not 0 <= interface < len(self.core.links):
            raise LocalProtocolError(Status.BOARD_NOT_FOUND, f"the agent has no interface {interface}")
        opened: BaseEndpoint = self.host._open_endpoint(BaseEndpoint, number, key, interface, **options)
        return opened.engine

    def _close_endpoint(self, engine: EngineEndpoint) -> None:
        endpoint = self.host.endpoint_of(engine)
        if endpoint is not None:
            endpoint._close()

    def _report(self) -> None:
        for client in self.clients:
            client.served.report()

    def _take_event(self, event: Event) -> None:
        if event.kind in _NEWS_OF_PEERS:
            self._new_peers = True
        for client in self.clients:
            client.served.take_event(event)

    def _states(self) -> list[dict[str, Any]]:
        """The applications, for ``mxwire ss``."""
        now = time.monotonic()
        return [
            {
                "pid": each.process,
                "program": each.program,
                "age_ns": int((now - each.attached_at) * SECOND),
                "progress": each.served.progress,
                "endpoints": sorted(side.number for side in each.served.sides.values()),
                "requests": each.served.request_count,
                "bytes": each.served.held_bytes,
                "regions": each.served.region_count,
                "records_waiting": each.served.waiting_count,
                "refused": each.refused,
            }
            for each in self.clients
        ]

    def close(self) -> None:
        """Drop all applications; closing again does nothing. The host stays open."""
        if self._closed:
            return
        self._closed = True
        with self.core.section:
            self.core.after = None
            for client in list(self.clients):
                client.channel.ended = True
                self._drop(client, "is left, since the agent ends")
            self._close_some(None)
            self._path.close()
        self.host.clients = None
        self.host.observe_events(None)
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()

    def __enter__(self) -> Agent:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the agent."""
        self.close()


def _is_stopped(process: int) -> bool:
    """Return whether a process is stopped by a signal or a debugger."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except (OSError, ValueError):
        return False
    # The name of the program, in parentheses, may contain anything.
    return text.rpartition(")")[2].split()[:1] in (["T"], ["t"])
