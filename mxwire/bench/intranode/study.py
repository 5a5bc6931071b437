"""The study ``intranode``: mechanisms in turns, in Python and in C.

Names in the recording
----------------------
Contestants are ``<mechanism>`` and ``<mechanism>, C``. Series over ``size``: ``half round trip`` (µs, with the
processor time of both sides as details), ``operation, warm``, ``operation, paper`` and ``operation, cold`` (µs, by the
paper's method), ``window access`` (µs; ``<mechanism>, active`` and ``passive``). Over ``slot``: ``rate by buffer size``
(MiB/s, of 4 MiB). Over ``message``: ``slowdown`` (µs per message of the other side's loop), ``slowdown, share`` (of the
loop), ``cache disturbance, L2`` and ``L3`` (share of lines; ``<mechanism>, source`` and ``destination``). Over
``count`` (1): ``set-up`` and ``tear-down`` (µs). ``registration`` (µs over ``size``): ``at once``, ``cached`` … Fact
``missing``: the reason by mechanism.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from mxwire.bench.intranode.catalogue import MECHANISMS, WITHOUT_TWIN, mechanism_named
from mxwire.bench.intranode.mechanism import MechanismError
from mxwire.bench.intranode.memory import MEMORIES, pool_of
from mxwire.bench.record import Conditions, Recording, load_average, now_text
from mxwire.bench.roles.program import compile_program
from mxwire.bench.study import Points, StudyOptions, Turns, kept
from mxwire.errors import MxwireError
from mxwire.lab import machine
from mxwire.lab.child import ChildEndedError, ChildProcess
from mxwire.lab.namespaces import joined
from mxwire.native import is_compiled
from mxwire.words import suggestion

STUDY: Final = "intranode"
TRIP: Final = "half round trip"
SLOTS: Final = "rate by buffer size"
SLOWDOWN: Final = "slowdown"
SLOWED: Final = "slowdown, share"
ACCESS: Final = "window access"
DISTURBANCE: Final = {2: "cache disturbance, L2", 3: "cache disturbance, L3"}
SET_UP, TEAR_DOWN = "set-up", "tear-down"
REGISTRATION: Final = "registration"
SENDERS: Final = "messages of several senders"
MISSING: Final = "missing"
IN_C: Final = ", C"
SIZES: Final = (1, 64, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20, 4 << 20, 16 << 20)
_QUICK_SIZES: Final = (1, 65536)
LARGE: Final = 4 << 20
"""Message of Table V's rates, of the buffer sizes, and of the disturbance of caches."""
SLOT_SIZES: Final = (*(1 << power for power in range(9, 21)), LARGE)
"""Sizes of buffers and cells; the last one holds the whole message."""
_QUICK_LARGE: Final = 1 << 18
SLOWDOWN_SIZES: Final = (1, 65536)
EXPERIMENTS: Final = (
    *("trips", "operations", "slots", "slowdown", "windows", "caches", "set-up", "registration", "senders"),
)
SENDER_COUNTS: Final = (1, 2, 4, 8)
_MANY: Final = ("shared-buffer", "cell-queue", "cell-queue, C")
"""Contestants with several senders: buffers and queues per pair, and one queue for all."""
_SENT: Final = 4096
_REGISTERED: Final = (4096, 65536, 1 << 20)
_PATIENCE: Final = 120.0
_END_PATIENCE: Final = 5.0
_MIB: Final = 1 << 20
_LOOPS: Final = 100
"""Runs of the other side's loop per round."""


def operation_series(memory: str) -> str:
    """The series of the paper's method."""
    return f"operation, {memory}"


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


