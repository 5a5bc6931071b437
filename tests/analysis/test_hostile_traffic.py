"""Traffic with more hosts than any fabric has: memory stays bounded, and nothing wrong is reported."""

from __future__ import annotations

import numpy as np

from mxwire.analysis.inventory import Inventory
from mxwire.analysis.table import TableBuilder
from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.wire.codec import build
from mxwire.wire.codes import LIMIT, CodeTable
from mxwire.wire.decoder import Decoder
from mxwire.wire.dialect import MXOE
from mxwire.wire.packets import Tiny
from tests.frames import make_frame

FRAME = build(make_frame(Tiny), MXOE)


def crowd(count: int, seed: int) -> FrameBatch:
    """Frames that each come from and go to another random address, with random endpoints."""
    generator = np.random.default_rng(seed)
    frames = np.tile(np.frombuffer(FRAME, np.uint8), (count, 1))
    frames[:, :12] = generator.integers(0, 256, (count, 12))
    frames[:, 17:19] = generator.integers(0, 256, (count, 2))
    start = np.arange(count) * len(FRAME)
    length = np.full(count, len(FRAME))
    return FrameBatch(frames.ravel(), start, length, length, start, start + 1)


def test_keys_beyond_the_limit_share_a_code():
    table = CodeTable()
    keys = np.arange(LIMIT + 100, dtype=np.uint64) + np.uint64(7)
    codes = table.codes(keys)
    assert codes[:LIMIT].tolist() == list(range(LIMIT))
    assert (codes[LIMIT:] == table.others).all() and table.is_full
    assert table.codes(keys[[3, LIMIT + 3]]).tolist() == [3, table.others]
    assert len(table.keys) == LIMIT + 1 and table.keys[3] == 10


def test_crowd_is_decoded_and_addresses_stay_exact():
    decoder, inventory, builder = Decoder(), Inventory(), TableBuilder(["source", "destination", "src_endpoint"])
    # The first batch alone has more addresses than the limit, so that the others have new ones only beyond it.
    counts = 40_000, 4000, 4000
    for seed, count in enumerate(counts):
        batch = crowd(count, seed)
        decoded = decoder.decode(batch)
        inventory.observe(decoded)
        table = builder.frame(decoded, "crowd")
        for place in (0, 17, count - 1):
            frame = batch.frame(place)
            row = table.row(place, named=True)
            assert (row["destination"], row["source"]) == (mac_text(frame[:6]), mac_text(frame[6:12]))
            assert row["src_endpoint"] == frame[18]
        assert decoder.hosts.is_full
    inventory.finish(decoder)
    assert inventory.frames == sum(counts) and len(inventory.hosts) <= LIMIT + 1
    assert len(inventory.endpoints) <= LIMIT
    counter = inventory.messages
    assert counter is not None
    assert sum(counter.messages.values()) + sum(counter.repeated.values()) == sum(counts)


def test_one_builder_names_hosts_of_several_captures():
    builder = TableBuilder(["source"])
    for seed in (1, 2):
        batch = crowd(5, seed)
        table = builder.frame(Decoder().decode(batch), "x")
        assert table["source"].to_list() == [mac_text(batch.frame(place)[6:12]) for place in range(5)]
