"""The study ``intranode``: mechanisms in turns, in Python and in C.

Names in the recording
----------------------
Contestants are ``<mechanism>`` and ``<mechanism>, C``. Series over ``size``: ``half round trip`` (µs, with the
processor time of both sides as details), ``operation, warm``, ``operation, paper`` and ``operation, cold`` (µs, by the
paper's method), ``window access`` (µs; ``<mechanism>, active`` and ``passive``), ``access to a served window`` (µs;
``<mechanism>, thread, get`` …, and over ``message`` the target's ``slowdown by waiting for requests, share``). Over
``slot``: ``rate by buffer size`` (MiB/s, of 4 MiB). Over ``message``: ``slowdown`` (µs per message of the other side's
loop), ``slowdown, share`` (of the loop), ``cache disturbance, L2`` and ``L3`` (share of lines by time, and with ``,
misses`` those that the processor counted; ``<mechanism>, source`` and ``destination``). Over ``count`` (1): ``set-up``
and ``tear-down`` (µs). ``registration`` (µs over ``size``): ``register``, ``cached`` … of pinned pages, ``token,
register`` … at an agent. Fact ``missing``: the reason by mechanism. ``copy, warm`` and ``copy, cold`` (µs over
``size``): copies within a process, by routine. ``copies for a message at an agent`` (bytes per byte over ``size``):
``shared, by the agent``, ``through the kernel, by the kernel`` …; see ``agent_copies.py``. Points of ``messages of
several senders`` count the ``places`` that the receiver polls, and the ``memory`` in bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from mxwire.bench.intranode.agent_copies import WAYS, agent_copies
from mxwire.bench.intranode.catalogue import FACTS, MECHANISMS, WITHOUT_TWIN, mechanism_named
from mxwire.bench.intranode.counters import missing_counter
from mxwire.bench.intranode.mechanism import MechanismError
from mxwire.bench.intranode.memory import MEMORIES, pool_of
from mxwire.bench.intranode.pair_starter import IN_C, PAST, PairStarter, RoleProgram, refusals
from mxwire.bench.record import Conditions, Recording, now_text
from mxwire.bench.study import Points, StudyOptions, Turns, kept
from mxwire.errors import MxwireError
from mxwire.lab import machine
from mxwire.native import is_compiled
from mxwire.words import size_text, suggestion

STUDY: Final = "intranode"
TRIP: Final = "half round trip"
SLOTS: Final = "rate by buffer size"
SLOWDOWN: Final = "slowdown"
SLOWED: Final = "slowdown, share"
ACCESS: Final = "window access"
SERVED: Final = "access to a served window"
SERVING: Final = "slowdown by waiting for requests, share"
SERVICES: Final = {"thread": 0, "signal": 1}
"""Ways in which a target serves a window, as numbers of the role."""
DISTURBANCE: Final = "cache disturbance"
NO_THIRD: Final = "the agent shares a processor with a side, since there is no third one"
DISTURBANCES: Final = (f"{DISTURBANCE}, L2", f"{DISTURBANCE}, L3")
SET_UP, TEAR_DOWN = "set-up", "tear-down"
REGISTRATION: Final = "registration"
TOKEN: Final = "token"
"""Prefix of the registration at an agent; that without is of pinned pages."""
SENDERS: Final = "messages of several senders"
AGENT_COPIES: Final = "copies for a message at an agent"
MISSING: Final = "missing"
PLACES, SENDER_MEMORY = "places", "memory"
"""Counts of a point of :data:`SENDERS`: places that the receiver polls, and bytes of shared memory."""
_ROUTINES: Final = ("slice", "slice" + PAST, "numpy", "memcpy" + IN_C, "string" + IN_C, "past-caches" + IN_C)
COPY_SIZES: Final = (64, 256, 1024, 2048, 4096, 16384, 65536, 1 << 18, 1 << 20, 4 << 20)
SIZES: Final = (1, 64, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20, 4 << 20, 16 << 20)
_QUICK_SIZES: Final = (1, 65536)
LARGE: Final = 4 << 20
"""Message of Table V's rates, of the buffer sizes, and of the disturbance of caches."""
SLOT_SIZES: Final = (*(1 << power for power in range(9, 21)), LARGE)
"""Sizes of buffers and cells; the last one holds the whole message."""
_QUICK_LARGE: Final = 1 << 18
SLOWDOWN_SIZES: Final = (1, 65536)
EXPERIMENTS: Final = (
    *("trips", "operations", "slots", "slowdown", "windows", "caches", "set-up", "registration", "senders", "copies"),
    "agent",
)
SENDER_COUNTS: Final = (1, 2, 4, 8)
_MANY: Final = ("shared-buffer", "cell-queue", "cell-queue, C")
"""Contestants with several senders: buffers and queues per pair, and one queue for all."""
_SERVED: Final = ("shared-buffer", "cell-queue", "pipe", "unix-stream", "unix-stream-polled", "tcp")
"""Mechanisms over which a target serves a window: such that poll, and such that wait in the kernel."""
_COUNTED: Final = 1 << 20
"""Message whose copies at an agent are counted."""
_IDLE_NS: Final = 30_000_000
_SENT: Final = 4096
_SENT_BY_EACH: Final = 500
_REGISTERED: Final = (4096, 65536, 1 << 20)
_MIB: Final = 1 << 20
LIMIT: Final = 120.0
"""Seconds after which no further round of an experiment begins, as on a busy machine."""
_LOOPS: Final = 40
"""Runs of the other side's loop per round."""
_TRIES: Final = 8
"""Runs of a round of slowdown, until no other program has the processor of the loop."""
ROUND_NS: Final = 4_000_000
"""Duration of the operations of a point in a round, unless :data:`LEAST_OPERATIONS` in all rounds take longer."""
LEAST_OPERATIONS: Final = 100
_MOST_TURNS: Final = 4000
_QUICK_TURNS: Final = 10
_SLOT_TURNS: Final = 4
_PROBED: Final = 5
"""Messages per round whose disturbance of caches is measured."""
_SETUPS: Final = 100
_LONG: Final = 1 << 20
"""Messages of more bytes are accessed less often."""


