"""Worker processes of a campaign: of this machine, of a Dask cluster, of Slurm jobs or of an MPI job.

Each kind is a :class:`WorkerPool`: a source of ``concurrent.futures`` futures that reports its number of workers and
detects the loss of one. Everything else is common to all kinds and is in ``campaign.py``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import active_children, get_context, resource_tracker
from pathlib import Path
from typing import Any, Final, Protocol

from mxwire import __version__
from mxwire.errors import MxwireError, OptionError
from mxwire.extras import import_extra, install_command

PLACES: Final = "local, dask:local, dask:ADDRESS, dask-slurm:FILE or mpi"
_WAIT_SECONDS: Final = 10 * 60
"""Timeout for the first worker of a running cluster."""
_QUEUE_SECONDS: Final = 10.0
"""Interval of queries for jobs without a worker: they may wait in the queue of Slurm for a long time."""
_CONNECT_SECONDS: Final = 15
_LOCAL_FAILURES: Final = 1
"""Losses of workers after which a local cluster reports a chunk: on one machine the chunk is the likely cause."""
_SLURM_KEYS: Final = ("jobs",)
"""Keys of a Slurm file that are not arguments of ``SLURMCluster``."""
RANK_VARIABLES: Final = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
"""Environment variables with the rank of a process, by launcher: Open MPI, PMIx, MPICH and Intel MPI, MVAPICH, Slurm.

Slurm's is the last: in a Slurm job, processes of mpirun inherit that of mpirun itself.
"""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let processes and threads that are started here not receive Ctrl-C, which this process handles: they end with it.

    An interrupt of this process is delivered at the end of the block.
    """
    # Starting it would unblock the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerPool(Protocol):
    """Processes, each of which runs one function at a time."""

    chunk_seconds: float
    """Duration of a chunk of work, long enough that its transfer is negligible."""

    def size(self) -> int:
        """Return the current number of workers, at least 1."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in a worker. There are never more calls than workers: the loss of one ends a single call."""

    def losses(self, error: BaseException | None) -> int:
        """Return the number of workers that were lost during a call, by its exception; 0 for any other exception."""


class InlinePool:
    """The process itself, as its only worker."""

    chunk_seconds = 0.0

    def size(self) -> int:
        """Return 1."""
        return 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function now."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def losses(self, error: BaseException | None) -> int:
        """Return 0: the loss of the process is the end of the campaign."""
        return 0


class LocalPool:
    """Processes of this machine, each with an executor of its own: the loss of one does not end the calls of others."""

    chunk_seconds = 0.5

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: dict[Future[Any], ProcessPoolExecutor] = {}
        self._others = set(active_children())
        # Not fork, which would copy locks held by threads of this process.
        self._context = get_context("forkserver")

    def size(self) -> int:
        """Return the number of processes."""
        return self._processes

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in an idle process."""
        for done in [each for each in self._busy if each.done()]:
            executor = self._busy.pop(done)
            if not self.losses(done.exception()):
                self._idle.append(executor)
        while self._idle:
            executor = self._idle.pop()
            try:
                future = executor.submit(function, *arguments)
            except BrokenProcessPool:
                continue  # its process ended while it was idle
            self._busy[future] = executor
            return future
        # If another part of the program has started the fork server, Ctrl-C is ignored only from the initializer on.
        executor = ProcessPoolExecutor(1, self._context, _end_by_sigterm_only)
        with uninterrupted():
            future = executor.submit(function, *arguments)
        self._busy[future] = executor
        return future

    def losses(self, error: BaseException | None) -> int:
        """Return 1 if the process of a call ended."""
        return int(isinstance(error, BrokenProcessPool))

    def close(self) -> None:
        """End the processes, and calls that are not finished."""
        if not all(each.done() for each in self._busy):
            for process in set(active_children()) - self._others:
                process.terminate()
        for executor in (*self._idle, *self._busy.values()):
            executor.shutdown(cancel_futures=True)


def _end_by_sigterm_only() -> None:
    """Let a worker ignore Ctrl-C, and end silently by SIGTERM, after it has removed its temporary files."""

    def end(*_: object) -> None:
        sys.unraisablehook = lambda _: None  # the exception may be raised where Python ignores it
        sys.exit()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)


class DaskPool:
    """The workers of a Dask cluster; ``client`` is a ``distributed.Client``."""

    chunk_seconds = 2.0

    def __init__(self, client: Any) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False)
        # A worker that joins later is refused by its first call.
        for worker, version in client.run(_version).items():
            refuse_version(version, worker)

    def size(self) -> int:
        """Return the number of threads of all workers."""
        threads: dict[str, int] = self._client.nthreads()
        return max(sum(threads.values()), 1)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in a worker."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def losses(self, error: BaseException | None) -> int:
        """Return the number of workers that the scheduler saw die in a call."""
        from distributed.scheduler import KilledWorker

        return int(getattr(error, "allowed_failures", 0)) + 1 if isinstance(error, KilledWorker) else 0


class MpiPool:
    """The processes of an MPI job, except the first; MPI ends the whole job if one is lost."""

    chunk_seconds = 2.0

    def __init__(self, executor: Any, processes: int) -> None:
        self._executor = executor
        self._processes = processes

    def size(self) -> int:
        """Return the number of processes that play."""
        return self._processes

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in another process of the job."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def losses(self, error: BaseException | None) -> int:
        """Return 0: a loss ends the whole campaign."""
        return 0


def check_place(on: str) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` unless the text names workers."""
    kind, colon, detail = on.partition(":")
    if on not in ("local", "mpi") and not (kind in ("dask", "dask-slurm") and colon and detail):
        raise OptionError(f"--on {on}: no such workers; use {PLACES}")


