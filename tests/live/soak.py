"""A soak: live hosts exchange messages over cables with faults of every kind, and one host of each cable is killed.

    python -m tests.live.soak --seconds 600

Each dialect has a cable of its own, so that either host is killed: the second one of ``mxoe``, the first one of
``omx:9000``. The other one lives to the end, and its memory and descriptors must not grow: it reports the bytes that it
has allocated and not freed, since the memory of a process keeps the size of the largest burst. A phase has one kind of
faults. Hosts report what they send and receive (``soak_host.py``); the ledger of a cable judges these reports:

* a message that was reported delivered was received, once, with its content;
* of those to a host that was killed, those may be missing that its application had not seen: they were received after
  all others, or taken by one of the receives that were posted.

MXoE has no checksum. Hosts open new endpoints before and after frames are corrupted, and messages between are not
judged: the hosts must survive.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from random import Random

from mxwire.link.faults import Faults
from mxwire.link.namespace import NetworkNamespace
from mxwire.link.runtime import namespace_key, runtime_folder
from mxwire.words import count_of
from tests.forked import ROOT

from .faulty_cable import FaultyCable
from .hosts import DIALECTS
from .namespaces import Laboratory, Port, missing
from .soak_host import POSTED

PATIENCE = 60.0
FAULTS = {
    "loss": Faults(loss=0.05),
    "duplicate": Faults(duplicate=0.1),
    "reorder": Faults(reorder=0.2),
    "delay": Faults(delay=0.005),
    "all": Faults(loss=0.02, duplicate=0.05, reorder=0.1, delay=0.002),
    "corrupt": Faults(corrupt=0.02),
}
INTERFACE = "interface down"
KINDS = (*FAULTS, INTERFACE)
KILL_SHARE = 0.5
"""Share of the phases in which a host is killed."""
PHASES = 60
SHORTEST_PHASE = 0.7
"""Seconds: hosts that start need some of it."""
WARM_UP = 1 / 3
"""Share of the soak before memory is judged: tables and pools grow to their working size."""
GROWTH_MAXIMUM = 0.5e6
"""Bytes by which the memory in use of a host may grow, in a soak of at least ``LONG_SECONDS``."""
LONG_SECONDS = 300
SHORT_GROWTH_MAXIMUM = 4e6
"""The same of a shorter soak, in which a few large messages decide."""
RESIDENT_MAXIMUM = 16e6
"""Bytes by which the resident memory may grow: all receives and sends of the largest length, and a half."""
ALLOCATOR = ("env", "PYTHONMALLOC=malloc", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0")
"""Command that starts a host whose every object is in the statistics of the C library, and nothing that is freed."""
LEAST_SAMPLES = 3


@dataclass
class Violation(Exception):
    """A violation: an event that a soak must not find."""

    text: str


@dataclass
class Ledger:
    """The messages between the endpoints of a cable, by the sessions of sender and receiver."""

    delivered: dict[tuple[int, int], dict[int, bool]] = field(default_factory=lambda: defaultdict(dict))
    """Per pair of sessions the numbers of messages reported delivered; True if synchronous."""
    received: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    seen: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Received messages by the session of the sender."""
    tainted: set[int] = field(default_factory=set)
    """Sessions that were open while frames were corrupted."""
    killed: set[int] = field(default_factory=set)
    """Sessions of hosts that were killed."""
    violations: list[str] = field(default_factory=list)
    bytes: int = 0
    damaged: int = 0
    """Messages with other contents, between tainted sessions."""
    unseen: int = 0
    """Messages delivered to a host that was killed before its application saw them."""

    def deliver(self, match_info: int, receiver: int, synchronous: bool) -> None:
        """Note a message that its sender reports as delivered."""
        sender, number = divmod(match_info, 1 << 32)
        self.delivered[sender, receiver][number] = synchronous

    def receive(self, match_info: int, receiver: int, same: bool, length: int) -> None:
        """Note a message that its receiver reports."""
        sender, number = divmod(match_info, 1 << 32)
        if self._is_tainted(sender, receiver):
            self.damaged += not same
            return
        if not same:
            self.violations.append(f"message {number} of session {sender:#x} has other contents")
        if number in self.seen[sender]:
            self.violations.append(f"message {number} of session {sender:#x} was received twice")
        self.seen[sender].add(number)
        self.received[sender, receiver].add(number)
        self.bytes += length

    def _is_tainted(self, *sessions: int) -> bool:
        return not self.tainted.isdisjoint(sessions)

    def lost(self) -> Iterator[tuple[tuple[int, int], set[int]]]:
        """Yield the messages that were delivered and not received, per pair of sessions that is judged."""
        for pair, numbers in self.delivered.items():
            lost = numbers.keys() - self.received[pair]
            if lost and not self._is_tainted(*pair):
                yield pair, lost

    def balanced(self) -> bool:
        """Return whether everything delivered was received, but for killed receivers."""
        return all(receiver in self.killed for (_, receiver), _ in self.lost())

    def judge(self) -> None:
        """Add a violation for each pair of sessions with messages that were lost."""
        for (sender, receiver), lost in self.lost():
            if receiver in self.killed:
                last = max(self.received[sender, receiver], default=-1)
                passed = sum(number < last for number in lost)
                waited = sum(self.delivered[sender, receiver][number] for number in lost)
                self.unseen += len(lost)
                if passed < POSTED and waited <= POSTED:
                    continue
            some = ", ".join(map(str, sorted(lost)[:5]))
            self.violations.append(
                f"{len(lost)} messages of session {sender:#x} reported delivered to {receiver:#x} were lost: {some}"
            )


