"""``mxwire decode`` as a user runs it."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys

import polars as pl
import pytest

import mxwire as mxwire_package
from mxwire.analysis.marks import MARK_COLUMNS
from mxwire.capture.notes import read_notes
from mxwire.wire.codec import build
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Tiny
from tests.captures import write_capture
from tests.cli.support import CAPTURES, EVERY_TYPE, ROOT, mxwire


def tiny(data: bytes = b"hello", **fields: int) -> bytes:
    values = {"dst_endpoint": 3, "src_endpoint": 5, "length": len(data), "lib_seqnum": 0x4005, "lib_piggyack": 2}
    values |= {"match_a": 1, "match_b": 2, "session": 7}
    frame = Tiny(dst_mac=b"\x02" * 6, src_mac=b"\x04" * 6, data=data, **(values | fields))
    return build(frame, MXOE)


def capture(path, frames: list[bytes], **options) -> None:
    write_capture(path, frames, list(range(0, 1000 * len(frames), 1000)), **options)


def test_the_payload_is_at_the_offset_of_the_record(tmp_path):
    data = bytes(range(20))
    plain = tiny(data)
    tagged = plain[:12] + bytes.fromhex("8100 0005 8100 0006".replace(" ", "")) + plain[12:]
    capture(tmp_path / "two.pcap", [plain, tagged])
    for made, frame in zip(
        mxwire("decode", "--json=full", tmp_path / "two.pcap").objects, (plain, tagged), strict=True
    ):
        start = made["payload"]["offset"]
        assert frame[start : start + made["payload"]["length"]] == data
    assert made["vlan"] == [5, 6]


def test_the_fields_of_a_frame_are_all_its_bytes():
    (made,) = mxwire("decode", "--json=full", "-v", "--frames", 37, EVERY_TYPE).objects
    assert "".join(field["bytes"] for field in made["layout"]) == _frame_hex(37)


def _frame_hex(number: int) -> str:
    from mxwire.capture import open_capture

    with open_capture(EVERY_TYPE) as reader:
        return next(iter(reader)).frame(number - 1).hex()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "ndjson", "arrow"])
def test_tables_have_the_values_of_the_json(tmp_path, suffix):
    target = tmp_path / f"frames.{suffix}"
    assert mxwire("decode", "--to", target, EVERY_TYPE).code == 0
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "ndjson": pl.read_ndjson, "arrow": pl.read_ipc}[suffix]
    table = read(target) if suffix != "csv" else pl.read_csv(target, infer_schema_length=None)
    records = mxwire("decode", "--json=full", EVERY_TYPE).objects
    assert table["frame"].to_list() == [made["frame"] for made in records]
    for row, made in zip(table.iter_rows(named=True), records, strict=True):
        assert row["type"] == made["type"] and row["source"] == made["source"]
        assert row["time_ns"] == made["time_ns"] and row["wire_length"] == made["wire_length"]
        for name, value in made["fields"].items():
            if not name.endswith("_mac") and name != "ethertype":
                assert row[name] == value, (made["frame"], name)
        absent = [name for name in ("lib_seqnum", "msg_offset", "magic") if name not in made["fields"]]
        assert all(row[name] is None for name in absent)
        assert row["payload_length"] == (made["payload"] or {}).get("length")


def test_a_table_needs_no_frame_classes(tmp_path):
    script = f"""
import sys
from mxwire.cli import main
try: main(["decode", "--to", {str(tmp_path / "x.csv")!r}, {str(CAPTURES / "mxoe-burst.pcap")!r}])
except SystemExit: pass
print({{"mxwire.wire.packets", "mxwire.report.tree"}} & {{*sys.modules}})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "set()\n"


def test_table_of_several_files_and_chosen_columns(tmp_path):
    files = [CAPTURES / "mxoe-connect.pcap", CAPTURES / "omx9000-connect.pcap"]
    target = tmp_path / "some.csv"
    assert mxwire("decode", "--to", target, "--fields", "file,frame,type", "--type", "CONNECT", *files).code == 0
    rows = list(csv.DictReader(target.open()))
    assert {row["file"] for row in rows} == {str(each) for each in files}
    assert len(rows) == 20 and set(rows[0]) == {"file", "frame", "type"}


def test_standard_input_and_compression(tmp_path):
    raw = EVERY_TYPE.read_bytes()
    wanted = mxwire("decode", EVERY_TYPE).out
    assert mxwire("decode", "-", stdin=raw).out == wanted
    assert mxwire("decode", "-", stdin=gzip.compress(raw)).out == wanted


def test_a_reader_that_goes_away_is_not_an_error():
    import subprocess
    import sys

    command = (
        f"set -o pipefail; {sys.executable} {ROOT / 'cli.py'} decode {CAPTURES / 'mxoe-lossy-1M.pcap'} | head -n 1"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True)
    assert done.returncode == 0 and done.stdout.count(b"\n") == 1 and b"Traceback" not in done.stderr


