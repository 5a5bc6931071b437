"""Messages in virtual time: a role runs in a thread of its own, which is stopped whenever its channel waits.

Roles call a channel that blocks, but ranks in virtual time are programs that yield. A :class:`RankThread` connects
them: the program resumes the thread, and is resumed itself when the thread waits. Only one thread runs at a time, so
the order of events and all results are the same in each run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from mxwire.bench.channels.channel import Channel, ChannelSetup
from mxwire.bench.errors import SilenceError
from mxwire.bench.imb.communicator import Operation, Program
from mxwire.bench.models.catalogue import is_model
from mxwire.bench.roles.common import CONTENT
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

if TYPE_CHECKING:
    from mxwire.bench.cost.ranks import ModelRank, PostedOperation

_CONTENT = np.frombuffer(CONTENT, np.uint8)


class RankThread:
    """A role of one rank. ``play`` is called in a thread, and calls :meth:`wait` through its channel."""

    def __init__(self, rank: ModelRank, play: Callable[[RankThread], dict[str, Any]]) -> None:
        self.rank = rank
        self._play = play
        self._resumed, self._stopped = Semaphore(0), Semaphore(0)
        self._waits: Sequence[Operation] | None = ()
        self._result: dict[str, Any] = {}
        self._error: BaseException | None = None
        self._abandoned = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._resumed.acquire()
        try:
            if not self._abandoned:
                self._result = self._play(self)
        except BaseException as error:
            self._error = error
        self._waits = None
        self._stopped.release()

    def program(self) -> Program[dict[str, Any]]:
        """The role as a program of its rank; raises the error of the role."""
        while True:
            self._resumed.release()
            self._stopped.acquire()
            if self._waits is None:
                break
            yield self._waits
        if self._error is not None:
            raise self._error
        return self._result

    def wait(self, operations: Sequence[Operation] = ()) -> None:
        """Return when all operations are done and the core of the rank is free; for the thread of the role."""
        self._waits = operations
        self._stopped.release()
        self._resumed.acquire()
        if self._abandoned:
            raise SilenceError("the other side has ended")

    def abandon(self) -> None:
        """End the thread at its current wait."""
        self._abandoned = True
        self._resumed.release()
        self._thread.join()


@dataclass(slots=True)
class _VirtualPosting:
    """Done when an operation has been posted."""

    operation: PostedOperation

    @property
    def done(self) -> bool:
        return self.operation.posted


class VirtualChannel(Channel):
    """A rank of a modelled host or TCP connection. Work occupies the core of the rank."""

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        assert setup.thread is not None
        self._thread, self._rank = setup.thread, setup.thread.rank
        self._other = 1 - self._rank.rank
        self._sends: deque[Operation] = deque()
        self._posted: deque[tuple[Operation, Any]] = deque()
        # Sockets and classic libraries have no queue of posted receives: a call receives the next message.
        self._ahead = setup.carrier != "tcp" and not is_model(setup.carrier)
        for _ in range(setup.depth if self._ahead else 0):
            self._post(len(self.buffer))

    def _post(self, length: int) -> None:
        memory = np.empty(length, np.uint8)
        self._posted.append((self._rank.irecv(self._other, memory), memory))

    def clock(self) -> int:
        """The virtual time in ns."""
        return self._rank.now()

    def work(self, duration: int) -> None:
        """Occupy the core for ``duration`` ns."""
        self._rank.work_for(duration)
        self._thread.wait()

    def spin_error(self, duration: int) -> float:
        """Return 0, as virtual work takes exactly its duration."""
        return 0.0

    def send(self, size: int) -> None:
        """Post a send; large ones are waited for when as many are in flight as may be."""
        operation = self._rank.isend(self._other, _CONTENT[:size])
        self._thread.wait([_VirtualPosting(operation)])
        if size > RENDEZVOUS_THRESHOLD:
            self._sends.append(operation)
            if len(self._sends) > self.setup.depth:
                self._thread.wait([self._sends.popleft()])

    def receive(self, size: int) -> None:
        """Wait for the oldest posted receive, and post another one."""
        if not self._posted:
            self._post(size)
        operation, self.buffer = self._posted.popleft()
        self._thread.wait([operation])
        if self._ahead:
            self._post(len(self.buffer))

    def exchange(self, size: int) -> None:
        """Send and receive; post the receive first, unless it is posted ahead, as both sides may wait for it."""
        if not self._ahead:
            self._post(size)
        super().exchange(size)

    def close(self) -> None:
        """Do nothing: the ranks are not used again."""
