"""``mxwire info`` as a user runs it."""

from __future__ import annotations

from mxwire.capture import open_capture
from tests.cli.support import CAPTURES, mxwire


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
