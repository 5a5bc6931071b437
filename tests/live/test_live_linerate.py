"""``mxwire linerate`` between namespaces: counts, never rates."""

from __future__ import annotations

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mxwire.cli.reading import capture_of
from mxwire.errors import MxwireError
from mxwire.ethernet import ETHERTYPE_MXOE
from mxwire.frames import FrameBatch
from mxwire.linerate.control import SinkControl, find_sink
from mxwire.linerate.generator import GeneratorPlan
from mxwire.linerate.live_frames import KernelGenerator, _State
from mxwire.linerate.slots import FrameSlots
from mxwire.linerate.template import RUN_SHIFT, captured_templates, templates_of
from mxwire.link import LinkError, PacketLink
from mxwire.link.interface import read_interface
from mxwire.link.xdp import XdpLink, XdpSender
from mxwire.units import MILLISECOND, SECOND
from tests.captures import write_capture
from tests.waiting import until

from . import bpf
from .commands import CLI, INTERRUPTED, Running, mxwire, start
from .namespaces import Laboratory, Port, as_nobody

CAPTURES = Path(__file__).parents[2] / "captures"
Cable = tuple[Port, Port]


@contextmanager
def sinking(port: Port, *options: str) -> Iterator[Running]:
    running = start(port, "linerate sink", "--json", *options)
    try:
        running.until('"listening"')
        yield running
    finally:
        running.end()


def generate(port: Port, *options: object) -> Any:
    return mxwire(port, "linerate generate", "--json", *options)


def summary(done: Any) -> dict[str, Any]:
    last: dict[str, Any] = json.loads(done.out.splitlines()[-1])
    assert last["event"] == "summary", done
    return last


@pytest.mark.realtime
def test_every_frame_of_each_kind_is_counted_and_checked(ports: Cable) -> None:
    sender, receiver = ports
    with sinking(receiver, "--check", "all") as sink:
        for kind in ("TINY", "SMALL", "MEDIUM", "PULL", "PULL_REPLY", "mix"):
            done = generate(sender, "--frame", kind, "--rate", "10000/s", "-c", 600, "--streams", 3)
            assert done.code == 0, done
            result = summary(done)
            assert result["complete"] and result["lost"] == 0
            assert (result["generator"]["frames"], result["sink"]["received"]) == (600, 600)
            assert (result["sink"]["altered"], result["sink"]["duplicates"], result["sink"]["reordered"]) == (0, 0, 0)
            assert result["common_clocks"] and result["sink"]["latency"]["impossible"] == 0
            counted = json.loads(sink.until('"run"'))
            assert counted["streams"] == 3 and [each["received"] for each in counted["per_stream"]] == [200] * 3
            assert sum(count for _, count in counted["latency_histogram"]) == 600


@pytest.mark.realtime
def test_frames_of_a_capture_are_sent_and_counted(ports: Cable) -> None:
    sender, receiver = ports
    with sinking(receiver):
        done = generate(sender, "--frame", CAPTURES / "mxoe-every-type.pcap", "--rate", "10000/s", "-c", 800)
    assert (done.code, summary(done)["sink"]["received"], summary(done)["sink"]["altered"]) == (0, 800, 0)


def test_frames_that_are_lost_on_the_path_are_counted_there(ports: Cable) -> None:
    """The receiver's interface is down for a moment, so frames vanish between both sides."""
    sender, receiver = ports
    with sinking(receiver) as sink:
        running = start(sender, "linerate generate", "--json", "--rate", "5000/s")
        running.until('"begin"')
        _counted_some(receiver)
        receiver.down()
        receiver.up()
        receiver.wait_for_carrier()
        _counted_some(receiver)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == INTERRUPTED
        result = json.loads(running.until('"summary"'))
        counted = json.loads(sink.until('"run"'))
    assert result["generator"]["ended"] == "interrupted" and not result["complete"]
    assert result["generator"]["frames"] == result["sink"]["received"] + result["lost"]
    assert sum(result["places"].values()) == result["lost"]
    assert counted["sent"] == result["generator"]["frames"]


def _counted_some(port: Port) -> None:
    """Wait until frames arrive."""
    with port.namespace.inside():
        link = PacketLink.open(port.interface)
    with link:
        end = time.monotonic() + 60
        count = 0
        while count < 200:
            count += len(link.receive(1.0))
            assert time.monotonic() < end