@dataclass
class Sample:
    """Memory in bytes and descriptors of a process at a time."""

    seconds: float
    in_use: int
    resident: int
    descriptors: int


class SoakHost:
    """A host of a cable, as a process that is ``mortal``, killed and started again, or measured."""

    def __init__(
        self, port: Port, name: str, peer: str, dialect: str, rate: float, random: Random, mortal: bool
    ) -> None:
        self.port = port
        self._command = (*(() if mortal else ALLOCATOR), sys.executable, "-m", "tests.live.soak_host")
        self.name = name
        self._options = ("--name", name, "--peer", peer, "--dialect", dialect, "--rate", str(rate))
        self._random = random
        self.lines: Queue[list[str]] = Queue()
        self.counts: Counter[str] = Counter()
        self.session: int | None = None
        self.idle = False
        self.in_use = 0
        self.samples: list[Sample] = []
        self.start()

    def start(self) -> None:
        """Start the process."""
        words = ("--interface", self.port.interface, *self._options, "--seed", str(self._random.random()))
        self.process = self.port.namespace.start(
            *self._command, *words, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE
        )
        self.session, self.idle = None, False
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                self.lines.put(line.split())

    def command(self, word: str) -> None:
        """Send it a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it by SIGKILL, and read the rest of its reports."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        self.process.communicate()

    def sample(self, seconds: float) -> None:
        """Note its memory and descriptors."""
        folder = Path("/proc", str(self.process.pid))
        resident = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.samples.append(Sample(seconds, self.in_use, resident, len(list((folder / "fd").iterdir()))))


class SoakCable:
    """A cable with its hosts, of which ``mortal`` is killed, and the judge of their messages."""

    def __init__(self, laboratory: Laboratory, dialect: str, mortal: int, rate: float, seed: int) -> None:
        self.dialect = dialect
        self.random = Random(f"{seed} {dialect}")
        self.cable = FaultyCable(laboratory, DIALECTS[dialect], seed)
        names = ("alpha", "beta")
        self.hosts = [
            SoakHost(port, names[place], names[1 - place], dialect, rate, self.random, place == mortal)
            for place, port in enumerate(self.cable.ports)
        ]
        self.mortal, self.survivor = self.hosts[mortal], self.hosts[1 - mortal]
        self.ledger = Ledger()
        self.kills = 0
        self.corrupting = False

    def run(self, seconds: float, condition: Callable[[], bool] = lambda: False) -> bool:
        """Take reports for a time, or until a condition; return whether it was met."""
        end = time.monotonic() + seconds
        while not (met := condition()) and time.monotonic() < end:
            for host in self.hosts:
                self._take(host)
                if host.process.poll() is not None:
                    raise Violation(f"{host.name} has ended with code {host.process.returncode}: {self._errors(host)}")
            time.sleep(0.005)
        return met

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; raise an error if it is not met in time."""
        if not self.run(PATIENCE, condition):
            raise Violation(f"{what} within {PATIENCE:g} s: {self.state()}")

    def wait_for_start(self) -> None:
        """Wait until both hosts have an endpoint."""
        self.wait(lambda: all(each.session is not None for each in self.hosts), "a host has not opened its endpoint")

    def state(self) -> str:
        """Description of the hosts, for a violation."""
        return ", ".join(f"{each.name} {dict(each.counts)}" for each in self.hosts)

    def _errors(self, host: SoakHost) -> str:
        assert host.process.stderr is not None
        return host.process.stderr.read()

    def _take(self, host: SoakHost) -> None:
        while True:
            try:
                event, *values = host.lines.get_nowait()
            except Empty:
                return
            host.counts[event] += 1
            match event:
                case "open":
                    host.session, host.idle = int(values[0]), False
                    if self.corrupting:
                        self.ledger.tainted.add(host.session)
                case "idle" | "busy":
                    host.idle = event == "idle"
                case "delivered":
                    self.ledger.deliver(int(values[0]), int(values[1]), values[2] == "1")
                case "got":
                    assert host.session is not None
                    self.ledger.receive(int(values[0]), host.session, values[1] == "1", int(values[2]))
                case "measured":
                    host.in_use = int(values[0])
                case _:
                    pass  # counted

    def command(self, word: str) -> None:
        """Send both hosts a command."""
        for each in self.hosts:
            each.command(word)

    def measure(self, seconds: float) -> None:
        """Note the memory and descriptors of the host that is not killed."""
        before = self.survivor.counts["measured"]
        self.survivor.command("measure")
        self.wait(lambda: self.survivor.counts["measured"] > before, "a host has not measured its memory")
        self.survivor.sample(seconds)

    def settle(self) -> None:
        """Stop sending, and wait until everything delivered was received."""
        self.command("pause")
        self.wait(lambda: all(each.idle for each in self.hosts), "sends have not ended")
        self.wait(self.ledger.balanced, "messages reported delivered were not received")

    def reopen(self, corrupting: bool) -> None:
        """Have both hosts open new endpoints."""
        self.corrupting = corrupting
        before = [each.counts["open"] for each in self.hosts]
        self.command("reopen")
        self.wait(
            lambda: all(each.counts["open"] > old for each, old in zip(self.hosts, before, strict=True)),
            "endpoints were not opened again",
        )

    def kill(self) -> None:
        """Kill the host that is to be killed, and start it again."""
        host = self.mortal
        self.wait_for_start()
        host.kill()
        self._take(host)
        assert host.session is not None
        self.ledger.killed.add(host.session)
        self.kills += 1
        host.start()

    def play(self, kind: str, seconds: float, kill: bool) -> None:
        """Play a phase."""
        corrupt = kind == "corrupt"
        if corrupt:
            self.settle()
            self.reopen(True)
        self.cable.change(FAULTS.get(kind, Faults()))
        before = self.random.uniform(0.2, 0.8) * seconds
        self.run(before)
        if kill:
            self.kill()
        if kind == INTERFACE:
            port = self.random.choice((*self.cable.ports, *self.cable.sockets))
            port.down()
            self.run(seconds - before)
            port.up()
        else:
            self.run(seconds - before)
        self.cable.change(Faults())
        if corrupt:
            self.wait_for_start()
            self.reopen(False)

    def end(self) -> None:
        """Judge the messages, and end the hosts."""
        self.wait_for_start()
        before = [each.counts["got"] for each in self.hosts]
        self.wait(
            lambda: all(each.counts["got"] > old + 10 for each, old in zip(self.hosts, before, strict=True)),
            "messages do not pass in both directions",
        )
        self.settle()
        self.ledger.judge()
        self.command("end")
        for host in self.hosts:
            errors = host.process.communicate(timeout=PATIENCE)[1]
            if host.process.returncode or errors:
                raise Violation(f"{host.name} has ended with code {host.process.returncode}: {errors}")

    def close(self) -> None:
        """End everything, whatever its state."""
        for each in self.hosts:
            each.process.kill()
            each.process.communicate()
        self.cable.close()


