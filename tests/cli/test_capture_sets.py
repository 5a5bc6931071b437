"""Sets of captures: the same results as one by one, in one data set, by several processes."""

from __future__ import annotations

import gc
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.analysis.conversations import Follower
from mxwire.analysis.conversations.partners import Conversation
from mxwire.analysis.timing import SORT_KEYS, DurationSketch, Samples, Timing
from mxwire.analysis.timing.samples import SKETCH_BITS
from mxwire.capture import create_capture, open_capture
from mxwire.capture.ring import CaptureRing, expanded, rings_of
from mxwire.cli.capture_set import CaptureSet
from mxwire.cli.filters import FilterOptions
from mxwire.cli.option_groups import DecodingOptions, Inputs, WorkerOptions
from mxwire.ethernet import mac_text
from mxwire.frames import LINKTYPE_ETHERNET
from mxwire.report.timing import DurationStatistics, durations_of
from mxwire.wire.codec import build
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Tiny
from tests.captures import read_batch, write_capture
from tests.cli.support import mxwire
from tests.frames import make_frame

polars = pytest.importorskip("polars")
ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
PATTERN = str(CAPTURES / "mxoe-n*.pcap")
FILES = sorted(map(str, CAPTURES.glob("mxoe-n*.pcap")))


def ring_of(capture: Path, folder: Path, parts: int) -> list[str]:
    """Split a capture into the files of a ring."""
    frames = read_batch(capture)
    files = []
    for number, places in enumerate(np.array_split(np.arange(len(frames)), parts), 1):
        files.append(str(folder / f"ring-{number:05}.pcap.zst"))
        with create_capture(files[-1]) as writer:
            writer.begin(LINKTYPE_ETHERNET)
            writer.write(frames.select(places))
    return files


