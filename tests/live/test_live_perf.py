"""``mxwire perf`` in both roles, between two machines."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from tests.cli.support import ROOT

from .commands import INTERRUPTED, mxwire, running
from .hosts import PATIENCE, open_host
from .namespaces import Port

LINE = re.compile(r"length +(\d+):\s+(\d+\.\d{3}) us\s+(\d+\.\d{2}) MB/s\s+(\d+\.\d{2}) MiB/s")
FEW = ("-N", "3", "-W", "1", "-P", "0", "-E", "100000", "-M", "16")
PREEMPTED = re.compile(
    r"mxwire: preempted: this side had a CPU for only \d+% of the time, so the times are too long; "
    r"use -B on both sides where there are fewer CPUs than busy programs\n"
)
"""Allowed, once, where a side polls: the CPUs may be busy with other tests."""
NEVER_ENDING = ("-N", "5", "-W", "0", "-P", "0", "-E", "5000000", "-M", "1", "-I", "8")
LENGTHS = [0, 1, 16, 256, 4096, 65536]


def receiver(port, *options):
    return running(port, "perf", "--name", "alpha:0", *options)


@pytest.mark.parametrize("options", [(), ("-B",), ("-y", "-a")], ids=["busy", "sleep", "yield"])
def test_lines_are_those_of_omx_perf(ports, options):
    with receiver(ports[0], *options) as other:
        other.until("waiting for a sender")
        done = mxwire(ports[1], "perf", "-d", "alpha:0", *FEW, *options)
        assert (done.code, PREEMPTED.sub("", done.err)) == (0, "")
        assert other.end(None) == 0
    lines = [LINE.fullmatch(line) for line in done.lines]
    assert all(lines) and [int(line[1]) for line in lines if line] == LENGTHS
    for line in lines[1:]:
        assert line is not None
        rate = int(line[1]) / float(line[2])
        assert float(line[3]) == pytest.approx(rate, abs=0.006, rel=0.002)
        assert float(line[4]) == pytest.approx(rate / 1.048576, abs=0.006, rel=0.002)


@pytest.mark.parametrize(
    ("name", "head", "columns"),
    [
        ("osu_latency", "# OSU MPI Latency Test v7.4", 2),
        ("osu_bw", "# OSU MPI Bandwidth Test v7.4", 2),
        ("osu_bibw", "# OSU MPI Bi-Directional Bandwidth Test v7.4", 2),
        ("osu_mbw_mr", "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4", 3),
        ("imb:PingPong", "# Benchmarking PingPong ", 4),
        ("netpipe", "", 8),
    ],
)
def test_columns_of_other_benchmarks(ports, name, head, columns):
    with receiver(ports[0], "-B") as other:
        other.until("waiting for a sender")
        options = ("-B", "-N", "2", "-W", "1", "-P", "0", "-E", "70000", "-M", "256")
        done = mxwire(ports[1], "perf", "-d", "alpha:0", "--as", name, *options)
        assert (done.code, done.err) == (0, "")
        assert other.end(None) == 0
    lines = done.lines
    assert not head or head in lines
    rows = [line.split() for line in lines if line and not line.startswith("#") and "#bytes" not in line]
    lengths = [row[1] if name == "netpipe" else row[0] for row in rows]
    assert lengths == (["0"] if name.startswith("imb") else []) + ["1", "256", "65536"]
    assert name == "netpipe" or all(len(row) == columns and float(row[-1]) >= 0 for row in rows)


def test_intervals_are_printed_before_the_summary_of_their_length(ports):
    """A microsecond, so that each round trip exceeds it."""
    options = ("-B", "-N", "4", "-W", "1", "-P", "0", "-S", "8", "-E", "9", "--interval", "0.000001")
    with receiver(ports[0], "-B", "-s") as other:
        other.until("waiting for a sender")
        done = mxwire(ports[1], "perf", "-d", "alpha:0", *options)
        lines = mxwire(ports[1], "perf", "-d", "alpha:0", *options, "--json").lines
        other.end()
    *intervals, summary = done.lines
    assert len(intervals) == 4 and LINE.fullmatch(summary)
    form = r" *(\d+\.\d\d)-(\d+\.\d\d) +s " + LINE.pattern + r"\t1 message\t0 retransmissions"
    assert all(re.fullmatch(form, each) for each in intervals), intervals
    objects = list(map(json.loads, lines))
    assert [each["event"] for each in objects] == ["begun", *["interval"] * 4, "length", "ended"]
    times = [(each["from_ns"], each["to_ns"]) for each in objects[1:5]]
    assert times[0][0] == 0 and all(one[1] == other[0] < other[1] for one, other in pairwise(times))
    assert {each["iterations"] for each in objects[1:5]} == {1}


@contextmanager
def one_busy_cpu() -> Iterator[None]:
    """Programs started in this context share one CPU with a program that spins."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            yield
        finally:
            rival.kill()
            rival.wait()
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_preempted_side_reports_it_once(ports):
    with one_busy_cpu(), receiver(ports[0], "--json") as other:
        other.until("waiting for a sender")
        done = mxwire(ports[1], "perf", "-d", "alpha:0", "-N", "10", "-W", "0", "-P", "0", "-E", "5")
        assert done.code == 0 and PREEMPTED.fullmatch(done.err), done.err
        assert other.end(None) == 0
    assert all(LINE.fullmatch(line) for line in done.lines)
    said = [each for each in other.objects if each["event"] == "preempted"]
    assert len(said) == 1 and 0 < said[0]["cpu_share"] < 0.8 and said[0]["involuntary_switches"] > 0
    assert said[0]["advice"] == "-B"
    assert len(PREEMPTED.findall("".join(other.complained))) == 1


