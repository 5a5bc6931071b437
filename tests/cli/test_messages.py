"""``mxwire messages`` as a user runs it."""

from __future__ import annotations

import polars as pl
import pytest

from mxwire.capture import create_capture, open_capture
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire

FIRST, SECOND = "52:54:00:0a:00:01", "52:54:00:0a:00:02"
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"
TRUNCATED = CAPTURES / "mxoe-truncated.pcap"


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


def test_the_capture_is_not_overwritten(tmp_path):
    path = tmp_path / "same.csv"
    path.write_bytes(TRUNCATED.read_bytes())
    run = mxwire("messages", "--to", path, path)
    assert run.code == 2 and "is one of the captures" in run.err and path.read_bytes() == TRUNCATED.read_bytes()