def test_patterns_name_each_file_once(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/1.pcap", "a/b/2.pcap", "[3].pcap"):
        (tmp_path / name).touch()
    strange = str(tmp_path / "[3].pcap")
    assert expanded([strange, strange]) == [strange]
    found = expanded([str(tmp_path / "**" / "*.pcap"), str(tmp_path / "a" / "1.pcap")])
    assert [Path(each).name for each in found] == ["[3].pcap", "1.pcap", "2.pcap"]


def test_consecutive_files_of_a_ring_are_one_capture():
    names = ["x.pcap", *(f"d/t-{number:05}.pcapng.zst" for number in (9, 7, 8, 11)), "d/u-00008.pcapng.zst", "t-1.pcap"]
    assert rings_of(names) == [
        ("d/t-00007.pcapng.zst", "d/t-00008.pcapng.zst", "d/t-00009.pcapng.zst"),
        ("d/t-00011.pcapng.zst",),
        ("d/u-00008.pcapng.zst",),
        ("t-1.pcap",),
        ("x.pcap",),
    ]


def test_frames_of_a_ring_are_numbered_through(tmp_path):
    files = ring_of(CAPTURES / "mxoe-burst.pcap", tmp_path, 3)
    with CaptureRing(files) as ring:
        numbers = np.concatenate([each.number for each in ring]).tolist()
        assert numbers == list(range(1, len(numbers) + 1))
        third = len(numbers) // 3
        assert [ring.place_of(each) for each in (1, third, len(numbers))] == [
            (files[0], 0),
            (files[0], 0),
            (files[2], len(numbers) - third),
        ]
        assert ring.bytes_read == ring.total_bytes


def test_messages_of_a_set_are_those_of_its_captures(tmp_path):
    one = tmp_path / "one.parquet"
    assert mxwire("messages", "--to", one, *FILES).code == 0
    run = mxwire("messages", "--on", "local", "--jobs", 2, "--to", tmp_path / "set", PATTERN)
    assert run.code == 0, run.err
    expected = polars.read_parquet(one)
    assert f"{len(FILES)} captures, {len(expected)} messages" in run.err
    found = polars.read_parquet(tmp_path / "set" / "**" / "*.parquet", hive_partitioning=True)
    assert (found["host"] == found["source"]).all() and (found["capture"] == found["file"]).all()
    hours = polars.from_epoch(found["start_ns"], "ns").dt.strftime("%Y-%m-%dT%H")
    assert (found["hour"] == hours).all()
    keys = ["file", "message"]
    assert found.select(expected.columns).sort(keys).equals(expected.sort(keys))


def test_frames_of_a_set_are_those_of_its_captures(tmp_path):
    one = tmp_path / "one.parquet"
    assert mxwire("decode", "--to", one, *FILES).code == 0
    fields = "frame,time_ns,source,type,message,flags"
    for options, joined in (((), True), (("--fields", fields), True), (("--no-analysis", "--type", "PULL"), False)):
        folder = tmp_path / str(len(options))
        run = mxwire("decode", "--on", "local", "--jobs", 1, "--to", folder, *options, PATTERN)
        assert run.code == 0, run.err
        found = polars.read_parquet(folder / "**" / "*.parquet", hive_partitioning=True)
        expected = polars.read_parquet(one).with_columns(capture=polars.col("file"))
        if not joined:
            expected = expected.filter(polars.col("type") == "PULL")
        columns = [
            each
            for each in found.columns
            if each in expected.columns
            and (joined or each not in ("message", "role", "flags", "repeat", "acknowledges"))
        ]
        assert set(columns) >= {"capture", "frame", "source"}
        keys = ["capture", "frame"]
        assert found.select(columns).sort(keys).equals(expected.select(columns).sort(keys))


def test_a_set_of_many_hosts_has_one_file_per_hour_and_is_about_as_large_as_one_table(tmp_path):
    frames, times = [], []
    for number in range(20_000):
        source = bytes([2, 0, 0, 0, *divmod(number % 500, 256)])
        frames.append(build(make_frame(Tiny, src_mac=source, data=bytes(8), lib_seqnum=number & 0x3FFF), MXOE))
        times.append(number * 3_600 * 10**9 // 10_000)
    write_capture(tmp_path / "many.pcap", frames, times)
    options = ("--no-analysis", "--to")
    assert mxwire("decode", *options, tmp_path / "one.parquet", tmp_path / "many.pcap").code == 0
    assert mxwire("decode", "--on", "local", *options, tmp_path / "set", tmp_path / "many.pcap").code == 0
    files = sorted((tmp_path / "set").rglob("*.parquet"))
    assert [each.parent.name for each in files] == ["hour=1970-01-01T00", "hour=1970-01-01T01"]
    assert sum(each.stat().st_size for each in files) < 1.2 * (tmp_path / "one.parquet").stat().st_size
    assert polars.read_parquet(files[0])["host"].is_sorted()


def test_a_message_continues_in_the_next_file_of_a_ring(tmp_path):
    capture = CAPTURES / "mxoe-lossy-1M.pcap"
    files = ring_of(capture, tmp_path, 7)
    whole = tmp_path / "whole.parquet"
    assert mxwire("messages", "--to", whole, capture).code == 0
    run = mxwire("messages", "--on", "local", "--jobs", 1, "--to", tmp_path / "set", tmp_path / "ring-*")
    assert run.code == 0, run.err
    expected = polars.read_parquet(whole)
    found = polars.read_parquet(tmp_path / "set" / "**" / "*.parquet").sort("message")
    numbers = ["file", "frames", "ack_frame", "refused_ack_frame", "notify_frame"]
    same = [each for each in expected.columns if each not in numbers]
    assert found.select(same).equals(expected.select(same))
    with open_capture(capture) as reader:
        total = sum(map(len, reader))
    sizes = [len(each) for each in np.array_split(np.arange(total), 7)]
    for row, one in zip(found.iter_rows(named=True), expected.iter_rows(named=True), strict=True):
        before = sum(sizes[: files.index(row["file"])])
        first = int(re.match(r"\d+", row["frames"])[0])
        assert first + before == int(re.match(r"\d+", one["frames"])[0])
        assert 1 <= first <= sizes[files.index(row["file"])]
        assert row["ack_frame"] == (None if one["ack_frame"] is None else one["ack_frame"] - before)


def test_a_set_keeps_no_conversations_of_its_captures():
    def conversations():
        return sum(isinstance(each, Conversation) for each in gc.get_objects())

    def follow(capture):
        follower = Follower()
        for decoded in capture.decoder.decode_all(capture.source):
            follower.observe(decoded)
        yield conversations()

    gc.collect()
    before = conversations()
    options = FilterOptions(), DecodingOptions(), WorkerOptions("local", 1)
    for found, _ in CaptureSet(Inputs(tuple(FILES)), *options).run(follow):
        assert found > before
    assert conversations() == before


def test_findings_of_a_set_are_merged_by_cost(tmp_path):
    alone = [json.loads(line) for line in mxwire("diagnose", "--json", *FILES).out.splitlines()]
    run = mxwire("diagnose", "--json", "--on", "local", "--jobs", 1, PATTERN)
    records = [json.loads(line) for line in run.out.splitlines()]
    merged = [each for each in records if each["record"] == "merged_finding"]
    costs = Counter()
    for each in alone:
        if each["record"] == "finding":
            costs[each["id"]] += each["cost_ns"] or 0
    assert {each["id"] for each in merged} == set(costs)
    assert sum(each["cost_ns"] or 0 for each in merged) == sum(costs.values())
    assert [each["cost_ns"] or 0 for each in merged] == sorted((each["cost_ns"] or 0 for each in merged), reverse=True)
    run = mxwire("diagnose", "--on", "local", "--jobs", 1, PATTERN)
    assert run.code == 1
    places = [run.out.index(each["id"]) for each in merged]
    assert places == sorted(places)


def test_verdicts_of_a_set_are_merged():
    files = [*FILES, str(CAPTURES / "mxoe-cancel.pcap")]
    alone = [json.loads(line) for line in mxwire("verify", "--json", *files).out.splitlines()]
    run = mxwire("verify", "--json", "--on", "local", "--jobs", 1, *files)
    together = [json.loads(line) for line in run.out.splitlines()]

    def findings(records):
        return sorted((each["file"], each["rule"], each["frames"]) for each in records if each["record"] == "finding")

    assert findings(together) == findings(alone)
    frames = Counter()
    for each in alone:
        if each["record"] == "host":
            frames[each["host"]] += each["frames"]
    out = mxwire("verify", "--on", "local", "--jobs", 1, *files).out
    for host, count in frames.items():
        assert re.search(rf"{host} +\S+ +\d+ +{count} ", out), out


def test_totals_of_a_set_are_added_up():
    alone = [json.loads(line) for line in mxwire("stats", "--json", *FILES).out.splitlines()]
    together = mxwire("stats", "--json", "--on", "local", "--jobs", 1, PATTERN).out.splitlines()
    merged = [each for each in map(json.loads, together) if each["record"] == "merged_pair"]
    sides = [side for each in alone if each["record"] == "host_pair" for side in each["directions"]]
    for name in ("frames", "bytes", "messages", "retransmissions"):
        assert sum(each[name] for each in merged) == sum(side[name] for side in sides)
    assert "merged_pair" not in mxwire("stats", "--on", "local", "--jobs", 1, PATTERN).out


@pytest.mark.parametrize("sort", SORT_KEYS)
def test_totals_of_a_set_are_sorted_in_each_order(sort):
    run = mxwire("stats", "--on", "local", "--jobs", 1, "--json", "--sort", sort, PATTERN)
    assert (run.code, run.err) == (0, "")
    records = [json.loads(line) for line in run.out.splitlines()]
    merged = [each for each in records if each["record"] == "merged_pair"]
    assert merged
    values = [
        {**each, "rate": each["bytes"], "delivery": (each["delivery"] or {"median_ns": 0})["median_ns"]}
        | {"retransmits": each["retransmissions"] + each["re_requests"]}
        for each in merged
    ]
    assert [each[sort] for each in values] == sorted((each[sort] for each in values), reverse=True)


def test_durations_of_a_set_are_merged():
    """One process that has all samples of all captures agrees to the resolution of the sketches."""
    seconds: dict[tuple[str, object], Samples] = defaultdict(lambda: Samples(0))
    deliveries: dict[tuple[str, ...], Samples] = defaultdict(lambda: Samples(0))
    gaps = 0
    for file in FILES:
        timing, decoder = Timing(), Decoder()
        with open_capture(file) as reader:
            for decoded in decoder.decode_all(reader):
                timing.observe(decoded, decoder.start_ns)
        timing.finish()
        gaps += timing.gaps.counts
        for kind, _, key, samples in durations_of(timing):
            seconds[kind, key].merge(samples)
        for pair in timing.pairs.by_hosts():
            deliveries[tuple(sorted(mac_text(end.address) for end in pair.ends))].merge(pair.delivery)
    run = mxwire("stats", "--on", "local", "--jobs", 2, "--json", PATTERN)
    assert (run.code, run.err) == (0, "")
    merged = [each for each in map(json.loads, run.out.splitlines()) if each["record"].startswith("merged_")]
    found = {
        (each["record"].removeprefix("merged_"), each.get("length", each.get("size_class", each.get("what")))): each
        for each in merged
    }
    assert {("delay", "last byte to NOTIFY"), ("transfer", 8), ("half_answer_class", "1..32")} <= seconds.keys()
    for key, samples in seconds.items():
        assert_close(found[key], samples)
    assert found["gaps", None]["counts"] == gaps.tolist()
    pairs = [each for each in merged if each["record"] == "merged_pair"]
    assert pairs
    for each in pairs:
        assert_close(each["delivery"], deliveries[tuple(sorted((each["source"], each["destination"])))])
    assert "samples" not in run.out
    shown = mxwire("stats", "--on", "local", "--jobs", 1, PATTERN).out
    assert "Transfers: " in shown and "Delays in ms" in shown and "Gaps between frames" in shown


def assert_close(record, samples):
    """Compare a record with samples of which all are kept."""
    estimate = samples.estimate()
    assert record["count"] == estimate.count
    for name, value in DurationStatistics.of(estimate).record().items():
        close = value if value is None else pytest.approx(value, rel=2**-SKETCH_BITS, abs=0.001)
        assert record[name] == close, name


@given(st.lists(st.lists(st.integers(0, 10**12), max_size=40), max_size=6), st.randoms())
def test_sketches_merge_in_any_order(parts, random):
    sketches = []
    for part in parts:
        samples = Samples(0, kept=7)  # of longer parts, samples are dropped, and the sketch must have them
        for each in part:
            samples.add(each)
        sketches.append(DurationSketch.of(json.loads(json.dumps(samples.sketch().values()))))
    whole = sum(sketches, DurationSketch())
    random.shuffle(sketches)
    assert sum(sketches, DurationSketch()).estimate() == whole.estimate()
    values = sorted(each for part in parts for each in part)
    if not values:
        assert whole.estimate() is None
        return
    estimate = whole.estimate()
    assert (estimate.count, estimate.least, estimate.most) == (len(values), values[0], values[-1])
    assert estimate.mean == pytest.approx(sum(values) / len(values))
    for name, share in (("p10", 10), ("median", 50), ("p90", 90), ("p99", 99)):
        found = getattr(estimate, name)
        if found is not None:
            assert found == pytest.approx(np.percentile(np.array(values, float), share), rel=2**-SKETCH_BITS)


@pytest.mark.parametrize("command", ["diagnose", "stats", "verify"])
def test_results_of_a_set_are_continued_from_a_checkpoint(command, tmp_path):
    words = (command, "--on", "local", "--jobs", 1, "--checkpoint", tmp_path / "kept", "--json", *FILES)
    first = mxwire(*words)
    assert first.lines and (tmp_path / "kept").read_bytes().count(b"\n") > 1
    assert mxwire(*words) == first


def test_bad_captures_of_a_set_are_noted(tmp_path):
    (tmp_path / "bad.pcap").write_text("no capture")
    run = mxwire("stats", "--on", "local", "--jobs", 1, FILES[0], tmp_path / "bad.pcap", tmp_path / "gone.pcap")
    assert run.code == 2
    assert "bad.pcap" in run.err and "gone.pcap: no such file" in run.err
    assert "3 captures" in run.out


def test_the_documented_queries_answer(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    for command in ("messages", "decode"):
        folder = "messages" if command == "messages" else "frames"
        assert mxwire(command, "--on", "local", "--jobs", 1, "--to", folder, PATTERN).code == 0
    text = (ROOT / "docs" / "campaigns.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    assert len(queries) >= 3
    for query in queries:
        assert duckdb.sql(query).fetchall(), query
    (block,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    values = {}
    exec(block, values)
    assert len(values["slowest"]) and values["slowest"].columns[0] == "host"
