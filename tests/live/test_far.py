"""An error in another process fails the test that uses it, and is reported."""

from __future__ import annotations

import signal

import pytest

from .far import FarProcess
from .hosts import content


def test_failures_and_crashes_of_the_other_process_are_reported(cable):
    process = FarProcess(cable[0])
    with pytest.raises(AssertionError, match=r"in the other process: Traceback(?s:.*)its MTU of 1500 is too small"):
        process.open_host("alpha")
    assert process.call(None, "content", 5) == content(5)
    process.signal(signal.SIGINT)
    with pytest.raises(AssertionError, match=r"ended with code -2 in content: Traceback(?s:.*)KeyboardInterrupt"):
        process.call(None, "content", 5)
    with pytest.raises(AssertionError, match=r"ended with code -2: Traceback"):
        process.close()


def test_one_that_is_killed_is_not_waited_for(cable):
    process = FarProcess(cable[0])
    host = process.open_host("alpha", dialect="omx:1500")
    assert host.read("name") == "alpha:0"
    process.signal(signal.SIGKILL)
    with pytest.raises(AssertionError, match="ended with code -9 in peers"):
        host.peers()
    with pytest.raises(AssertionError, match=r"ended with code -9: $"):
        process.close()
