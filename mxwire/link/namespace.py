"""Network namespaces: the one that a thread is in, and visits of others."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

CLONE_NEWNET: Final = 0x4000_0000
_CURRENT: Final = Path("/proc/thread-self/ns/net")


class NetworkNamespace(AbstractContextManager["NetworkNamespace"]):
    """The network namespace at ``path``, by default that of the calling thread; it is kept alive until this is closed.

    Raises :class:`OSError` if there is none.
    """

    def __init__(self, path: Path = _CURRENT) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        self.identity = status.st_dev, status.st_ino
        """Identity of the namespace: equal only for the same namespace, while it exists."""

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Release the namespace; closing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def enter(self) -> None:
        """Move the calling thread into it. Raises :class:`OSError`; CAP_SYS_ADMIN is needed."""
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(self._descriptor, CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    @contextmanager
    def visited(self) -> Iterator[None]:
        """Move the calling thread into the namespace for the ``with`` block; sockets opened there stay in the
        namespace."""
        status = _CURRENT.stat()
        if (status.st_dev, status.st_ino) == self.identity:
            yield
            return
        with NetworkNamespace() as here:
            self.enter()
            try:
                yield
            finally:
                here.enter()
