"""An HTTP server of one page, for clients that may be slow or hostile.

One thread serves all connections. A connection that has not received the page within its time is closed, and if there
are too many, the oldest one is: a client that sends its request at once is not kept waiting by any number of clients
that do not. Errors of clients are not reported, since clients could fill the log with them.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_CONNECTION_SECONDS: Final = 10.0
_MAX_CONNECTIONS: Final = 64
_BACKLOG: Final = 16
"""Connections that may be accepted at once: few enough that none of them is closed before its request is read."""
_MAX_REQUEST: Final = 16384
_HEADERS: Final = "HTTP/1.1 {status}\r\nContent-Type: {type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"


@contextmanager
def served(host: str, port: int, page: Callable[[], bytes], content_type: str) -> Iterator[int]:
    """Serve a page by a thread; yield the port, which is a free one for 0.

    ``page`` is called in that thread, per request. Raises :class:`OSError` if the address cannot be used.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.create_server(address[:2], family=family, backlog=_BACKLOG) as listener:
        server = _Server(listener, page, content_type)
        loop = asyncio.new_event_loop()

        def run() -> None:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(server.run())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            loop.call_soon_threadsafe(server.stopped.set)
            thread.join()


class _Server:
    def __init__(self, listener: socket.socket, page: Callable[[], bytes], content_type: str) -> None:
        self._listener = listener
        self._page = page
        self._type = content_type
        self._connections: dict[asyncio.Task[None], None] = {}
        """The tasks of open connections, the oldest first."""
        self.stopped = asyncio.Event()

    async def run(self) -> None:
        """Serve until ``stopped`` is set; open connections end with the loop."""
        server = await asyncio.start_server(self._accept, sock=self._listener, limit=_MAX_REQUEST, backlog=_BACKLOG)
        await self.stopped.wait()
        server.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._answer(reader, writer))
        self._connections[task] = None
        task.add_done_callback(self._connections.pop)
        # Aborted even if the task was cancelled before its first step.
        task.add_done_callback(lambda _: writer.transport.abort())
        if len(self._connections) > _MAX_CONNECTIONS:
            next(iter(self._connections)).cancel()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_CONNECTION_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
                get = request.startswith(b"GET ")
                body = self._page() if get else b"use GET\n"
                status = "200 OK" if get else "405 Method Not Allowed\r\nAllow: GET"
                kind = self._type if get else "text/plain"
                writer.write(_HEADERS.format(status=status, type=kind, length=len(body)).encode() + body)
                writer.close()
                await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # TimeoutError is an OSError
