"""``mxwire info`` as a user runs it."""

from __future__ import annotations

from mxwire.capture import open_capture
from tests.captures import write_capture
from tests.cli.support import CAPTURES, mxwire


def info(name: str) -> dict:
    (made,) = mxwire("info", "--json", CAPTURES / name).objects
    return made


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
        made.append(
            CaptureContents.of(inventory, file="x", format="pcap", compression=None, bytes=None, snap_length=None)
        )
    assert made[0] == made[1] == made[2]


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
    write_capture(tmp_path / "ip.pcap", [bytes(12) + b"\x08\x00" + bytes(46)])
    run = mxwire("info", tmp_path / "ip.pcap")
    assert run.code == 2 and "0 MXoE frames" in run.out
    assert "no MXoE frames (EtherType 0x86df) among 1 frame;" in run.err
