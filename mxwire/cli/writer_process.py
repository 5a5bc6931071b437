"""A process that writes a table while another process decodes the frames.

Loading polars takes as long as decoding 100,000 frames, and neither needs the other. So ``mxwire decode --to`` forks a
process before it loads anything large. While the command loads NumPy and decodes the first frames, this process loads
polars. It then receives tables and writes them, so that writing competes with decoding for processors only, and not for
the interpreter.

A table passes through a pipe: pickled, with its arrays out of band (PEP 574), so that pickling does not copy them. A
thread sends it, since the first frames are decoded before polars is loaded; few tables may wait for this thread, so
that decoding waits if the file is slow. The answer, through another pipe, is None or the error that ended the writing;
without an answer, the process was killed.

A fork copies only the calling thread. So the process is started only while there is no other thread, which also means
before NumPy, whose libraries have threads. Otherwise :meth:`WriterProcess.start` returns None, and the caller writes
the table itself, with the same code (``mxwire/analysis/table_file.py``).
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import threading
from collections import deque
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from mxwire.analysis.table_columns import Table

_PIPE_BYTES: Final = 1 << 20
"""Size of the pipe for tables: Linux allows no larger one by default, and other systems do not have the option."""
_WAITING: Final = 2
"""Maximum number of tables that wait for the thread; then decoding waits, so that memory stays bounded."""
_COUNT: Final = struct.Struct("<q")


class WriterProcess:
    """A child process that writes tables to one file; also the sink of a :class:`TableFile`."""

    def __init__(self, process: int, tables: FileIO, answer: FileIO) -> None:
        self._process: int | None = process
        self._tables = tables
        self._answer = answer
        self._sender: ThreadPoolExecutor | None = None
        self._unsent: deque[Future[None]] = deque()

    @classmethod
    def start(cls) -> WriterProcess | None:
        """Fork the process; return None if this is not safe or gains nothing."""
        if not hasattr(os, "fork") or os.cpu_count() == 1 or threading.active_count() > 1 or "numpy" in sys.modules:
            return None
        import fcntl

        tables_read, tables_write = os.pipe()
        answer_read, answer_write = os.pipe()
        with suppress(OSError, AttributeError):
            fcntl.fcntl(tables_write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        process = os.fork()
        if not process:
            os.close(tables_write)
            os.close(answer_read)
            _serve(FileIO(tables_read), FileIO(answer_write, "w"))
        # With these ends open, this process would not see that the other one has ended.
        os.close(tables_read)
        os.close(answer_write)
        return cls(process, FileIO(tables_write, "w"), FileIO(answer_read))

    def open(self, path: Path, *_format: object) -> WriterProcess:
        """Have the following tables written to ``path``, in the format of its suffix."""
        from concurrent.futures import ThreadPoolExecutor

        self._sender = ThreadPoolExecutor(1)
        self._submit(path)
        return self

    def put(self, table: Table) -> None:
        """Send rows, or raise the error that ended the writing of earlier ones."""
        self._submit(table)

    def close(self) -> None:
        """Wait until all rows are written; raise the error that ended the writing."""
        self._submit(None)
        self._await(0)
        self._finish()

    def end(self) -> None:
        """Kill the process, unless it has ended."""
        if self._process is not None:
            os.kill(self._process, signal.SIGKILL)
            self._wait()

    def _submit(self, value: Path | Table | None) -> None:
        assert self._sender is not None
        self._await(_WAITING)
        self._unsent.append(self._sender.submit(_send, self._tables, value))

    def _await(self, most: int) -> None:
        """Wait until at most this number of values is unsent."""
        try:
            while len(self._unsent) > most:
                self._unsent.popleft().result()
        except BrokenPipeError:
            self._finish()

    def _finish(self) -> None:
        """Take the answer of the process, and raise the error in it."""
        answer = self._answer.read()
        self._wait()
        error = pickle.loads(answer) if answer else ValueError("the process that writes it was killed")
        if error is not None:
            raise error

    def _wait(self) -> None:
        """Wait for the end of the process, and thus of the thread."""
        assert self._process is not None
        os.waitpid(self._process, 0)
        self._process = None
        if self._sender is not None:
            self._sender.shutdown()
        self._tables.close()
        self._answer.close()


def _send(tables: FileIO, value: Path | Table | None) -> None:
    arrays: list[pickle.PickleBuffer] = []
    body = pickle.dumps(value, 5, buffer_callback=arrays.append)
    parts = [memoryview(body), *(each.raw() for each in arrays)]
    head = b"".join(map(_COUNT.pack, (len(parts), *map(len, parts))))
    for part in (memoryview(head), *parts):
        # Unbuffered, a write may take only a part.
        while part:
            part = part[tables.write(part) :]


def _serve(tables: FileIO, answer: FileIO) -> NoReturn:
    """Write the tables that arrive, answer, and end this process without the exit handlers of the command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command handles Ctrl-C, and ends this process
    error: BaseException | None = None
    try:
        _write(tables)
    except (OSError, MemoryError) as raised:
        error = raised
    except BaseException as raised:
        error = ValueError(str(raised))  # the type may be one of polars, which the command has not loaded
    with suppress(BrokenPipeError):
        answer.write(pickle.dumps(error))
    os._exit(0)


def _write(tables: FileIO) -> None:
    """Write the tables that arrive to a file whose path arrives first."""
    from mxwire.analysis.table_columns import require_polars
    from mxwire.analysis.table_file import polars_sink

    require_polars()  # loads it while the command decodes the first frames
    path = _receive(tables)
    sink = None
    while (table := _receive(tables)) is not None:
        sink = sink or polars_sink(path, table)
        sink.put(table)
    if sink is not None:
        sink.close()


def _receive(tables: FileIO) -> Any:
    """Return the next path, table or None; raises :class:`EOFError` if the command has ended."""
    (count,) = _COUNT.unpack(_read(tables, _COUNT.size))
    lengths = [_COUNT.unpack(_read(tables, _COUNT.size))[0] for _ in range(count)]
    body, *arrays = [_read(tables, length) for length in lengths]
    return pickle.loads(body, buffers=arrays)


def _read(tables: FileIO, length: int) -> bytearray:
    found = bytearray(length)
    rest = memoryview(found)
    while rest:
        size = tables.readinto(rest)
        if not size:
            raise EOFError
        rest = rest[size:]
    return found
