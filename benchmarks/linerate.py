"""Measure line-rate tests on a veth pair: mxwire's generator and sink beside other programs, in one run.

    sudo python benchmarks/linerate.py [OPTIONS]

A contestant sends as fast as possible, from one CPU; a receiver has the other. Beside each rate is the sender's
processor time per frame, which depends less on other programs. Contests:

* without receiver: frames are dropped. The limit is a C program that sends through AF_XDP (xdp_send.c), without stamps.
* through: a sink checks the header of every frame, and the frames that it has received count.
* live frames: made by the kernel, to a sink over native AF_XDP; beside them the AF_XDP generator to the same sink.
* paced: 99% of the arrivals of 50,000 frames per second, compared with tcpreplay.

Speeds of hosts over AF_XDP are measured by live.py. Needs root, for the namespaces.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from contest import (
    COMMAND,
    PATIENCE,
    Benchmark,
    BenchmarkError,
    Failure,
    Run,
    Sample,
    cable,
    compiled_program,
    run_benchmark,
)

from mxwire.capture import create_capture
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.lab.machine import placement
from mxwire.linerate.control import SinkControl
from mxwire.linerate.generator import GeneratorPlan
from mxwire.linerate.generator_run import GeneratorRun
from mxwire.linerate.sink_process import SinkProcess
from mxwire.linerate.template import FrameTemplate, template_of, template_of_size
from mxwire.linerate.transmitters import Via, open_transmitter
from mxwire.link import PacketLink
from replay import OTHERS as TCPREPLAY
from replay import RATE, Ports, paced, paced_tcpreplay, pinned, tcpreplay_rate

SIZES: Final = (72, 4136)
"""Lengths of a TINY and of a long MEDIUM, in bytes."""
LIVE_SIZES: Final = (64, 1500)
SECONDS, QUICK_SECONDS = 0.5, 0.1
"""Length of a round."""
PACED_FRAMES: Final = 50_000
XDP, C, SENDMMSG, LIVE = "AF_XDP", "C program", "sendmmsg", "live frames"
NATIVE_SINK: Final = ("--via", "xdp", "--xdp-mode", "native", "--ring", "64")
TRIES: Final = 100
"""Attempts to bind a queue, because the kernel releases the queue of an ended process with a delay."""
SOME: Final = 1 << 14
"""Frames of the capture that tcpreplay repeats."""


def rates(series: str, rate: float, processor_us: float) -> Iterator[Sample]:
    """Return the samples of a round."""
    yield Sample(series, "frames/s", rate)
    yield Sample(f"{series}, processor time of the sender per frame", "µs", processor_us)


class Cable:
    """Both ends of a cable, and the contestants on it."""

    def __init__(self, ports: Ports, folder: Path, seconds: float) -> None:
        self.ports = ports
        self.near, self.far = ports
        self.folder = folder
        self.seconds = seconds

    def template(self, size: int) -> FrameTemplate:
        return template_of_size(size, self.far.address, self.near.address)

    def alone(self, series: str, via: Via, template: FrameTemplate) -> Iterator[Sample]:
        """Send without a sink."""
        with self.near.namespace.inside(), PacketLink.open(self.near.interface) as own, _opened(own, via) as sender:
            sent = GeneratorRun(sender, None, None).run([template], GeneratorPlan(seconds=self.seconds)).generator
        yield from rates(series, sent.frames_per_second, sent.processor_ns / max(sent.frames, 1) / 1e3)

    def c_program(self, series: str, program: Path, size: int) -> Iterator[Sample]:
        words = [str(program), self.near.interface, mac_text(self.far.address), str(size), str(self.seconds)]
        for _ in range(TRIES):
            done = subprocess.run(pinned(self.near, *words), capture_output=True, text=True, timeout=PATIENCE)
            if not done.returncode:
                break
            time.sleep(0.02)
        else:
            raise Failure(done.stderr)
        frames, seconds, used = map(float, done.stdout.split())
        yield from rates(series, frames / seconds, used / frames * 1e6)

    def tcpreplay(self, series: str, template: FrameTemplate) -> Iterator[Sample]:
        """Replay a capture of one frame many times."""
        capture = self.capture_of(template, SOME)
        loops = max(int(self.seconds * 300_000 / SOME), 1)
        words = ("tcpreplay", "-K", "-t", f"--loop={loops}", "-i", self.near.interface, str(capture))
        before = os.times()
        done = subprocess.run(pinned(self.near, *words), capture_output=True, text=True, timeout=PATIENCE, check=True)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        yield from rates(series, tcpreplay_rate(done.stdout), used / (loops * SOME) * 1e6)

    def capture_of(self, template: FrameTemplate, frames: int) -> Path:
        """Write a capture of one frame, repeated."""
        capture = self.folder / f"{len(template)}-{frames}.pcap"
        if not capture.exists():
            with create_capture(capture, format="pcap") as writer:
                writer.write(FrameBatch.from_frames([template.frame] * frames, [0] * frames))
        return capture

    def through(self, series: str, via: Via, template: FrameTemplate, *sink: str) -> Iterator[Sample]:
        """Send to a sink in the other namespace, which checks every header."""
        where = f"{self.far.namespace.name}/{self.far.interface}"
        with (
            closing(SinkProcess(where, cpu=placement()[1], more=sink)) as process,
            self.near.namespace.inside(),
            PacketLink.open(self.near.interface) as own,
            _opened(own, via) as sender,
        ):
            control = SinkControl(own, time.monotonic_ns() & 0xFFFFFF)
            (found,) = control.find(20.0, 0.0)
            run = GeneratorRun(sender, control, found).run([template], GeneratorPlan(seconds=self.seconds))
        if run.sink is None or run.error or run.sink["altered"] or not run.sink["received"]:
            raise BenchmarkError(f"{process.about}: {run.error or run.sink}")
        sent = run.generator
        rate = float(run.sink["frames_per_second"])
        yield from rates(series, rate, sent.processor_ns / max(sent.frames, 1) / 1e3)

    def paced_words(self, template: FrameTemplate, frames: int) -> list[str]:
        """Return the command of mxwire's paced generator."""
        words = ("generate", "-i", self.near.interface, "--to", mac_text(self.far.address), "--no-sink")
        more = ("--frame", template.name, "--rate", f"{RATE}/s", "-c", str(frames), "--cpu", str(placement()[0]))
        return [*COMMAND, "linerate", *words, *more]