class MechanismPair:
    """A running pair: a program with two processes. Raises :class:`~.mechanism.MechanismError` if it cannot be used."""

    def __init__(self, words: Sequence[str], package: Path | None) -> None:
        environment = {} if package is None else {"PYTHONPATH": str(package)}
        self._child = ChildProcess(words, environment=environment, stderr=subprocess.DEVNULL)

    @property
    def pid(self) -> int:
        """Process id of side 0."""
        return self._child.pid

    def play(self, role: str, *numbers: int) -> tuple[dict[str, float], dict[str, float]]:
        """Play a role; the values of both sides."""
        # A pair that has ended has written its reason.
        with suppress(ChildEndedError):
            self._child.write_line(" ".join([role, *map(str, numbers)]).encode())
        near, far = _answer(self._child)
        return near, far

    def close(self) -> None:
        """End both processes: by the end of their input, so that they can remove what outlives them."""
        self._child.end(patience=_END_PATIENCE)


def _answer(child: ChildProcess) -> Any:
    """The next line of a pair; raise :class:`~.mechanism.MechanismError` if it is an error, or does not come."""
    try:
        line = child.read_line(_PATIENCE)
    except ChildEndedError:
        raise MechanismError("the pair has ended without a reason") from None
    if line is None:
        raise MechanismError(f"the pair does not answer within {_PATIENCE:g} s")
    answer: Any = json.loads(line)
    if "error" in answer:
        raise MechanismError(answer["error"])
    return answer


class PairStarter:
    """The pairs of a study, each started when it is first used, and ended with ``held``."""

    def __init__(self, held: ExitStack, package: Path | None = None) -> None:
        self._held = held
        self.processors = machine.placement()
        self.package = package
        """Folder with the compiled mxwire that pairs run; None: the one that runs here."""
        self._open: dict[tuple[str, int], MechanismPair] = {}
        self.refusal: str | None = None
        """The reason why there are no twins in C; None if there are."""
        self._program = ""
        self._ports: list[str] = []
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="mxwire-bench-"))
        try:
            source = files("mxwire.bench.intranode").joinpath("mechanisms.c").read_text(encoding="utf-8")
            compile_program(source, str(Path(folder, "mechanisms")))
            self._program = str(Path(folder, "mechanisms"))
        except MxwireError as error:
            self.refusal = str(error)

    def pair(self, contestant: str, slot: int = 0) -> MechanismPair:
        """The pair of a contestant."""
        if (contestant, slot) not in self._open:
            made = MechanismPair(self._words(contestant, slot), self.package)
            self._held.callback(made.close)
            self._open[contestant, slot] = made
        return self._open[contestant, slot]

    def senders(self, contestant: str, senders: int, size: int, count: int) -> dict[str, float]:
        """Times per message of several senders, in ns; see ``senders.py``."""
        numbers = [str(each) for each in (senders, size, count, *self.processors)]
        name, _, in_c = contestant.partition(", ")
        words = [sys.executable, "-P", "-m", "mxwire.bench.intranode.senders", name, *numbers]
        child = ChildProcess([self._program, "senders", *numbers] if in_c else words, stderr=subprocess.DEVNULL)
        self._held.callback(child.end)
        found: dict[str, float] = _answer(child)
        child.end(patience=_END_PATIENCE)
        return found

    def _words(self, contestant: str, slot: int) -> list[str]:
        mechanism, _, in_c = contestant.partition(", ")
        place = [mechanism, str(slot), *map(str, self.processors)]
        if not in_c:
            return [sys.executable, "-P", "-m", "mxwire.bench.intranode.pair", *place]
        if mechanism == "veth" and not self._ports:
            prefix = f"mxintra-c-{os.getpid()}"
            ports = self._held.enter_context(joined(((f"{prefix}-a", "veth0"), (f"{prefix}-b", "veth1")), 9000))
            self._ports = [f"{port.namespace.name}/{port.interface}" for port in ports]
        return [self._program, *place, *(self._ports if mechanism == "veth" else [])]


