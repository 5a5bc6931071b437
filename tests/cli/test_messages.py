"""``mxwire messages`` as a user runs it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from mxwire.capture import create_capture, open_capture
from mxwire.frames import LINKTYPE_LINUX_SLL, FrameBatch
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire

FIRST, SECOND = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
TRUNCATED = CAPTURES / "mxoe-truncated.pcap"


def numbers(run):
    return [int(line.split()[0]) for line in run.lines if line and line.split()[0].isdigit()]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_tables(tmp_path, suffix):
    target = tmp_path / f"messages.{suffix}"
    assert mxwire("messages", "--to", target, EVERY_TYPE, LOSSY).code == 0
    table = pl.read_parquet(target) if suffix == "parquet" else pl.read_csv(target)
    assert table["message"].to_list() == [*range(1, 13), 1, 2]
    assert table["length"].to_list()[-2:] == [1048576, 1048576]
    assert table["match"].to_list()[0] == 0x1000
    assert table.columns == list(pl.read_parquet_schema(target)) if suffix == "parquet" else True


def test_an_empty_selection_makes_an_empty_table(tmp_path):
    target = tmp_path / "none.parquet"
    assert mxwire("messages", "--endpoint", "9", "--to", target, EVERY_TYPE).code == 0
    table = pl.read_parquet(target)
    assert len(table) == 0 and "re_requests" in table.columns


def test_a_pipe_and_a_compressed_capture(tmp_path):
    with open_capture(TRUNCATED) as reader, create_capture(tmp_path / "t.pcapng.zst") as writer:
        for batch in reader:
            writer.write(batch)
    direct = mxwire("messages", TRUNCATED).out
    assert mxwire("messages", tmp_path / "t.pcapng.zst").out == direct
    assert mxwire("messages", "-", stdin=TRUNCATED.read_bytes()).out == direct


def test_a_cooked_capture_reports_the_missing_data(tmp_path):
    path = tmp_path / "cooked.pcapng"
    head = bytes.fromhex("00000001000652540010a001000086df")
    with open_capture(TRUNCATED) as reader, create_capture(path, link_type=LINKTYPE_LINUX_SLL) as writer:
        batch = next(iter(reader))
        frames = [head + batch.frame(index)[14:] for index in range(len(batch))]
        writer.write(FrameBatch.from_frames(frames, batch.timestamp_ns.tolist(), link_type=LINKTYPE_LINUX_SLL))
    run = mxwire("messages", path)
    assert run.code == 0 and "does not record destinations" in run.err
    assert all("the other direction was not seen" in line for line in run.lines[1:-2])


def test_the_capture_is_not_overwritten(tmp_path):
    path = tmp_path / "same.csv"
    path.write_bytes(TRUNCATED.read_bytes())
    run = mxwire("messages", "--to", path, path)
    assert run.code == 2 and "is one of the captures" in run.err and path.read_bytes() == TRUNCATED.read_bytes()


def test_one_bad_file_of_several(tmp_path):
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"not a capture at all, but long enough to be one")
    run = mxwire("messages", bad, TRUNCATED)
    assert run.code == 2 and "bad.pcap" in run.err and len(numbers(run)) == 6


def test_data_without_its_requests_is_not_listed_as_a_conversation(tmp_path):
    """Replies name no endpoint: two hosts with unknown endpoints are not listed as a conversation."""
    path = tmp_path / "later.pcap"
    with open_capture(CAPTURES / "mxoe-lossy-1M.pcap") as reader, create_capture(path) as writer:
        (batch,) = reader
        writer.write(batch.select(np.arange(200, 600)))
    run = mxwire("messages", "--by", "conversation", path)
    assert "?" not in run.out and "the requests for some large messages were not captured" in run.err
    assert all(
        side["endpoint"] is not None
        for each in mxwire("messages", "--by", "conversation", "--json", path).objects
        for side in each["endpoints"]
    )
