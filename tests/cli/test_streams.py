"""Output that arrives where it belongs, with standard output and standard error being terminals or pipes.

Every command runs with each of the two being a terminal or a pipe, and with a progress bar wherever it has one. The
bytes in a pipe must be the same, whatever standard error is. The output on a terminal is compared with them, too:
without colours (NO_COLOR), with the same 400 columns (COLUMNS) for both, and with a terminal that does not turn a line
feed into two characters. The two terminals are separate ones, as a bar would be among the output otherwise; a third run
has one terminal for both, as users do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mxwire.cli.main import COMMANDS
from tests.cli.streams import BAR, Stream
from tests.cli.support import CAPTURES, EVERY_TYPE, ROOT
from tests.forked import fork_server

LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
ALPHA = "52:54:00:0a:00:01"


@dataclass(frozen=True)
class Case:
    """A command, and what is special about it."""

    arguments: tuple[str, ...]
    bar: bool = False
    """It shows a progress bar."""
    code: int = 0
    binary: bool = False
    """Its output is refused by a terminal."""
    writes: tuple[str, ...] = field(default=())
    """Files that it makes, to be taken away before the next run."""

    @property
    def streams(self) -> bool:
        """True if it prints while it reads, so that a bar would be among its lines on a terminal."""
        name, *options = self.arguments
        lines = name in ("decode", "messages") and not {"--to", "--by"} & set(options)
        return lines or (name in ("verify", "simulate") and "--json" in options)


def case(text: str, *, bar: bool = False, code: int = 0, binary: bool = False, writes: tuple[str, ...] = ()) -> Case:
    names = {"EVERY": EVERY_TYPE, "LOSSY": LOSSY}
    return Case(tuple(str(names.get(each, each)) for each in text.split()), bar, code, binary, writes)


CASES = {
    "decode": (
        case("decode EVERY", bar=True),
        case("decode -v --frames 1-20 EVERY", bar=True),
        case("decode --json EVERY LOSSY", bar=True),
        case("decode --fields frame,type,length EVERY", bar=True),
        case("decode --type RNDV LOSSY", bar=True),
        case("decode --to frames.csv EVERY", bar=True, writes=("frames.csv",)),
    ),
    "info": (case("info EVERY LOSSY", bar=True), case("info --json EVERY", bar=True)),
    "messages": (
        case("messages EVERY LOSSY", bar=True),
        case("messages --json LOSSY", bar=True),
        case("messages --by conversation EVERY", bar=True),
        case("messages --to messages.csv LOSSY", bar=True, writes=("messages.csv",)),
    ),
    "follow": (
        case("follow --message 1 LOSSY", bar=True),
        case("follow 1 LOSSY", bar=True),
        case("follow --frame 428 LOSSY", bar=True),
    ),
    "extract": (
        case("extract --message 5 -w - EVERY", bar=True),
        case("extract --message 5 -w data EVERY", bar=True, writes=("data",)),
        case("extract 5 EVERY -w data", bar=True, writes=("data",)),
        case("extract --frame 41 EVERY -w -", bar=True),
    ),
    "stats": (case("stats LOSSY", bar=True),),
    "verify": (
        case("verify EVERY LOSSY", bar=True),
        case("verify --json LOSSY", bar=True),
        case("verify --junit /dev/null EVERY", bar=True),
    ),
    "report": (case("report LOSSY --html report --force --json", bar=True),),
    "diagnose": (case("diagnose LOSSY", bar=True, code=1), case("diagnose --json LOSSY", bar=True, code=1)),
    "merge": (
        case("merge one.pcap other.pcap", bar=True),
        case("merge one.pcap other.pcap -w -", bar=True, binary=True),
        case("merge one.pcap other.pcap -w both.pcapng --json", bar=True, writes=("both.pcapng",)),
    ),
    "compat": (case("compat EVERY", bar=True),),
    "formats": (case("formats"), case("formats --diagram"), case("formats PULL --json")),
    "rules": (case("rules"), case("rules R-ACK-06 --json")),
    "config": (case("config"),),
    "help": (case("help decode"), case("help filter")),
    "simulate": (
        case("simulate --messages 8", bar=True),
        case("simulate --seeds 0-2 --jobs 1", bar=True),
        case("simulate --seeds 0-3 --jobs 2 --json", bar=True),
        case("simulate --exhaustive 1 --workload tiny --jobs 1", bar=True),
    ),
    "scenario": (case("scenario list"), case("scenario show connect/bad-key"), case("scenario run connect")),
    "interop": (
        case("interop --list"),
        case("interop --implementation open-mx-1.5 --case connect --jobs 1", bar=True),
    ),
    "plugin": (case("plugin path"),),
    "top": (case("top --once LOSSY"), case("top --once --json EVERY")),
    "replay": (
        case("replay EVERY --dry-run"),
        case(f"replay LOSSY --as {ALPHA} --simulate open-mx --json", bar=True),
    ),
}
ON_AN_INTERFACE = frozenset(
    {
        *("agent", "watch", "discover", "ping", "capture", "serve", "send", "receive", "perf", "ss", "doctor"),
        *("linerate", "bench"),
    }
)
"""Commands that cannot do anything without one: tests/live/test_live_streams.py runs them, and replay."""

WITH_A_BUILD = frozenset({"library", "run"})
"""Commands that need the compiled library: tests/library runs them. They have no progress bar."""


def test_every_command_is_tried():
    assert set(CASES) | ON_AN_INTERFACE | WITH_A_BUILD == set(COMMANDS)
    assert (ON_AN_INTERFACE | WITH_A_BUILD).isdisjoint(CASES)


@dataclass(frozen=True)
class Ran:
    code: int
    out: bytes
    err: bytes


def run(tried: Case, folder: Path, *, out: Stream, err: Stream, **variables: str) -> Ran:
    """Run a command with a bar for whatever length, and with more ``variables`` of the environment."""
    for each in tried.writes:
        (folder / each).unlink(missing_ok=True)
    environment = os.environ | {"COLUMNS": "400", "TERM": "xterm-256color", "NO_COLOR": "1"} | variables
    nothing = os.open(os.devnull, os.O_RDONLY)
    constants = {"mxwire.cli.progress.SHOWN_FROM_BYTES": 0}
    streams = [nothing, out.theirs, err.theirs]
    try:
        code = fork_server().run(list(tried.arguments), folder, streams, environment, constants)
    finally:
        os.close(nothing)
        printed = out.end()
        said = printed if err is out else err.end()
    assert b"Traceback" not in said
    return Ran(code, printed, said)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the captures of both ends of a cable."""
    made = tmp_path_factory.mktemp("streams")
    for name in ("one.pcap", "other.pcap"):
        (made / name).write_bytes(EVERY_TYPE.read_bytes())
    return made


