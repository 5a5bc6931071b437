"""Random MX programs: ranks that play the same schedule of calls, and check all that they receive.

    python -m tests.library.schedules --seeds 0-199 --ranks 4

A schedule is a sequence of phases. The messages of a phase belong to groups with match information of their own, so
that a receive matches messages of its group only. All posts of a phase are merged into one global order, and a call
that blocks comes after those on which it depends: each thread makes its calls in that order, so no schedule deadlocks,
however the ranks are interleaved. What each call must return follows from the schedule:

* In a group with one sender, receives have any masks. Receives prefer the oldest message, and messages the oldest
  receive, so the outcome is the same whenever they meet.
* In a group with several senders, all receives are equal. The match information identifies the message.
* The messages of other groups are for the unexpected handler: it consumes them, posts their receive, or answers.

``player.c`` plays the schedule of one rank.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from mxwire.myriexpress.build import Installation, build
from mxwire.myriexpress.launch import environment
from tests.cli.support import mxwire
from tests.library.programs import run
from tests.live.faulty_cable import FaultyCable
from tests.live.namespaces import Laboratory, Port
from tests.live.recorder import Recorder
from tests.live.soak import FAULTS

PLAYER = Path(__file__).with_name("player.c")
IDENTIFIED = 1 << 23
ALL = (1 << 64) - 1
EITHER = 99
"""In place of a status code: success or truncated."""
SUCCESS, TRUNCATED, CLOSED, BAD_KEY, BAD_ENDPOINT = 0, 5, 8, 11, 12
NORMAL, SYNCHRONOUS, WITHOUT_REQUEST, FORGOTTEN, REUSED = range(5)
KEEP, CONSUME, RECEIVE_INSIDE, ANSWER = range(4)
EAGER, SHARED = 32768, 4096
LENGTHS = ((0, 0), (1, 32), (33, 128), (129, 4096), (4097, 32768), (32769, 120_000), (120_001, 1_200_000))
WEIGHTS = (2, 5, 4, 5, 5, 4, 1)
BUDGET = 4_000_000
"""Bytes of a phase."""


@dataclass
class Endpoint:
    """An endpoint of a rank."""

    index: int
    rank: int
    number: int
    key: int
    bits: int = 0
    shift: int = 0
    handled: bool = False
    threads: tuple[int, ...] = (0,)
    """In this phase, the threads that use it."""


@dataclass
class Message:
    """A message, with its place among those of the schedule."""

    number: int
    match_info: int
    length: int
    source: Endpoint
    target: Endpoint
    action: int = KEEP
    call: int = -1


@dataclass
class Call:
    """A line of the schedule; ``time`` is its place in the global order."""

    time: float
    group: int
    rank: int
    thread: int
    kind: str
    words: list[int]
    number: int = -1


@dataclass
class Phase:
    """Calls of all ranks, and the number of threads that make them."""

    threads: int
    calls: list[Call] = field(default_factory=list)


@dataclass
class Schedule:
    """A program for all ranks."""

    seed: int
    endpoints: list[Endpoint]
    messages: list[Message]
    phases: list[Phase]

    def lines(self, rank: int) -> Iterator[str]:
        """The lines for the player of a rank."""
        yield f"schedule {self.seed}"
        for each in self.endpoints:
            yield f"endpoint {each.rank} {each.number} {each.key} {each.bits} {each.shift} {each.handled:d}"
        for one in self.messages:
            yield (
                f"message {one.match_info} {one.length} {one.source.index} {one.target.index} {one.action} {one.call}"
            )
        yield "begin"
        for phase in self.phases:
            for call in sorted(phase.calls, key=lambda call: call.time):
                if call.rank == rank:
                    words = " ".join(map(str, call.words))
                    yield f"call {call.thread} {call.kind} {call.number} {words}"
            yield f"run {phase.threads}"
        yield "finish"

    def without(self, phase: int, group: int | None) -> Schedule:
        """A copy without a phase, or without a group of a phase."""
        phases = [
            replace(each, calls=[call for call in each.calls if group is not None and call.group != group])
            if place == phase
            else each
            for place, each in enumerate(self.phases)
        ]
        return replace(self, phases=phases)


class Generator:
    """Makes the schedule of a seed."""

    def __init__(self, seed: int, placement: Sequence[str], eager: int = EAGER) -> None:
        self.eager = eager
        self.random = Random(f"schedule {seed}")
        self.placement = placement
        chance = self.random.random
        self.endpoints: list[Endpoint] = []
        for rank in range(len(placement)):
            for place in range(self.random.choice((1, 1, 2, 3))):
                bits = self.random.choice((0, 0, 4, 8, 16))
                self.endpoints.append(
                    Endpoint(
                        len(self.endpoints),
                        rank,
                        rank * 6 + place,
                        self.random.getrandbits(32),
                        bits,
                        self.random.choice((64 - bits, 40)) if bits else 0,
                        chance() < 0.5,
                    )
                )
        self.messages: list[Message] = []
        self.phase: Phase
        self.group = 0
        self.numbers = [0] * len(placement)
        self.schedule = Schedule(seed, self.endpoints, self.messages, [])

    def make(self) -> Schedule:
        """The whole schedule."""
        for _ in range(self.random.randint(1, 4)):
            self.make_phase()
        return self.schedule

    def make_phase(self) -> None:
        """Append a phase."""
        random = self.random
        self.phase = Phase(random.choice((1, 1, 1, 2, 3)))
        self.schedule.phases.append(self.phase)
        self.numbers = [0] * len(self.placement)
        self.budget = BUDGET
        everyone = tuple(range(self.phase.threads))
        for endpoint in self.endpoints:
            endpoint.threads = everyone if random.random() < 0.4 else (random.choice(everyone),)
        for _ in range(random.randint(1, 7)):
            target = random.choice(self.endpoints)
            self.group += 1
            kind = random.random()
            if target.handled and kind < 0.4:
                self.make_handled(target)
            elif kind < 0.6:
                self.make_exact(target, random.choice(self.endpoints))
            else:
                self.make_any(target)
        self.make_noise()

    def call(self, time: float, endpoint: Endpoint, thread: int, kind: str, *words: int) -> Call:
        """Append a call of a thread; its first word is the endpoint."""
        made = Call(time, self.group, endpoint.rank, thread, kind, [endpoint.index, *words])
        made.number = self.numbers[endpoint.rank]
        self.numbers[endpoint.rank] += 1
        self.phase.calls.append(made)
        return made

    def length(self) -> int:
        """A length of any class."""
        low, high = self.random.choices(LENGTHS, WEIGHTS)[0]
        length = self.random.choice((low, high, self.random.randint(low, high)))
        if length > self.budget:
            length = self.random.randint(0, 64)
        self.budget -= length
        return length

    def segments(self, length: int) -> int:
        count = self.random.choice((0, 1, 1, 1, 2, 3, 9, 256) if length < 70_000 else (1, 1, 1, 2, 5))
        return count or (1 if length else 0)

    def message(self, source: Endpoint, target: Endpoint, low: int | None) -> Message:
        """A message of this group; without ``low`` its match information identifies it."""
        number = len(self.messages)
        bits = IDENTIFIED | number if low is None else low
        made = Message(number, self.prefix | bits, self.length(), source, target)
        self.messages.append(made)
        return made

    @property
    def prefix(self) -> int:
        """Match information of this group."""
        return (self.group * 0x9E3779B97F4A7C15 & 0xFFFF << 48) | self.group << 24

    def is_early(self, message: Message, mode: int) -> bool:
        """Return whether a send ends without a receive."""
        return mode != SYNCHRONOUS and message.length <= (SHARED if self.is_near(message) else self.eager)

    def is_near(self, message: Message) -> bool:
        return self.placement[message.source.rank] == self.placement[message.target.rank]

    def send(self, time: float, message: Message, thread: int, room: int | None, kind: str = "S") -> Call:
        """A send to a receive with ``room`` bytes; None if it is consumed."""
        modes = (NORMAL, NORMAL, NORMAL, SYNCHRONOUS, WITHOUT_REQUEST, FORGOTTEN, REUSED)
        mode = self.random.choice(modes if kind == "S" else (WITHOUT_REQUEST, FORGOTTEN))
        moved, code = message.length, SUCCESS
        wanted = room or 0
        if message.length > wanted and not self.is_early(message, mode):
            either = mode != SYNCHRONOUS and message.length <= EAGER
            moved, code = wanted, EITHER if either else TRUNCATED
        return self.call(
            *(time, message.source, thread, kind, message.target.index, message.number, message.match_info, ALL),
            *(message.length, self.segments(message.length), mode, code, moved, 0),
        )

    def receive(
        self, time: float, target: Endpoint, thread: int, info: int, mask: int, room: int, group: int, kind: str = "R"
    ) -> Call:
        """A receive whose message is entered when it is known."""
        return self.call(
            time, target, thread, kind, 0, 0, info & mask, mask, room, self.segments(room), NORMAL, 0, 0, group
        )

    def complete(self, time: float, call: Call, *, blocks: bool = True) -> None:
        """Complete a request some time after ``time``."""
        endpoint = self.endpoints[call.words[0]]
        mode = call.words[7] if call.kind in "SRIJ" else NORMAL
        if mode in (WITHOUT_REQUEST, FORGOTTEN):
            return
        method = self.random.choice((0, 1, 2)) if len(endpoint.threads) > 1 else self.random.randrange(9)
        # The bits that a method with match information uses are those of the call.
        if method == 4 and call.kind == "K":
            method = 3
        when = time + self.random.choice((0.1, 5.0, 50.0)) * self.random.random()
        self.call(when, endpoint, call.thread, "C", method, call.number)

    def merge(self, queues: Sequence[int]) -> list[list[float]]:
        """Times for the items of some queues, in any interleaving that keeps the order of each."""
        bias = [self.random.choice((0.1, 1.0, 10.0)) for _ in queues]
        left, times = list(queues), [[] for _ in queues]
        base = self.random.random() * 40
        count = 0
        while any(left):
            chosen = self.random.choices(
                range(len(left)), [each * weight for each, weight in zip(left, bias, strict=True)]
            )[0]
            left[chosen] -= 1
            count += 1
            times[chosen].append(base + count + self.random.random() * 0.5)
        return times

    def make_exact(self, target: Endpoint, source: Endpoint) -> None:
        """One sender, and receives with any masks."""
        random = self.random
        sender, receiver = random.choice(source.threads), random.choice(target.threads)
        tags = random.choice((1, 2, 4, 8))
        sent = [self.message(source, target, random.randrange(tags)) for _ in range(random.randint(1, 15))]
        fixed = ALL ^ 7
        wanted = [
            random.choice((ALL, ALL, fixed, ALL ^ 1, ALL ^ 2, ALL ^ 4, ALL ^ 5)) for _ in range(random.randint(0, 18))
        ]
        criteria = [((self.prefix | random.randrange(tags)) & mask, mask) for mask in wanted]
        partners = match(sent, criteria)
        for message in sent:
            if message.number not in partners.values():
                partners[len(criteria)] = message.number
                criteria.append((message.match_info, ALL))
        sends, receives = self.merge((len(sent), len(criteria)))
        by_number = {each.number: each for each in sent}
        places = {each.number: place for place, each in enumerate(sent)}
        rooms: dict[int, int] = {}
        posted: dict[int, Call] = {}
        for place, ((info, mask), when) in enumerate(zip(criteria, receives, strict=True)):
            message = by_number.get(partners.get(place, -1))
            length = message.length if message else self.random.randint(0, 5000)
            room = random.choice((length, length, length, length + random.randint(0, 500), random.randint(0, length)))
            call = self.receive(when, target, receiver, info, mask, room, 0)
            if message is None:
                self.call(
                    when + random.choice((0.1, 9.0, 90.0)) * random.random(), target, receiver, "X", 0, call.number
                )
                continue
            call.words[2] = message.number
            rooms[message.number], posted[message.number] = room, call
            if message.length and room >= message.length and random.random() < 0.1:
                call.words[7] = random.choice((WITHOUT_REQUEST, FORGOTTEN))
                call.words[5] = message.length
        for message, when in zip(sent, sends, strict=True):
            send, receive = self.send(when, message, sender, rooms[message.number]), posted[message.number]
            both = max(send.time, receive.time)
            self.complete(when if self.is_early(message, send.words[7]) else both, send)
            if receive.words[7] == NORMAL:
                self.complete(both, receive)
            else:
                self.call(both + random.random() * 20, target, receiver, "F", 0, receive.number)
            if receive.time > when and random.random() < 0.4:
                self.probe(random.uniform(when, receive.time), message, sent, places, posted, receiver)

    def probe(
        self,
        when: float,
        message: Message,
        sent: Sequence[Message],
        places: Mapping[int, int],
        posted: Mapping[int, Call],
        thread: int,
    ) -> None:
        """A probe that finds a message whose receive has not been posted: the first one that fits."""
        mask = self.random.choice((ALL, ALL ^ 7, ALL ^ 1))
        info = message.match_info & mask
        found = next(
            each
            for each in sent[: places[message.number] + 1]
            if each.match_info & mask == info and posted[each.number].time > when
        )
        blocking = self.random.random() < 0.5
        words = (0, 0, info, mask, int(blocking), self.random.choice((0, 1, 20)), found.number)
        self.call(when, message.target, thread, "P", *words)

    def make_any(self, target: Endpoint) -> None:
        """Several senders, and equal receives."""
        random = self.random
        sources = [random.choice(self.endpoints) for _ in range(random.randint(1, 4))]
        sources = list({each.index: each for each in sources}.values())
        senders = [random.choice(each.threads) for each in sources]
        receiver = random.choice(target.threads)
        sent = [[self.message(each, target, None) for _ in range(random.randint(1, 12))] for each in sources]
        every = [each for some in sent for each in some]
        room = max(each.length for each in every)
        *sends, receives = self.merge((*map(len, sent), len(every)))
        last = max(time for some in (*sends, receives) for time in some)
        mask = ALL ^ 0xFFFFFF
        for when in receives:
            self.complete(last, self.receive(when, target, receiver, self.prefix, mask, room, self.group))
        for some, times, thread in zip(sent, sends, senders, strict=True):
            for message, when in zip(some, times, strict=True):
                send = self.send(when, message, thread, room)
                self.complete(when if self.is_early(message, send.words[7]) else last, send)

    def make_handled(self, target: Endpoint) -> None:
        """Messages for the unexpected handler."""
        random = self.random
        source = random.choice(self.endpoints)
        sender, receiver = random.choice(source.threads), random.choice(target.threads)
        for when in self.merge((random.randint(1, 10),))[0]:
            message = self.message(source, target, None)
            message.action = random.choice((KEEP, CONSUME, RECEIVE_INSIDE, ANSWER))
            if message.action == KEEP:
                # The handler is called, unless the receive is posted before; either is right.
                send = self.send(when, message, sender, message.length)
                call = self.receive(
                    when + random.uniform(-3, 3), target, receiver, message.match_info, ALL, message.length, 0
                )
                call.words[2] = message.number
                both = max(when, call.time)
                self.complete(both, call)
                self.complete(when if self.is_early(message, send.words[7]) else both, send)
                continue
            inside = message.action == RECEIVE_INSIDE
            send = self.send(when, message, sender, message.length if inside else None)
            self.complete(when, send)
            if inside:
                call = self.receive(when, target, receiver, message.match_info, ALL, message.length, 0, "I")
                call.words[2] = message.number
                message.call = call.number
                self.complete(when, call)
                continue
            self.call(when + random.random() * 20, target, receiver, "U", 0, message.number)
            if message.action == ANSWER:
                self.group += 1
                answer = self.message(target, source, None)
                message.call = self.send(when, answer, receiver, answer.length, "J").number
                call = self.receive(
                    when - random.random() * 5, source, sender, answer.match_info, ALL, answer.length, 0
                )
                call.words[2] = answer.number
                self.complete(when, call)

    def make_noise(self) -> None:
        """Calls that must not disturb the others."""
        random = self.random
        self.group += 1
        for _ in range(random.randint(0, 25)):
            endpoint = random.choice(self.endpoints)
            thread = random.choice(endpoint.threads)
            kind = random.choice("AZBWGKDT")
            when = random.random() * 100
            if kind == "A":
                self.call(when, endpoint, thread, "A", random.choice(self.endpoints).index)
            elif kind in "ZB":
                self.call(when, endpoint, thread, kind, random.choice((0, 10, 1000, 7000)))
            elif kind == "K":
                peer = random.choice(self.endpoints)
                code = random.choice((SUCCESS, SUCCESS, CLOSED, BAD_KEY, BAD_ENDPOINT))
                how = random.choice((0, 1, 1, 2)) if code == SUCCESS else 1
                info = self.prefix
                call = self.call(when, endpoint, thread, "K", peer.index, 0, info, ALL, how, 0, 0, code)
                if how == 1:
                    self.complete(when, call)
            else:
                self.call(when, endpoint, thread, kind)
        self._resume()

    def _resume(self) -> None:
        """Enable progression before the next call of the thread that blocks, and before the next ``D`` anywhere."""
        suspended = [each for each in self.phase.calls if each.kind == "D"]
        for call in suspended:
            endpoint = self.endpoints[call.words[0]]
            # A shared endpoint would be suspended twice, or block another thread.
            if len(endpoint.threads) > 1:
                self.phase.calls.remove(call)
                continue
            later = sorted(
                (
                    each
                    for each in self.phase.calls
                    if each.rank == call.rank and each.thread == call.thread and each.time > call.time
                ),
                key=lambda each: each.time,
            )
            stop = next((each.time for each in later if each.kind in "CPKFUXD"), call.time + 1)
            self.call(min(stop, call.time + 10) - 1e-6, endpoint, call.thread, "N")


def match(sent: Sequence[Message], criteria: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Messages by the place of the receive that takes them."""
    taken: dict[int, int] = {}
    for message in sent:
        for place, (info, mask) in enumerate(criteria):
            if place not in taken and message.match_info & mask == info:
                taken[place] = message.number
                break
    return taken