def test_foreign_frames_at_full_rate_are_counted_apart(ports: Cable) -> None:
    sender, receiver = ports
    with sinking(receiver) as sink:
        with sender.namespace.inside():
            link = PacketLink.open(sender.interface)
        with link:
            head = receiver.address + sender.address + ETHERTYPE_MXOE.to_bytes(2, "big")
            noise = [head + bytes((number * 7 + at) & 0xFF for at in range(46 + number)) for number in range(200)]
            for _ in range(20):
                link.send(FrameBatch.from_frames(noise))
            done = generate(sender, "--rate", "3000/s", "-c", 900)
            for _ in range(20):
                link.send(FrameBatch.from_frames(noise))
        sink.process.send_signal(signal.SIGINT)
        ended = json.loads(sink.until('"ended"'))
    assert (summary(done)["sink"]["received"], summary(done)["lost"]) == (900, 0)
    assert ended["foreign"] > 0 and ended["runs"] == 1


def test_a_sink_that_dies_leaves_the_results_so_far(ports: Cable) -> None:
    sender, receiver = ports
    with sinking(receiver) as sink:
        running = start(sender, "linerate generate", "--json", "--rate", "2000/s", "--duration", "3")
        running.until('"begin"')
        _counted_some(receiver)
        sink.process.kill()
        result = json.loads(running.until('"summary"'))
        assert running.process.wait(60) == 1
    assert not result["complete"] and "does not answer" in result["error"]
    assert result["generator"]["frames"] > 0 and result["sink"] is None


def test_an_interface_that_goes_down_ends_the_run_with_its_results(laboratory: Laboratory) -> None:
    sender, receiver = laboratory.pair()
    running = start(
        sender, "linerate generate", "--json", "--to", receiver.address.hex(":"), "--no-sink", "--rate", "2000/s"
    )
    running.until('"begin"')
    _counted_some(receiver)
    sender.down()
    result = json.loads(running.until('"summary"'))
    assert running.process.wait(60) == 1
    assert "it is down" in result["generator"]["ended"] and result["generator"]["frames"] >= 200


def test_an_unreachable_sink_is_explained_by_an_interface_that_is_down(laboratory: Laboratory) -> None:
    sender, receiver = laboratory.pair()
    with sender.namespace.inside(), PacketLink.open(sender.interface) as link:
        control = SinkControl(link, 1)
        with pytest.raises(MxwireError, match=r"veth0 within 0.1 s: start one on the other side"):
            control.find(0.1)
        receiver.down()
        while read_interface(sender.interface).carrier:
            time.sleep(0.01)
        with pytest.raises(
            MxwireError, match=r"within 0.1 s: veth0 has no carrier: check its cable and the other side$"
        ):
            control.find(0.1)
        sender.down()
        with pytest.raises(MxwireError, match=r"any more: veth0 is down: set it up \(ip link set veth0 up\)$"):
            control.ask(receiver.address, "end", 0.1)
        with pytest.raises(MxwireError, match=r"no sink answers at .* within 0.1 s: veth0 is down: set it up"):
            find_sink(link, receiver.address, 0.1)


def test_an_interface_that_is_removed_ends_the_sink_with_its_results(laboratory: Laboratory) -> None:
    sender, receiver = laboratory.pair()
    with sinking(receiver) as sink:
        assert generate(sender, "-c", 50, "--rate", "1000/s").code == 0
        receiver.delete()
        ended = json.loads(sink.until('"ended"'))
        assert sink.process.wait(60) == 2
    assert ended["runs"] == 1
    assert "the interface is gone" in "".join(sink.complained)


def test_mistakes_are_one_line(ports: Cable) -> None:
    sender, receiver = ports
    other = receiver.address.hex(":")
    for options, words in (
        (("--timeout", "0.3"), "no sink answers on veth0 within 0.3 s"),
        (("--to", other, "--timeout", "0.3"), f"no sink answers at {other}"),
        (("--to", other, "--no-sink", "--frame", "PULL_REPLY", "--size", "9100"), "MTU of 9000 is too small"),
        (("--to", other, "--no-sink", "--frame", "nothing"), "neither a packet type"),
        (("--to", other, "--no-sink", "--rate", "fast"), "not a rate"),
        (("--to", other, "--no-sink", "--rate", "9" * 400 + "/s"), "not a rate"),
        (("--to", other, "--no-sink", "--cpu", "4000"), "--cpu 4000"),
        (("--to", other, "--no-sink", "--cpu", "99999999999"), "--cpu 99999999999"),
        # Without a sink, which is looked for last.
        (("--frame", "nothing"), "neither a packet type"),
        (("--rate", "fast"), "not a rate"),
    ):
        done = generate(sender, *options)
        assert done.code == 2 and words in done.err and done.err.count("\n") == 1, done


