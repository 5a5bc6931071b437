"""Unix sockets through which live hosts report their state: the server in each host, and the client.

A client connects and reads; it sends nothing, so there is no request that could be malformed. The host sends one JSON
object and closes the connection. Each socket is a file of mode 0600 in the runtime folder of the user, so only that
user (and root) can connect.

A thread of the host sleeps in ``accept`` until a client connects: without a client, it uses no CPU time and adds no
check per frame. Clients are served one after another. The state is copied at most every ``_FRESH`` seconds, however
often clients connect.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.link.local import owner_of
from mxwire.link.runtime import runtime_folder

_FRESH: Final = 0.05
"""Seconds for which a state is reused, so that clients cannot keep a host busy."""
_SEND_TIMEOUT: Final = 1.0
"""Seconds after which a client that does not read is disconnected."""
_ANSWER_TIMEOUT: Final = 2.0
"""Seconds after which a host that does not answer, because it is stopped or busy, is reported as unresponsive."""
_BACKLOG: Final = 8
_LARGEST: Final = 64 << 20
"""Bytes of an answer beyond which a client stops reading."""
_SUFFIX: Final = ".sock"
_RETRY: Final = 0.1
"""Seconds to wait after a failed ``accept``, for example without free descriptors."""

_log = logging.getLogger(__name__)
_numbers = count()


class StateServer:
    """Reports the state of one host to clients, until it is closed.

    ``state`` returns the record; it is called on the thread of this server, and raises
    :class:`~mxwire.errors.MxwireError` if the host has ended. A host works without its socket: if that cannot be
    created, the reason is logged.
    """

    def __init__(self, state: Callable[[], dict[str, Any]]) -> None:
        self._state = state
        self._answer = b""
        self._answered = float("-inf")
        self.path: Path | None = None
        """The socket; None if it could not be created."""
        self._listener: socket.socket | None = None
        self._closed = threading.Event()
        try:
            listener = self._listen()
        except (OSError, MxwireError) as error:
            _log.info("no socket for mxwire ss: %s", error)
            self._discard()
            return
        threading.Thread(target=self._serve, args=(listener,), name="mxwire-state", daemon=True).start()

    def _listen(self) -> socket.socket:
        folder = runtime_folder(make=True)
        name = f"{os.getpid()}-{next(_numbers)}"
        hidden = folder / f".{name}"
        hidden.unlink(missing_ok=True)
        listener = self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(hidden))
        # Clients remove sockets on which no process listens, so this socket receives its final name only once it is
        # listening.
        hidden.chmod(0o600)
        listener.listen(_BACKLOG)
        self.path = hidden.rename(folder / f"{name}{_SUFFIX}")
        return listener

    def _serve(self, listener: socket.socket) -> None:
        while not self._closed.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                self._closed.wait(_RETRY)
                continue
            with client, contextlib.suppress(OSError):
                client.settimeout(_SEND_TIMEOUT)
                client.sendall(self._current())

    def _current(self) -> bytes:
        now = time.monotonic()
        if now - self._answered > _FRESH:
            try:
                record = self._state()
            except Exception as error:
                # A host must survive its monitoring, even when its state is read in an unforeseen situation.
                record = {"pid": os.getpid(), "error": str(error)}
            self._answer = json.dumps(record, separators=(",", ":")).encode()
            self._answered = time.monotonic()
        return self._answer

    def close(self) -> None:
        """Remove the socket, and end the thread; closing again does nothing."""
        listener = self._listener
        self._discard()
        if listener is not None:
            # Unlike close, this wakes a thread in accept.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _discard(self) -> None:
        self._closed.set()
        self._listener = None
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
            self.path = None


def read_states() -> Iterator[dict[str, Any]]:
    """Yield the states of this user's live hosts, in the order of their processes.

    A host that does not answer yields a record with ``pid`` and ``error``. Sockets of processes that have ended without
    closing their hosts are removed. Raises :class:`~mxwire.link.LinkError` as
    :func:`~mxwire.link.runtime.runtime_folder` does.
    """
    folder = runtime_folder()
    try:
        sockets = [each for each in folder.iterdir() if each.suffix == _SUFFIX and _process_of(each) is not None]
    except FileNotFoundError:
        return
    except OSError as error:
        raise MxwireError(f"{folder}: {error.strerror}") from None
    for path in sorted(sockets, key=lambda each: (_process_of(each) or 0, each.name)):
        try:
            answer = _ask(path)
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            continue
        except (OSError, ValueError) as error:
            yield {"pid": _process_of(path), "error": f"does not answer ({error})"}
            continue
        if answer is not None:
            yield answer


def _process_of(path: Path) -> int | None:
    number = path.name.partition("-")[0]
    return int(number) if number.isdecimal() and len(number) < 10 else None


def _ask(path: Path) -> dict[str, Any] | None:
    """Return the answer of a host; None if it was closed at the same time."""
    limit = time.monotonic() + _ANSWER_TIMEOUT
    pieces: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_ANSWER_TIMEOUT)
        try:
            asking.connect(str(path))
            if owner_of(asking)[1] != os.geteuid():
                raise PermissionError("it belongs to another user")
            while piece := asking.recv(1 << 16):
                pieces.append(piece)
                if time.monotonic() > limit or sum(map(len, pieces)) > _LARGEST:
                    raise TimeoutError("timed out")
        except ConnectionResetError:
            return None
    if not pieces:
        return None
    record = json.loads(b"".join(pieces))
    if not isinstance(record, dict):
        raise ValueError("its answer is not an object")
    return record
