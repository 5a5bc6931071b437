"""The contestants of ``bench path``, which depend on its testbed."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from mxwire.bench.path import PathStudy
from mxwire.bench.record import Recording
from mxwire.bench.roles.alone import system_call
from mxwire.bench.study import StudyOptions
from mxwire.bench.testbed import MemoryTestbed


class TwoProcessors(MemoryTestbed):
    """A testbed whose sides may poll."""

    spins = True


@pytest.mark.parametrize(
    ("testbed", "modes"), [(TwoProcessors, {"spinning", "blocking"}), (MemoryTestbed, {"blocking"})]
)
def test_contestants_poll_only_where_each_side_has_a_processor(testbed, modes):
    with testbed() as one, testbed() as other:
        study = PathStudy(one, Recording("path", one.conditions), StudyOptions(quick=True))
        study.interpreted = other
        found = dict(study.contestants())
    trips = {
        name: run.keywords.get("mode") for name, run in found.items() if name.endswith((", spinning", ", blocking"))
    }
    assert set(trips.values()) - {None} == modes
    for name, mode in trips.items():
        # Points without a wire have no mode among their parameters.
        assert name.endswith(mode or tuple(modes))
    assert "mxoe interpreted, blocking" in trips
    assert ("ring interpreted, spinning" in trips) is ("spinning" in modes)


def test_a_signal_is_timed_on_a_main_thread_only_and_leaves_its_handler_as_it_was():
    before = signal.getsignal(signal.SIGIO)
    assert set(system_call(3000)["points"]) == {"call", "clock", "signal"}
    assert signal.getsignal(signal.SIGIO) is before
    with ThreadPoolExecutor(1) as other:
        assert set(other.submit(system_call, 3000).result()["points"]) == {"call", "clock"}


def test_each_datagram_raises_a_signal_while_signals_are_timed(monkeypatch):
    """The first handler that is set counts; the second one is that of before."""
    handlers, raised = [], []
    original = signal.signal

    def watched(number, handler):
        handlers.append(handler)
        return original(number, (lambda *_: raised.append(number)) if len(handlers) == 1 else handler)

    monkeypatch.setattr(signal, "signal", watched)
    system_call(3000)
    assert len(raised) == 3 * 100