def refusals(mechanisms: Sequence[str]) -> dict[str, str]:
    """The reason why each mechanism cannot be used here, found by a message of one byte; usable ones are left out."""
    found = {}
    with ExitStack() as held:
        pairs = PairStarter(held)
        for each in mechanisms:
            try:
                pairs.pair(each).play("trips", 1, 1, 0, 1)
            except MechanismError as error:
                found[each] = str(error)
    return found


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
        self._turns = Turns(recording, options.progress)
        self.usable: list[str] = []
        self.contestants: list[str] = []
        self._counts: dict[tuple[str, str, int], int] = {}

    def find_usable(self) -> None:
        """Try all mechanisms, and record the reasons of those that cannot be used."""
        missing = refusals(self.study.mechanisms)
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

    def play(self, name: str, measure: Callable[[str], None], contestants: Sequence[str]) -> None:
        """Let contestants take turns."""

        def progress(text: str) -> object:
            return self.options.progress(f"{name}, {text}")

        turns = Turns(self.recording, progress)
        turns.out = self._turns.out
        # Each role warms up by itself.
        played: dict[str, Callable[[int], None]] = {each: partial(_unnumbered, measure, each) for each in contestants}
        turns.play(played, self.options.rounds, warm_up=0)

    def turns_of(self, role: str, contestant: str, size: int, step: int, length: int) -> int:
        """Messages per round of a point, by the time of the first ones."""
        key = role, contestant, size
        if key not in self._counts:
            first = self._pairs.pair(contestant).play(role, size, 2, step, length)
            self._counts[key] = self.options.operations(max(first[0]["ns"], 1.0))
        return self._counts[key]

    def sizes_of(self, contestant: str) -> list[int]:
        """Sizes that a mechanism can carry."""
        largest = mechanism_named(contestant.partition(", ")[0]).facts.largest
        return [each for each in self.sizes if largest is None or each <= largest]

    def trips(self, contestant: str) -> None:
        """Measure half round trips of all sizes."""
        for size in self.sizes_of(contestant):
            count = self.turns_of("trips", contestant, size, 0, size)
            near, far = self._pairs.pair(contestant).play("trips", size, count, 0, size)
            sides = ("near", near), ("far", far)
            details = {f"{kind} {side}": each[kind] / 1e3 for side, each in sides for kind in ("user", "system")}
            self.points.add(TRIP, contestant, near["ns"] / 1e3, details=details, size=size)

    def operations(self, memory: str, contestant: str) -> None:
        """Measure all sizes by the paper's method. A time that those of the barriers hide is left out."""
        kind = mechanism_named(contestant.partition(", ")[0]).facts
        measuring = 0 if kind.one_sided == ("put",) else 1
        for size in self.sizes_of(contestant):
            step, length = pool_of(memory, size)
            count = self.turns_of("operations", contestant, size, step, length)
            found = self._pairs.pair(contestant).play("operations", size, count, step, length)[measuring]["ns"]
            if found > 0:
                self.points.add(operation_series(memory), contestant, found / 1e3, size=size)

    def slots(self, contestant: str) -> None:
        """Measure the rate of a long message by the size of buffers or cells."""
        for slot in SLOT_SIZES[:: 6 if self.options.quick else 1]:
            pair = self._pairs.pair(contestant, slot)
            found = pair.play("trips", self.large, 1 if self.options.quick else 8, 0, self.large)[0]["ns"]
            self.points.add(SLOTS, contestant, self.large / _MIB / found * 1e9, slot=slot)

    def slowdown(self, contestant: str) -> None:
        """Measure how far messages delay the other side."""
        for size in SLOWDOWN_SIZES:
            both = self._pairs.pair(contestant).play("slowdown", size, 10 if self.options.quick else _LOOPS)
            found = both[0] or both[1]
            self.points.add(SLOWED, contestant, found["share"], message=size)
            if "ns" in found:
                details = {"messages": found["messages"]}
                self.points.add(SLOWDOWN, contestant, found["ns"] / 1e3, details=details, message=size)

    def windows(self, contestant: str) -> None:
        """Measure accesses to a window."""
        for size in self.sizes_of(contestant):
            found = self._pairs.pair(contestant).play("accesses", size, 5 if self.options.quick else 50)[0]
            for name, value in found.items():
                self.points.add(ACCESS, f"{contestant}, {name}", value / 1e3, size=size)

    def caches(self, contestant: str) -> None:
        """Measure the disturbance of both sides' caches."""
        for level, series in DISTURBANCE.items():
            size = min(self.large, max(self.sizes_of(contestant)))
            both = self._pairs.pair(contestant).play("disturbance", size, level)
            for side, found in zip(("source", "destination"), both, strict=True):
                self.points.add(series, f"{contestant}, {side}", found["share"], message=size)

    def set_up(self, contestant: str) -> None:
        """Measure opening and closing."""
        found = self._pairs.pair(contestant).play("setups", 3 if self.options.quick else 1000)[0]
        self.points.add(SET_UP, contestant, found["open"] / 1e3, count=1)
        self.points.add(TEAR_DOWN, contestant, found["close"] / 1e3, count=1)

    def senders(self, contestant: str) -> None:
        """Measure messages of several senders, with the processor time of both sides."""
        for number in SENDER_COUNTS[::3] if self.options.quick else SENDER_COUNTS:
            found = self._pairs.senders(contestant, number, _SENT, 10 if self.options.quick else 2000)
            details = {name: found[name] / 1e3 for name in ("receiver", "senders")}
            self.points.add(SENDERS, contestant, found["ns"] / 1e3, details=details, senders=number)

    def registration(self, contestant: str) -> None:
        """Measure registration, which does not depend on the mechanism."""
        for size in _REGISTERED:
            found = self._pairs.pair(contestant).play("registrations", size, 3 if self.options.quick else 100)[0]
            for name, value in found.items():
                self.points.add(REGISTRATION, name, value / 1e3, size=size)


