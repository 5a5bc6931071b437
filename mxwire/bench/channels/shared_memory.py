"""Messages through memory that both sides share."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Final

from mxwire.bench.channels.channel import LARGEST, POLLS, Channel, ChannelSetup, end_of_wait
from mxwire.bench.roles.common import CONTENT

_PAGE: Final = 4096


class SharedChannel(Channel):
    """Memory that two processes of one machine share: a counter and a message in each direction, for ping-pong only.

    A message is written before its counter, and processors with strong memory ordering make the writes visible in this
    order.
    """

    def __init__(self, setup: ChannelSetup) -> None:
        super().__init__(setup)
        name = f"mxwire-bench-{(setup.own if setup.active else setup.other).hex()}"
        self._path = Path("/dev/shm", name)
        whole = 2 * (_PAGE + LARGEST)
        with self._path.open("r+b" if setup.active else "w+b") as file:
            if not setup.active:
                file.truncate(whole)
            self._memory = mmap.mmap(file.fileno(), whole)
        # Both sides have it now: without a name, nothing is left of it if they are killed.
        if setup.active:
            self._path.unlink()
        halves = [memoryview(self._memory)[start : start + whole // 2] for start in (0, whole // 2)]
        out, into = halves if setup.active else halves[::-1]
        self._views = [*halves, out[:8].cast("Q"), out[_PAGE:], into[:8].cast("Q"), into[_PAGE:]]
        self._sent = self._received = 0

    def send(self, size: int) -> None:
        """Copy a message into the shared memory, and change the counter."""
        if size:
            self._views[3][:size] = memoryview(CONTENT)[:size]
        self._sent += 1
        self._views[2][0] = self._sent

    def receive(self, size: int) -> None:
        """Poll the counter, and copy the message."""
        counter, expected = self._views[4], self._received + 1
        end = 0.0
        while counter[0] != expected:
            for _ in range(POLLS):
                if counter[0] == expected:
                    break
            else:
                end = end_of_wait(end)
        self._received = expected
        if size:
            self.buffer[:size] = self._views[5][:size]

    def close(self) -> None:
        """Release the memory."""
        for each in reversed(self._views):
            each.release()
        self._memory.close()
        self._path.unlink(missing_ok=True)
