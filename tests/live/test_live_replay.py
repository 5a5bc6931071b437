"""``mxwire replay`` between namespaces; the other side is ``mxwire serve``, or absent."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mxwire.link import PacketLink
from tests.cli.support import CAPTURES
from tests.cli.support import mxwire as run_here
from tests.wire.support import frames_of, read_capture

from .commands import INTERRUPTED, mxwire, running, start
from .namespaces import Laboratory, Port

A = "52:54:00:0a:00:01"
PATIENCE = "60"
Cable = tuple[Port, Port]


def replay(port: Port, capture: str, *options: object) -> Any:
    return mxwire(port, "replay", CAPTURES / capture, *options)


@contextmanager
def serving(port: Port, *options: object) -> Iterator[None]:
    with running(port, "serve", "--name", "beta:0", *options) as host:
        host.until("Ctrl-C ends it")
        yield
        host.end()


def summary(done: Any) -> dict[str, Any]:
    last: dict[str, Any] = done.objects[-1]
    assert last["event"] == "summary", done.out
    return last


# Raw.


def test_all_frames_arrive_in_order_and_unchanged(ports: Cable) -> None:
    sender, receiver = ports
    with receiver.namespace.inside():
        link = PacketLink.open(receiver.interface, promiscuous=True)
    with link:
        done = replay(sender, "mxoe-every-type.pcap", "--rate", "20000/s", "--loop", 2, "--json", "--linger", 0)
        assert done.code == 0, done.err
        reported = summary(done)
        arrived: list[bytes] = []
        while len(batch := link.receive(1.0)):
            arrived += [batch.frame(place) for place in range(len(batch))]
    assert arrived == frames_of(read_capture("mxoe-every-type")) * 2
    assert (reported["frames"], reported["loops"], reported["refused"]) == (174, 2, 0)
    assert reported["late_mean_us"] >= 0 and reported["elapsed_us"] >= reported["requested_us"] == 8650.0


def test_answers_are_reported_by_type(ports: Cable) -> None:
    sender, receiver = ports
    with serving(receiver, "--endpoint", 3, "--echo"):
        # A host that announces itself is queried for its name.
        options = ("--type", "RAW", "--host", A, "--map", f"{A}=self", "--top-speed", "--linger", 3, "--json")
        done = replay(sender, "mxoe-discovery-omxoed.pcap", *options)
    assert done.code == 0, done.err
    assert summary(done)["answers"].get("HOST_QUERY", 0) >= 1


def test_frames_that_are_too_long_are_refused_before_any_is_sent(laboratory: Laboratory) -> None:
    sender, _ = laboratory.pair(1500)
    done = replay(sender, "mxoe-pingpong-small-medium.pcap", "--top-speed")
    assert (done.code, done.out) == (2, "")
    assert "has 4130 bytes after its Ethernet header, but the MTU of veth0 is 1500; raise it" in done.err
    done = replay(sender, "mxoe-pingpong-small-medium.pcap", "--as", A)
    assert done.code == 2 and "veth0: its MTU is 1500, and the recorded hosts sent up to 4130 bytes" in done.err


def test_ctrl_c_ends_it_with_a_summary(ports: Cable) -> None:
    sender, _ = ports
    replaying = start(sender, "replay", CAPTURES / "mxoe-connect.pcap", "--loop", "0", "--json")
    with ports[1].namespace.inside():
        link = PacketLink.open(ports[1].interface, promiscuous=True)
    with link:
        # Frames of more than one call: the first may be interrupted before they are counted.
        for _ in range(20):
            assert len(link.receive(30.0)), "nothing is sent"
    assert replaying.end(signal.SIGINT) == INTERRUPTED
    reported = replaying.objects[-1]
    assert reported["interrupted"] and reported["frames"] > 0


# Stateful.


@pytest.mark.parametrize(
    ("capture", "mode"),
    [("mxoe-echo-checksum-debug.pcap", "--echo"), ("mxoe-burst.pcap", "--sink"), ("mxoe-connect.pcap", "--sink")],
)
def test_a_host_of_a_capture_is_played_to_a_live_one(ports: Cable, tmp_path: Path, capture: str, mode: str) -> None:
    kept = tmp_path / "kept.pcapng"
    with serving(ports[1], "--endpoint", 3, mode):
        options = ("--as", A, "--target", "beta:0", "--key", "0x12345678", "--timeout", PATIENCE, "--json", "-w", kept)
        done = replay(ports[0], capture, *options)
    assert done.code == 0, done.out + done.err
    reported = summary(done)
    assert reported["came"] == reported["expected"] > 0 and reported["skipped"] == 0
    assert reported["differences"]["protocol"] == reported["differences"]["rule"] == 0
    verified = run_here("verify", kept)
    assert verified.code == 0, verified.out


def test_actions_of_another_application_are_not_faults_of_the_host(ports: Cable) -> None:
    with serving(ports[1], "--endpoint", 3, "--echo"):
        done = replay(ports[0], "mxoe-truncated.pcap", "--as", A, "--timeout", PATIENCE, "--json")
    assert done.code == 0, done.out + done.err
    reported = summary(done)
    assert reported["differences"]["application"] > 0 == reported["differences"]["protocol"]
    assert reported["came"] == reported["expected"]


def test_endpoint_and_key_of_the_live_host_may_be_others(ports: Cable) -> None:
    with serving(ports[1], "--sink", "--endpoint", 7, "--key", "0xABCD"):
        options = ("--as", A, "--endpoint", 7, "--key", "0xABCD", "--timeout", PATIENCE, "--json")
        done = replay(ports[0], "mxoe-burst.pcap", *options)
        assert done.code == 0 and summary(done)["differences"]["protocol"] == 0, done.out + done.err
        done = replay(ports[0], "mxoe-burst.pcap", "--as", A, "--timeout", PATIENCE)
        assert done.code == 1 and "its endpoint 3 is not open" in " ".join(done.out.split())


def test_a_missing_host_is_reported(ports: Cable) -> None:
    done = replay(ports[0], "mxoe-burst.pcap", "--as", A, "--timeout", 1)
    assert done.code == 2 and "no host was found within 1 s; nothing was heard" in done.err
    done = replay(ports[0], "mxoe-burst.pcap", "--as", A, "--target", "02:00:00:00:00:77", "--timeout", 1)
    assert done.code == 1 and "it does not answer: no reply to a host query" in " ".join(done.out.split())


def test_a_single_frame_is_not_repeated_at_a_pace_that_it_does_not_have(ports: Cable) -> None:
    refused = replay(ports[0], "mxoe-connect.pcap", "--frames", "1", "--loop", "0")
    assert refused.code == 2
    assert "a single frame has no recorded pace to repeat it at" in refused.err and "--rate 10/s" in refused.err