EARLY = CAPTURES / "mxoe-early.pcap"
LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"


def test_marks_do_not_depend_on_the_selection():
    whole = {line for line in mxwire("decode", LOSSY).lines if "re-request" in line}
    assert whole and whole == {line for line in mxwire("decode", "--type", "PULL", LOSSY).lines if "re-request" in line}


def test_json_and_tables_have_the_marks(tmp_path):
    run = mxwire("decode", "--to", tmp_path / "marks.parquet", LOSSY)
    assert run.code == 0
    table = pl.read_parquet(tmp_path / "marks.parquet")
    objects = mxwire("decode", "--json=full", LOSSY).objects
    for name in MARK_COLUMNS:
        assert [made[name] or None for made in objects] == table[name].to_list()
    assert {"re_request", "early_re_request"} <= {flag for made in objects for flag in made["flags"]}
    columns = mxwire("decode", "--fields", "frame,message,role,flags,repeat", "--frames", 10, EARLY)
    assert columns.out == "10\t1\tdata\tretransmission obsolete\t1\n"


def test_read_frames_has_the_marks():
    table = mxwire_package.read_frames(str(LOSSY), ["message", "flags"])
    assert table["message"].max() == 2 and "gap" in table["flags"].explode().unique().to_list()


LOSSY = CAPTURES / "mxoe-lossy-1M.pcap"


def test_the_options_where_and_flag_select_by_the_marks_in_the_json():
    every = mxwire("decode", "--json=full", LOSSY).objects
    wanted = [each["frame"] for each in every if {"retransmission", "re_request"} & {*each["flags"]}]
    by_expression = mxwire(
        "decode", "--json=full", "--where", "flags.retransmission or flags.re_request", LOSSY
    ).objects
    by_flag = mxwire("decode", "--json=full", "--flag", "retransmission", "--flag", "re-request", LOSSY).objects
    assert wanted and [each["frame"] for each in by_expression] == wanted
    assert by_flag == by_expression == [each for each in every if each["frame"] in wanted]
    columns = mxwire("decode", "--fields", "frame", "--where", "flags.retransmission or flags.re_request", LOSSY)
    assert [int(each) for each in columns.lines] == wanted


def test_between_counts_from_the_first_frame_of_the_capture(tmp_path):
    every = mxwire("decode", "--json=full", LOSSY).objects
    run = mxwire("decode", "--json=full", "--between", 0.03, 0.7, "--where", "type == PULL", LOSSY)
    wanted = [each for each in every if 0.03 <= each["time_relative_s"] <= 0.7 and each["type"] == "PULL"]
    assert wanted and run.objects == wanted
    other = bytes(12) + b"\x08\x00" + bytes(46)
    write_capture(tmp_path / "late.pcap", [other, tiny(), tiny()], [0, 10**9, 2 * 10**9])
    late = mxwire("decode", "--fields", "frame", "--between", 2, 3, tmp_path / "late.pcap")
    assert late.lines == ["3"]


def test_a_pair_by_name_is_that_by_address():
    named = mxwire("decode", "--json=full", "--pair", "vm1:0", "vm2:0", EVERY_TYPE).objects
    ends = {"52:54:00:0a:00:01", "52:54:00:0a:00:02"}
    every = mxwire("decode", "--json=full", EVERY_TYPE).objects
    assert named and named == [each for each in every if {each["source"], each["destination"]} == ends]
    for addresses in (("5254.000a.0002", "52-54-00-0A-00-01"), ("vm1:0", "5254000a0002")):
        assert mxwire("decode", "--json=full", "--pair", *addresses, EVERY_TYPE).objects == named


def test_selected_frames_are_written_with_marks_and_names(tmp_path):
    cut = tmp_path / "cut.pcapng"
    pair = ("--pair", "52:54:00:0a:00:01", "52:54:00:0a:00:02")
    run = mxwire("decode", *pair, "--between", 0.02, 0.7, "-w", cut, LOSSY)
    wanted = [each for each in mxwire("decode", "--json=full", LOSSY).objects if 0.02 <= each["time_relative_s"] <= 0.7]
    assert run.code == 0 and not run.out and f"wrote {len(wanted)} frames to {cut}" in run.err
    written = mxwire("decode", "--json=full", "--no-analysis", cut).objects
    for key in ("time_ns", "wire_length", "captured", "fields"):
        assert [each[key] for each in written] == [each[key] for each in wanted]
    comments = read_notes(cut).comments
    lines = mxwire("decode", LOSSY).lines
    for number, each in enumerate(wanted, 1):
        comment = comments.get(number, "")
        assert comment.startswith(f"message {each['message']}, {each['role']}" if each["message"] else "")
        if each["flags"]:
            mark = lines[each["frame"] - 1].rpartition("  [")[2].removesuffix("]")
            assert mark and comment.endswith(mark)
    mxwire("decode", "--type", "TINY", "-w", cut, EVERY_TYPE)
    assert "vm1:0" in read_notes(cut).names.values()
