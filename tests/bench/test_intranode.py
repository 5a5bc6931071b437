"""Mechanisms within a machine: each delivers what was sent, in Python and in C; never their times."""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from unittest.mock import Mock

import pytest

from mxwire.bench.intranode import pair, process_memory
from mxwire.bench.intranode.catalogue import KINDS, MECHANISMS, WITHOUT_TWIN, mechanism_named
from mxwire.bench.intranode.counters import PAGE_FAULTS, EventCounter, ProbedBuffer, missing_counter
from mxwire.bench.intranode.mechanism import MechanismError, Piece, Pool, SharedFlags
from mxwire.bench.intranode.memory import MEMORIES, KeptPool, pool_of
from mxwire.bench.intranode.pair_starter import IN_C, PairStarter, refusals
from mxwire.bench.intranode.registration import PinnedPages, RegistrationCache, registration_times
from mxwire.bench.intranode.report import intranode_blocks, intranode_figures, suitability_blocks
from mxwire.bench.intranode.study import (
    ACCESS,
    AGENT_COPIES,
    EXPERIMENTS,
    MISSING,
    SERVED,
    SLOWDOWN,
    SLOWED,
    TRIP,
    IntranodeStudy,
    _IntranodeRun,
    left_out,
    run_intranode,
)
from mxwire.bench.record import Conditions, Measurement, Recording, Series
from mxwire.bench.report import line_styles, write_page
from mxwire.bench.roles.program import compile_program
from mxwire.bench.study import Points, StudyOptions
from mxwire.errors import MxwireError
from mxwire.lab.machine import agent_processor, available_processors
from mxwire.report.document import Table
from mxwire.report.plot import COLOURS, rendered
from tests.cli.support import mxwire

SERVED_WAYS = ("thread, get", "thread, put", "signal, get", "signal, put")
QUICK = StudyOptions.of(1, True)
TWINS = [each + IN_C for each in MECHANISMS if each not in WITHOUT_TWIN]
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and ip")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mechanisms in C, compiled once."""
    made = tmp_path_factory.mktemp("mechanisms") / "program"
    source = files("mxwire.bench.intranode").joinpath("mechanisms.c").read_text(encoding="utf-8")
    compile_program(source, str(made))
    return made


