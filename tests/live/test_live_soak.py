"""A short soak; ``make nightly`` has one of ten minutes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, closing

import pytest

from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.frames import FrameBatch
from mxwire.link import PacketLink
from mxwire.link.faults import Faults
from tests.waiting import until

from .faulty_cable import FaultyCable
from .hosts import PATIENCE
from .namespaces import Laboratory
from .soak import ALLOCATOR, GROWTH_MAXIMUM, KINDS, Ledger, Sample, growth, soak
from .soak_host import POSTED


def test_hosts_survive_faults_of_every_kind(laboratory: Laboratory, capsys: pytest.CaptureFixture[str]) -> None:
    assert soak(len(KINDS) * 0.7, rate=25, seed=3) == []
    out = capsys.readouterr().out
    assert "mxoe: " in out and "omx:9000: " in out and " kills of beta" in out and " kills of alpha" in out


def test_the_ledger_notices_lost_repeated_and_damaged_messages() -> None:
    ledger = Ledger()
    for number in range(3):
        ledger.deliver(1 << 32 | number, 2, False)
    ledger.receive(1 << 32 | 0, 2, True, 5)
    ledger.receive(1 << 32 | 0, 2, True, 5)
    ledger.receive(1 << 32 | 1, 2, False, 5)
    assert not ledger.balanced()
    ledger.judge()
    assert ledger.violations == [
        "message 0 of session 0x1 was received twice",
        "message 1 of session 0x1 has other contents",
        "1 messages of session 0x1 reported delivered to 0x2 were lost: 2",
    ]


@pytest.mark.parametrize(
    ("received", "synchronous", "lost"),
    [
        (range(10), False, False),  # the others waited for receives
        (range(10), True, True),  # more matched messages than there were receives
        ([0, 19], False, True),  # too many were passed
        ([0, *range(2 + POSTED - 2, 20)], False, False),
    ],
)
def test_of_messages_to_a_killed_host_only_the_last_may_be_missing(received, synchronous, lost) -> None:
    ledger = Ledger(killed={2})
    for number in range(20):
        ledger.deliver(1 << 32 | number, 2, synchronous)
    for number in received:
        ledger.receive(1 << 32 | number, 2, True, 0)
    assert ledger.balanced()
    ledger.judge()
    assert bool(ledger.violations) == lost


def test_messages_between_tainted_sessions_are_not_judged() -> None:
    ledger = Ledger(tainted={1})
    ledger.deliver(1 << 32, 2, True)
    ledger.receive(1 << 32 | 7, 2, False, 0)
    ledger.judge()
    assert (ledger.violations, ledger.damaged) == ([], 1)


def test_growth_is_measured_after_the_warm_up_and_without_messages_under_way() -> None:
    flat = [Sample(float(each), 10**7 + min(each, 30) * 10**6 + each % 3 * 10**6, 10**8, 9) for each in range(100)]
    assert growth(flat, lambda each: each.in_use) == 0
    leaking = [Sample(float(each), 10**7 + each * 20_000, 10**8, 9 + each // 10) for each in range(100)]
    assert growth(leaking, lambda each: each.in_use) > GROWTH_MAXIMUM
    assert growth(leaking, lambda each: each.descriptors) > 1


def test_memory_in_use_excludes_freed_memory() -> None:
    program = """
from tests.live.soak_host import memory_in_use
before = memory_in_use()
kept = [bytes(100) for _ in range(10_000)]
freed = bytes(10**7)
both = memory_in_use()
del freed
print(both - before, memory_in_use() - before)
del kept
print(memory_in_use() - before)
"""
    done = subprocess.run([*ALLOCATOR, sys.executable, "-c", program], capture_output=True, text=True, check=True)
    whole, kept, left = map(int, done.stdout.split())
    assert 11 * 10**6 < whole < 12 * 10**6 and 10**6 < kept < 2 * 10**6 and abs(left) < 10**4


def test_a_cable_passes_frames_on_with_its_faults(laboratory: Laboratory) -> None:
    with closing(FaultyCable(laboratory, 1500, seed=1)) as cable, ExitStack() as stack:
        links = []
        for port in cable.ports:
            with port.namespace.inside():
                links.append(stack.enter_context(closing(PacketLink.open(port.interface))))
        one, two = links
        frame = two.address + one.address + ETHERTYPE_MXOE.to_bytes(2, "big") + bytes(range(50))
        for faults, count in ((Faults(), 10), (Faults(duplicate=1.0), 20), (Faults(corrupt=1.0), 10)):
            cable.change(faults)
            one.send(FrameBatch.from_frames([frame] * 10))
            arrived: list[bytes] = []
            while len(arrived) < count:
                batch = two.receive(PATIENCE)
                assert len(batch), f"{len(arrived)} frames with {faults}"
                arrived += (bytes(batch.frame(place))[: len(frame)] for place in range(len(batch)))
            assert (arrived == [frame] * count) == (not faults.corrupt)
        cable.change(Faults(loss=1.0))
        one.send(FrameBatch.from_frames([frame] * 10))
        until(lambda: cable.counts()["frames"] >= 40)
        assert cable.counts() == {"frames": 40, "lost": 10, "duplicated": 10, "reordered": 0, "corrupted": 10}
        assert not len(two.receive(0.0))
