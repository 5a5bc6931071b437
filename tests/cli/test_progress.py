"""A progress bar reports the true amount of work done, and only then an estimate of the rest."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

from mxwire.cli import merge, progress
from mxwire.cli.progress import Bar, Estimate
from mxwire.cli.reading import decoded_batches, judged_batches
from mxwire.frames import FrameBatch
from mxwire.wire.decoder import Decoder
from tests.captures import read_batch
from tests.cli.streams import Stream
from tests.cli.support import EVERY_TYPE, ROOT


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def estimate(clock: Clock) -> Estimate:
    return Estimate(clock)


def steps(estimate: Estimate, clock: Clock, *, count: int, seconds: float, units: float) -> float:
    """Do some work at a steady pace; returns what is done at its end."""
    done = 0.0
    for number in range(count):
        clock.now += seconds
        done = units * (number + 1)
        estimate.step(done)
    return done


def test_reading_ahead_does_not_count_for_the_estimate(estimate, clock):
    """Four batches at once, as at the start of a file, and then nothing for long."""
    steps(estimate, clock, count=4, seconds=0.05, units=4e6)
    for _ in range(20):
        clock.now += 0.1
        assert estimate.pace() is None and estimate.seconds_left(500e6) is None


def test_a_steady_pace_is_estimated_after_some_seconds(estimate, clock):
    done = 0.0
    known_after = None
    for second in range(10):
        clock.now += 1
        done += 4e6
        estimate.step(done)
        if known_after is None and estimate.pace() is not None:
            known_after = second
    assert known_after == 3
    assert estimate.pace() == pytest.approx(4e6)
    assert estimate.seconds_left(500e6) == pytest.approx((500e6 - done) / 4e6)


def test_the_rate_of_stalled_work_decreases(estimate, clock):
    steps(estimate, clock, count=10, seconds=1, units=4e6)
    left = estimate.seconds_left(500e6)
    clock.now += 10
    later = estimate.seconds_left(500e6)
    assert left is not None and later is not None and later > left


def test_the_pace_is_that_of_the_last_seconds(estimate, clock):
    fast = steps(estimate, clock, count=100, seconds=1, units=40e6)
    for number in range(100):
        clock.now += 1
        estimate.step(fast + 1e6 * (number + 1))
    assert estimate.pace() == pytest.approx(1e6)


def test_an_estimate_needs_a_total_and_does_not_go_below_nothing(estimate, clock):
    done = steps(estimate, clock, count=10, seconds=1, units=4e6)
    assert estimate.seconds_left(None) is None
    assert estimate.seconds_left(done / 2) == 0


# Work is done when it has been analysed.


class Recorder(Bar):
    """A bar that remembers what it was to show."""

    shown = True

    def __init__(self) -> None:
        self.values: list[float] = []

    def update(self, done: float, total: float | None = None, now: str = "") -> None:
        self.values.append(done)


class Reader:
    """A capture of batches of ten frames and of as many thousand bytes, one after the other."""

    name = "fake"

    def __init__(self, batches: int) -> None:
        whole = read_batch(EVERY_TYPE)
        other = whole.frame(0)[:12] + b"\x08\x00" + whole.frame(0)[14:]
        self._frames = [whole.frame(place) for place in range(9)] + [other]
        self._batches = batches
        self.bytes_read = 0
        self.total_bytes: int | None = batches * 10_000

    def __iter__(self) -> Iterator[FrameBatch]:
        for number in range(self._batches):
            self.bytes_read = (number + 1) * 10_000
            times = (np.arange(10) + number * 10) * 1_000_000_000
            yield FrameBatch.from_frames(self._frames, times.tolist())


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder()

    @contextmanager
    def bar(*_: object, **__: object) -> Iterator[Recorder]:
        yield made

    monkeypatch.setattr(progress, "bar", bar)
    return made


@pytest.mark.parametrize("batches_of", [decoded_batches, judged_batches])
def test_the_bar_shows_analysed_data_rather_than_read_data(recorder, batches_of):
    reader = Reader(6)
    analysed = 0
    for decoded in batches_of(Decoder(), reader):
        # All is read ahead to find the dialect, and nothing of this batch is done yet.
        assert reader.bytes_read == 60_000
        assert recorder.values == [10_000 * (number + 1) for number in range(analysed)]
        assert len(decoded) == 9
        analysed += 1
    assert analysed == 6 and recorder.values[-1] == reader.total_bytes


@pytest.mark.parametrize("too_small", [0, 1])
def test_merge_shows_a_bar_while_both_captures_are_read_if_they_are_large_together(monkeypatch, tmp_path, too_small):
    """A capture alone has half the least size of a bar, and both are read again to be written."""
    wanted_for: list[tuple[str, float, bool]] = []

    @contextmanager
    def bar(label: str, total: float, unit: str, *, wanted: bool) -> Iterator[Bar]:
        wanted_for.append((label, total, wanted))
        yield Bar()

    ends = [str(tmp_path / name) for name in ("a.pcap", "b.pcap")]
    for each in ends:
        shutil.copy(EVERY_TYPE, each)
    size = EVERY_TYPE.stat().st_size
    monkeypatch.setattr(progress, "bar", bar)
    monkeypatch.setattr(progress, "SHOWN_FROM_BYTES", 2 * size + too_small)
    result = CliRunner().invoke(merge.command, [*ends, "-w", str(tmp_path / "both.pcapng")])
    assert result.exit_code == 0, result.output
    assert wanted_for == [*((each, size, False) for each in ends), (", ".join(ends), 2 * size, not too_small)]


# On a terminal.


def test_a_note_stands_above_the_bar_and_an_error_after_it():
    script = """