def tried() -> Iterator[object]:
    for cases in CASES.values():
        for each in cases:
            words = (Path(word).name if word.startswith(str(ROOT)) else word for word in each.arguments)
            yield pytest.param(each, id=" ".join(words))


@pytest.mark.parametrize("each", list(tried()))
def test_output_arrives_on_every_kind_of_stream(each: Case, folder: Path) -> None:
    expected = run(each, folder, out=Stream(terminal=False), err=Stream(terminal=False))
    assert expected.code == each.code, expected.err
    assert expected.out or each.writes
    assert b"\x1b" not in expected.err and (each.binary or b"\x1b" not in expected.out)

    watched = run(each, folder, out=Stream(terminal=False), err=Stream(terminal=True))
    assert watched.out == expected.out
    assert watched.code == expected.code
    assert bool(BAR.search(watched.err)) == each.bar
    assert BAR.sub(b"", watched.err) == expected.err

    if each.binary:
        for err in (False, True):
            refused = run(each, folder, out=Stream(terminal=True), err=Stream(terminal=err))
            assert refused.code == 2 and not refused.out and b"terminal" in refused.err
        return

    shown = run(each, folder, out=Stream(terminal=True), err=Stream(terminal=False))
    assert shown.out == expected.out
    assert shown.err == expected.err and shown.code == expected.code

    both = run(each, folder, out=Stream(terminal=True), err=Stream(terminal=True))
    assert both.out == expected.out
    assert bool(BAR.search(both.err)) == (each.bar and not each.streams)

    same = Stream(terminal=True)
    together = run(each, folder, out=same, err=same)
    assert bool(BAR.search(together.out)) == (each.bar and not each.streams)
    assert expected.out in BAR.sub(b"", together.out)


@pytest.mark.parametrize("each", list(tried()))
def test_output_is_ascii_in_a_locale_without_utf_8(each: Case, folder: Path) -> None:
    piped = run(each, folder, out=Stream(terminal=False), err=Stream(terminal=True), LC_ALL="C")
    assert piped.code == each.code
    assert piped.err.isascii() and (piped.out.isascii() or "-w" in each.arguments)
    if "--json" in each.arguments:
        usual = run(each, folder, out=Stream(terminal=False), err=Stream(terminal=False))
        assert list(map(json.loads, piped.out.splitlines())) == list(map(json.loads, usual.out.splitlines()))
    shown = run(
        each, folder, out=Stream(terminal=True), err=Stream(terminal=True), LC_ALL="C", NO_COLOR="", COLUMNS="80"
    )
    assert shown.err.isascii() and (shown.out.isascii() or "-w" in each.arguments)