@pytest.fixture
def pairs(program: Path, forked_sides: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[PairStarter]:
    monkeypatch.setattr(
        "mxwire.bench.intranode.pair_starter.compile_program", lambda _, path: shutil.copy(program, path)
    )
    with ExitStack() as held:
        yield PairStarter(held)


@pytest.mark.parametrize("contestant", [*MECHANISMS, *TWINS])
def test_data_arrives_as_it_was_sent(pairs, contestant):
    """The destination compares the last message, which lies elsewhere in memory than the others."""
    pair = pairs.pair(contestant)
    for role, size in (("trips", 1), ("trips", 60_000), ("operations", 4097)):
        both = pair.play(role, size, 3, 64, 4 * size)
        assert [set(each) for each in both] == [{"ns", "user", "system"}] * 2


def test_other_content_is_an_error():
    source, destination = Pool(1000, full=True), Pool(1000, full=False)
    for begin in (0, 300):
        piece, own = source.piece(begin, 500), destination.piece(begin, 500)
        with pytest.raises(MechanismError, match="other content"):
            destination.check(own, own.view)
        own.view[:] = piece.view
        destination.check(own, own.view)
        own.view[499] ^= 1
        with pytest.raises(MechanismError, match="other content"):
            destination.check(own, own.view)


@pytest.mark.parametrize("contestant", ["shared-buffer", "cell-queue", "cell-queue, C"])
def test_a_receiver_takes_messages_of_several_senders(pairs, contestant):
    found = pairs.senders(contestant, 3, 5000, 4)
    assert set(found) == {"ns", "receiver", "senders", "places", "memory"} and min(found.values()) >= 0
    # The twin in C has one queue for all senders, and a program that plays a second time forks others.
    assert found["places"] == (1 if contestant.endswith(IN_C) else 3)
    again = pairs.senders(contestant, 6, 5000, 4)
    assert again["places"] == (1 if contestant.endswith(IN_C) else 6) and again["memory"] > 1.7 * found["memory"]


@pytest.mark.parametrize(
    "contestant", ["slice", "slice, past caches", "numpy", "memcpy, C", "string, C", "past-caches, C"]
)
def test_copies_have_the_content_of_their_source(pairs, contestant):
    """Both programs compare the last copy; its source and destination are not aligned."""
    program, routine = pairs.copier(contestant), contestant.partition(", ")[0]
    for size, step in ((1, 64), (5001, 5003), (40_000, 0)):
        assert program.play(routine, size, 3, step, max(4 * step, size))["ns"] > 0
    assert program.play("release", 0, 0, 0, 0) == {}


def test_memory_is_kept_for_roles_with_the_same_length():
    kept = KeptPool(full=False)
    pool, first = kept.pieces(100, 3, 100, 1000)
    first[0].view[:] = b"x" * 100
    same, second = kept.pieces(100, 3, 100, 1000)
    assert same is pool
    # Cold memory was not used since: the messages continue behind the last ones, and begin again at the end.
    assert [each.address - first[0].address for each in second] == [300, 400, 500]
    assert [each.address - first[0].address for each in kept.pieces(100, 5, 100, 1000)[1]] == [600, 700, 800, 900, 0]
    other, third = kept.pieces(100, 3, 0, 100)
    assert other is not pool and bytes(third[0].view) == bytes(100)
    kept.release()
    source, pieces = KeptPool(full=True).pieces(600, 1, 0, 600)
    source.check(pieces[0], pieces[0].view)


def test_events_are_counted_or_the_reason_is_named():
    """Page faults are counted by the kernel, on every machine; cache misses not by every processor."""
    with EventCounter(*PAGE_FAULTS) as counter:
        before = counter.read()
        memory = mmap.mmap(-1, 64 * mmap.PAGESIZE)
        memory[:: mmap.PAGESIZE] = bytes(64)
        assert counter.read() - before >= 64
        took, faults = ProbedBuffer(64 * mmap.PAGESIZE, counter).read()
    assert took > 0 and faults >= 0
    reason = missing_counter()
    assert reason is None or reason.startswith("perf_event_open: ")
    with pytest.raises(OSError, match="perf_event_open"):
        EventCounter(0, 1 << 40)


@pytest.mark.parametrize("slot", [512, 100_000])
@pytest.mark.parametrize(
    "contestant", ["shared-buffer", "memfd", "cell-queue", "cell-stack", "shared-buffer, C", "cell-queue, C"]
)
def test_buffers_and_cells_have_any_size(pairs, contestant, slot):
    pairs.pair(contestant, slot).play("trips", 150_001, 2, 0, 150_001)


def test_a_pair_whose_process_is_killed_reports_it(pairs):
    pair = pairs.pair("shared-buffer")
    pair.play("trips", 1, 1, 0, 1)
    children = Path(f"/proc/{pair.pid}/task/{pair.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    with pytest.raises(MechanismError, match="the other process has ended"):
        pair.play("trips", 1, 1, 0, 1)


def test_nothing_outlives_a_pair():
    def left() -> tuple[str, str]:
        queues = Path("/proc/sysvipc/msg").read_text()
        return queues, subprocess.run(["ip", "netns"], capture_output=True, text=True, timeout=60).stdout

    with ExitStack() as held:
        pairs = PairStarter(held)
        started = [pairs.pair(each) for each in ("system-v-queue", "veth", "system-v-queue, C", "veth, C")]
        for each in started:
            each.play("trips", 100, 1, 0, 100)
        during = left()
        own = [name for name in during[1].split() if name.startswith("mxwire-intranode-")]
        assert any(str(started[1].pid) in name for name in own)
        numbers = {line.split()[1] for line in during[0].splitlines()[1:]}
        assert len(numbers) >= 4
    after = left()
    assert not any(str(started[1].pid) in name for name in after[1].split())
    gone = numbers - {line.split()[1] for line in after[0].splitlines()[1:]}
    assert len(gone) >= 4


FIRST = str(available_processors()[0])
PREPARED = """
import os, sys
{before}
from mxwire.bench.intranode import pair, process_memory, raw_veth
{prepared}
sys.argv = ["pair", sys.argv[1], "0", sys.argv[2], sys.argv[2]]
sys.exit(pair.main())
"""
DROPPED = "os.setgid(65534), os.setuid(65534)"
FILTERED = """
import ctypes, platform, struct
call = {"x86_64": 310, "aarch64": 270}[platform.machine()]
rows = (0x20, 0, 0, 0), (0x15, 0, 1, call), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in rows))
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, struct.pack("@HP", len(rows), ctypes.addressof(code)))
"""
"""Refuse process_vm_readv with EPERM."""
NAMESPACED = """
import ctypes, pathlib
assert not ctypes.CDLL(None).unshare(0x10000000)
pathlib.Path("/proc/self/uid_map").write_text("0 0 1")
"""


@pytest.mark.parametrize(
    ("mechanism", "before", "prepared", "reason"),
    [
        (
            *("cma-get", "", DROPPED),
            r"process_vm_readv: Operation not permitted \(.*the processes are not dumpable, not root\)",
        ),
        ("veth", "", DROPPED, "creating network namespaces needs root: run with sudo"),
        ("cma-get", "", FILTERED, r"process_vm_readv: Operation not permitted \(.*a seccomp filter is active.*\)"),
        ("veth", NAMESPACED, "", r"ip netns add .*; run as root with CAP_SYS_ADMIN, outside of this user namespace"),
    ],
    ids=["not dumpable", "no root", "seccomp", "user namespace"],
)
def test_a_trial_finds_the_reason_of_a_refusal(mechanism, before, prepared, reason):
    """A process that drops root is not dumpable afterwards: no other one may read its memory."""
    words = [sys.executable, "-P", "-c", PREPARED.format(before=before, prepared=prepared), mechanism, FIRST]
    done = subprocess.run(words, input="trips 1 1 0 1\n", capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr == ""
    assert re.fullmatch(reason, json.loads(done.stdout)["error"])


@pytest.mark.parametrize("mechanism", ["shared-buffer", "cell-queue", "pipe", "token-put"])
def test_both_sides_may_share_a_processor(mechanism):
    words = [sys.executable, "-P", "-m", "mxwire.bench.intranode.pair", mechanism, "0", FIRST, FIRST]
    done = subprocess.run(words, input="trips 100 2 0 100\n", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and [each["ns"] > 0 for each in json.loads(done.stdout)] == [True, True]


@pytest.mark.parametrize(
    ("mechanism", "directions"),
    [("heap", ("", "put, ")), ("process-file", ("", "put, ")), ("cma-get", ("",)), ("cma-put", ("",)), ("pipe", ())],
)
def test_a_window_is_accessed_while_its_target_never_calls(pairs, mechanism, directions):
    """Each access has the content of its source, or the role fails; a pipe has no window without a part of both."""
    found = pairs.pair(mechanism).play("accesses", 5000, 3)[0]
    assert set(found) == {f"{direction}{kind}" for direction in directions for kind in ("active", "passive")}
    assert all(time > 0 for time in found.values())


def test_an_access_in_a_direction_that_a_mechanism_does_not_have_is_refused():
    for name, direction, others in (("ptrace", "put", "get"), ("cma-put", "get", "put")):
        with pytest.raises(MechanismError, match=f"it cannot {direction} data: use {others}"):
            mechanism_named(name)(0).access(direction, Pool(8, full=False).piece(0, 8), 0)


@pytest.mark.parametrize("by_signal", [0, 1])
@pytest.mark.parametrize("mechanism", ["shared-buffer", "cell-queue", "pipe", "unix-stream-polled", "posix-queue"])
def test_a_target_serves_its_window_while_it_computes(pairs, mechanism, by_signal):
    """Each side compares the data of the last access; the target runs a loop until the initiator ends."""
    pair = pairs.pair(mechanism)
    for size, idle_ns in ((1, 1_000_000), (20_000, 0)):
        near, far = pair.play("served", size, 2, by_signal, idle_ns)
        assert set(near) == {"get", "put"} and min(near.values()) > 0
        assert set(far) == ({"share"} if idle_ns else set())
    assert pair.play("trips", 100, 2, 0, 100)


def locked_kib() -> int:
    found = re.search(r"VmLck:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def test_ptrace_stops_its_target_while_it_reads_and_other_reads_do_not(monkeypatch):
    """A process that counts in shared memory."""
    flags = SharedFlags(1)
    content = Pool(100, full=True).piece(0, 100)
    child = os.fork()
    if not child:
        # It ends even if this process was killed.
        until = time.monotonic() + 60
        while time.monotonic() < until:
            flags.set(0, flags.get(0) + 1)
        os._exit(0)
    try:
        flags.wait_least(0, 1)
        counted: list[int] = []
        read = process_memory._read

        def watched(descriptor: int, piece: Piece, address: int) -> None:
            before = flags.get(0)
            if isinstance(reader, process_memory.PtraceGet):
                time.sleep(0.05)
            else:
                flags.wait_least(0, before + 1)
            counted.append(flags.get(0) - before)
            read(descriptor, piece, address)

        monkeypatch.setattr(process_memory, "_read", watched)
        for kind in (process_memory.PtraceGet, process_memory.ProcessFile):
            reader = kind()
            reader.join(1, child)
            reader.start()
            taken = Pool(100, full=False).piece(0, 100)
            reader.move(taken, content.address)
            assert taken.view == content.view
            reader.close()
            flags.wait_least(0, flags.get(0) + 1)
        assert counted[0] == 0 < counted[1]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_registered_memory_is_pinned_until_it_is_released():
    before = locked_kib()
    pieces = Pool(8 * 4096, full=True).pieces(4096, 2, 3 * 4096)
    at_once, kept = (RegistrationCache(most, PinnedPages()) for most in (0, 2))
    at_once.register(pieces[0])
    assert locked_kib() > before
    at_once.deregister(pieces[0])
    assert locked_kib() == before
    for each in pieces:
        kept.register(each)
        kept.deregister(each)
    held = locked_kib()
    assert held > before
    kept.register(pieces[0])
    assert locked_kib() == held
    # The region in use stays.
    kept.release()
    assert before < locked_kib() < held
    kept.deregister(pieces[0])
    kept.release()
    assert locked_kib() == before
    assert set(registration_times(PinnedPages(), 4096, 2)) == {"register", "deregister", "cached", "deferred"}
    assert locked_kib() == before


class CountingRegistrar:
    """Counts the calls that register and release memory."""

    def __init__(self) -> None:
        self.registered = 0
        self.released: list[list[int]] = []

    def register(self, piece: Piece) -> int:
        """A new handle."""
        self.registered += 1
        return self.registered

    def release(self, handles: Sequence[int]) -> None:
        """Note the handles of a call."""
        self.released.append(list(handles))


def test_the_second_use_of_a_registered_buffer_costs_no_call_and_a_limit_releases_in_bulk():
    registrar = CountingRegistrar()
    cache = RegistrationCache(3, registrar)
    pieces = Pool(5 * 4096, full=True).pieces(4096, 5, 4096)
    for _ in range(2):
        for each in pieces[:3]:
            handle = cache.register(each)
            assert cache.register(each) == handle
            cache.deregister(each)
            cache.deregister(each)
    assert registrar.registered == 3 and not registrar.released
    used = cache.register(pieces[4])
    cache.register(pieces[3])
    cache.deregister(pieces[3])
    assert registrar.released == [[1, 2, 3, 5]] and used == 4
    cache.deregister(pieces[4])
    cache.register(pieces[0])
    assert registrar.registered == 6


def test_memory_of_messages():
    assert pool_of("warm", 100) == (0, 100)
    step, length = pool_of("cold", 5000)
    assert step == 3 * 4096 and length >= 4 << 20
    assert pool_of("paper", 5000)[0] == 64
    pieces = Pool(1000, full=True).pieces(100, 20, 64)
    assert [each.address - pieces[0].address for each in pieces[:16]] == [*range(0, 901, 64), 0]
    with pytest.raises(MxwireError, match=r"no memory 'cool' \(did you mean cold\?\): use warm, paper, cold"):
        pool_of("cool", 1)
    assert len(MEMORIES) == 3


def test_a_quick_study_has_all_series_and_reports(tmp_path):
    """One mechanism of each kind: both sides act, one acts, and mxwire's own."""
    study = IntranodeStudy(("cell-queue", "cma-put", "mx-local", "token-put"), sizes=(1, 65536))
    recording = run_intranode(study, QUICK)
    assert recording.complete and recording.facts[MISSING] == {}
    assert {each.name for each in recording.series} >= {
        *(TRIP, "rate by buffer size", "slowdown", "cache disturbance, L2", "cache disturbance, L3"),
        *(ACCESS, "set-up", "tear-down", "registration", "messages of several senders", "copy, warm", "copy, cold"),
        AGENT_COPIES,
    }
    trips = recording.named(TRIP)
    assert trips is not None
    assert trips.contestants() == ["cell-queue", "cell-queue, C", "cma-put", "cma-put, C", "mx-local", "token-put"]
    assert all(each.parameters["size"] in (1, 65536) and each.median > 0 for each in trips.measurements)
    tables = [each for each in intranode_blocks(recording) if isinstance(each, Table)]
    suitability = next(each for each in tables if each.columns[-1].heading == "containers")
    shown = {row.cells[0]: row.cells for row in suitability.rows}
    assert list(shown) == ["cell-queue", "cma-put", "mx-local", "token-put", "page remapping"]
    assert shown["page remapping"][11].startswith("excluded by the paper")
    # The agent disturbs the caches of a side unless it has a processor of its own.
    alone = agent_processor() is not None
    assert (shown["token-put"][10] != "n/a") == alone
    assert any("caches of token-put: not applicable" in each for each in recording.remarks) != alone
    registered = recording.named("registration")
    assert registered is not None
    kinds = ("register", "deregister", "cached", "deferred")
    assert registered.contestants() == [*kinds, *(f"token, {each}" for each in kinds)]
    assert shown["cma-put"][5:7] == ("1", "initiator") and shown["cma-put"][8:10] == ("put", "yes")
    assert shown["cell-queue"][8:10] == ("with both", "with a thread")
    path = tmp_path / "recording.jsonl"
    recording.write(path)
    figures = list(intranode_figures(recording))
    served = recording.named(SERVED)
    assert served is not None
    assert set(served.contestants()) == {f"cell-queue, {how}" for how in SERVED_WAYS}
    assert len(figures) >= 3
    for each in figures:
        assert rendered(each.figure, "svg")


def test_an_experiment_begins_no_round_after_its_limit(monkeypatch):
    monkeypatch.setattr("mxwire.bench.intranode.study.LIMIT", -1.0)
    study = IntranodeStudy(("shared-buffer",), sizes=(1,), experiments=("trips",))
    recording = run_intranode(study, StudyOptions.of(3, True))
    assert "trips: 1 of 3 rounds: they took more than -1 s" in recording.remarks and not recording.complete
    assert {len(each.samples) for each in recording.named(TRIP).measurements} == {1}


def test_missing_mechanisms_are_listed_with_their_reasons(monkeypatch):
    monkeypatch.setenv("MXWIRE_RUNTIME_DIR", "/nowhere/at/all")
    with ExitStack() as held:
        found = refusals(PairStarter(held), ("pipe", "mx-local"))
    assert list(found) == ["mx-local"] and "/nowhere/at/all" in found["mx-local"]


def recorded(*points: tuple[str, str, int, float]) -> Recording:
    recording = Recording("intranode", Conditions())
    for series, name, size, value in points:
        found = recording.named(series)
        if not found:
            found = Series(series, "µs")
            recording.series.append(found)
        found.measurements.append(Measurement(name, "µs", (value,), {"size": size}))
    return recording


def test_the_fastest_by_size_and_the_crossover_of_the_local_path():
    sizes = (1, 4096, 8192, 65536)
    times = {
        "shared-buffer": (1, 2, 3, 30),
        "cma-get": (2, 2.5, 4, 10),
        "heap": (5, 5, 5, 40),
        "mx-local": (9, 9, 11, 30),
        "mx-local-one-copy": (9, 9, 12, 20),
    }
    points = [(TRIP, name, size, time) for name, row in times.items() for size, time in zip(sizes, row, strict=True)]
    recording = recorded(*points, (TRIP, "shared-buffer, C", 65536, 1.0), (ACCESS, "cma-get, passive", 1, 2.0))
    blocks = list(suitability_blocks(recording))
    shown = "\n".join(map(str, blocks))
    assert "shared-buffer from 1 B to 8 KiB; cma-get at 64 KiB" in shown
    row = next(
        each.cells for table in blocks if isinstance(table, Table) for each in table.rows if "heap" in each.cells
    )
    # Loads and stores need no call of the other side.
    assert row[8:10] == ("get/put", "yes")
    assert "one-sided, passive" in shown and "one-sided, active" not in shown
    assert "one copy is faster than two from 64 KiB" in shown


@pytest.mark.parametrize(
    ("slowdowns", "free"),
    [((1.0, 2.0, 3.0), "yes"), ((8.0, 9.0, 10.0), "no"), ((-20.0, 1.0, 40.0), "undecided"), ((), "undecided")],
)
def test_a_side_is_free_only_if_all_rounds_agree(slowdowns, free):
    """With messages of 10 µs; without rounds, other programs ran in all of them."""
    recording = recorded((TRIP, "token-put", 1, 10.0))
    series = Series(SLOWDOWN, "µs per message", x="message")
    if slowdowns:
        series.measurements.append(Measurement("token-put", "µs per message", slowdowns, {"message": 1}))
    else:
        recording.remarks.append(left_out("token-put", "1 B"))
    recording.series.append(series)
    [table] = [each for each in suitability_blocks(recording) if isinstance(each, Table) and len(each.columns) > 9]
    [row] = [each.cells for each in table.rows if each.cells[0] == "token-put"]
    assert row[7] == free


class DemandedMoves(SharedFlags):
    """Flags of a pair whose initiator moves a message at each look at their number, while it is to move."""

    def __init__(self) -> None:
        super().__init__(4)
        self.moves = True

    def get(self, place: int) -> int:
        """The value of a flag."""
        if place == 3 and self.moves and super().get(2) == 2:
            self.set(3, super().get(3) + 1)
        return super().get(place)


@pytest.mark.parametrize(
    ("preempted", "moves", "found"),
    [
        ([], True, {"ns": 20.0, "share": 0.5, "messages": 20, "preempted": 0}),
        ([1, 4], True, {"ns": 20.0, "share": 0.5, "messages": 20, "preempted": 0}),
        (range(100), True, {"preempted": 12}),
        ([], False, {"preempted": 1}),
    ],
)
def test_the_slowdown_is_that_of_blocks_in_which_messages_move_alone(monkeypatch, preempted, moves, found):
    """With a loop of 20 ns, and of 30 while messages move; blocks with another program, or without a message, do not
    count."""
    flags, state = DemandedMoves(), {"now": 0, "pairs": 0, "preemptions": 0}
    flags.moves = moves

    def run_loop() -> None:
        state["now"] += 30 if flags.get(2) == 2 else 20

    def read_use() -> Mock:
        # Called before and after each pair of blocks in which messages have moved.
        state["pairs"] += 1
        state["preemptions"] += (state["pairs"] - 1) // 2 in preempted
        return Mock(preemptions=state["preemptions"])

    monkeypatch.setattr(pair, "_SLOWED_NS", 12 * 5 * (20 + 30))
    monkeypatch.setattr(pair, "_run_loop", run_loop)
    monkeypatch.setattr(pair, "read_use", read_use)
    monkeypatch.setattr(pair, "time", Mock(perf_counter_ns=lambda: state["now"]))
    side = Mock(flags=flags)
    assert pair._slowed_by_moves(side, Mock(), Mock(), 40) == found
    assert flags.get(2) == 1, "the initiator is to end"


def test_rounds_of_slowdown_in_which_other_programs_run_are_left_out():
    played = []

    class Preempted:
        def play(self, role, size, turns):
            played.append(size)
            return {}, {"share": 7.0, "ns": 3e3, "messages": 2, "preempted": int(size == 1 or len(played) < 10)}

    recording = Recording("intranode", Conditions())
    points = Points(recording)
    points.declare("of the loop", SLOWED, x="message")
    points.declare("µs per message", SLOWDOWN, x="message")
    run = _IntranodeRun(IntranodeStudy(), QUICK, recording, points, Mock(pair=lambda _: Preempted()))
    run.slowdown("token-put")
    # The second run of the longer message has the processor to itself.
    assert played == [1] * 8 + [65536] * 2
    points.fill()
    assert [each.parameters["message"] for each in recording.named(SLOWED).measurements] == [65536]
    assert recording.remarks == ["slowdown by token-put, 1 B: rounds in which other programs ran are left out"]


def test_many_curves_differ_and_their_key_is_text_of_the_page(tmp_path):
    names = [f"m{number}{how}" for number in range(2 * len(COLOURS) + 1) for how in ("", ", C")]
    styles = line_styles(names)
    assert len(set(styles.values())) == len(names)
    recording = recorded(*((TRIP, name, size, 1.0 + size) for name in names[:40] for size in (1, 64)))
    (page,) = [
        write_page(tmp_path, recording, "Curves", [], list(intranode_figures(recording))).read_text(encoding="utf-8")
    ]
    key = page[page.index('<ul class="key">') : page.index("</ul>")]
    assert [name for name in names[:40] if f"</svg> {name}</li>" not in key] == []
    # The drawing itself has none, and is as narrow as others.
    assert page.count(">m3, C<") == 0 and 'width="648pt"' in page


def test_many_mechanisms_are_drawn_by_kind_on_equal_axes(tmp_path):
    points = [(TRIP, name + how, size, 1.0 + size) for name in MECHANISMS for how in ("", ", C") for size in (1, 64)]
    recording = recorded(*points, (TRIP, "unknown", 1, 5000.0))
    (figure,) = intranode_figures(recording)
    page = write_page(tmp_path, recording, "Kinds", [], [figure]).read_text(encoding="utf-8")
    keys = [part.partition("</ul>")[0] for part in page.split('<ul class="key">')[1:]]
    assert len(keys) == len(KINDS) + 1 and "unknown" in keys[-1]
    for kind, key in zip(KINDS, keys, strict=False):
        assert {name for name in MECHANISMS if f"</svg> {name}</li>" in key} == set(KINDS[kind])
    assert page.count(figure.caption) == 1
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawing = figure.figure(pyplot)
    assert [each.get_title(loc="left") for each in drawing.axes] == [*KINDS, "others"]
    assert len({each.get_ylim() for each in drawing.axes}) == 1
    pyplot.close("all")


def test_the_command_prints_the_table_alone(tmp_path):
    words = ("bench", "intranode", "--quick", "--rounds", "1", "--mechanisms", "pipe", "--experiment", "trips")
    done = mxwire(*words, "--suitability", "-w", tmp_path / "recording.jsonl")
    assert done.code == 0 and done.out.startswith("Suitability") and "Half round trip" not in done.out
    assert '"half round trip"' in (tmp_path / "recording.jsonl").read_text()


@pytest.mark.parametrize(
    ("option", "error"),
    [
        (("--mechanisms", "pipes"), "no mechanism 'pipes' (did you mean pipe?)"),
        (("--experiment", "slot"), "no experiment 'slot' (did you mean slots?)"),
        (("--buffers", "hot"), "no memory 'hot': use warm, paper, cold"),
    ],
)
def test_unknown_names_are_refused(option, error):
    done = mxwire("bench", "intranode", *option)
    assert done.code == 2 and error in done.err and done.out == ""


def test_the_help_lists_all_names():
    text = " ".join(mxwire("bench", "intranode", "--help").out.split())
    assert [each for each in (*MECHANISMS, *EXPERIMENTS, *MEMORIES) if each not in text] == []
