"""``mxwire diagnose -i``: problems, reported as they are found."""

from __future__ import annotations

import signal
import time

import pytest

from .commands import running
from .test_live_analysis import CAPTURES, frames_of, play


def test_findings_are_reported_at_once_and_in_full_at_the_end(jumbo_cable):
    near, far = jumbo_cable
    frames = frames_of(CAPTURES / "mxoe-connect.pcap")
    with running(far, "diagnose") as watching:
        watching.until("listening")
        play(near, frames)
        assert "wrong-key (error, high)" in watching.until("wrong-key")
        assert watching.end() == 1
    output = "".join(watching.output)
    assert "Connecting with a wrong key  [wrong-key]" in output
    assert "key 0xdeadbeef was answered with BAD_KEY (frame 5" in output


def test_a_changed_ethertype_is_found_among_all_protocols(jumbo_cable):
    near, far = jumbo_cable
    frames = [each[:12] + b"\x86\xdd" + each[14:] for each in frames_of(CAPTURES / "mxoe-connect-cross.pcap")]
    with running(far, "diagnose", "--json", "--all-protocols") as watching:
        watching.until("listening")
        play(near, frames)
        assert watching.end() == 1
    assert [each["id"] for each in watching.objects if each["record"] == "finding"] == ["ethertype-changed"]


@pytest.mark.realtime
def test_a_stopped_diagnose_reports_that_it_lacked_the_processor(jumbo_cable):
    near, far = jumbo_cable
    with running(far, "diagnose", "--json") as watching:
        watching.until("listening")
        watching.process.send_signal(signal.SIGSTOP)
        play(near, frames_of(CAPTURES / "mxoe-connect-cross.pcap"))
        time.sleep(0.5)
        watching.process.send_signal(signal.SIGCONT)
        watching.end()
    assert "mxwire lacked the processor for" in watching.objects[-1]["not_judged"][-1]
    assert "too fast" not in "".join(watching.complained)


@pytest.mark.realtime
def test_nothing_is_found_where_nothing_is_wrong(jumbo_cable):
    near, far = jumbo_cable
    with running(far, "diagnose", "--json", "--duration", "4") as watching:
        watching.until("listening")
        play(near, frames_of(CAPTURES / "mxoe-connect-cross.pcap"))
        assert watching.end(None) == 0
    assert [each["record"] for each in watching.objects] == ["summary"]
    assert watching.objects[0]["frames"] == 11