def growth(samples: list[Sample], value: Callable[[Sample], int]) -> int:
    """Return the growth of a value from the first half after the warm-up to the second.

    The least value of each counts: messages that are under way only add to it.
    """
    judged = [value(each) for each in samples if each.seconds >= samples[-1].seconds * WARM_UP]
    half = len(judged) // 2
    return min(judged[half:]) - min(judged[:half])


def soak(seconds: float, rate: float, seed: int) -> list[str]:
    """Soak the hosts for a time, print the figures, and return the violations."""
    random = Random(seed)
    phase = max(seconds / PHASES, SHORTEST_PHASE)
    kinds = [kind for _ in range(round(seconds / phase / len(KINDS)) or 1) for kind in random.sample(KINDS, len(KINDS))]
    phase = seconds / len(kinds)
    violations: list[str] = []
    with Laboratory() as laboratory, ExitStack() as stack:
        cables = [
            stack.enter_context(closing(SoakCable(laboratory, dialect, mortal, rate, seed)))
            for dialect, mortal in (("mxoe", 1), ("omx:9000", 0))
        ]
        segments = [_segment(port) for each in cables for port in each.cable.ports]
        start = time.monotonic()
        threads = [threading.Thread(target=_play, args=(each, kinds, phase, start, violations)) for each in cables]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in cables:
            _report(each, time.monotonic() - start)
            violations += [f"{each.dialect}: {text}" for text in each.ledger.violations]
            violations += [f"{each.dialect}: {text}" for text in _leaks(each.survivor)]
        names = [port.namespace.name for each in cables for port in (*each.cable.ports, *each.cable.sockets)]
        left = [str(each) for each in segments if each.exists()]
    left += [name for name in names if Path("/run/netns", name).exists()]
    return violations + [f"left behind: {each}" for each in left]