def test_one_of_several_sinks_must_be_chosen(laboratory: Laboratory) -> None:
    ports = laboratory.bridged(3)
    with sinking(ports[1]), sinking(ports[2]):
        done = generate(ports[0], "-c", 10)
        assert done.code == 2 and "2 sinks answer" in done.err
        chosen = generate(ports[0], "-c", 10, "--to", ports[2].address.hex(":"))
    assert (chosen.code, summary(chosen)["sink"]["received"]) == (0, 10)


def test_generator_and_sink_of_two_machines_meet_through_a_switch(laboratory: Laboratory) -> None:
    """Nothing but MXoE connects them: the generator asks for the sink, and the test for its counters."""
    near, far = laboratory.bridged(2)
    options = ("--sizes", "60", "--duration", "0.05", "--resolution", "50%", "--repetitions", 1, "--settle", "0.1")
    with sinking(far):
        for via in ("packet", "xdp"):
            done = generate(near, "--via", via, "-c", 20, "--rate", "1000/s")
            assert (done.code, summary(done)["sink"]["received"]) == (0, 20), done
        done = measure(near, "loss", *options, "--accept-loss", "90%", "--json")
    assert done.code == 0 and results(done)[0]["trials"], done
    assert json.loads(done.out.splitlines()[0])["sink"]["address"] == far.address.hex(":")


def test_the_sink_ends_after_its_runs_and_reports_flaws(ports: Cable) -> None:
    sender, receiver = ports
    running = start(receiver, "linerate sink", "--runs", "1", "--strict")
    running.until("sink at")
    assert generate(sender, "-c", 100, "--rate", "1000/s").code == 0
    assert running.process.wait(60) == 0
    text = "".join(running.output)
    assert "100 frames" in text and "lost 0, duplicated 0, reordered 0, altered 0" in text