from mxwire.cli import progress
from mxwire.cli.notes import note
with progress.bar("[red]work", 100) as shown:
    shown.update(50)
    note("[bold]something :smile: to say")
"""
    said = shown_by(script)
    assert b"[red]work" in said and b"50/100" in said
    assert b"mxwire: [bold]something :smile: to say\n" in said
    assert said.index(b"something") < said.rindex(b"50/100")


def shown_by(script: str, *, stop: signal.Signals | None = None, until: bytes = b"") -> bytes:
    """All output of a program on a terminal."""
    terminal = Stream(terminal=True)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=terminal.theirs,
        stderr=terminal.theirs,
        cwd=ROOT,
        text=True,
        start_new_session=True,
    )
    try:
        if stop is not None:
            terminal.wait_for(until)
            process.send_signal(stop)
        process.wait(60)
    finally:
        # A process that it has forked would keep the terminal open.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        said = terminal.end()
    return said


def test_the_bar_is_erased_before_an_interrupt_is_reported():
    """The loop that is interrupted is not the one that draws the bar."""
    script = f"""
import os, time
from mxwire.cli import progress
from mxwire.cli.main import main
progress.SHOWN_FROM_BYTES = 0
import mxwire.analysis.inventory as inventory
def observe(self, decoded):
    os.write(2, b"observing")
    time.sleep(600)
inventory.Inventory.observe = observe
main(["info", {str(EVERY_TYPE)!r}])
"""
    said = shown_by(script, stop=signal.SIGINT, until=b"observing")
    erased = b"\x1b[?25h\r\x1b[1A\x1b[2K"
    assert erased in said
    assert said.rindex(erased) < said.index(b"mxwire: interrupted")
    assert b"0.0/" not in said[said.rindex(erased) :]
    assert said.endswith(b"\nmxwire: interrupted\n")


def test_sigterm_erases_the_bar_and_ends_the_program():
    """The terminal has its cursor back, and the code is that of a program ended by SIGTERM."""
    script = """
import os, time
from mxwire.cli import progress
with progress.bar("work", 100) as shown:
    for _ in range(20):
        worker = os.fork()
        if not worker:
            time.sleep(600)
        os.kill(worker, 15)
        assert os.waitpid(worker, 0)[1] == 15, "the handler is not for forks"
    shown.update(50)
    try:
        time.sleep(600)
    except SystemExit as end:
        assert end.code == 143
        raise
"""
    said = shown_by(script, stop=signal.SIGTERM, until=b"50/100")
    assert said.endswith(b"\x1b[?25h\r\x1b[1A\x1b[2K"), said[-300:]
