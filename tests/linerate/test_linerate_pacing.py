"""The token bucket: exact rates, bounded bursts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mxwire.errors import MxwireError
from mxwire.linerate.pacing import TokenBucket
from mxwire.units import SECOND

RATES = st.floats(1, 10_000_000)
BURSTS = st.integers(1, 64)
STEPS = st.lists(st.integers(0, 5_000_000), min_size=1, max_size=60)


@given(RATES, BURSTS, STEPS, st.integers(1, 200))
def test_the_rate_is_never_exceeded_by_more_than_the_depth(rate, burst, steps, at_most):
    bucket, now, sent = TokenBucket(rate, 0, burst=burst), 0, [(0, 0)]
    total = 0
    for step in steps:
        now += step
        taken = bucket.take(now, at_most)
        assert 0 <= taken <= min(at_most, bucket.depth)
        total += taken
        sent.append((now, total))
    for place, (start, before) in enumerate(sent):
        for end, after in sent[place + 1 :]:
            allowed = (end - start) * rate / SECOND + bucket.depth + burst
            assert after - before <= allowed + 1


@given(RATES, BURSTS)
def test_a_punctual_sender_reaches_the_rate(rate, burst):
    bucket = TokenBucket(rate, 1000, burst=burst)
    total = 0
    for _ in range(300):
        now = bucket.next_due()
        taken = bucket.take(now, 1 << 30)
        assert taken >= burst
        assert bucket.lateness(now, taken).max() <= 2
        total += taken
    elapsed = bucket.next_due() - 1000
    assert abs(total - elapsed * rate / SECOND) <= 1 + total * 1e-6
    assert bucket.forgone == 0


@given(RATES, BURSTS, STEPS)
def test_frames_are_taken_forgone_or_due(rate, burst, steps):
    """Whatever was due at the last moment is sent, forgone, or still due."""
    bucket, now, total = TokenBucket(rate, 0, burst=burst), 0, 0
    for step in steps:
        now += step
        total += bucket.take(now, 1 << 30)
    due = (int(now * rate / SECOND / burst) + 1) * burst
    assert abs(total + bucket.forgone - due) <= burst


def test_nothing_is_due_early_and_bursts_are_whole():
    bucket = TokenBucket(1000, 5 * SECOND, burst=4)
    assert bucket.take(5 * SECOND - 1, 100) == 0
    assert bucket.take(5 * SECOND, 100) == 4
    assert bucket.take(5 * SECOND + 3_999_000, 100) == 0
    assert bucket.take(5 * SECOND + 4_000_000, 100) == 4


def test_frames_that_were_not_sent_are_due_again():
    bucket = TokenBucket(1000, 0)
    assert bucket.take(0, 10) == 1
    bucket.give_back(1)
    assert bucket.take(0, 10) == 1


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (float("inf"), 1), (float("nan"), 1), (10, 0)])
def test_impossible_rates_are_refused(rate, burst):
    with pytest.raises(MxwireError):
        TokenBucket(rate, 0, burst=burst)
