"""Groups of options, each passed to a command as one object."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mxwire.cli import options as shared
from mxwire.cli.completion import offers
from mxwire.cli.option_class import argument, option, options_class
from mxwire.cli.reading import BatchSource, capture_of, live_source
from mxwire.errors import MxwireError, OptionError
from mxwire.ethernet import ETHERTYPE_MXOE

if TYPE_CHECKING:
    from mxwire.campaign import Campaign
    from mxwire.wire.decoder import Decoder
    from mxwire.wire.detection import KnownDialects


@options_class
class DecodingOptions:
    """Dialect, EtherTypes of MXoE and treatment of damage: options of all commands that read frames."""

    dialect: str = shared.dialect_option
    ethertypes: tuple[int, ...] = shared.ethertype_option
    skip_damage: bool = shared.damage_option

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for an unknown dialect, before anything is read."""
        from mxwire.wire.dialect import dialect_or_auto

        dialect_or_auto(self.dialect)

    def decoder(self, known: KnownDialects | None = None) -> Decoder:
        """A decoder for a capture or an interface, or for a part of a capture with ``known`` dialects."""
        from mxwire.wire.decoder import Decoder
        from mxwire.wire.dialect import dialect_or_auto

        return Decoder(dialect_or_auto(self.dialect), self.ethertypes or (ETHERTYPE_MXOE,), known)


@options_class
class Inputs:
    """The inputs of a command: files, or the frames that pass an interface."""

    files: tuple[str, ...] = argument(metavar="[FILE...]", nargs=-1, type=shared.FILE)
    interface: str | None = shared.interface_option(
        "Instead of files: read the frames that pass this interface, until Ctrl-C."
    )
    seconds: float | None = shared.duration_option(None, "With -i: end after S seconds.")

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for options that contradict each other."""
        if self.interface is None and not self.files:
            raise MxwireError("nothing to read: name a capture FILE, or an interface with -i IF")
        if self.interface is not None and self.files:
            raise MxwireError("FILE and -i IF cannot be combined: give one of them")
        if self.interface is None and self.seconds is not None:
            raise MxwireError("--duration is for -i IF; a file is read to its end")

    @property
    def live(self) -> bool:
        """True for an interface."""
        return self.interface is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs to :meth:`open`, one after another."""
        from mxwire.capture.ring import expanded

        if self.interface is not None:
            return (self.interface,)
        # A file may be named twice.
        return tuple(file for name in self.files for file in expanded([name]))

    def open(
        self, name: str, ethertypes: tuple[int, ...] = (), skip_damage: bool = False
    ) -> AbstractContextManager[BatchSource]:
        """Open one of :attr:`names` as a source of batches; its warnings are printed when it is closed."""

        if self.live:
            return live_source(name, seconds=self.seconds, ethertypes=ethertypes)
        return capture_of(name, skip_damage)


@options_class
class WorkerOptions:
    """The workers of a campaign, and the file from which it continues."""

    on: str | None = option(
        "Workers: local (processes of this machine), dask:local, dask:ADDRESS, dask-slurm:FILE or mpi.",
        "--on WORKERS",
        shell_complete=offers(lambda: ("local", "dask:local", "dask:", "dask-slurm:", "mpi")),
        **shared.of_topic("workers"),
    )
    """None for processes of this machine, if the command need not distinguish whether ``--on`` was given."""
    jobs: int | None = shared.integer_option(
        "Processes of this machine.  [default: at most one per CPU]", "--jobs", least=1, **shared.of_topic("workers")
    )
    checkpoint: Path | None = option(
        "Continue from FILE, and append finished work to it.",
        "--checkpoint FILE",
        type=shared.PATH,
        **shared.of_topic("workers"),
    )

    def __post_init__(self) -> None:
        """Raise :class:`~mxwire.errors.MxwireError` for unknown workers, before anything is read."""
        if self.on is not None:
            from mxwire.campaign.workers import check_place

            check_place(self.on)

    def analyse_set(self, live: bool = False) -> bool:
        """Return whether files are to be analysed as a set, by workers.

        Raises :class:`~mxwire.errors.MxwireError` for options that would have no effect.
        """
        if self.on is None and (self.jobs is not None or self.checkpoint is not None):
            raise OptionError("--jobs and --checkpoint are for sets of captures: add --on local")
        if self.on is not None and live:
            raise OptionError("--on reads files, in several processes: omit -i")
        return self.on is not None

    @contextmanager
    def campaign(self, pieces: int | None = None, least: int = 1) -> Iterator[Campaign]:
        """Open the workers and the checkpoint.

        There are no more processes of this machine than ``pieces``. Without ``--jobs``, each has at least ``least``
        pieces: about as many as are played while a process starts.
        """
        from mxwire.campaign import Campaign, open_workers
        from mxwire.campaign.checkpoint import Checkpoint

        on, jobs = self.on or "local", self.jobs
        if on == "local" and pieces is not None:
            most = pieces if jobs else pieces // least
            jobs = min(jobs or os.cpu_count() or 1, max(most, 1))
        with ExitStack() as stack:
            # Every process of an MPI job executes this, and all except the first end after serving as workers, so they
            # must not open the checkpoint. Other workers may take long to start: mistakes are reported before.
            workers = stack.enter_context(open_workers(on, jobs)) if on == "mpi" else None
            known = stack.enter_context(Checkpoint(self.checkpoint, self._name())) if self.checkpoint else None
            yield Campaign(workers or stack.enter_context(open_workers(on, jobs)), known)

    def _name(self) -> str:
        """The options that determine the results, for the checkpoint."""
        context = click.get_current_context()
        given = shared.given_options().keys() - {"on", "jobs", "checkpoint", "target", "as_json", "force"}
        return json.dumps(
            [context.info_name, {each: str(context.params[each]) for each in sorted(given & context.params.keys())}]
        )