@dataclass
class Outcome:
    """The end of a run: what is wrong, empty if nothing is."""

    wrong: str
    output: str = ""
    seconds: float = 0.0


class Testbed:
    """Two machines, on which the ranks play."""

    def __init__(self, ports: tuple[Port, Port], installation: Installation, player: Path, folder: Path) -> None:
        self.ports = dict(zip(("alpha", "beta"), ports, strict=True))
        self.environment = environment(installation, os.environ)
        self.player, self.folder = player, folder

    def play(
        self,
        schedules: Sequence[Schedule],
        placement: Sequence[str],
        variables: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        limit: float = 60.0,
    ) -> Outcome:
        """Run schedules one after the other, in the same processes, and verify their frames."""
        names = ",".join(f"{each}:0" for each in placement)
        capture = self.folder / "run.pcap"
        port = self.ports["alpha"]
        processes = []
        started = time.monotonic()
        with Recorder(port, capture):
            for rank, host in enumerate(placement):
                file = self.folder / f"rank{rank}"
                file.write_text("".join(f"{line}\n" for each in schedules for line in each.lines(rank)))
                own = {"MXWIRE_INTERFACE": self.ports[host].interface, "MXWIRE_NAME": host}
                words = [*wrapper, str(self.player), str(file), str(rank), names]
                processes.append(
                    self.ports[host].namespace.start(*words, env=self.environment | own | dict(variables or {}))
                )
            late = False
            while not late and any(each.poll() is None for each in processes):
                time.sleep(0.02)
                late = time.monotonic() - started > limit
                if any(each.returncode for each in processes):
                    # The others may wait for it.
                    limit = min(limit, time.monotonic() - started + 5)
            for each in processes:
                each.terminate()
            outputs = []
            for each in processes:
                try:
                    outputs.append("".join(each.communicate(timeout=20)))
                except subprocess.TimeoutExpired:
                    each.kill()
                    outputs.append("".join(each.communicate(timeout=20)))
        output = "".join(
            f"rank {rank}: exit code {each.returncode}\n{out}"
            for rank, (each, out) in enumerate(zip(processes, outputs, strict=True))
        )
        seconds = time.monotonic() - started
        if late:
            return Outcome("no end", output, seconds)
        if any(each.returncode for each in processes) or any(out != "done\n" for out in outputs):
            return Outcome("not as scheduled", output, seconds)
        if any(each != placement[0] for each in placement):
            judged = mxwire("verify", capture)
            if judged.code:
                return Outcome("frames", judged.out + judged.err, seconds)
        return Outcome("", output, seconds)


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """Drop the phases and groups without which the schedule still fails."""
    for phase in range(len(schedule.phases)):
        smaller = schedule.without(phase, None)
        if fails(smaller):
            schedule = smaller
    for phase, each in enumerate(schedule.phases):
        for group in sorted({call.group for call in each.calls}):
            smaller = schedule.without(phase, group)
            if fails(smaller):
                schedule = smaller
    return schedule


