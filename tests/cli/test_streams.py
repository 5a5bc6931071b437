"""Output that arrives where it belongs, with standard output and standard error being terminals or pipes.

Every command runs with each of the two being a terminal or a pipe, and with a progress bar wherever it has one. The
bytes in a pipe must be the same, whatever standard error is. The output on a terminal is compared with them, too:
without colours (NO_COLOR), with the same 400 columns (COLUMNS) for both, and with a terminal that does not turn a line
feed into two characters. The two terminals are separate ones, as a bar would be among the output otherwise; another run
has one terminal for both, as users do. In a locale without UTF-8, all of it is ASCII.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mxwire.cli.main import COMMANDS
from tests.cli.streams import BAR, Stream
from tests.cli.support import CAPTURES, EVERY_TYPE, ROOT
from tests.forked import fork_server

LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"


@dataclass(frozen=True)
class Case:
    """A command, and what is special about it."""

    arguments: tuple[str, ...]
    bar: bool = False
    """It shows a progress bar."""
    code: int = 0
    binary: bool = False
    """Its output is refused by a terminal."""
    writes: str = ""
    """A file that it makes, to be taken away before the next run."""

    @property
    def streams(self) -> bool:
        """True if it prints while it reads, so that a bar would be among its lines on a terminal."""
        name, *options = self.arguments
        lines = name in ("decode", "messages") and not {"--to", "--by"} & set(options)
        return lines or (name in ("verify", "simulate") and "--json" in options)


def case(line: str) -> Case:
    """A call, behind its particulars and a colon: ``bar``, ``code=N``, ``binary``, ``writes=FILE``."""
    particulars, _, call = line.rpartition(": ")
    names = {"EVERY": str(EVERY_TYPE), "LOSSY": str(LOSSY)}
    arguments = tuple(names.get(each, each) for each in call.split())
    fields = dict(each.partition("=")[::2] for each in particulars.split())
    return Case(arguments, "bar" in fields, int(fields.get("code", 0)), "binary" in fields, fields.get("writes", ""))


CASES = [case(line) for line in Path(__file__).with_name("streams.txt").read_text().splitlines()]
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
    tried = {each.arguments[0] for each in CASES}
    assert tried | ON_AN_INTERFACE | WITH_A_BUILD == set(COMMANDS)
    assert (ON_AN_INTERFACE | WITH_A_BUILD).isdisjoint(tried)


@dataclass(frozen=True)
class Ran:
    code: int
    out: bytes
    err: bytes


def run(tried: Case, folder: Path, *, out: Stream, err: Stream, **variables: str) -> Ran:
    """Run a command with a bar for whatever length, and with more ``variables`` of the environment."""
    if tried.writes:
        (folder / tried.writes).unlink(missing_ok=True)
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
    for each in CASES:
        words = (Path(word).name if word.startswith(str(ROOT)) else word for word in each.arguments)
        yield pytest.param(each, id=" ".join(words))


@pytest.mark.parametrize("each", list(tried()))
def test_output_arrives_on_every_kind_of_stream(each: Case, folder: Path) -> None:
    expected = run(each, folder, out=Stream(terminal=False), err=Stream(terminal=False))
    assert expected.code == each.code, expected.err
    assert expected.out or each.writes
    assert b"\x1b" not in expected.err and (each.binary or b"\x1b" not in expected.out)

    piped = run(each, folder, out=Stream(terminal=False), err=Stream(terminal=True), LC_ALL="C")
    coloured = {"LC_ALL": "C", "NO_COLOR": "", "COLUMNS": "80"}
    narrow = run(each, folder, out=Stream(terminal=True), err=Stream(terminal=True), **coloured)
    for ran in (piped, narrow):
        assert ran.err.isascii() and (ran.out.isascii() or "-w" in each.arguments)
    assert piped.code == each.code
    if "--json" in each.arguments:
        assert [*map(json.loads, piped.out.splitlines())] == [*map(json.loads, expected.out.splitlines())]

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

    same = Stream(terminal=True)
    together = run(each, folder, out=same, err=same)
    assert bool(BAR.search(together.out)) == (each.bar and not each.streams)
    said = BAR.sub(b"", together.out)
    assert expected.out in said and len(said) == len(expected.out) + len(expected.err)