def run_intranode(study: IntranodeStudy, options: StudyOptions) -> Recording:
    """Run the study.

    Raises :class:`~.mechanism.MechanismError` if none of the mechanisms can be used.
    """
    load, begun, package = load_average(), now_text(), machine.compiled_folder()
    conditions = Conditions(
        **machine.machine_conditions(),
        time=begun,
        stage="one machine",
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
    points.declare("µs", TRIP, *(operation_series(each) for each in MEMORIES if each in study.memories), ACCESS)
    points.declare("MiB/s", SLOTS, x="slot")
    points.declare("µs per message", SLOWDOWN, x="message")
    points.declare("of the loop", SLOWED, x="message")
    points.declare("of the lines", *DISTURBANCE.values(), x="message")
    points.declare("µs", SET_UP, TEAR_DOWN, x="count", x_unit="time")
    points.declare("µs", REGISTRATION)
    points.declare("µs per message", SENDERS, x="senders", x_unit="processes")


def _measure(run: _IntranodeRun) -> None:
    chosen = run.study.experiments
    with_slots = [each for each in run.contestants if mechanism_named(each.partition(", ")[0]).SLOT]
    one_sided = [each for each in run.usable if mechanism_named(each).facts.actor == "initiator"]
    experiments: list[tuple[str, Callable[[str], None], Sequence[str]]] = [
        ("trips", run.trips, run.contestants),
        *(("operations", partial(run.operations, each), run.contestants) for each in run.study.memories),
        ("slots", run.slots, with_slots),
        ("slowdown", run.slowdown, run.usable),
        ("windows", run.windows, one_sided),
        ("caches", run.caches, run.usable),
        ("set-up", run.set_up, run.usable),
        ("registration", run.registration, run.usable[:1]),
        ("senders", run.senders, [each for each in run.contestants if each in _MANY]),
    ]
    for name, measure, contestants in experiments:
        if name in chosen:
            run.play(name, measure, contestants)
