"""Options that the studies of ``mxwire bench`` share, and the storage of their recordings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mxwire.cli import options as shared
from mxwire.cli.conflicts import conflicts, requires
from mxwire.cli.live_options import end_like_interrupt
from mxwire.cli.notes import note, print_records
from mxwire.cli.option_class import option, options_class
from mxwire.cli.progress import LiveLine
from mxwire.errors import check_writable, create_folder

if TYPE_CHECKING:
    from mxwire.bench.imb.rank_testbed import RankSurroundings
    from mxwire.bench.record import Recording
    from mxwire.bench.report import PageFigure
    from mxwire.bench.study import StudyOptions
    from mxwire.bench.testbed import StudyTestbed
    from mxwire.report.document import Block

NOT_WITH_INTERFACE: Final = "{option}: not with -i, which measures the interface as it is"
"""Error for options of a virtual cable, or of virtual time."""
_UNITS: Final = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def duration_type(value: str) -> float:
    """An option type: a duration with its unit, such as ``70us``, in seconds."""
    for unit, seconds in _UNITS.items():
        amount = value.removesuffix(unit)
        if amount != value and amount[-1:].isdigit():
            return shared.Amount(0, 1 / seconds).convert(amount, None, None) * seconds
    raise click.BadParameter(f"{value!r} is not a duration: write 70us, 1ms or 0.5s")


def sizes_type(value: str) -> tuple[int, ...]:
    """An option type: sizes of messages in bytes, with commas; in ascending order."""
    from mxwire.bench.channels.channel import LARGEST

    return numbers_type(value, "sizes", "4,1024,65536", 1, LARGEST, " bytes")


def numbers_type(value: str, noun: str, example: str, least: int, most: int, unit: str = "") -> tuple[int, ...]:
    """An option type, with more arguments: numbers with commas; in ascending order.

    Raises :class:`click.BadParameter` for those below ``least`` or above ``most``, and for other text.
    """
    try:
        found = tuple(sorted({int(each) for each in value.split(",")}))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of {noun}: write {example}") from None
    if found[0] < least or found[-1] > most:
        raise click.BadParameter(f"{value!r}: {noun} are from {least} to {most}{unit}")
    return found


@options_class
class BenchOptions:
    """Parsed options of all studies."""

    rounds: int | None = shared.integer_option(
        "Rounds in which contestants take turns.  [default: 9]", "--rounds", least=1, most=1000
    )
    quick: bool = shared.flag_option("Two short rounds: shapes and counts are right, times are not.", "--quick")
    as_json: bool = shared.json_option("JSON Lines: conditions, one object per measurement, and the end.")
    write: Path | None = shared.write_option("Write the recording to FILE: JSON Lines, or .parquet.", type=shared.PATH)
    plot: Path | None = shared.plot_option(
        "Also draw the main figure: .svg, .png, .pdf or .html.", ".svg", ".png", ".pdf", ".html"
    )
    html: Path | None = option(
        "Write a site to DIR: a page with figures and tables, and the recording.",
        "--html DIR",
        type=click.Path(file_okay=False, path_type=Path),
    )

    @property
    def study(self) -> StudyOptions:
        """The options of the study."""
        from mxwire.bench.study import StudyOptions

        return StudyOptions.of(self.rounds, self.quick, LiveLine().show)

    def check(self, *, live: bool = True) -> None:
        """Report conditions that would spoil the study or its output before it starts; warnings are printed as notes.

        Raises :class:`~mxwire.errors.MxwireError` if a file could not be written, or an extra is missing.
        """
        from mxwire.extras import import_extra

        if self.write is not None:
            check_writable(self.write)
        if self.html is not None:
            import_extra("matplotlib", "report", "--html")
            import_extra("jinja2", "report", "--html")
            create_folder(self.html)
        if self.write is not None and self.write.suffix == ".parquet":
            import_extra("polars", "table", "a file that ends in .parquet")
        if live:
            from mxwire.lab.machine import warnings

            for each in warnings():
                note(each)


simulated_option = option("Virtual time, with the costs of this table.", "--simulated TABLE")
memory_option = shared.flag_option("Both sides in this process, without root: shapes and counts only.", "--memory")


def names_option(text: str, *names: str, **more: Any) -> Any:
    """An option for a list of names with commas."""
    return option(text, *names, callback=shared.split_names, metavar="LIST", **more)


@requires("-d", one_of=("-i",), error="-d is for a study over an interface: add -i IF")
@options_class
class OtherMachine:
    """Options of a study between two machines."""

    interface: str | None = shared.interface_option(
        "Measure to another machine over this interface, with mxwire bench serve there."
    )
    destination: str | None = option("Its Ethernet address.  [default: the one that answers]", "-d MAC")

    @property
    def address(self) -> bytes | None:
        """The Ethernet address of the other machine; None selects the machine that answers."""
        from mxwire.ethernet import mac_bytes

        return None if self.destination is None else mac_bytes(self.destination)


def rank_surroundings(machine: OtherMachine, simulated: str | None) -> RankSurroundings:
    """The environment of the ranks of a study; raise :class:`~mxwire.errors.MxwireError` for an unknown table."""
    from mxwire.bench.cost.tables import table_by_name
    from mxwire.bench.imb.rank_testbed import RankSurroundings
    from mxwire.lab.machine import compiled_folder

    if simulated is not None:
        return RankSurroundings(table_by_name(simulated))
    return RankSurroundings(None, compiled_folder(), machine.interface, machine.address)


@conflicts("-i", "--mtu", "--steering", "--delay", "--offloads", error=NOT_WITH_INTERFACE)
@options_class
class CableOptions:
    """Options of a virtual cable between two namespaces."""

    mtu: int = shared.integer_option("MTU of the virtual cable.", "--mtu BYTES", least=1500, most=65535, default=9000)
    steering: bool = option(
        "Have frames processed by the receiver's CPU, as between machines, or by the sender's.  [default: steering]",
        "--steering/--no-steering",
        default=True,
    )
    delay: float | None = option("Delay each frame in each direction, like 70us.", "--delay TIME", type=duration_type)
    offloads: str | None = option(
        "TSO, GSO and GRO, which make TCP faster.  [default: those of the kernel]", "--offloads [on|off]"
    )

    def opener(self, machine: OtherMachine) -> Callable[[Path | None], AbstractContextManager[StudyTestbed]]:
        """Return a function that opens the testbed: on the cable, or with another machine.

        The parameter of the function is the folder of the mxwire that both sides run, or None for the running
        mxwire.
        """

        def open_it(package: Path | None) -> AbstractContextManager[StudyTestbed]:
            if machine.interface is not None:
                from mxwire.bench.remote import RemoteTestbed

                return RemoteTestbed(machine.interface, machine.address, package)
            from mxwire.bench.testbed import TestbedOptions, open_testbed

            offloads = {"on": True, "off": False, None: None}[self.offloads]
            return open_testbed(TestbedOptions(self.mtu, self.steering, self.delay or 0.0, offloads, package))

        return open_it


def choose_testbed(
    machine: OtherMachine, memory: bool, simulated: str | None, cable: CableOptions
) -> Callable[[], AbstractContextManager[StudyTestbed]]:
    """A function that opens the testbed which the options describe."""
    if memory:
        from mxwire.bench.testbed import MemoryTestbed

        return partial(MemoryTestbed, cable.mtu)
    if simulated is not None:
        from mxwire.bench.cost.tables import table_by_name
        from mxwire.bench.cost.testbed import VirtualTestbed

        return partial(VirtualTestbed, table_by_name(simulated), mtu=cable.mtu, delay=cable.delay or 0.0)
    from mxwire.lab.machine import compiled_folder

    opener = cable.opener(machine)
    return lambda: opener(compiled_folder())


def conduct(
    options: BenchOptions,
    title: str,
    measure: Callable[[StudyOptions], Recording],
    blocks: Callable[[Recording], Iterator[Block]],
    figures: Callable[[Recording], Iterator[PageFigure]],
    *,
    text: Callable[[Recording], str] | None = None,
    live: bool = True,
) -> None:
    """Run a study, and print and write its recording, even if the recording is partial.

    ``measure`` is called with a function to which it passes the recording as soon as one exists. ``text`` is the output
    instead of the blocks. A figure without data is not drawn. The exit code is 1 for a study that ended early, and 130
    after Ctrl-C.
    """
    end_like_interrupt()
    options.check(live=live)
    from mxwire.bench import report
    from mxwire.report.document import show

    started: list[Recording] = []
    interrupted = False
    try:
        recording = measure(replace(options.study, on_start=started.append))
    except KeyboardInterrupt:
        if not started:
            raise
        interrupted, recording = True, started[0]
        recording.complete = False
    LiveLine().show("")
    if options.write is not None:
        recording.write(options.write)
    if options.as_json:
        print_records(recording.records())
    elif text is not None:
        click.echo(text(recording), nl=False)
    else:
        show([*blocks(recording), *report.condition_blocks(recording)])
    drawn: Sequence[PageFigure] = list(figures(recording)) if options.plot or options.html else ()
    if options.plot is not None:
        if drawn:
            report.write_figure(options.plot, drawn[0].figure)
        else:
            note(f"{options.plot}: not drawn: nothing was measured")
    if options.html is not None:
        content = [*blocks(recording), *report.condition_blocks(recording)]
        note(f"wrote {report.write_page(options.html, recording, title, content, drawn)}")
    if not recording.complete:
        note(f"partial: {recording.remarks[-1] if recording.remarks else 'interrupted by Ctrl-C'}")
        sys.exit(130 if interrupted else 1)
