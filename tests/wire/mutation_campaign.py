"""Mutated frames by the million: through columns alone, and by both paths with equal verdicts.

Run in parts, in any order and on any workers, with a count at the end of each:

    python -m tests.wire.mutation_campaign --columns 1000000000 --both 10000000
    python -m tests.wire.mutation_campaign --columns 10000000 --seed 7000 --on dask:tcp://head:8786

A piece is a seed. Its frames are mutated from those of the captures and of the driver's tests (``mutation.py``); for
columns, each of them is mutated again in many rounds by array operations, which is fast enough for 10^9.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from random import Random

import numpy as np

from mxwire.campaign import Campaign, FatalPiece, open_workers
from mxwire.wire.codec import codec_of
from mxwire.wire.columns import decode_columns
from mxwire.wire.dialect import MXOE, omx
from mxwire.wire.encapsulation import locate

from .mutation import mutated, scattered
from .paths import assert_paths_agree

MIXED = (MXOE, omx(9000), omx(1500), omx(9000, "N3"))
FRAMES = 5_000
"""Frames per batch."""
ROUNDS = 100
"""Batches per seed through columns."""


def by_both_paths(seed: int) -> int:
    """Decode the frames of a seed by both paths; return their number, or raise AssertionError if they differ."""
    random = Random(seed)
    located = locate(scattered([mutated(random) for _ in range(FRAMES)], random))
    which = np.array(random.choices(range(len(MIXED)), k=len(located.batch)), np.intp)
    swapped = np.array(random.choices((False, True), k=len(located.batch)), np.bool_)
    codecs = [codec_of(MIXED[one], swapped=order) for one, order in zip(which.tolist(), swapped.tolist(), strict=True)]
    assert_paths_agree(decode_columns(located, MIXED, which, swapped), codecs)
    return len(located.batch)


def through_columns(seed: int) -> int:
    """Decode the frames of a seed as columns, mutated in ROUNDS rounds; return their number."""
    random, generator = Random(seed), np.random.default_rng(seed)
    batch = scattered([mutated(random) for _ in range(FRAMES)], random)
    done = 0
    for _ in range(ROUNDS):
        buffer = batch.buffer.copy()
        # Three bytes per frame behind the EtherType, of those that headers have.
        for _ in range(3):
            reach = np.clip(batch.length - 14, 1, 60)
            place = batch.offset + np.minimum(
                14 + (generator.random(FRAMES) * reach).astype(np.int64), batch.length - 1
            )
            buffer[place] = generator.integers(0, 256, FRAMES, np.uint8)
        cut = generator.random(FRAMES) < 0.2
        length = np.where(cut, np.minimum(batch.length, generator.integers(14, 100, FRAMES)), batch.length)
        located = locate(replace(batch, buffer=buffer, length=length))
        which = generator.integers(0, len(MIXED), len(located.batch)).astype(np.intp)
        columns = decode_columns(located, MIXED, which, generator.random(len(located.batch)) < 0.5)
        assert len(columns) == len(located.batch)
        assert sum(map(len, columns.blocks)) <= len(columns)
        done += len(columns)
    return done


def run(frames: int, per_seed: int, function: object, first: int, campaign: Campaign, what: str) -> bool:
    """Play seeds until ``frames`` are decoded; print the count, and return True if all went well."""
    done, fatal, after = 0, [], first
    while done < frames and not fatal:
        # Some mutated frames are no longer of MXoE, so the last seeds are known only when the others have been played.
        seeds = range(after, after + -(-(frames - done) // per_seed))
        for seed, answer in zip(seeds, campaign.play(function, seeds, section=f"{what} {after}"), strict=True):
            if isinstance(answer, FatalPiece):
                fatal.append(seed)
            else:
                done += answer
        after = seeds.stop
    print(f"{done:,} mutated frames {what}, seeds {first} to {after - 1}; fatal: {fatal or 'none'}", flush=True)
    return not fatal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=0, metavar="N", help="frames through columns")
    parser.add_argument("--both", type=int, default=0, metavar="N", help="frames by both paths")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument("--on", default="local")
    parser.add_argument("--jobs", type=int)
    given = parser.parse_args()
    with open_workers(given.on, given.jobs) as workers:
        campaign, well = Campaign(workers), True
        if given.columns:
            well &= run(given.columns, FRAMES * ROUNDS, through_columns, given.seed, campaign, "through columns")
        if given.both:
            well &= run(given.both, FRAMES, by_both_paths, given.seed, campaign, "by both paths")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
