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


def test_one_line_per_message():
    run = mxwire("messages", TRUNCATED)
    assert (run.code, run.err) == (0, "")
    heading, *lines, blank, pointer = run.lines
    assert not blank and pointer.startswith("mxwire follow NUMBER FILE")
    assert heading.split()[:3] == ["#", "seconds", "source"] and len(lines) == 6
    # Columns of the heading stand over those of the lines.
    assert lines[4].index("RNDV") == heading.index("kind")
    assert lines[4].index("truncated") == heading.index("sender")
    assert lines[4].split()[2:11] == [FIRST, "→", SECOND, "5→3", "RNDV", "50000", "0x5", "6", lines[4].split()[10]]
    assert lines[4].endswith("[10000 bytes received]")


def test_json_has_everything_and_stable_keys():
    run = mxwire("messages", "--json=full", LOSSY)
    first, second = run.objects
    assert list(first) == list(second)
    assert (first["message"], first["kind"], first["length"], first["match"]) == (
        1,
        "RNDV",
        1048576,
        "0x" + "2000".zfill(16),
    )
    assert (first["source"], first["source_endpoint"], first["destination"]) == (FIRST, 5, SECOND)
    assert first["sender"] == "notified" and first["receiver"] == "received" and first["half_seen"] == []
    assert first["bytes_seen"] == first["notify_length"] == 1048576
    assert first["re_requests"] == len(first["re_requested"]) > 0
    assert sum(last - start + 1 for start, last in first["frames"]) == first["frame_count"]
    assert "file" not in first
    several = mxwire("messages", "--json=full", LOSSY, TRUNCATED).objects
    assert {each["file"] for each in several} == {str(LOSSY), str(TRUNCATED)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--kind", "tiny"], [1, 2, 3, 4]),
        (["--kind", "SMALL", "--kind", "RNDV"], [5, 6, 11, 12]),
        (["--match", "0x1003"], [7, 8]),
        (["--match", str(0x1005)], [11, 12]),
        (["--incomplete"], [12]),
        (["--host", FIRST, "--kind", "MEDIUM"], [7, 8, 9, 10]),
        (["--endpoint", "5"], list(range(1, 13))),
    ],
)
def test_selections(options, expected):
    assert numbers(mxwire("messages", *options, EVERY_TYPE)) == expected


def test_an_empty_selection_is_reported():
    run = mxwire("messages", "--endpoint", "9", EVERY_TYPE)
    assert (run.code, run.out) == (0, "") and "no message matches" in run.err


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


@pytest.mark.parametrize(
    ("options", "output"),
    [
        (["--json", "--to", "x.csv"], "--to writes a table: omit --json"),
        (["--match", "xyz"], "is not a number from 0 to"),
        (["--host", "nobody"], "nobody"),
        (["--to", "x.xls"], "no table format"),
        (["--kind", "HUGE"], "HUGE"),
    ],
)
def test_invalid_arguments(options, output):
    run = mxwire("messages", *options, EVERY_TYPE)
    assert run.code == 2 and output in run.err and len(run.err.splitlines()) == 1


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


def test_conversations_are_listed_by_messages():
    run = mxwire("conversations", EVERY_TYPE)
    assert (run.code, run.out) == (2, "") and "conversations is now mxwire messages --by conversation" in run.err
    for options in (["--to", "x.csv"], ["--incomplete"], ["--on", "local"]):
        refused = mxwire("messages", "--by", "conversation", *options, EVERY_TYPE)
        assert refused.code == 2 and "--by conversation lists totals: omit --to, --on and --incomplete" in refused.err
