"""A process that lacked the processor is distinguished from one that was too slow for the frames."""

from __future__ import annotations

import pytest

from mxwire.link.starvation import StarvationMeter
from mxwire.units import MILLISECOND


class Machine:
    """A clock, and the processor time that one process got; times in milliseconds."""

    def __init__(self) -> None:
        self.now = 1000
        self.used = 0
        self.meter = StarvationMeter(lambda: self.now * MILLISECOND, lambda: self.used * MILLISECOND)

    def hand_out(self, first: int, *, after: int, using: int) -> None:
        """Let the process run or wait, and hand out frames of which the oldest has passed at ``first``."""
        self.now += after
        self.used += using
        self.meter.note(first * MILLISECOND)

    @property
    def periods(self) -> list[tuple[int, int]]:
        return [(start // MILLISECOND, end // MILLISECOND) for start, end in self.meter.periods]


def test_frames_that_are_handed_out_at_once_show_no_starvation():
    machine = Machine()
    for _ in range(100):
        machine.hand_out(machine.now + 40, after=50, using=1)
    assert machine.periods == [] and machine.meter.total_ns == 0


def test_a_process_that_works_all_the_time_is_too_slow_and_not_starved():
    machine = Machine()
    oldest = 1000
    for _ in range(100):
        machine.hand_out(oldest, after=100, using=99)
        oldest += 50
    assert machine.now - oldest > 4000, "the frames wait ever longer"
    assert machine.periods == []


def test_a_stopped_process_is_starved_once_however_many_batches_wait():
    machine = Machine()
    machine.hand_out(1010, after=20, using=1)
    machine.hand_out(1050, after=3000, using=2)
    for oldest in range(1100, 4000, 100):
        machine.hand_out(oldest, after=1, using=1)
    assert len(machine.periods) == 1
    (start, end) = machine.periods[0]
    assert start == 1050 and 3950 <= end <= 4020


def test_two_periods_are_separate():
    machine = Machine()
    machine.hand_out(1500, after=1000, using=0)
    for _ in range(10):
        machine.hand_out(machine.now + 990, after=1000, using=1)
    before = machine.now
    machine.hand_out(before + 100, after=800, using=10)
    assert [start for start, _ in machine.periods] == [1500, before + 100]
    assert machine.meter.total_ns == (500 + 690) * MILLISECOND


def test_frames_from_before_the_start_do_not_count():
    machine = Machine()
    machine.hand_out(1, after=5, using=1)
    assert machine.periods == []


@pytest.mark.parametrize(("using", "starved"), [(700, False), (300, True)])
def test_most_of_the_time_decides(using, starved):
    machine = Machine()
    machine.hand_out(1000, after=1000, using=using)
    assert bool(machine.periods) is starved
