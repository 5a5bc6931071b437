"""``mxwire info`` as a user runs it."""

from __future__ import annotations

from mxwire.capture import create_capture, open_capture
from mxwire.frames import FrameBatch
from tests.cli.support import CAPTURES, EVERY_TYPE, mxwire


def info(name: str) -> dict:
    (made,) = mxwire("info", "--json", CAPTURES / name).objects
    return made


def test_json_has_the_same_content():
    made = info("mxoe-every-type.pcap")
    assert made["frames"] == 87 and made["duration_ns"] == 36_333_481_365
    assert {host["address"]: host["names"] for host in made["hosts"]} == {
        "52:54:00:0a:00:01": ["vm1:0"],
        "52:54:00:0a:00:02": ["vm2:0"],
    }
    (pair,) = made["dialects"]
    assert pair["dialect"] == "mxoe" and pair["confidence"] > 0.9
    assert {each["first_frame"] for each in pair["evidence"]} == {43, 64, 67}
    assert made["nacks"] == [
        {"type": "NACK_LIB", "reason": "BAD_SESSION", "frames": 1},
        {"type": "NACK_LIB", "reason": "ENDPT_CLOSED", "frames": 2},
        {"type": "NACK_MCP", "reason": "BAD_SESSION", "frames": 2},
    ]
    endpoint = next(each for each in made["endpoints"] if each["endpoint"] == 3)
    assert endpoint["sessions"] == [0xC8AA4DA3] and endpoint["keys"] == [0x12345678]


def test_messages_are_counted_once():
    """The echo of 22 lengths in both directions (see the capture's index): 44 messages, none repeated."""
    made = info("omx1500-echo-pattern.pcap")
    by_kind: dict[str, int] = {}
    for each in made["messages"]:
        by_kind[each["kind"]] = by_kind.get(each["kind"], 0) + each["messages"]
    assert by_kind == {"TINY": 8, "SMALL": 6, "MEDIUM": 22, "RNDV": 8}
    lengths = [0, 1, 16, 32, 33, 127, 128, 129, 1000, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 32767, 32768, 32769]
    lengths += [40000, 65536, 131072]
    assert sum(each["bytes"] for each in made["messages"]) == 2 * sum(lengths)


def test_retransmissions_are_repeated_frames():
    """A receiver that is stopped for 3 s: each of four messages is sent six times."""
    made = info("mxoe-stopped-receiver.pcap")
    assert sum(each["messages"] for each in made["messages"]) == 4
    assert made["repeated_frames"] == {"MEDIUM": 10, "RNDV": 5, "SMALL": 5, "TINY": 5}


def test_the_size_of_batches_does_not_change_the_counts(tmp_path):
    """A MEDIUM whose fragments lie in two batches is one message."""
    from mxwire.analysis.inventory import Inventory
    from mxwire.report.inventory import CaptureContents
    from mxwire.wire.decoder import Decoder

    path = CAPTURES / "mxoe-stopped-receiver.pcap"
    made = []
    for size in (1, 7, 10_000):
        decoder, inventory = Decoder(), Inventory()
        with open_capture(path) as reader:
            for batch in reader:
                for start in range(0, len(batch), size):
                    which = list(range(start, min(start + size, len(batch))))
                    inventory.observe(decoder.decode(batch.select(which)))
        inventory.finish(decoder)
        made.append(CaptureContents.of(inventory, "x", "pcap", None, None, None))
    assert made[0] == made[1] == made[2]


def test_cut_frames_and_snap_length():
    made = info("mxoe-lossy-1M.pcap")
    assert made["cut_frames"] > 700 and made["malformed"] == {}
    assert "cut by the capture" in mxwire("info", CAPTURES / "mxoe-lossy-1M.pcap").out


def test_an_undecided_dialect_is_reported():
    words = " ".join(mxwire("info", CAPTURES / "mxoe-connect.pcap").out.split())
    assert "undetermined - none: no packet here differs" in words


def test_all_shipped_captures(tmp_path):
    files = sorted(CAPTURES.glob("*.pcap"))
    made = mxwire("info", "--json", *files).objects
    assert [each["file"] for each in made] == [str(each) for each in files]
    for each in made:
        assert each["malformed"] == {}, each["file"]
        family = each["file"].rsplit("/", 1)[1].split("-")[0]
        for pair in each["dialects"]:
            limit = {"mxoe": "mxoe", "omx9000": "omx:9000", "omx1500": "omx:1500"}[family]
            assert pair["dialect"] in (None, limit, limit.split(":")[0]), each["file"]


def test_capture_without_our_frames(tmp_path):
    with create_capture(tmp_path / "ip.pcap") as writer:
        writer.write(FrameBatch.from_frames([bytes(12) + b"\x08\x00" + bytes(46)]))
    run = mxwire("info", tmp_path / "ip.pcap")
    assert run.code == 2 and "0 MXoE frames" in run.out
    assert "no MXoE frames (EtherType 0x86df) among 1 frame;" in run.err


def test_quick_leaves_messages_out_and_nothing_else():
    (whole,), (quick,) = (mxwire("info", "--json", *option, EVERY_TYPE).objects for option in ((), ("--quick",)))
    assert quick["messages"] is quick["repeated_frames"] is None and whole["messages"]
    left = {"messages", "repeated_frames"}
    assert {key: quick[key] for key in quick if key not in left} == {
        key: whole[key] for key in whole if key not in left
    }
    text = mxwire("info", "--quick", EVERY_TYPE).out
    assert "Packets" in text and "Messages" not in text
