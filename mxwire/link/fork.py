"""Sockets that stay with the process that opened them, although the child of a fork inherits all descriptors.

A child that does not call exec would otherwise keep the names of its parent's sockets, and their connections, after the
end of the parent: other processes would wait for it.
"""

from __future__ import annotations

import os
import socket
from typing import Final
from weakref import WeakSet

_kept: Final[WeakSet[socket.socket]] = WeakSet()


def keep_from_children(opened: socket.socket) -> socket.socket:
    """Close a socket in children of forks from now on, and return it."""
    _kept.add(opened)
    return opened


def _close() -> None:
    for each in list(_kept):
        each.close()


os.register_at_fork(after_in_child=_close)