def test_without_privileges_the_capability_is_named(ports: Cable) -> None:
    sender, _ = ports
    command = sender.namespace.command("setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "true")
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("setpriv cannot drop capabilities here")

    done = subprocess.run(
        [*command[:-1], sys.executable, CLI, "linerate", "sink", "-i", "veth0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "CAP_NET_RAW" in done.stderr


# AF_XDP, and live frames.


@pytest.fixture(scope="module")
def xdp_wire(ports: Cable) -> Cable:
    """The cable, if this kernel has BPF and AF_XDP for this process."""
    with ports[1].namespace.inside():
        try:
            XdpLink.open(ports[1].interface).close()
        except LinkError as error:
            pytest.skip(str(error))
    return ports


@pytest.mark.parametrize(
    "frame",
    [("TINY",), ("PULL",), ("MEDIUM",), ("PULL_REPLY", "--size", "9000"), ("mix",), ("SMALL", "--streams", "5")],
)
def test_every_frame_sent_by_xdp_is_counted_and_checked(xdp_wire: Cable, frame: tuple[str, ...]) -> None:
    sender, receiver = xdp_wire
    with sinking(receiver, "--check", "all"):
        done = generate(sender, "--via", "xdp", "--rate", "10000/s", "-c", 600, "--frame", *frame)
    result = summary(done)
    assert (done.code, result["generator"]["frames"], result["sink"]["received"]) == (0, 600, 600)
    assert (result["sink"]["altered"], result["sink"]["duplicates"], result["sink"]["reordered"]) == (0, 0, 0)


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_a_sink_by_xdp_counts_and_answers(xdp_wire: Cable, mode: str) -> None:
    sender, receiver = xdp_wire
    with sinking(receiver, "--check", "all", "--via", "xdp", "--xdp-mode", mode):
        for options in (("--frame", "TINY"), ("--frame", "mix"), ("--frame", "PULL_REPLY", "--size", "9000")):
            done = generate(sender, "--rate", "10000/s", "-c", 600, *options)
            assert (done.code, summary(done)["sink"]["received"], summary(done)["sink"]["altered"]) == (0, 600, 0)
            assert json.loads(done.out.splitlines()[0])["sink"]["mode"] == f"{mode} mode, copying"


LIVE_SINK = ("--check", "all", "--via", "xdp", "--xdp-mode", "native", "--ring", "64")


@pytest.mark.parametrize(
    "frame",
    [
        ("TINY",),
        ("MEDIUM", "--size", "3408"),
        ("PULL", "--streams", "3"),
        ("mix", "--size", "3408", "--streams", "2"),
        ("PULL_REPLY", "--size", "1500", "--rate", "20000/s"),
        ("mix", "--size", "2000", "--rate", "40000/s", "--burst", "8", "--streams", "3"),
    ],
)
def test_live_frames_are_those_of_the_template(xdp_wire: Cable, frame: tuple[str, ...]) -> None:
    """The program in the kernel numbers, stamps and patches as the arrays do: every byte is checked."""
    sender, receiver = xdp_wire
    with sinking(receiver, *LIVE_SINK):
        done = generate(sender, "--via", "kernel", "-c", 2000, "--frame", *frame)
    result = summary(done)
    assert (done.code, result["generator"]["frames"]) == (0, 2000)
    sink = result["sink"]
    assert (sink["received"] + result["lost"], sink["altered"], sink["duplicates"]) == (2000, 0, 0)
    assert sink["received"] > 0 and sink["latency"]["impossible"] == 0


@pytest.mark.parametrize("streams", [1, 3])
def test_live_frames_of_a_capture_arrive_in_turn(xdp_wire: Cable, tmp_path: Path, streams: int) -> None:
    """The bytes are compared with those of the slots, which other generators send."""
    sender, receiver = xdp_wire
    capture = tmp_path / "some.pcap"
    kinds = (("MEDIUM", 700), ("TINY", 72), ("PULL_REPLY", 3000), ("SMALL", 100))
    frames = [templates_of(kind, bytes(6), bytes(6), size)[0].frame for kind, size in kinds]
    write_capture(capture, frames, format="pcap")
    with receiver.namespace.inside():
        link = XdpLink.open(receiver.interface, mode="native")
    with link:
        words = ("--no-sink", "--to", receiver.address.hex(":"), "--streams", streams, "--rate", "20000/s")
        done = generate(sender, "--via", "kernel", "-c", 30, "--frame", capture, *words)
        assert (done.code, summary(done)["generator"]["frames"]) == (0, 30)
        arrived: list[bytes] = []
        while len(arrived) < 30:
            batch = link.receive(10.0)
            assert len(batch)
            arrived += [batch.frame(place) for place in range(len(batch))]
    assert summary(done)["generator"]["bytes"] == sum(map(len, arrived))
    run = int(np.frombuffer(arrived[0][-16:-8], "<u8")[0]) >> RUN_SHIFT
    with capture_of(str(capture)) as reader:
        slots = FrameSlots(captured_templates(reader, receiver.address, sender.address), streams=streams, run=run)
    wanted = slots.batch(0, 30, 0)
    time_at = -8
    assert [each[:time_at] for each in arrived] == [wanted.frame(place)[:time_at] for place in range(30)]


@pytest.mark.parametrize("burst", [1, 10])
def test_live_frames_are_never_early(xdp_wire: Cable, burst: int) -> None:
    """The bucket permits frames by the clock, so their number has an upper limit on any machine."""
    sender, receiver = xdp_wire
    to = ("--no-sink", "--to", receiver.address.hex(":"), "--via", "kernel", "--burst", burst)
    for rate in (10_000, 50):
        done = generate(sender, *to, "--rate", f"{rate}/s", "--duration", "0.3")
        found = summary(done)["generator"]
        assert done.code == 0 and found["duration_ns"] == 300_000_000
        assert 0 < found["frames"] + found["forgone"] <= 0.3 * rate + burst
        assert found["lateness"]["count"] == found["frames"] and found["lateness"]["impossible"] == 0


def test_live_frames_that_are_too_late_are_forgone(xdp_wire: Cable) -> None:
    sender, _ = xdp_wire

    class Late(KernelGenerator):
        def _begin(self) -> None:
            super()._begin()
            self._set(_State.DUE, self._begun - SECOND)

    templates = templates_of("TINY", bytes(6), sender.address)
    with sender.namespace.inside():
        interface = read_interface(sender.interface)
        plan = GeneratorPlan(rate=10_000, count=500, burst=5, catch_up_ns=10 * MILLISECOND)
        result = Late(interface, templates, plan, streams=1, run=1).run()
    gap = 5 * SECOND // 10_000
    assert result.frames == 500 and result.forgone >= 9_900 - 5 and result.forgone % 5 == 0
    assert result.lateness.count == 500
    assert (result.lateness.maximum_ns or 0) <= plan.catch_up_ns + gap


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the program setpriv is not installed (util-linux)")
def test_live_frames_need_no_further_capability(xdp_wire: Cable) -> None:
    """Without CAP_SYS_ADMIN each call of the kernel takes longer, and nothing else changes."""
    sender, receiver = xdp_wire
    words = ["linerate", "generate", "-i", "veth0", "--json", "--no-sink", "--to", receiver.address.hex(":")]
    words += ["--via", "kernel", "-c", "300", "--rate", "9000/s"]
    code = f"import sys; from mxwire.__main__ import main; sys.argv[1:] = {words}; main()"
    done = sender.namespace.run(*as_nobody(code, "net_raw", "net_admin", "bpf"))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["complete"] and result["generator"]["frames"] == 300


def test_live_frames_end_when_their_interface_goes_down(xdp_wire: Cable) -> None:
    sender, receiver = xdp_wire
    words = ("--via", "kernel", "--no-sink", "--to", receiver.address.hex(":"))
    running = start(sender, "linerate generate", "--json", *words)
    running.until('"begin"')
    sender.down()
    try:
        assert running.process.wait(60) == 1
    finally:
        sender.up()
        sender.wait_for_carrier()
    result = json.loads(running.until('"summary"'))
    assert "went down" in result["generator"]["ended"] and not result["complete"]


def test_live_frames_that_no_driver_polls_for_are_explained(xdp_wire: Cable) -> None:
    sender, receiver = xdp_wire
    with sinking(receiver):
        done = generate(sender, "--via", "kernel", "-c", 100)
    assert summary(done)["sink"]["received"] == 0
    assert "--xdp-mode native" in done.err


def test_a_taken_queue_and_impossible_live_frames_are_one_line(xdp_wire: Cable) -> None:
    sender, receiver = xdp_wire
    other = ("--to", receiver.address.hex(":"), "--no-sink")
    for options, words in (
        (("--frame", "PULL_REPLY"), "at most 3408 bytes, not 4128"),
        (("--frame", "mix"), "at most 3408 bytes, not 4144"),
        (("--frame", "mix", "--size", "60"), "a MEDIUM cannot have 60 bytes"),
    ):
        done = generate(sender, *other, "--via", "kernel", *options)
        assert done.code == 2 and words in done.err and done.err.count("\n") == 1, done
    with receiver.namespace.inside(), XdpLink.open(receiver.interface):
        done = mxwire(receiver, "linerate sink", "--via", "xdp")
    assert done.code == 2 and "queue" in done.err and done.err.count("\n") == 1, done


def test_a_killed_sink_releases_queue_and_program(xdp_wire: Cable) -> None:
    _, receiver = xdp_wire
    for _ in range(2):
        running = start(receiver, "linerate sink", "--json", "--via", "xdp")
        running.until('"listening"')
        running.process.kill()
        running.process.wait()
        until(lambda: "prog/xdp" not in receiver.namespace.ip("link", "show", "dev", receiver.interface))
        with receiver.namespace.inside():
            XdpLink.open(receiver.interface).close()


# Tests: what they report, never how fast.

SHORT_BURSTS = {"mxwire.linerate.line_tester._BURST_SECONDS": 0.1}


def measure(port: Port, test: str, *options: object) -> Any:
    return mxwire(port, f"linerate test {test}", *options, constants=SHORT_BURSTS)


def results(done: Any) -> list[dict[str, Any]]:
    objects = done.objects
    assert objects[0]["event"] == "begin" and objects[-1]["event"] == "summary", done
    return [each for each in objects if each["event"] == "result"]


def test_the_sink_of_a_test_can_use_xdp(xdp_wire: Cable) -> None:
    """While it runs, the interface has an XDP program."""
    sender, receiver = xdp_wire
    far = f"{receiver.namespace.name}/{receiver.interface}"
    options = ("--to", far, "--sizes", "60", "--duration", "0.2", "--rate", "500/s", "--cool-down", "1", "--json")
    running = start(sender, "linerate test latency", *options, "--via", "xdp", "--sink-via", "xdp")
    running.until('"begin"')
    assert "prog/xdp" in receiver.namespace.ip("link", "show", "dev", receiver.interface)
    result = json.loads(running.until('"result"'))
    assert running.process.wait(60) == 0
    [trial] = result["trials"]
    assert trial["sent"] == trial["received"] + trial["lost"] > 0


@pytest.mark.parametrize("test", ["throughput", "latency", "loss"])
def test_tests_have_live_frames(xdp_wire: Cable, test: str) -> None:
    """The limit of the kernel's frames is measured first, and their pace is the kernel's."""
    sender, receiver = xdp_wire
    far = f"{receiver.namespace.name}/{receiver.interface}"
    options: list[object] = ["--to", far, "--sizes", "60", "--duration", "0.05", "--json"]
    options += ["--resolution", "30%", "--repetitions", 1, "--accept-loss", "90%", "--settle", "0.05", "--cool-down", 0]
    options += ["--rate", "5000/s"] if test == "latency" else []
    done = measure(sender, test, *options, "--via", "kernel")
    assert done.code == 0, done
    found = results(done)
    assert len(found) == (4 if test == "latency" else 1)
    assert json.loads(done.out.splitlines()[0])["machine"]["via"] == "kernel"
    for each in found:
        assert each["tester"]["frames_per_second"] > 0 and each["tester"]["received_per_second"] > 0 and each["trials"]
    trials = [trial for each in found for trial in each["trials"]]
    assert all(trial["sent"] == trial["received"] + trial["lost"] for trial in trials)
    # The program in the kernel may get no CPU during one trial.
    assert any(trial["received"] for trial in trials)


def test_live_frames_that_do_not_arrive_end_a_test(xdp_wire: Cable) -> None:
    sender, receiver = xdp_wire
    to = ("--to", f"{receiver.namespace.name}/{receiver.interface}", "--via", "kernel")
    done = measure(sender, "throughput", *to, "--sink-via", "packet", "--sizes", "60", "--duration", "0.05")
    assert done.code == 1 and "no frame arrived" in done.err and "--xdp-mode native" in done.err
    done = measure(sender, "throughput", *to, "--sizes", "60,4128")
    assert done.code == 2 and "at most 3408 bytes, not 4128" in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize("test", ["throughput", "latency", "loss", "burst"])
def test_every_test_measures_each_length_in_two_namespaces(ports: Cable, tmp_path: Path, test: str) -> None:
    sender, receiver = ports
    far = f"{receiver.namespace.name}/{receiver.interface}"
    options: list[object] = ["--to", far, "--sizes", "60,4128", "--duration", "0.05"]
    options += ["--resolution", "20%", "--repetitions", 1, "--accept-loss", "90%", "--json", "--csv", tmp_path / "csv"]
    options += ["--settle", "0.02", "--cool-down", "0"]
    options += ["--rate", "2000/s"] if test == "latency" else []
    done = measure(sender, test, *options)
    assert done.code == 0, done
    found = results(done)
    assert [each["size"] for each in found] == ([60] * 4 + [4128] * 4 if test == "latency" else [60, 4128])
    begin, summary = json.loads(done.out.splitlines()[0]), json.loads(done.out.splitlines()[-1])
    machine = begin["machine"]
    assert machine["driver"] == "veth" and machine["mtu"] == 9000 and machine["via"] == "packet"
    assert {"kernel", "offloads", "receive_queues", "processors_used"} <= set(machine)
    assert summary["complete"] and summary["results"] == len(found)
    for each in found:
        assert each["trials"] and each["tester"]["frames_per_second"] > 0 and each["percent"] is not None
        for trial in each["trials"]:
            assert trial["sent"] == trial["received"] + trial["lost"] and trial["sent"] > 0
    lines = (tmp_path / "csv").read_text().splitlines()
    assert lines[0].startswith("test,size,frame") and len(lines) > len(found)
    assert _no_sink(receiver)


def _no_sink(port: Port) -> bool:
    """True if no process has a packet socket in the namespace any more."""
    return len(port.namespace.run("cat", "/proc/net/packet").stdout.splitlines()) == 1


def test_requirements_decide_the_exit_code(ports: Cable) -> None:
    sender, receiver = ports
    far = f"{receiver.namespace.name}/{receiver.interface}"
    options = ("burst", "--to", far, "--sizes", "60", "--duration", "0.05", "--repetitions", 1)
    assert measure(sender, *options, "--require", "60:>=1").code == 0
    failed = measure(sender, *options, "--require", ">=100000000")
    assert failed.code == 1
    assert "does not meet >=100000000" in failed.err


def test_an_interrupted_test_keeps_its_results(ports: Cable) -> None:
    sender, receiver = ports
    far = f"{receiver.namespace.name}/{receiver.interface}"
    running = start(
        sender,
        "linerate test throughput",
        *("--to", far, "--sizes", "60,61,62,63,64,65,66,67", "--duration", "0.05", "--resolution", "30%"),
        *("--repetitions", "1", "--json"),
    )
    running.until('"result"')
    running.process.send_signal(signal.SIGINT)
    last = json.loads(running.until('"summary"'))
    assert running.process.wait(60) == INTERRUPTED
    assert not last["complete"] and last["ended"] == "interrupted" and last["results"] >= 1
    until(lambda: _no_sink(receiver))


@pytest.mark.parametrize("via", ["packet", "kernel"])
def test_a_test_whose_interface_goes_down_is_incomplete(laboratory: Laboratory, via: str) -> None:
    """It releases the program and the queue of its sink."""
    if via == "kernel" and (why_not := bpf.missing()):
        pytest.skip(why_not)
    sender, receiver = laboratory.pair(9000)
    far = f"{receiver.namespace.name}/{receiver.interface}"
    running = start(sender, "linerate test loss", "--to", far, "--json", "--duration", "9", "--via", via)
    running.until('"begin"')
    sender.down()
    last = json.loads(running.until('"summary"'))
    assert running.process.wait(60) == 1
    assert not last["complete"] and ("down" in last["ended"] or "does not answer" in last["ended"])
    until(lambda: _no_sink(receiver))
    assert "prog/xdp" not in receiver.namespace.ip("link", "show", "dev", receiver.interface)


def test_a_killed_test_takes_its_sink_with_it(ports: Cable) -> None:
    sender, receiver = ports
    far = f"{receiver.namespace.name}/{receiver.interface}"
    running = start(sender, "linerate test loss", "--to", far, "--json", "--duration", "5")
    running.until('"begin"')
    running.process.kill()
    until(lambda: _no_sink(receiver))


def test_the_sink_of_a_test_that_has_ended_does_not_start(ports: Cable) -> None:
    """The test may be killed while its sink still starts."""
    _, receiver = ports
    other = "1"
    done = mxwire(receiver, "linerate sink", "--with-parent", other)
    assert (done.code, done.out) == (INTERRUPTED, "")


def test_mistakes_of_tests_are_one_line(ports: Cable) -> None:
    sender, receiver = ports
    far = f"{receiver.namespace.name}/{receiver.interface}"
    for options, words in (
        (("--to", "nothing0"), "--to nothing0: there is no interface 'nothing0'"),
        (("--to", "veth0"), "this is the interface that sends"),
        (("--to", "nowhere/veth1"), "network namespace nowhere"),
        (("--to", far, "--sizes", "60,9100"), "MTU of 9000 is too small"),
        (("--to", far, "--sizes", "59"), "not a list of lengths"),
        (("--to", far, "--require", "fast"), "--require"),
        (("--to", far, "--sizes", "60", "--require", "99:>=1"), "'99:>=1': 99 bytes are not tested, only 60"),
        (("--to", far, "--resolution", "200%"), "not a share"),
        (("--to", far, "--resolution", "0"), "not a share"),
        (("--to", far, "--csv", "/nowhere/file"), "create its directory first"),
        (("--timeout", "0.2"), "no sink answers"),
        (("--to", "02:00:00:00:00:01", "--sink-via", "xdp"), "--sink-via is for a sink that the test starts"),
    ):
        done = measure(sender, "throughput", *options)
        assert done.code == 2 and words in done.err and done.err.count("\n") == 1, done


# Incast, and messages to a host.


def test_incast_counts_the_answers_of_all_senders(laboratory: Laboratory, tmp_path: Path) -> None:
    ports = laboratory.bridged(4, 9000)
    targets = [word for port in ports[1:] for word in ("--to", f"{port.namespace.name}/{port.interface}")]
    options = ("--blocks", 4, "--repetitions", 1, "--json", "--csv", tmp_path / "csv")
    done = measure(ports[0], "incast", *targets, *options)
    assert done.code == 0, done
    found = results(done)
    lines = list(csv.DictReader((tmp_path / "csv").open()))
    assert [(int(each["senders"]), int(each["count"])) for each in lines] == [
        (each["senders"], each["count"]) for each in found
    ]
    assert [each["senders"] for each in found] == [1, 2, 3]
    for each in found:
        for one in each["rounds"]:
            assert one["frames"] == one["received"] + one["lost"] == each["senders"] * one["blocks"] * 8
            assert len(one["per_sender"]) == each["senders"] and one["altered"] == 0
        assert each["count"] == each["senders"] * each["blocks"] * 8


def test_a_small_buffer_limits_the_incast(laboratory: Laboratory) -> None:
    """The port of the switch towards the requester has a queue of 50 frames, and forwards 1 Mbit/s."""
    ports = laboratory.bridged(3)
    switch, _ = laboratory._namespaces[0]
    switch.run("ip", "link", "set", "port0", "txqueuelen", "50", check=True)
    slow = ("tc", "qdisc", "add", "dev", "port0", "root", "tbf", "rate", "1mbit", "burst", "5kb", "limit", "50kb")
    if switch.run(*slow).returncode:
        pytest.skip("this kernel has no token bucket filter for interfaces")
    targets = [word for port in ports[1:] for word in ("--to", f"{port.namespace.name}/{port.interface}")]
    options = ("--size", "1000", "--blocks", "64", "--repetitions", 1, "--json")
    found = results(measure(ports[0], "incast", *targets, *options))
    assert all(not each["no_loss"] and each["lossy_blocks"] <= 16 for each in found)
    assert found[1]["blocks"] <= found[0]["blocks"]


@pytest.mark.parametrize("echo", [True, False])
def test_messages_at_a_rate_are_delivered_to_a_host(ports: Cable, tmp_path: Path, echo: bool) -> None:
    sender, receiver = ports
    side = "--echo" if echo else "--sink"
    serving = start(receiver, "serve", side, "--name", "beta:0")
    try:
        serving.until("Ctrl-C ends it")
        options = ("--lengths", "8,5000,70000", "--duration", "0.01", "--resolution", "40%", "--json")
        options += ("--partner", side[2:], "--csv", str(tmp_path / "csv"))
        done = measure(sender, "messages", "--to", "beta", "--name", "alpha:0", *options)
    finally:
        serving.end()
    assert done.code == 0, done
    found = results(done)
    assert [each["size"] for each in found] == [8, 5000, 70000]
    lines = list(csv.DictReader((tmp_path / "csv").open()))
    assert [float(each["messages_per_second"]) for each in lines] == [each["messages_per_second"] for each in found]
    for each in found:
        assert each["top"]["messages"] > 0 and each["trials"][0]["offered_per_second"] is None
        assert all((one["round_trip"] is not None) == (echo and one["messages"] > 0) for one in each["trials"])
        assert all(one["retransmitted"] >= 0 for one in each["trials"])


def test_a_host_that_does_not_answer_is_one_line(ports: Cable) -> None:
    done = measure(ports[0], "messages", "--to", "nobody", "--timeout", "0.1")
    assert done.code == 2 and "nobody" in done.err and done.err.count("\n") == 1, done


def test_frames_in_shared_memory_are_sent_in_place(xdp_wire: Cable) -> None:
    """Held frames of all lengths, mixed, more than the ring holds: each arrives once, with its latest contents."""
    sender, receiver = xdp_wire
    with sender.namespace.inside():
        xdp = XdpSender.open(sender.interface)
    with receiver.namespace.inside():
        link = PacketLink.open(receiver.interface, ring_bytes=64 << 20)
    with xdp, link:
        lengths = np.array([60, 9000, 72, 3500, 3501, 4136, 1514, 14 + 9000] * 8)
        offset = np.cumsum(lengths) - lengths
        room = xdp.room(int(lengths.sum()))
        assert room is not None
        head = receiver.address + sender.address + ETHERTYPE_MXOE.to_bytes(2, "big")
        for start in offset.tolist():
            room[start : start + len(head)] = np.frombuffer(head, np.uint8)
        assert xdp.hold(offset, lengths)
        for number in range(5):
            for place, start in enumerate(offset.tolist()):
                room[start + 14 : start + lengths[place]] = (number * 50 + place) & 0xFF
            assert xdp.send_held(0, 40) == 40 and xdp.send_held(40, len(lengths)) == len(lengths) - 40
            frames: list[bytes] = []
            while len(frames) < len(lengths):
                batch = link.receive(10.0)
                assert len(batch)
                frames += list(batch)
            expected = [
                head + bytes([(number * 50 + place) & 0xFF]) * (size - 14) for place, size in enumerate(lengths)
            ]
            assert frames == expected
        assert xdp.sent == 5 * len(lengths)
        sender.down()
        assert xdp.send_held(0, 10) == 0
        sender.up()
        receiver.wait_for_carrier()
    with sender.namespace.inside(), XdpSender.open(sender.interface) as other:
        assert other.room(100) is not None
        assert not other.hold(np.zeros(1, np.int64), np.array([20_000]))