def test_there_is_no_warning_with_w(ports):
    with one_busy_cpu(), receiver(ports[0], "-B") as other:
        other.until("waiting for a sender")
        done = mxwire(ports[1], "perf", "-B", "-d", "alpha:0", "-N", "10", "-W", "0", "-P", "0", "-E", "5")
        assert (done.code, done.err) == (0, "")
        assert other.end(None) == 0
    assert "preempted" not in "".join(other.complained)


@pytest.mark.parametrize("dialect", ["mxoe", "omx:9000"])
def test_a_slave_serves_senders_in_turn_and_reports_in_json(ports, dialect):
    with receiver(ports[0], "-s", "-B", "-e", "4", "--json", "--dialect", dialect) as other:
        other.until("waiting")
        for options in (("-U",), ("-Y",)):
            done = mxwire(
                ports[1], "perf", "-d", "alpha:0", "-r", "4", "--dialect", dialect, *FEW, *options, "-B", "--json"
            )
            assert done.code == 0, done.err
            begun, *lengths, ended = done.objects
            assert begun["parameters"]["unidirectional"] is (options == ("-U",))
            assert [each["length"] for each in lengths] == LENGTHS
            assert all(each["iterations"] == 3 and each["minimum_us"] > 0 for each in lengths)
            assert (ended["event"], ended["status"]) == ("ended", "success")
        # It forgets a sender half a second after the last answer.
        while len([each for each in other.objects if each["event"] == "ended"]) < 2:
            other.until("ended")
        assert other.end() == INTERRUPTED
    assert [each["length"] for each in other.objects if each["event"] == "length"] == LENGTHS * 2


