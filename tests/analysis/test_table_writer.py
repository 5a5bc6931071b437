"""The table that is written while the next batches are decoded: whole or not there, and never a thread left."""

from __future__ import annotations

import csv
import os
import resource
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from mxwire.analysis.table import TableWriter
from mxwire.analysis.table_file import RecordTable, TableFile
from mxwire.capture import open_capture
from mxwire.errors import MxwireError
from mxwire.wire.decoder import DecodedBatch, Decoder

CAPTURE = Path(__file__).parents[2] / "captures" / "mxoe-every-type.pcap"


def decoded() -> DecodedBatch:
    with open_capture(CAPTURE) as reader:
        (batch,) = Decoder().decode_all(reader)
    return batch


@pytest.mark.parametrize("suffix", ["parquet", "csv", "ndjson", "arrow"])
def test_many_batches_come_in_order(tmp_path, suffix):
    batch = decoded()
    with TableWriter(tmp_path / f"t.{suffix}", ["file", "frame"]) as writer:
        for number in range(20):
            writer.write(batch, str(number))
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "ndjson": pl.read_ndjson, "arrow": pl.read_ipc}[suffix]
    table = read(tmp_path / f"t.{suffix}")
    assert [int(each) for each in table["file"]] == [number for number in range(20) for _ in range(len(batch))]
    assert table["frame"].to_list() == list(range(1, len(batch) + 1)) * 20


def test_a_failing_block_leaves_the_earlier_file_and_no_thread(tmp_path):
    target = tmp_path / "t.parquet"
    target.write_text("mine")
    threads = threading.active_count()
    with pytest.raises(RuntimeError, match="stop"), TableWriter(target) as writer:
        writer.write(decoded(), "x")
        raise RuntimeError("stop")
    assert target.read_text() == "mine" and list(tmp_path.iterdir()) == [target]
    assert threading.active_count() == threads


def test_a_full_disk_is_one_error_and_nothing_is_left(tmp_path):
    """A limit of the size of files stands in for the disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    batch = decoded()
    threads = threading.active_count()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        with pytest.raises(MxwireError, match=r"t\.csv: cannot be written: ") as caught:  # noqa: SIM117
            with TableWriter(tmp_path / "t.csv") as writer:
                for _ in range(50):
                    writer.write(batch, "x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [] and threading.active_count() == threads


def test_a_symbolic_link_remains_and_leads_to_the_table(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "real.csv").write_text("earlier")
    link = tmp_path / "link.csv"
    link.symlink_to("elsewhere/real.csv")
    with TableWriter(link) as writer:
        writer.write(decoded(), "x")
    assert link.is_symlink() and len(pl.read_csv(elsewhere / "real.csv")) == len(decoded())
    assert {each.name for each in tmp_path.rglob("*")} == {"elsewhere", "real.csv", "link.csv"}


@pytest.mark.parametrize("linked", [False, True])
def test_a_target_that_is_not_a_regular_file_is_refused_and_remains(tmp_path, linked):
    """A pipe stands in for a device, which only root could make."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    target = tmp_path / "link.csv" if linked else pipe
    if linked:
        target.symlink_to(pipe)
    with pytest.raises(MxwireError, match="name a regular file"), TableWriter(target) as writer:
        writer.write(decoded(), "x")
    assert pipe.is_fifo() and target.is_symlink() == linked


def test_nothing_written_makes_no_file(tmp_path):
    with TableWriter(tmp_path / "t.parquet"):
        pass
    assert list(tmp_path.iterdir()) == []


class WithoutPolars:
    """Stands before all finders, and refuses what an installation without the extra does not have."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "polars":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def no_polars(monkeypatch):
    """Takes polars away, as far as an import can see."""

    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "polars"}
    monkeypatch.setattr(sys, "meta_path", [WithoutPolars(), *sys.meta_path])
    monkeypatch.setattr("mxwire.analysis.table_file.has_polars", lambda: False)
    yield
    sys.modules.update(hidden)


def written(path: Path, capture: Path) -> bytes:
    from mxwire.analysis.conversations import Follower
    from mxwire.analysis.message_table import MessageTable

    decoder, follower = Decoder(), Follower()
    messages = path.with_name(f"messages-{path.name}")
    with open_capture(capture) as reader, TableWriter(path) as frames, MessageTable(messages) as table:
        for batch in decoder.decode_all(reader):
            frames.write(batch, 'a "capture", of two\nlines')
            for message in follower.observe(batch):
                table.add_message("", message, follower.names)
        for message in follower.finish():
            table.add_message("", message, follower.names)
        table.flush()
    return path.read_bytes() + messages.read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".ndjson"])
@pytest.mark.parametrize("capture", sorted(CAPTURE.parent.glob("*-[em]*.pcap")), ids=lambda path: path.stem)
def test_without_polars_the_same_bytes_are_written(tmp_path, capture, suffix, request):
    by_polars = written(tmp_path / f"polars{suffix}", capture)
    request.getfixturevalue("no_polars")
    assert written(tmp_path / f"plain{suffix}", capture) == by_polars


@pytest.mark.parametrize("polars", [True, False])
def test_a_spreadsheet_runs_no_name_of_a_host(tmp_path, polars, request):
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("a,b")', "alpha", "a=1", "", None]
    if not polars:
        request.getfixturevalue("no_polars")
    kinds = {
        "name": "String",
        "host": "Categorical",
        "names": "List(String)",
        "number": "Int64",
        "numbers": "List(Int32)",
    }
    file = tmp_path / "names.csv"
    with RecordTable(file, kinds) as table:
        for each in names:
            joint = None if each is None else [each, "beta"]
            table.add({"name": each, "host": each, "names": joint, "number": -1, "numbers": [-1, -2]})
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    safe = [f"'{each}" for each in names[:8]] + names[8:10]
    assert [each["name"] for each in rows] == [*safe, "", ""]
    assert [each["host"] for each in rows] == [*safe, "", ""]
    assert [each["names"] for each in rows] == [*(f"{each} beta" for each in safe), " beta", ""]
    assert {(each["number"], each["numbers"]) for each in rows} == {("-1", "-1 -2")}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_format_that_needs_polars_names_the_package_to_install(tmp_path, no_polars, suffix):
    with pytest.raises(MxwireError, match=r"needs polars.*-m pip install 'polars>=") as caught:
        TableWriter(tmp_path / f"t{suffix}")
    assert "\n" not in str(caught.value)


def test_an_error_of_the_writer_names_the_file(tmp_path):
    def refuse(*_):
        raise ValueError("two kinds of values in one column")

    with pytest.raises(MxwireError, match=r"/t\.csv: cannot be written: two kinds of values in one column$"):  # noqa: SIM117
        with TableFile(tmp_path / "t.csv", refuse) as table:
            table.put({})
    assert not [*tmp_path.iterdir()]