PLACEMENTS = {
    1: (("alpha",),),
    2: (("alpha", "beta"), ("alpha", "alpha")),
    3: (("alpha", "beta", "alpha"), ("alpha", "alpha", "alpha")),
    4: (("alpha", "beta", "alpha", "beta"), ("alpha", "beta", "beta", "beta"), ("alpha",) * 4),
}
VARIABLES: tuple[dict[str, str], ...] = (
    {},
    {},
    {"MX_DISABLE_SHMEM": "1"},
    {"MX_DISABLE_SHMEM": "1", "MX_DISABLE_SELF": "1"},
    {"MX_ZOMBIE_SEND": "0"},
    {"MXWIRE_SPIN": "0"},
    {"MX_MONOTHREAD": "1"},
    {"MXWIRE_DIALECT": "omx"},
    {"OMX_RNDV_THRESHOLD": "4096"},
    {"MX_IMM_ACK": "1"},
    {"MX_PIPELINE_LOG": "11"},
)


def main() -> int:
    """Play many schedules; print those that fail, with what is left after shrinking."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0-99")
    parser.add_argument("--batch", type=int, default=10, help="schedules per start of the processes")
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument(
        "--prefix", type=Path, default=Path("build/schedules"), help="folder for the library, and of what fails"
    )
    parser.add_argument("--faults", choices=sorted(FAULTS), help="faults of the cable")
    parser.add_argument("--wrapper", default="", help="command before the player, such as valgrind")
    parser.add_argument("--flags", default="", help="flags of the compiler, such as -fsanitize=address")
    parser.add_argument("--variable", action="append", default=[])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--no-shrink", action="store_true")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    os.environ["CFLAGS"] = options.flags
    installation = build(options.prefix.absolute())
    player = options.prefix.absolute() / "player"
    words = ["cc", "-g", *options.flags.split(), f"-I{installation.include}", str(PLAYER), "-o", str(player)]
    run([*words, f"-L{installation.folder}", "-lmyriexpress", "-pthread"], check=True)
    failed = 0
    with Laboratory() as laboratory, tempfile.TemporaryDirectory() as folder:
        if options.faults:
            cable = FaultyCable(laboratory, 9000, seeds.start)
            cable.change(FAULTS[options.faults])
            ports = (cable.ports[0], cable.ports[1])
        else:
            ports = laboratory.pair(9000)
        testbed = Testbed(ports, installation, player, Path(folder))
        for start in range(seeds.start, seeds.stop, options.batch):
            failed += not play_batch(testbed, range(start, min(start + options.batch, seeds.stop)), options)
    return failed > 0


def play_batch(testbed: Testbed, seeds: range, options: argparse.Namespace) -> bool:
    """Play the schedules of some seeds, and shrink those that fail; return True if none does."""
    random = Random(f"run {seeds.start}")
    placement = random.choice(PLACEMENTS[options.ranks or random.choice((1, 2, 2, 3, 4))])
    variables = random.choice(VARIABLES) | dict(each.split("=", 1) for each in options.variable)

    def play(*schedules: Schedule) -> Outcome:
        return testbed.play(schedules, placement, variables, options.wrapper.split(), options.limit)

    # Eight fragments make the longest message that is copied.
    eager = min(int(variables.get("OMX_RNDV_THRESHOLD", EAGER)), 8 << int(variables.get("MX_PIPELINE_LOG", 12)))
    schedules = [Generator(seed, placement, eager).make() for seed in seeds]
    outcome = play(*schedules)
    where = f"seeds {seeds[0]}-{seeds[-1]} on {','.join(placement)} with {variables}"
    print(f"{where}: {outcome.wrong or 'as scheduled'}, {outcome.seconds:.1f} s", flush=True)
    if not outcome.wrong:
        return True
    print(outcome.output, flush=True)
    for schedule in () if options.no_shrink else schedules:
        if not (found := play(schedule)).wrong:
            continue
        print(f"seed {schedule.seed} alone: {found.wrong}\n{found.output}", flush=True)
        small = shrink(schedule, lambda each: bool(play(each).wrong))
        text = "\n".join(f"{rank}: {line}" for rank in range(len(placement)) for line in small.lines(rank))
        file = Path(f"{options.prefix}-seed-{schedule.seed}")
        file.write_text(f"{where}\n{text}\n{play(small).output}")
        print(f"shrunk to {file}", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
