"""Dask clusters that only their owner can use.

A Dask scheduler runs the functions of each client that reaches it, and so does a worker, on a port that every user of
the machine can reach. All processes of a private cluster therefore authenticate each other by TLS, with a certificate
made for the run, and do not open the HTTP ports that Dask opens even without a dashboard. Workers keep their files in
a directory of the user: they import modules from there, and Dask's own, in ``/tmp``, may belong to another user.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children, resource_tracker
from pathlib import Path
from typing import Any, Final

from distributed import Nanny, Scheduler, Security, SpecCluster, Worker
from distributed.deploy import spec
from distributed.utils import LoopRunner

from mxwire.campaign.workers import uninterrupted


class PrivateScheduler(Scheduler):  # type: ignore[misc]
    """A scheduler without an HTTP port."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Serve nothing."""


class PrivateWorker(Worker):  # type: ignore[misc]
    """A worker without an HTTP port."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Serve nothing."""


_STARTING_SECONDS: Final = 0.2
"""Seconds for which new workers are ended after an interrupt: more than the start of a process takes."""
JOB_ARGUMENTS: Final[dict[str, Any]] = {
    "security": True,
    "scheduler_cls": PrivateScheduler,
    "scheduler_options": {"dashboard": False},
}
"""Arguments of a ``dask_jobqueue`` cluster that make its scheduler private."""
WORKER_WORDS: Final = ("--worker-class", f"{__name__}.{PrivateWorker.__name__}", "--no-dashboard")
"""Arguments of ``dask worker`` that make a worker private."""
JOB_PROLOGUE: Final = (
    "DASK_TEMPORARY_DIRECTORY=$(mktemp -d) || exit",
    "export DASK_TEMPORARY_DIRECTORY",
    """trap 'rm -rf "$DASK_TEMPORARY_DIRECTORY"' EXIT""",
)
"""Lines of a job's shell script."""


def _children() -> set[int]:
    """Return the processes that threads of this one have started, those without a process object yet included."""
    # Not every kernel lists the children of a thread.
    found = {each.pid for each in active_children() if each.pid is not None}
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found.update(map(int, listed.read_text().split()))
    return found


def _end_children(others: set[int]) -> None:
    """End all processes started since ``others``, with those that are just being started: a worker whose parent ends
    while it starts prints a traceback."""
    kept = others | {getattr(resource_tracker._resource_tracker, "_pid", 0)}
    until = time.monotonic() + _STARTING_SECONDS
    while time.monotonic() < until:
        for process in _children() - kept:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


@contextmanager
def local_cluster(processes: int) -> Iterator[Any]:
    """Start a cluster of worker processes on this machine."""
    # Dask passes variables such as OPENBLAS_NUM_THREADS to its workers by setting them in this process.
    before = dict(os.environ)
    common = {
        "host": "127.0.0.1",
        "protocol": "tls://",
        "security": Security.temporary(),
        "dashboard": False,
    }
    others = _children()
    # Its thread starts the workers, and they inherit that they do not receive Ctrl-C.
    runner = LoopRunner()
    with uninterrupted():
        runner.start()
    try:
        with tempfile.TemporaryDirectory(prefix="mxwire-dask-", ignore_cleanup_errors=True) as folder:
            own = {
                "nthreads": 1,
                "worker_class": PrivateWorker,
                "local_directory": folder,
                "silence_logs": logging.CRITICAL,
            }
            try:
                cluster = SpecCluster(
                    scheduler={"cls": PrivateScheduler, "options": common | {"port": 0}},
                    workers={number: {"cls": Nanny, "options": common | own} for number in range(processes)},
                    security=common["security"],
                    silence_logs=logging.CRITICAL,
                    loop=runner.loop,
                )
                try:
                    yield cluster
                except KeyboardInterrupt:
                    raise
                except BaseException:
                    cluster.close()
                    raise
                cluster.close()
            except KeyboardInterrupt:
                # An orderly end takes seconds, and fails with tracebacks while workers start.
                atexit.unregister(spec.close_clusters)
                runner.loop.add_callback(runner.loop.stop)
                _end_children(others)
                raise
        runner.stop()
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