@contextmanager
def open_workers(on: str = "local", jobs: int | None = None) -> Iterator[WorkerPool]:
    """Open the workers named by ``on``, as in ``--on``, and close them at the end.

    ``jobs`` is the number of processes of ``local`` and ``dask:local``, by default one per CPU; one local job is this
    process. Raises :class:`~mxwire.errors.MxwireError` if the workers cannot be reached, have another version of
    mxwire, or need a missing package.
    """
    check_place(on)
    kind, _, detail = on.partition(":")
    processes = jobs or os.cpu_count() or 1
    if on == "local" and processes == 1:
        yield InlinePool()
    elif on == "local":
        pool = LocalPool(processes)
        try:
            yield pool
        finally:
            pool.close()
    elif jobs is not None and on != "dask:local":
        raise OptionError(f"--jobs is the number of processes of this machine: --on {on} has its own")
    elif on == "mpi":
        with _mpi() as mpi:
            yield mpi
    else:
        with _dask(kind, detail, processes) as dask:
            yield dask


# Dask


@contextmanager
def _dask(kind: str, detail: str, processes: int) -> Iterator[WorkerPool]:
    distributed = import_extra("distributed", "dask", f"--on {kind}")
    import dask

    with dask.config.set({"distributed.logging.distributed": "critical"}):
        if kind == "dask-slurm":
            with _slurm_cluster(Path(detail)) as cluster, distributed.Client(cluster) as client:
                while not _has_worker(client, _QUEUE_SECONDS):
                    _check_queue(Path(detail), cluster)
                yield DaskPool(client)
        elif detail == "local":
            private_dask = _private_dask("--on dask:local")
            failures = {"distributed.scheduler.allowed-failures": _LOCAL_FAILURES}
            with (
                dask.config.set(failures),
                private_dask.local_cluster(processes) as cluster,
                distributed.Client(cluster) as client,
            ):
                yield DaskPool(client)
        else:
            with _connected(distributed, detail) as client:
                if not _has_worker(client, _WAIT_SECONDS):
                    minutes = _WAIT_SECONDS // 60
                    raise MxwireError(f"--on dask:{detail}: the scheduler has no workers within {minutes} minutes")
                yield DaskPool(client)