def _opened(own: PacketLink, via: Via) -> Any:
    """Open a transmitter, once the queue of an ended contestant is released."""
    for _ in range(TRIES):
        try:
            made = open_transmitter(own, via)
            made.__enter__().name  # noqa: B018
            made.__exit__(None, None, None)
            break
        except MxwireError:
            time.sleep(0.02)
    return open_transmitter(own, via)


def contests(cable: Cable, program: Path | str, tcpreplay_absent: str) -> dict[str, dict[str, Run | str]]:
    """Return the contests, each with its contestants."""
    made: dict[str, dict[str, Run | str]] = {}
    for size in SIZES:
        template = cable.template(size)
        series = f"{size} bytes without receiver"
        made[series] = {
            XDP: partial(cable.alone, series, Via.XDP, template),
            SENDMMSG: partial(cable.alone, series, Via.PACKET, template),
            C: program if isinstance(program, str) else partial(cable.c_program, series, program, size),
            TCPREPLAY: tcpreplay_absent or partial(cable.tcpreplay, series, template),
        }
        series = f"{size} bytes through, every header checked"
        made[series] = {
            XDP: partial(cable.through, series, Via.XDP, template),
            SENDMMSG: partial(cable.through, series, Via.PACKET, template),
        }
    for size in LIVE_SIZES:
        template = cable.template(size)
        series = f"{size} bytes to native AF_XDP"
        made[series] = {
            LIVE: partial(cable.through, series, Via.KERNEL, template, *NATIVE_SINK),
            XDP: partial(cable.through, series, Via.XDP, template, *NATIVE_SINK),
        }
    return made


def measure(benchmark: Benchmark) -> None:
    absent = "" if shutil.which("tcpreplay") else "it is not installed (package tcpreplay)"
    usual = os.sched_getaffinity(0)
    with cable() as ports, TemporaryDirectory() as name:
        folder = Path(name)
        bench = Cable(ports, folder, QUICK_SECONDS if benchmark.quick else SECONDS)
        made = contests(bench, compiled_program("xdp_send.c", folder), absent)
        os.sched_setaffinity(0, {placement()[0]})
        for series, contestants in made.items():
            benchmark.play(series, contestants, share=0.8 / len(made))
        # The receiver of paced frames runs on the other CPU.
        os.sched_setaffinity(0, usual)
        os.sched_setaffinity(0, {placement()[1]})
        tiny = template_of("TINY", ports[1].address, ports[0].address)
        frames = PACED_FRAMES // 100 if benchmark.quick else PACED_FRAMES
        series = f"error of arrival times at {RATE:,} frames/s, 99th percentile"
        capture = bench.capture_of(tiny, frames)
        runs: dict[str, Run | str] = {
            SENDMMSG: partial(paced, ports, series, *bench.paced_words(tiny, frames)),
            TCPREPLAY: absent or partial(paced, ports, series, *paced_tcpreplay(ports, capture)),
        }
        benchmark.play("paced", runs, share=0.2)
        os.sched_setaffinity(0, usual)


if __name__ == "__main__":
    run_benchmark(__file__, __doc__, measure, minutes=2, network=True)
