"""Campaigns by real worker processes: order, lost workers, checkpoints."""

from __future__ import annotations

import json
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from mxwire.campaign import Campaign, FatalPiece, open_workers
from mxwire.campaign.checkpoint import Checkpoint
from mxwire.cli.option_groups import WorkerOptions
from mxwire.errors import MxwireError


def square(number: int) -> int:
    return number * number


def noted(folder: Path, number: int) -> int:
    """Leave a file per call."""
    (folder / f"{number}-{os.getpid()}-{os.urandom(4).hex()}").touch()
    return number


def deadly(piece: int, number: int) -> int:
    """End the process that plays ``piece``."""
    if number == piece:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def deadly_once(mark: Path, number: int) -> int:
    """End the first process that comes here."""
    if number == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refused(number: int) -> int:
    if number == 3:
        raise MxwireError("no such number: 3")
    return number


def test_answers_are_in_the_order_of_the_pieces():
    finished: list[int] = []
    with open_workers(jobs=2) as workers:
        campaign = Campaign(workers)
        assert list(campaign.play(square, range(500), finished=finished.append)) == [n * n for n in range(500)]
        assert list(campaign.play(square, [])) == []
    assert finished[-1] == 500
    assert len(finished) < 100, "quick pieces are played in large chunks"


@pytest.mark.parametrize(
    ("jobs", "pieces", "size"), [(None, 199, 1), (None, 10**6, os.cpu_count()), (2, 199, 2), (2, 1, 1), (3, 0, 1)]
)
def test_processes_are_started_for_enough_pieces(jobs, pieces, size):
    with WorkerOptions(jobs=jobs).campaign(pieces, 100) as campaign:
        assert campaign.workers.size() == size


def test_a_piece_that_ends_its_workers_is_narrowed_and_reported(tmp_path):
    with open_workers(jobs=2) as workers:
        answers = list(Campaign(workers).play(partial(deadly, 37), range(60)))
    fatal = answers[37]
    assert isinstance(fatal, FatalPiece) and fatal.piece == 37 and fatal.workers >= 3
    assert str(fatal) == f"it ended each of {fatal.workers} worker processes"
    assert answers[:37] + answers[38:] == [each for each in range(60) if each != 37]


def test_the_chunk_of_a_lost_worker_is_repeated(tmp_path):
    with open_workers(jobs=2) as workers:
        assert list(Campaign(workers).play(partial(deadly_once, tmp_path / "mark"), range(20))) == list(range(20))
    assert (tmp_path / "mark").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_piece_ends_the_campaign(jobs):
    with open_workers(jobs=jobs) as workers, pytest.raises(MxwireError, match="no such number: 3"):
        list(Campaign(workers).play(refused, range(10)))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stopped_series_ends_with_the_chunks_under_way(jobs):
    with open_workers(jobs=jobs) as workers:
        series = Campaign(workers).play(square, range(1_000_000))
        first = next(series)
        series.stop()
        rest = list(series)
    assert [first, *rest] == [n * n for n in range(1 + len(rest))]
    assert len(rest) < 999_999


def test_closing_the_workers_ends_calls_that_are_not_finished():
    with open_workers(jobs=2) as workers:
        future = workers.submit(time.sleep, 3600)
    assert future.done()


def test_a_campaign_continues_from_its_checkpoint(tmp_path):
    file, calls = tmp_path / "checkpoint", tmp_path / "calls"
    calls.mkdir()
    play = partial(noted, calls)
    with open_workers(jobs=1) as workers, Checkpoint(file, "numbers") as known:
        series = Campaign(workers, known).play(play, range(50), section="a")
        assert [next(series) for _ in range(20)] == list(range(20))
    before = len(list(calls.iterdir()))
    assert 20 <= before < 50
    with file.open("ab") as damaged:
        damaged.write(b'{"series":"a","first":4')  # cut off by the end of the process
    for again in range(2):
        with open_workers(jobs=1) as workers, Checkpoint(file, "numbers") as known:
            campaign = Campaign(workers, known)
            assert list(campaign.play(play, range(50), section="a")) == list(range(50))
            if again:
                assert list(campaign.play(square, range(3), section="b")) == [0, 1, 4]
    assert len(list(calls.iterdir())) == 50, "no piece is played twice"
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    file = tmp_path / "checkpoint"
    Checkpoint(file, "one").__exit__()
    with pytest.raises(MxwireError, match="of another campaign"):
        Checkpoint(file, "two")
    file.write_text('{"mxwire":"0.0","campaign":"one"}\n')
    with pytest.raises(MxwireError, match=r"of mxwire 0\.0, this is"):
        Checkpoint(file, "one")
    for text in ("hello\n", "[1]\n", '{"campaign":"one"}\n', "{", "[" * 100_000 + "\n", "\0" * 100):
        file.write_text(text)
        with pytest.raises(MxwireError, match="not a checkpoint"):
            Checkpoint(file, "one")
        assert file.read_text() == text
    with pytest.raises(MxwireError, match=r"cannot be written: No such file or directory; create its directory first$"):
        Checkpoint(tmp_path / "none" / "file", "one")


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.replace(b"16", b"17"),
        lambda line: line.replace(b'"first":4', b'"first":[]'),
        lambda line: b'{"series":"","first":4,"answers":[16]}\n',
        lambda line: b"{}\n",
        lambda line: b"5\n",
        lambda line: b"\0" * 50 + b"\n",
        lambda line: b"[" * 100_000 + b"\n",
        lambda line: line[:-9] + b"\n",
        lambda line: b"\n",
    ],
)
def test_a_damaged_line_of_a_checkpoint_is_reported_and_left_as_it_is(tmp_path, damage):
    file = tmp_path / "checkpoint"
    with open_workers(jobs=1) as workers, Checkpoint(file, "numbers") as known:
        list(Campaign(workers, known).play(square, range(5)))
    lines = file.read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b"16" in line.partition(b"answers")[2])
    text = b"".join([*lines[:place], damage(lines[place]), *lines[place + 1 :]])
    file.write_bytes(text)
    with pytest.raises(MxwireError, match=rf"checkpoint: line {place + 1} is damaged: name another file$"):
        Checkpoint(file, "numbers")
    assert file.read_bytes() == text


@pytest.mark.parametrize("on", ["", "elsewhere", "dask", "dask:", "dask-slurm:", "mpi:3", "local:2"])
def test_unknown_workers_are_refused(on):
    with pytest.raises(MxwireError, match="no such workers; use local, dask:local"), open_workers(on):
        pass