@contextmanager
def real_omx_perf(port: Port, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The stand-in for the real program; its output is in one pipe."""
    words = [sys.executable, "-u", "-m", "tests.interop.omx_perf", "-i", port.interface, "--name", "node7:0", *options]
    process = port.namespace.start(*words, cwd=ROOT, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("options", [(), ("-U",), ("-Y",)], ids=["both ways", "one way", "synchronous"])
def test_a_real_slave_is_measured_with_any_answer(ports, options):
    """Its answers have the lengths of the messages, and a content of its own."""
    with real_omx_perf(ports[0], "-s") as other:
        assert other.stdout is not None and other.stdout.readline() == "listening\n"
        for _ in range(2):
            done = mxwire(ports[1], "perf", "-d", "node7:0", *FEW, *options, "-B", "--json")
            assert done.code == 0, done.err
            found = done.objects
            assert [each["length"] for each in found if each["event"] == "length"] == LENGTHS
            # It forgets the one before half a second after its last answer, and a sender that uses it earlier fails
            # (D-12).
            time.sleep(1)


@pytest.mark.parametrize("options", [(), ("-U",), ("-Y",)], ids=["both ways", "one way", "synchronous"])
def test_a_real_sender_measures_the_receiver(ports, options):
    with receiver(ports[0], "-s", "-B", "--json") as other:
        other.until("waiting")
        for _ in range(2):
            with real_omx_perf(ports[1], "-d", "alpha:0", *options) as sender:
                said, _ = sender.communicate(timeout=PATIENCE)
            assert sender.returncode == 0, said
            assert [int(line.split()[1]) for line in said.splitlines()] == LENGTHS
            other.until("ended")
        assert other.end() == INTERRUPTED


def test_a_picture_is_drawn(ports, tmp_path):
    pytest.importorskip("matplotlib")
    with receiver(ports[0], "-B") as other:
        other.until("waiting")
        done = mxwire(ports[1], "perf", "-B", "-d", "alpha", *FEW, "--plot", str(tmp_path / "perf.svg"))
        assert done.code == 0, done.err
    text = (tmp_path / "perf.svg").read_text()
    assert "Messages to alpha:0 and back, dialect mxoe" in text and "half a round trip" in text


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_waiting_receiver_is_interrupted(ports, how):
    with receiver(ports[0]) as other:
        other.until("waiting")
        assert other.end(how) == INTERRUPTED


def test_a_receiver_that_is_killed_ends_the_measurement_with_a_reason(ports):
    with receiver(ports[0], "-B") as other:
        other.until("waiting")
        options = ("-B", "-N", "100", "-P", "0", "-E", "50000", "-M", "1", "-I", "1", "--timeout", "2")
        with running(ports[1], "perf", "-d", "alpha:0", *options) as sender:
            sender.until("length  ")
            other.process.kill()
            assert sender.end(None) == 1, sender.complained
    assert re.search(
        r"the measurement ended after \d+ lengths?: no progress with alpha:0 endpoint 0", "".join(sender.complained)
    )
    assert "no frame arrives from it" in "".join(sender.complained)


def test_a_receiver_may_start_later_than_its_sender(ports):
    """As in a shell: mxwire perf -i veth0 & mxwire perf -i veth1 -d alpha:0."""
    with (
        running(ports[0], "serve", "--name", "alpha:0"),
        running(ports[1], "perf", "-B", "-d", "alpha:0", "-N", "1", "-E", "10", "-P", "1") as sender,
        running(ports[0], "perf", "-B", "--name", "alpha:0"),
    ):
        assert sender.end(None) == 0, sender.complained
    assert any(each.startswith("length") for each in sender.output)


@pytest.mark.parametrize("before", ["0", "4194304"])
def test_a_sender_that_is_killed_leaves_the_slave_to_the_next_one(ports, before):
    """The second sender has the endpoint of the first: only its session differs."""
    with receiver(ports[0], "-s", "-B", "--json") as other:
        other.until("waiting")
        with running(ports[1], "perf", "-B", "-d", "alpha:0", *NEVER_ENDING, "-S", before) as sender:
            other.until('"event":"length"')
            sender.end(signal.SIGKILL)
        done = mxwire(ports[1], "perf", "-B", "-d", "alpha:0", "-S", "1000", "-E", "3000", "-N", "3", "-W", "0")
        assert done.code == 0, done.err
        while [each["event"] for each in other.objects].count("ended") < 2:
            other.until("ended")
        assert other.end() == INTERRUPTED
    first, second = [each for each in other.objects if each["event"] == "ended"]
    assert (first["status"], second["status"]) != ("success", "success") and second["lengths"] == 2
    # It is noticed by its new session, by what it sends in it, or by the large message that the new session cut off.
    assert any(why in first["reason"] for why in ("has restarted", "has sent", "endpoint unreachable")), first["reason"]


def test_a_host_that_is_not_a_receiver_of_omx_perf_is_not_measured(ports):
    with running(ports[0], "serve", "--echo", "--endpoint", "0", "--name", "alpha:0") as other:
        other.until("Ctrl-C")
        done = mxwire(ports[1], "perf", "-B", "-d", "alpha:0", *FEW)
    assert (done.code, done.out) == (1, "")
    assert "has answered the parameters with 44 bytes" in done.err and "is not an omx_perf receiver" in done.err


def test_an_endpoint_that_is_not_there_is_refused_with_advice(ports):
    with receiver(ports[0], "-B") as other:
        other.until("waiting")
        done = mxwire(ports[1], "perf", "-B", "-d", "alpha:0", "-r", "9")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "mxwire: alpha:0 refuses the connection (remote endpoint closed): endpoint 9 is not open there: "
        "start a program that opens it, or name an open one (HOST:N)\n"
    )


def test_a_message_that_breaks_off_is_called_so_by_a_waiting_receiver(ports):
    """Messages of a stranger to a slave are not a measurement, and do not end it."""
    with receiver(ports[0], "-s", "-B") as other:
        other.until("waiting")
        with open_host(ports[1], "beta") as host:
            endpoint = host.open_endpoint(5)
            partner = endpoint.connect("alpha", 0, timeout=PATIENCE)
            with host.core.section:
                # It is gone before anything could be pulled.
                endpoint.isend(partner, bytes(1_000_000))
                endpoint.close()
            other.until("a message broke off, and is ignored: receive ")
        assert mxwire(ports[1], "perf", "-B", "-d", "alpha:0", *FEW).code == 0
        assert other.end() == INTERRUPTED
