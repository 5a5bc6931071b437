"""``mxwire bench models``: the classic libraries for user-space communication side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mxwire.cli import bench_options as studies
from mxwire.cli.conflicts import conflicts
from mxwire.cli.group import command_with
from mxwire.cli.notes import note, print_result
from mxwire.cli.option_class import group, option, options_class
from mxwire.cli.options import flag_option
from mxwire.errors import MxwireError

if TYPE_CHECKING:
    from mxwire.bench.record import Recording
    from mxwire.bench.study import StudyOptions

_TITLE: Final = "Classic libraries side by side"
_MEASURES: Final = (
    "--compare",
    "--card",
    "--rounds",
    "--quick",
    "-w",
    "--plot",
    "-i",
    "--memory",
    "--sizes",
    "--payload",
    "--clients",
)
_ROUNDS: Final = 3
"""Rounds of a comparison: it compares medians, and judges no order."""
_CABLE: Final = ("--mtu", "--steering", "--delay", "--offloads")


def payloads_type(value: str) -> tuple[int, ...]:
    """An option type: payloads of frames in bytes, with commas; in ascending order."""
    from mxwire.bench.models.header import LARGEST_PAYLOAD, SMALLEST_PAYLOAD

    return studies.numbers_type(value, "payloads", "1024,4096", SMALLEST_PAYLOAD, LARGEST_PAYLOAD, " bytes")


def clients_type(value: str) -> tuple[int, ...]:
    """An option type: numbers of clients, with commas; in ascending order."""
    from mxwire.bench.models.comparison import MOST_CLIENTS

    return studies.numbers_type(value, "numbers of clients", "1,2,4,8", 1, MOST_CLIENTS)


@conflicts(
    "--payload", "--clients", error="--payload and --clients exclude each other: each replaces all other measurements"
)
@conflicts("-i", "--memory", error=studies.NOT_WITH_INTERFACE)
@conflicts("--memory", "--delay", "--offloads", "--steering", error="{option}: not with --memory")
@conflicts("--table", *_MEASURES, *_CABLE, error="{option}: not with --table, which measures nothing")
@options_class
class ModelsOptions:
    """The options of mxwire bench models."""

    table: str | None = option("Print the choices of the libraries (1, 2), or LogP by testbed (3).", "--table [1|2|3]")
    compare: bool = flag_option(
        "Measure LogP, three bandwidths and two patterns of the libraries, in three rounds by default.", "--compare"
    )
    names: tuple[str, ...] = studies.names_option("Libraries, separated by commas.", "--model", default="all")
    sizes: tuple[int, ...] | None = option(
        "Lengths of the messages, separated by commas.  [default: 4,256,4096,65536,1048576]",
        "--sizes BYTES",
        type=studies.sizes_type,
    )
    cards: tuple[str, ...] = studies.names_option(
        "Place of the card's part of each library: inline (in the program's calls), process (in its own process), or "
        "both: inline,process.",
        "--card",
        default="inline",
    )
    payloads: tuple[int, ...] | None = option(
        "Measure only the bandwidths, once per payload of the models' frames, like 1024,2048,4096,8192.",
        "--payload BYTES",
        type=payloads_type,
    )
    clients: tuple[int, ...] | None = option(
        "Measure only the central queue of a server, once per number of its clients, like 1,2,4,8.",
        "--clients NUMBERS",
        type=clients_type,
    )
    machine: studies.OtherMachine = group(studies.OtherMachine)
    memory: bool = studies.memory_option
    bench: studies.BenchOptions = group(studies.BenchOptions)
    cable: studies.CableOptions = group(studies.CableOptions)


@command_with(ModelsOptions)
def models(given: ModelsOptions) -> None:
    """Compare the classic libraries (Active Messages, BIP and others) by their promises, data paths, and in time."""
    if given.table is not None:
        _print_table(int(given.table), given.names, given.bench)
        return
    if not given.compare:
        raise MxwireError("nothing to do: add --table 1, 2 or 3, or --compare")
    from mxwire.bench.models.comparison import LIMIT, compare_models, compared, comparison_blocks, comparison_figures

    compared(given.names, given.cards)
    opener = studies.choose_testbed(given.machine, given.memory, None, given.cable)
    bench = given.bench
    # Rounds that the caller asks for have no limit.
    limit = LIMIT if bench.rounds is None else None
    if bench.rounds is None and not bench.quick:
        bench = replace(bench, rounds=_ROUNDS)

    def measure(options: StudyOptions) -> Recording:
        with opener() as testbed:
            measured = given.names, given.sizes, given.cards, given.payloads or (), given.clients or ()
            return compare_models(testbed, replace(options, limit=limit), *measured)

    studies.conduct(bench, _TITLE, measure, comparison_blocks, comparison_figures)


def _print_table(number: int, names: tuple[str, ...], bench: studies.BenchOptions) -> None:
    from mxwire.bench.models.catalogue import check_model
    from mxwire.bench.models.facts import FACTS
    from mxwire.bench.models.tables import TITLES, table_blocks, table_records

    chosen = list(FACTS) if names == ("all",) else [check_model(each) for each in names]
    bench.check(live=False)
    print_result(bench.as_json, table_records(number, chosen), lambda: table_blocks(number, chosen))
    if bench.html is not None:
        from mxwire.bench.record import Conditions, Recording, now_text
        from mxwire.bench.report import write_page

        recording = Recording(f"models-table-{number}", Conditions(now_text(), "from the code of the models"))
        recording.facts["rows"] = list(table_records(number, chosen))
        note(f"wrote {write_page(bench.html, recording, TITLES[number], list(table_blocks(number, chosen)), ())}")
