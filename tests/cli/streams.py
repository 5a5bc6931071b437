"""Pipes and terminals that a command prints to, and what a progress bar does to a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import termios
import time
from threading import Thread

BAR = re.compile(rb"\x1b\[\?25l.*?\x1b\[\?25h\r\x1b\[1A\x1b\[2K", re.DOTALL)
"""The effects of a progress bar on a terminal: it hides the cursor, draws itself, shows the cursor again, and is
erased.
"""


class Stream:
    """The near end of a pipe or a terminal for a command; what it prints there is read as it comes."""

    def __init__(self, terminal: bool) -> None:
        self._ours, self.theirs = pty.openpty() if terminal else os.pipe()
        if terminal:
            _leave_line_feeds(self.theirs)
        self._read = b""
        self._reader = Thread(target=self._gather, daemon=True)
        self._reader.start()

    def _gather(self) -> None:
        # Linux ends a terminal that no process has open any more with EIO.
        with contextlib.suppress(OSError):
            while piece := os.read(self._ours, 1 << 16):
                self._read += piece

    def wait_for(self, words: bytes, seconds: float = 60.0) -> None:
        """Wait until ``words`` are printed; fail after a timeout."""
        end = time.monotonic() + seconds
        while words not in self._read:
            assert time.monotonic() < end, self._read
            time.sleep(0.01)

    def end(self, seconds: float = 60.0) -> bytes:
        """Return the whole output, once the command has ended; fail if another process keeps the stream open."""
        os.close(self.theirs)
        self._reader.join(seconds)
        assert not self._reader.is_alive(), self._read
        os.close(self._ours)
        return self._read


def _leave_line_feeds(terminal: int) -> None:
    modes = termios.tcgetattr(terminal)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
