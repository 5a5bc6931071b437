"""The frames of an interface as a source of batches: without an interface, as this needs no privileges."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mxwire.cli.main import cli
from mxwire.frames import FrameBatch
from mxwire.link import LinkStatistics
from mxwire.link.errors import LinkError
from mxwire.link.interface import NetworkInterface
from mxwire.link.live_source import EndSignals, LiveSource
from tests.cli.support import CAPTURES


class FakeTap:
    """A tap that returns given batches, in memory that it reuses."""

    name = "eth7"

    def __init__(self, *given: Any, dropped: int = 0) -> None:
        self._given: Iterator[Any] = iter(given)
        self._memory = np.zeros(1 << 20, np.uint8)
        self._dropped = dropped
        self.woken = False

    def receive(self, _timeout: float) -> FrameBatch:
        self._memory[:] = 0
        each = next(self._given, None)
        if isinstance(each, BaseException):
            raise each
        if isinstance(each, int):
            os.kill(os.getpid(), each)
        if not isinstance(each, FrameBatch):
            return FrameBatch.from_frames(())
        self._memory[: each.buffer.nbytes] = each.buffer
        return FrameBatch(
            self._memory, each.offset, each.length, each.wire_length, each.timestamp_ns, each.number, each.link_type
        )

    def statistics(self) -> LinkStatistics:
        return LinkStatistics(received=1, dropped=self._dropped)

    def wake(self) -> None:
        self.woken = True

    def __enter__(self) -> FakeTap:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def batch(*frames: bytes) -> FrameBatch:
    return FrameBatch.from_frames(frames, [10**18 + place for place in range(len(frames))])


def source_of(tap: FakeTap, seconds: float | None = None) -> tuple[LiveSource, EndSignals]:
    signals = EndSignals(tap)  # type: ignore[arg-type]
    return LiveSource(tap, signals, seconds), signals  # type: ignore[arg-type]


def test_batches_stay_when_the_ring_is_used_again() -> None:
    source, signals = source_of(FakeTap(batch(b"one" * 20), batch(b"two" * 20), signal.SIGINT))
    try:
        found = list(source)
    finally:
        signals.restore()
    assert [each.frame(0) for each in found if len(each)] == [b"one" * 20, b"two" * 20]
    assert source.frames == 2 and signals.seen == signal.SIGINT


def test_frames_that_wait_at_the_signal_are_still_returned() -> None:
    source, signals = source_of(FakeTap(signal.SIGTERM, batch(b"late" * 20)))
    try:
        assert sum(map(len, source)) == 1
    finally:
        signals.restore()


def test_a_second_signal_ends_at_once() -> None:
    source, signals = source_of(FakeTap(signal.SIGINT, signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            list(source)
    finally:
        signals.restore()


def test_an_interface_that_goes_ends_the_batches_and_is_remembered() -> None:
    source, signals = source_of(FakeTap(batch(b"x" * 60), LinkError("eth7: the interface is gone")))
    try:
        assert sum(map(len, source)) == 1
    finally:
        signals.restore()
    assert "gone" in str(source.error)


@pytest.fixture
def passing_capture(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets a capture pass an interface that is not there."""
    from mxwire.capture import open_capture

    def pass_by(name: str, dropped: int) -> None:
        with open_capture(CAPTURES / name) as capture:
            tap = FakeTap(*(each.compact() for each in capture), signal.SIGINT, dropped=dropped)
        monkeypatch.setattr("mxwire.link.Tap.open", lambda *_, **__: tap)
        found = NetworkInterface(name="eth7", index=1, address=bytes(6), mtu=1500, up=True, carrier=True)
        monkeypatch.setattr("mxwire.link.interface.read_interface", lambda _: found)

    return pass_by


@pytest.mark.parametrize("command", ["messages", "messages --by conversation", "stats", "verify"])
def test_missed_frames_are_reported(passing_capture: Any, command: str) -> None:
    passing_capture("mxoe-many-small.pcap", dropped=17)
    result = CliRunner().invoke(cli, [*command.split(), "-i", "eth7"])
    assert result.exit_code == 0, result.exception
    assert "23 frames in" in result.stderr and "17 more passed too fast" in result.stderr


def test_a_process_without_the_processor_does_not_blame_the_frames(passing_capture: Any, monkeypatch: Any) -> None:
    passing_capture("mxoe-many-small.pcap", dropped=17)
    monkeypatch.setattr("mxwire.link.starvation.StarvationMeter.total_ns", 3_200_000_000)
    result = CliRunner().invoke(cli, ["messages", "-i", "eth7"])
    assert "17 dropped; mxwire lacked the processor for 3.2 s while frames waited" in result.stderr
    assert "too fast" not in result.stderr


def test_verify_judges_single_frames_only_where_frames_were_missed(passing_capture: Any) -> None:
    rules = {}
    for dropped in (0, 1):
        passing_capture("mxoe-many-small.pcap", dropped=dropped)
        result = CliRunner().invoke(cli, ["verify", "-i", "eth7"])
        assert result.exit_code == 0, result.exception
        rules[dropped] = " ".join(result.stdout.split())
    assert "only rules about single frames were checked" in rules[1] and "only rules about" not in rules[0]