def _private_dask(needed_by: str) -> Any:
    """Return the module of private clusters, whose certificates need one more package."""
    import_extra("cryptography", "dask", needed_by)
    from mxwire.campaign import private_dask

    return private_dask


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    """Connect to a scheduler by its address, or by the file that ``dask scheduler --scheduler-file`` writes."""
    try:
        # The client itself would wait for the file without limit.
        where = json.loads(Path(address).read_text())["address"] if address.endswith(".json") else address
        client = distributed.Client(where, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MxwireError(f"--on dask:{address}: the scheduler cannot be reached: {reason}") from None
    with client:
        yield client


def _has_worker(client: Any, seconds: float) -> bool:
    """Wait for a worker, at most a few seconds; return whether there is one."""
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError:
        return False
    return True


@contextmanager
def _slurm_cluster(path: Path) -> Iterator[Any]:
    """Start Slurm jobs as a file describes: ``jobs``, and arguments of ``dask_jobqueue.SLURMCluster``."""
    # Its import replaces the handlers of SIGINT and SIGTERM by ones that exit with code 0.
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        jobqueue = import_extra("dask_jobqueue", "dask", "--on dask-slurm")
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
    private_dask = _private_dask("--on dask-slurm")
    from dask import config

    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MxwireError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise MxwireError(f"{path}: not a TOML file: {error}") from None
    jobs = settings.get("jobs", 1)
    if not isinstance(jobs, int) or jobs < 1:
        raise MxwireError(f"{path}: jobs = {jobs!r}: give the number of Slurm jobs, at least 1")
    arguments = {name: value for name, value in settings.items() if name not in _SLURM_KEYS}
    # The work is bound by the processor and holds Python's lock: one process per core.
    arguments.setdefault("processes", arguments.get("cores", 1))
    # Jobs read the certificate and its key from there: files of mode 0600, removed at the end.
    shared = config.get("jobqueue.slurm.shared-temp-directory", None)
    arguments.setdefault("shared_temp_directory", shared or str(Path.cwd()))
    with ExitStack() as stack:
        try:
            for name, own in (
                ("worker_extra_args", private_dask.WORKER_WORDS),
                ("job_script_prologue", private_dask.JOB_PROLOGUE),
            ):
                arguments[name] = [*own, *arguments.get(name, ())]
            cluster = jobqueue.SLURMCluster(**arguments, **private_dask.JOB_ARGUMENTS)
            stack.enter_context(cluster)
            _check_job(path, cluster.job_script())
            cluster.scale(jobs=jobs)
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise MxwireError(f"{path}: the Slurm jobs cannot be started: {reason}") from None
        yield cluster


def _check_job(file: Path, script: str) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if Slurm would refuse a job.

    The cluster submits its jobs in the background, where an error is only logged.
    """
    tried = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True)
    if tried.returncode:
        reason = tried.stderr.strip().splitlines()
        raise MxwireError(f"{file}: Slurm refuses the job: {reason[0] if reason else f'exit code {tried.returncode}'}")


def _check_queue(file: Path, cluster: Any) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if no job of a cluster is in the queue of Slurm or running."""
    jobs = ",".join(str(each.job_id) for each in cluster.workers.values() if each.job_id)
    listed = subprocess.run(["squeue", "--noheader", "--jobs", jobs or "0"], capture_output=True, text=True)
    # Slurm forgets jobs a few minutes after their end: then it calls their numbers invalid.
    if not listed.stdout.strip():
        raise MxwireError(f"{file}: the Slurm jobs {jobs} ended before a worker started: see their output, slurm-*.out")


# MPI


def launched_rank() -> int:
    """Return the rank of this process as set by the launcher of its MPI job; 0 without a launcher."""
    rank = next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "")
    return int(rank) if rank.isdecimal() else 0


@contextmanager
def _mpi() -> Iterator[WorkerPool]:
    """Use the processes of this MPI job; all but the first serve here, and then end."""
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise MxwireError(
            f"--on mpi needs the MPI library of your cluster, and mpi4py ({reason}): {install_command('mpi')}"
        ) from None
    world = MPI.COMM_WORLD
    if world.Get_size() < 2:
        raise MxwireError("--on mpi: this MPI job has 1 process: start it with mpirun -n N or srun, N at least 2")
    with MPICommExecutor(world, root=0) as executor:
        if executor is not None:
            yield MpiPool(executor, world.Get_size() - 1)
            return
    raise SystemExit(0)


# Versions


def _version() -> str:
    return __version__


def refuse_version(version: str, where: str) -> None:
    """Raise :class:`~mxwire.errors.MxwireError` if a worker, or the campaign that it plays, has another version.

    Results of two versions differ, and would spoil a digest.
    """
    if version != __version__:
        raise MxwireError(
            f"{where} has mxwire {version}, this is {__version__}: install the same version on all workers"
        )