def _segment(port: Port) -> Path:
    """Return the folder of what the hosts of a namespace share."""
    with NetworkNamespace(Path("/run/netns", port.namespace.name)) as namespace:
        return runtime_folder() / namespace_key(namespace)


def _play(cable: SoakCable, kinds: list[str], phase: float, start: float, violations: list[str]) -> None:
    """Play all phases on a cable."""
    kills = cable.random.sample(range(len(kinds)), round(len(kinds) * KILL_SHARE))
    kind = "start"
    try:
        cable.wait_for_start()
        for number, kind in enumerate(kinds):
            cable.play(kind, phase, number in kills)
            cable.measure(time.monotonic() - start)
        kind = "end"
        cable.end()
    except Violation as violation:
        violations.append(f"{cable.dialect}, {kind}: {violation.text}")
    except Exception:
        violations.append(f"{cable.dialect}, {kind}: {traceback.format_exc()}")


def _leaks(host: SoakHost) -> list[str]:
    """Return the growth of a host beyond the bounds."""
    texts = []
    if len(host.samples) >= LEAST_SAMPLES:
        long = host.samples[-1].seconds >= LONG_SECONDS
        in_use = growth(host.samples, lambda each: each.in_use)
        resident = growth(host.samples, lambda each: each.resident)
        descriptors = growth(host.samples, lambda each: each.descriptors)
        if in_use > (GROWTH_MAXIMUM if long else SHORT_GROWTH_MAXIMUM):
            texts.append(f"the memory in use of {host.name} has grown by {in_use / 1e6:.1f} MB")
        if resident > RESIDENT_MAXIMUM:
            texts.append(f"the resident memory of {host.name} has grown by {resident / 1e6:.1f} MB")
        if descriptors:
            texts.append(f"{host.name} has {count_of(descriptors, 'more descriptor')}")
    return texts


def _report(cable: SoakCable, seconds: float) -> None:
    """Print the figures of a cable."""
    ledger, host = cable.ledger, cable.survivor
    received = sum(map(len, ledger.received.values()))
    print(
        f"{cable.dialect}: {seconds:.0f} s, {received:,} messages of {ledger.bytes / 1e6:.0f} MB, "
        f"{cable.kills} kills of {cable.mortal.name}, {ledger.unseen} delivered and unseen when it was killed, "
        f"{ledger.damaged} damaged by corrupted frames"
    )
    print("  frames: " + ", ".join(f"{count:,} {name}" for name, count in cable.cable.counts().items()))
    for each in cable.hosts:
        print(f"  {each.name}: " + ", ".join(f"{count:,} {event}" for event, count in sorted(each.counts.items())))
    if len(host.samples) >= LEAST_SAMPLES:
        first, last = host.samples[int(len(host.samples) * WARM_UP)], host.samples[-1]
        grown = growth(host.samples, lambda each: each.in_use)
        print(
            f"  {host.name} after the warm-up and at the end: {first.in_use / 1e6:.1f} and {last.in_use / 1e6:.1f} MB "
            f"in use (growth {grown / 1e6:+.2f} MB), {first.resident / 1e6:.1f} and {last.resident / 1e6:.1f} MB "
            f"resident, {first.descriptors} and {last.descriptors} descriptors",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=25, help="messages per second and direction")
    parser.add_argument("--seed", type=int, default=0, help="of faults, phases and kills; times are real")
    given = parser.parse_args()
    why_not = missing()
    if why_not:
        print(f"no soak: {why_not}", file=sys.stderr)
        return 2
    violations = soak(given.seconds, given.rate, given.seed)
    for each in violations:
        print(each)
    print(count_of(len(violations), "violation"))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
