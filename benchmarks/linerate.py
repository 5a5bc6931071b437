"""Measure line-rate tests on a veth pair: mxwire's generator and sink beside other programs, in one run.

    sudo python benchmarks/linerate.py [--rounds N] [--seconds S] [--json]

A contestant sends as fast as possible, from one CPU; a receiver has the other. The contestants of a contest take turns,
and the ratio of their best rounds is compared with the goal, since rates depend on the machine and its load. Beside it
is the ratio of processor time per frame, which depends less on other programs. Contests:

* without receiver: frames are dropped. The limit is a C program that sends through AF_XDP (xdp_send.c), without stamps.
* through: a sink checks the header of every frame, and no frame may be lost.
* live frames: made by the kernel, to a sink over native AF_XDP; beside them the AF_XDP generator to the same sink.
* paced: 99% of the arrivals of 50,000 frames per second, compared with tcpreplay.

Goals of hosts over AF_XDP are measured by benchmarks/live.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from laboratory import Laboratory, Port, command_line, options_of

from mxwire.capture import create_capture
from mxwire.errors import MxwireError
from mxwire.ethernet import mac_text
from mxwire.frames import FrameBatch
from mxwire.linerate.control import SinkControl
from mxwire.linerate.generator import GeneratorPlan
from mxwire.linerate.run import GeneratorRun
from mxwire.linerate.sink_process import SinkProcess
from mxwire.linerate.template import FrameTemplate, template_of, template_of_size
from mxwire.linerate.transmitters import Via, open_transmitter
from mxwire.link import PacketLink, Tap

SOURCE: Final = Path(__file__).with_name("xdp_send.c")
SMALL, LARGE = 72, 4136
"""Lengths of a TINY and of a long MEDIUM, in bytes."""
LIVE_SIZES: Final = (64, 1500)
RATE: Final = 50_000
PACED_FRAMES: Final = 50_000
OURS, C, SENDMMSG, TCPREPLAY, LIVE = "AF_XDP", "C program", "sendmmsg", "tcpreplay -K", "live frames"
TRIES: Final = 100
"""Attempts to bind a queue, because the kernel releases the queue of an ended process with a delay."""
SOME: Final = 1 << 14


@dataclass
class Round:
    """One round of one contestant."""

    rate: float
    """Frames per second; for paced contests the 99th percentile of the error in µs."""
    processor_us: float | None = None
    """Processor time of the sender per frame, in µs."""
    lost: int = 0


@dataclass
class Contest:
    """Contestants, and the ratio that the first must have to the second."""

    name: str
    goal: float
    rounds: dict[str, list[Round]] = field(default_factory=dict)
    lower_is_better: bool = False

    def best(self, name: str) -> Round | None:
        found = self.rounds.get(name)
        if not found:
            return None
        # A round with losses counts only if there is no other.
        found = [each for each in found if not each.lost] or found
        return (
            min(found, key=lambda each: each.rate) if self.lower_is_better else max(found, key=lambda each: each.rate)
        )

    def record(self) -> dict[str, Any]:
        first, second = list(self.rounds)[:2] if len(self.rounds) > 1 else [*self.rounds, ""]
        one, other = self.best(first), self.best(second)
        ratio = one.rate / other.rate if one and other and other.rate else None
        used = [
            min((each.processor_us for each in self.rounds.get(name, []) if each.processor_us), default=None)
            for name in (first, second)
        ]
        by_processor = used[1] / used[0] if used[0] and used[1] else None
        reached = None if ratio is None else ratio <= self.goal if self.lower_is_better else ratio >= self.goal
        if self.lower_is_better and one is not None and one.rate <= 50:
            reached = True
        return {
            "contest": self.name,
            "contestants": [first, second],
            "best": [one.rate if one else None, other.rate if other else None],
            "processor_us": used,
            "ratio": ratio,
            "processor_ratio": by_processor,
            "goal": self.goal,
            "reached": reached,
            "lost": one.lost if one else None,
        }


class Bench:
    """Both ends of a cable, and the contestants on it."""

    def __init__(self, near: Port, far: Port, folder: Path, seconds: float) -> None:
        self.near, self.far = near, far
        self.folder = folder
        self.seconds = seconds
        processors = sorted(os.sched_getaffinity(0))
        self.cpu, self.far_cpu = processors[0], processors[-1]
        self.program = folder / "xdp_send"

    def compile(self) -> bool:
        """Compile the C program; return False if there is no compiler."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return False
        done = subprocess.run([compiler, "-O2", "-o", str(self.program), str(SOURCE)], capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.splitlines() or ["no reason given"])[0]
            print(f"{SOURCE.name} cannot be compiled: {reason}", file=sys.stderr)
        return not done.returncode

    def template(self, size: int) -> FrameTemplate:
        return template_of_size(size, self.far.address, self.near.address)

    # Without receiver

    def alone(self, via: Via, template: FrameTemplate) -> Round:
        """Send without a sink."""
        with self.near.namespace.inside(), PacketLink.open(self.near.interface) as own, _opened(own, via) as sender:
            run = GeneratorRun(sender, None, None).run([template], GeneratorPlan(seconds=self.seconds))
        return _round(run)

    def c_program(self, size: int) -> Round:
        words = [str(self.program), self.near.interface, mac_text(self.far.address), str(size), str(self.seconds)]
        for _ in range(TRIES):
            done = self.near.namespace.run("taskset", "-c", str(self.cpu), *words)
            if not done.returncode:
                break
            time.sleep(0.02)
        else:
            raise SystemExit(f"{self.program.name} failed: {done.stderr.strip()}")
        frames, seconds, used = map(float, done.stdout.split())
        return Round(frames / seconds, used / frames * 1e6)

    def tcpreplay(self, template: FrameTemplate) -> Round:
        """Replay a capture of one frame many times."""
        capture = self.folder / f"{len(template)}.pcap"
        if not capture.exists():
            with create_capture(capture, format="pcap") as writer:
                writer.write(FrameBatch.from_frames([template.frame] * SOME, [0] * SOME))
        loops = max(int(self.seconds * 300_000 / SOME), 1)
        words = ("tcpreplay", "-K", "-t", f"--loop={loops}", "-i", self.near.interface, str(capture))
        before = os.times()
        output = self.near.namespace.run("taskset", "-c", str(self.cpu), *words).stdout
        after = os.times()
        found = re.search(r"Rated:.*?([\d.]+) pps", output)
        if found is None:
            raise SystemExit(f"tcpreplay reported no rate: {output}")
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return Round(float(found[1]), used / (loops * SOME) * 1e6)

    # To a sink

    def through(self, via: Via, template: FrameTemplate, *sink: str) -> Round:
        """Send to a sink in the other namespace, which checks every header."""
        where = f"{self.far.namespace.name}/{self.far.interface}"
        with (
            closing(SinkProcess(where, cpu=self.far_cpu, more=sink)) as process,
            self.near.namespace.inside(),
            PacketLink.open(self.near.interface) as own,
            _opened(own, via) as sender,
        ):
            control = SinkControl(own, time.monotonic_ns() & 0xFFFFFF)
            (found,) = control.find(20.0, 0.0)
            run = GeneratorRun(sender, control, found).run([template], GeneratorPlan(seconds=self.seconds))
        if run.sink is None or run.error or run.sink["altered"] or not run.sink["received"]:
            raise SystemExit(f"{process.about}: {run.error or run.sink}")
        made = _round(run)
        made.rate, made.lost = float(run.sink["frames_per_second"]), run.lost
        return made

    # Paced

    def paced(self, send: Callable[[], Any]) -> Round:
        """Return the 99th percentile of the error of arrival times, in µs, of the frames that ``send`` sends."""
        import threading

        with self.far.namespace.inside():
            tap = Tap.open(self.far.interface, ring_bytes=64 << 20)
        times: list[Any] = []
        thread = threading.Thread(target=send)
        with tap:
            thread.start()
            # Run on another CPU than the sender, because this thread would interrupt the sender at each frame it
            # receives.
            os.sched_setaffinity(threading.get_native_id(), {self.far_cpu})
            while thread.is_alive():
                times.append(tap.receive(0.05).timestamp_ns.copy())
            while len(batch := tap.receive(0.2)):
                times.append(batch.timestamp_ns.copy())
        thread.join()
        seen = np.concatenate(times)
        if not len(seen):
            raise SystemExit("no paced frame arrived")
        wanted = seen[0] + np.arange(len(seen)) * (10**9 // RATE)
        return Round(float(np.percentile(np.abs(seen - wanted), 99)) / 1e3)

    def paced_ours(self, template: FrameTemplate) -> Round:
        words = ("generate", "-i", self.near.interface, "--to", mac_text(self.far.address), "--no-sink")
        more = ("--frame", template.name, "--rate", f"{RATE}/s", "-c", str(PACED_FRAMES), "--cpu", str(self.cpu))
        cli = str(Path(__file__).resolve().parents[1] / "cli.py")
        return self.paced(lambda: self.near.namespace.run(sys.executable, cli, "linerate", *words, *more))

    def paced_tcpreplay(self, template: FrameTemplate) -> Round:
        capture = self.folder / "paced.pcap"
        with create_capture(capture, format="pcap") as writer:
            writer.write(FrameBatch.from_frames([template.frame] * PACED_FRAMES, [0] * PACED_FRAMES))
        words = ("tcpreplay", "-K", f"--pps={RATE}", "-i", self.near.interface, str(capture))
        return self.paced(lambda: self.near.namespace.run("taskset", "-c", str(self.cpu), *words))


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


def _round(run: Any) -> Round:
    sent = run.generator
    return Round(sent.frames_per_second, sent.processor_ns / max(sent.frames, 1) / 1e3)


def contests(bench: Bench, with_c: bool) -> list[tuple[Contest, dict[str, Callable[[], Round]]]]:
    """Return the contests, each with its contestants."""
    made: list[tuple[Contest, dict[str, Callable[[], Round]]]] = []
    small, large = bench.template(SMALL), bench.template(LARGE)
    for template in (small, large):
        size = len(template)

        def xdp(template: FrameTemplate = template) -> Round:
            return bench.alone(Via.XDP, template)

        if with_c:
            made.append(
                (
                    Contest(f"without receiver, {size} bytes, against C", 0.85),
                    {OURS: xdp, C: lambda size=size: bench.c_program(size)},
                )
            )
        plain = {OURS: xdp, SENDMMSG: lambda template=template: bench.alone(Via.PACKET, template)}
        made.append((Contest(f"without receiver, {size} bytes", 1.3), plain))
        if shutil.which("tcpreplay"):
            made.append(
                (
                    Contest(f"without receiver, {size} bytes, against tcpreplay", 2.0),
                    {OURS: xdp, TCPREPLAY: lambda template=template: bench.tcpreplay(template)},
                )
            )
        goal = 1.3 if template is small else 1.15
        made.append(
            (
                Contest(f"through, {size} bytes, every header checked", goal),
                {
                    OURS: lambda template=template: bench.through(Via.XDP, template),
                    SENDMMSG: lambda template=template: bench.through(Via.PACKET, template),
                },
            )
        )
    sink = ("--via", "xdp", "--xdp-mode", "native", "--ring", "64")
    for size in LIVE_SIZES:
        template = bench.template(size)
        made.append(
            (
                Contest(f"live frames, {size} bytes, to AF_XDP", 3.0),
                {
                    LIVE: lambda template=template: bench.through(Via.KERNEL, template, *sink),
                    OURS: lambda template=template: bench.through(Via.XDP, template, *sink),
                },
            )
        )
    if shutil.which("tcpreplay"):
        tiny = template_of("TINY", bench.far.address, bench.near.address)
        made.append(
            (
                Contest(f"paced at {RATE:,}/s, 99% error in µs (50, or no worse)", 1.0, lower_is_better=True),
                {SENDMMSG: lambda: bench.paced_ours(tiny), TCPREPLAY: lambda: bench.paced_tcpreplay(tiny)},
            )
        )
    return made


def main() -> None:
    parser = command_line(__doc__, rounds=5, compiles=False)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a round (%(default)s)")
    parser.add_argument("--only", default="", help="only contests with this text in their name")
    options = options_of(parser)
    with Laboratory() as laboratory, tempfile.TemporaryDirectory() as folder:
        near, far = laboratory.pair(9000)
        bench = Bench(near, far, Path(folder), 0.1 if options.quick else options.seconds)
        os.sched_setaffinity(0, {bench.cpu})
        for contest, contestants in contests(bench, bench.compile()):
            if options.only not in contest.name:
                continue
            contest.rounds = {name: [] for name in contestants}
            for _ in range(options.rounds):
                for name, run in contestants.items():
                    contest.rounds[name].append(run())
            record = contest.record()
            print(json.dumps(record) if options.json else _line(record), flush=True)


def _line(record: dict[str, Any]) -> str:
    def shown(value: float | None, form: str = ".2f") -> str:
        return "-" if value is None else format(value, form)

    reached = {None: "?", True: "reached", False: "NOT reached"}[record["reached"]]
    first, second = record["contestants"]
    best = " / ".join(shown(each, ",.0f") for each in record["best"])
    used = " / ".join(shown(each) for each in record["processor_us"])
    lost = f", lost {record['lost']}" if record["lost"] else ""
    return (
        f"{record['contest']}: {first} / {second} {best}{lost}; ratio {shown(record['ratio'])} (goal {record['goal']}: "
        f"{reached}); processor µs per frame {used}, ratio {shown(record['processor_ratio'])}"
    )


if __name__ == "__main__":
    main()
