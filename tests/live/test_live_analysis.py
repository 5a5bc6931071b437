"""``-i`` of the commands that also read captures: the frames of an interface, reported as they pass."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from tests.captures import read_batch
from tests.cli.support import mxwire as of_file

from .commands import running
from .namespaces import Port

CAPTURES = Path(__file__).parents[2] / "captures"
ECHO = CAPTURES / "mxoe-every-type.pcap"


def frames_of(path: Path) -> list[bytes]:
    return list(read_batch(path))


def play(port: Port, frames: list[bytes]) -> None:
    with port.namespace.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as made:
        made.bind((port.interface, 0))
        for each in frames:
            made.send(each)


def short(frames: list[bytes]) -> bytes:
    """A frame that no host may send: one of 60 bytes that has lost its last (W-2)."""
    return next(each for each in frames if len(each) == 60)[:-1]


def test_messages_appear_when_they_are_done(jumbo_cable):
    near, far = jumbo_cable
    frames = frames_of(ECHO)
    known = of_file("messages", "--json=full", ECHO).objects
    with running(far, "messages", "--json=full") as watching:
        watching.until("listening")
        play(near, frames)
        for _ in known:
            watching.until('"message"')
        assert watching.end() == 0
        found = {each["message"]: each for each in watching.objects}
    assert len(found) == len(known)
    for each in known:
        same = ("kind", "length", "match", "source", "destination", "frames")
        assert {key: found[each["message"]].get(key) for key in same} == {key: each.get(key) for key in same}
    assert f"{len(frames)} frames" in "".join(watching.complained)


def test_verify_reports_findings_at_once_and_verdicts_at_the_end(jumbo_cable):
    near, far = jumbo_cable
    frames = frames_of(CAPTURES / "mxoe-many-small.pcap")
    with running(far, "verify") as watching:
        watching.until("listening")
        play(near, [*frames, short(frames)])
        line = watching.until("violation of W-2")
        assert f"frame {len(frames) + 1})" in line
        assert watching.end() == 1
    output = "".join(watching.output)
    assert "fail" in output and "Rules broken" in output


@pytest.mark.realtime
def test_verify_of_correct_traffic_exits_with_0_when_time_is_over(jumbo_cable):
    near, far = jumbo_cable
    with running(far, "verify", "--json", "--duration", "5") as watching:
        watching.until("listening")
        play(near, frames_of(CAPTURES / "mxoe-many-small.pcap"))
        assert watching.end(None) == 0
    assert {each["verdict"] for each in watching.objects} == {"pass"}


def test_stats_and_conversations_are_printed_at_ctrl_c(jumbo_cable):
    near, far = jumbo_cable
    frames = frames_of(CAPTURES / "mxoe-many-small.pcap")
    grouped = ("messages", "--by", "conversation", "--json")
    with running(far, "stats", "--json") as stats, running(far, *grouped) as conversations:
        for watching in (stats, conversations):
            watching.until("listening")
        play(near, frames)
        assert stats.end(signal.SIGTERM) == conversations.end() == 0
    summary = stats.objects[0]
    assert summary["frames"] == len(frames)
    (conversation,) = conversations.objects
    assert sum(end["frames"] for end in conversation["endpoints"]) == len(frames)


def test_an_interface_that_goes_ends_it_after_the_summary(jumbo_cable):
    near, far = jumbo_cable
    with running(far, "verify") as watching:
        watching.until("listening")
        frames = frames_of(CAPTURES / "mxoe-many-small.pcap")
        play(near, [*frames, short(frames)])
        # The report of the last frame shows that all have been read; others may disappear with the interface.
        watching.until("W-2")
        near.delete()
        assert watching.end(None) == 2
    assert "pass" in "".join(watching.output)
    assert "gone" in "".join(watching.complained)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "name a capture FILE, or an interface"),
        (("-i", "lo", ECHO), "give one of them"),
        (("--duration", "1", ECHO), "--duration is for -i"),
        (("-i", "nosuch0"), "nosuch0"),
    ],
)
@pytest.mark.parametrize("command", ["messages", "stats", "verify"])
def test_interfaces_that_cannot_be_watched_are_reported(command, words, complaint):
    run = of_file(command, *words)
    assert run.code == 2 and complaint in run.err and len(run.err.splitlines()) == 1