def operation_series(memory: str) -> str:
    """The series of the paper's method."""
    return f"operation, {memory}"


def left_out(contestant: str, text: str) -> str:
    """The remark about the slowdown by a contestant that could not be measured."""
    return f"slowdown by {contestant}, {text}"


def copy_series(memory: str) -> str:
    """The series of copies within a process."""
    return f"copy, {memory}"


@dataclass(frozen=True)
class IntranodeStudy:
    """The axes of a study."""

    mechanisms: tuple[str, ...] = MECHANISMS
    sizes: tuple[int, ...] = SIZES
    memories: tuple[str, ...] = ("warm", "cold")
    experiments: tuple[str, ...] = EXPERIMENTS

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        for each in self.mechanisms:
            mechanism_named(each)
        for each in self.memories:
            pool_of(each, 1)
        for each in self.experiments:
            if each not in EXPERIMENTS:
                raise MxwireError(
                    f"no experiment {each!r}{suggestion(each, EXPERIMENTS)}: use {', '.join(EXPERIMENTS)}"
                )


def _unnumbered(measure: Callable[[str], None], contestant: str, _: int) -> None:
    """Measure a contestant, in whatever round."""
    measure(contestant)


class _IntranodeRun:
    """A study under way."""

    def __init__(
        self, study: IntranodeStudy, options: StudyOptions, recording: Recording, points: Points, pairs: PairStarter
    ) -> None:
        self.study, self.options, self.recording, self.points, self._pairs = study, options, recording, points, pairs
        self.sizes = _QUICK_SIZES if options.quick else study.sizes
        self.large = _QUICK_LARGE if options.quick else LARGE
        self._out: set[str] = set()
        self.usable: list[str] = []
        self.contestants: list[str] = []
        self._slotted: set[RoleProgram] = set()
        self.routines: list[str] = []
        self._counts: dict[tuple[int, str, int, int], int] = {}

    def find_usable(self) -> None:
        """Try all mechanisms, and record the reasons of those that cannot be used."""
        missing = refusals(self._pairs, self.study.mechanisms)
        self.recording.facts[MISSING] = missing
        self.recording.remarks += [f"{name}: missing: {reason}" for name, reason in missing.items()]
        self.usable = [each for each in self.study.mechanisms if each not in missing]
        if not self.usable:
            raise MechanismError("; ".join(f"{name}: {reason}" for name, reason in missing.items()))
        if self._pairs.refusal is not None:
            self.recording.remarks.append(f"C: not applicable: {self._pairs.refusal}")
        for each in self.usable:
            twins = [each + IN_C] if self._pairs.refusal is None and each not in WITHOUT_TWIN else []
            self.contestants += [each, *twins]
        self.routines = [each for each in _ROUTINES if self._pairs.refusal is None or not each.endswith(IN_C)]
        counter = missing_counter()
        if counter is not None and "caches" in self.study.experiments:
            self.recording.remarks.append(f"cache misses: not counted: {counter}")

    def play(self, name: str, measure: Callable[[str], None], contestants: Sequence[str]) -> None:
        """Let contestants take turns."""

        def progress(text: str) -> object:
            return self.options.progress(f"{name}, {text}")

        turns = Turns(self.recording, progress, LIMIT, f"{name}: ", self._out)
        # Each role warms up by itself.
        played: dict[str, Callable[[int], None]] = {each: partial(_unnumbered, measure, each) for each in contestants}
        turns.play(played, self.options.rounds, warm_up=0)

    def turns_of(self, program: RoleProgram, role: str, size: int, step: int, length: int) -> int:
        """Turns per round of a point, found by a few: as many as fit into :data:`ROUND_NS`, or need to.

        The time is that of the whole turn, which has barriers or messages in both directions.
        """
        if self.options.quick:
            return _QUICK_TURNS
        key = program.pid, role, size, step
        if key not in self._counts:
            # Fills the memory.
            program.play(role, size, 2, step, length)
            turns, wanted, least = 1, 0, -(-LEAST_OPERATIONS // self.options.rounds)
            # Ten times as many per step: few turns of a fast mechanism are too short to be timed, and many of a slow
            # one take minutes.
            while turns * 10 < _MOST_TURNS and (not wanted or wanted > 10 * turns):
                turns = turns * 10 if wanted else 2
                begin = time.perf_counter_ns()
                program.play(role, size, turns, step, length)
                spent = (time.perf_counter_ns() - begin) / turns
                wanted = min(max(least, int(ROUND_NS / spent)), _MOST_TURNS)
            self._counts[key] = wanted
        return self._counts[key]

    def sizes_of(self, contestant: str) -> list[int]:
        """Sizes that a mechanism can carry."""
        largest = FACTS[contestant.partition(", ")[0]].largest
        return [each for each in self.sizes if largest is None or each <= largest]

    def trips(self, contestant: str) -> None:
        """Measure half round trips of all sizes."""
        pair = self._pairs.pair(contestant)
        for size in self.sizes_of(contestant):
            # A turn has two messages.
            count = -(-self.turns_of(pair, "trips", size, 0, size) // 2)
            near, far = pair.play("trips", size, count, 0, size)
            sides = ("near", near), ("far", far)
            details = {f"{kind} {side}": each[kind] / 1e3 for side, each in sides for kind in ("user", "system")}
            self.points.add(TRIP, contestant, near["ns"] / 1e3, details=details, size=size)

    def operations(self, memory: str, contestant: str) -> None:
        """Measure all sizes by the paper's method. A time that those of the barriers hide is left out."""
        measuring = 0 if mechanism_named(contestant.partition(", ")[0]).one_sided == ("put",) else 1
        pair = self._pairs.pair(contestant)
        for size in self.sizes_of(contestant):
            step, length = pool_of(memory, size)
            count = self.turns_of(pair, "operations", size, step, length)
            found = pair.play("operations", size, count, step, length)[measuring]["ns"]
            if found > 0:
                self.points.add(operation_series(memory), contestant, found / 1e3, size=size)
        # The cold memory of all pairs would not fit into small machines.
        pair.play("release", 0, 0, 0, 0)

    def copies(self, memory: str, contestant: str) -> None:
        """Measure copies of all sizes within a process."""
        program, routine = self._pairs.copier(contestant), contestant.partition(", ")[0]
        for size in COPY_SIZES[::4] if self.options.quick else COPY_SIZES:
            step, length = pool_of(memory, size)
            count = self.turns_of(program, routine, size, step, length)
            found = program.play(routine, size, count, step, length)["ns"]
            self.points.add(copy_series(memory), contestant, found / 1e3, size=size)
        program.play("release", 0, 0, 0, 0)

    def agent_copies(self, way: str) -> None:
        """Count the bytes that an agent copies for a message, by the way to the memory of its program."""
        remark = "copies at an agent: not counted: "
        try:
            found = agent_copies(way, _COUNTED, 1)
        except MxwireError as error:
            if not any(each.startswith(remark) for each in self.recording.remarks):
                self.recording.remarks.append(f"{remark}{error}")
            return
        for who, count in found.items():
            self.points.add(AGENT_COPIES, f"{way}, {who}", count, size=_COUNTED)

    def slots(self, contestant: str) -> None:
        """Measure the rate of a long message by the size of buffers or cells."""
        for slot in SLOT_SIZES[:: 6 if self.options.quick else 1]:
            pair = self._pairs.pair(contestant, slot)
            self._slotted.add(pair)
            found = pair.play("trips", self.large, 1 if self.options.quick else _SLOT_TURNS, 0, self.large)[0]["ns"]
            self.points.add(SLOTS, contestant, self.large / _MIB / found * 1e9, slot=slot)

    def close_slots(self) -> None:
        """End the pairs with buffers and cells of other sizes: there are many."""
        self._pairs.close(self._slotted)
        self._slotted.clear()

    def slowdown(self, contestant: str) -> None:
        """Measure how far messages delay the other side, by a run in which no other program has its processor."""
        for size in SLOWDOWN_SIZES:
            for _ in range(_TRIES):
                both = self._pairs.pair(contestant).play("slowdown", size, 10 if self.options.quick else _LOOPS)
                found = both[0] or both[1]
                if not found["preempted"]:
                    break
            else:
                rounds = f"{size_text(size)}: rounds in which other programs ran are left out"
                self.recording.remark(left_out(contestant, rounds))
                continue
            self.points.add(SLOWED, contestant, found["share"], message=size)
            if "ns" in found:
                details = {"messages": found["messages"]}
                self.points.add(SLOWDOWN, contestant, found["ns"] / 1e3, details=details, message=size)

    def windows(self, contestant: str) -> None:
        """Measure accesses to a window."""
        for size in self.sizes_of(contestant):
            turns = 5 if self.options.quick or size > _LONG else 50
            found = self._pairs.pair(contestant).play("accesses", size, turns)[0]
            for name, value in found.items():
                self.points.add(ACCESS, f"{contestant}, {name}", value / 1e3, size=size)

    def served(self, contestant: str) -> None:
        """Measure accesses to a window that the target serves, and what it costs the target to wait for them."""
        for size in (size for size in SLOWDOWN_SIZES if size in self.sizes_of(contestant)):
            for how, by_signal in SERVICES.items():
                # The interpreter lets a thread wait for 5 ms.
                turns = 3 if self.options.quick or not by_signal else 50
                idle_ns = 0 if by_signal or size > SLOWDOWN_SIZES[0] else _IDLE_NS
                near, far = self._pairs.pair(contestant).play("served", size, turns, by_signal, idle_ns)
                for access in ("get", "put"):
                    self.points.add(SERVED, f"{contestant}, {how}, {access}", near[access] / 1e3, size=size)
                if "share" in far:
                    self.points.add(SERVING, f"{contestant}, {how}", far["share"], message=size)

    def caches(self, contestant: str) -> None:
        """Measure the disturbance of both sides' caches. An agent that has no processor of its own would disturb those
        of the side beside it.
        """
        if FACTS[contestant].actor == "agent" and machine.agent_processor() is None:
            self.recording.remark(f"caches of {contestant}: not applicable: {NO_THIRD}")
            return
        size = min(self.large, max(self.sizes_of(contestant)))
        both = self._pairs.pair(contestant).play("disturbance", size, 1 if self.options.quick else _PROBED)
        for side, found in zip(("source", "destination"), both, strict=True):
            for level, value in found.items():
                self.points.add(f"{DISTURBANCE}, {level}", f"{contestant}, {side}", value, message=size)

    def set_up(self, contestant: str) -> None:
        """Measure opening and closing."""
        found = self._pairs.pair(contestant).play("setups", 3 if self.options.quick else _SETUPS)[0]
        self.points.add(SET_UP, contestant, found["open"] / 1e3, count=1)
        self.points.add(TEAR_DOWN, contestant, found["close"] / 1e3, count=1)

    def senders(self, contestant: str) -> None:
        """Measure messages of several senders, with the processor time of both sides."""
        for number in SENDER_COUNTS[::3] if self.options.quick else SENDER_COUNTS:
            found = self._pairs.senders(contestant, number, _SENT, 10 if self.options.quick else _SENT_BY_EACH)
            details = {name: found[name] / 1e3 for name in ("receiver", "senders")}
            counts = {name: found[name] for name in (PLACES, SENDER_MEMORY)}
            self.points.add(SENDERS, contestant, found["ns"] / 1e3, details=details, counts=counts, senders=number)

    def registration(self, contestant: str) -> None:
        """Measure registration: of pinned pages, which does not depend on the mechanism, or of its own."""
        own = f"{TOKEN}, " if FACTS[contestant].bound else ""
        for size in _REGISTERED:
            found = self._pairs.pair(contestant).play("registrations", size, 3 if self.options.quick else 100)[0]
            for name, value in found.items():
                self.points.add(REGISTRATION, own + name, value / 1e3, size=size)


def run_intranode(study: IntranodeStudy, options: StudyOptions) -> Recording:
    """Run the study.

    Raises :class:`~.mechanism.MechanismError` if none of the mechanisms can be used.
    """
    load, begun, package = machine.other_programs(), now_text(), machine.compiled_folder()
    conditions = Conditions(
        **machine.machine_conditions(),
        time=begun,
        testbed="one machine",
        compiled=is_compiled() or package is not None,
        load=load,
        placement=machine.placement(),
    )
    recording = options.begin(STUDY, conditions)
    points = Points(recording)
    _declare(points, study)
    with ExitStack() as held, kept(recording, points):
        run = _IntranodeRun(study, options, recording, points, PairStarter(held, package))
        run.find_usable()
        if machine.cache_bytes(3) * 4 > pool_of("cold", 1)[1]:
            recording.remarks.append("cold: the last-level cache is larger than a quarter of the pool")
        _measure(run)
    return recording


def _declare(points: Points, study: IntranodeStudy) -> None:
    points.declare("µs", TRIP, *(operation_series(each) for each in MEMORIES if each in study.memories), ACCESS, SERVED)
    points.declare("MiB/s", SLOTS, x="slot")
    points.declare("µs per message", SLOWDOWN, x="message")
    points.declare("of the loop", SLOWED, SERVING, x="message")
    disturbances = *DISTURBANCES, *(f"{each}, misses" for each in DISTURBANCES)
    points.declare("of the lines", *disturbances, x="message")
    points.declare("µs", *(copy_series(each) for each in MEMORIES if each in study.memories))
    points.declare("µs", SET_UP, TEAR_DOWN, x="count", x_unit="time")
    points.declare("µs", REGISTRATION)
    points.declare("µs per message", SENDERS, x="senders", x_unit="processes")
    points.declare("bytes per byte", AGENT_COPIES)


def _measure(run: _IntranodeRun) -> None:
    chosen = run.study.experiments
    with_slots = [each for each in run.contestants if mechanism_named(each.partition(", ")[0]).SLOT]
    with_agent = any(FACTS[each].actor == "agent" for each in run.usable)
    one_sided = [each for each in run.usable if mechanism_named(each).one_sided]
    # Pages are pinned alike whatever moves the data; one mechanism of those that register memory is enough, too.
    bound = [each for each in run.usable if FACTS[each].bound]
    registering = list(dict.fromkeys((*[each for each in run.usable if each not in bound][:1], *bound[:1])))
    experiments: list[tuple[str, Callable[[str], None], Sequence[str]]] = [
        ("trips", run.trips, run.contestants),
        *(("operations", partial(run.operations, each), run.contestants) for each in run.study.memories),
        ("slots", run.slots, with_slots),
        ("slowdown", run.slowdown, run.usable),
        ("windows", run.windows, one_sided),
        ("windows", run.served, [each for each in run.usable if each in _SERVED]),
        ("caches", run.caches, run.usable),
        ("set-up", run.set_up, run.usable),
        ("registration", run.registration, registering),
        ("senders", run.senders, [each for each in run.contestants if each in _MANY]),
        *(("copies", partial(run.copies, each), run.routines) for each in run.study.memories),
        ("agent", run.agent_copies, WAYS if with_agent else ()),
    ]
    for name, measure, contestants in experiments:
        if name in chosen:
            run.play(name, measure, contestants)
            run.close_slots()
