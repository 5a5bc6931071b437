"""Proof that the simulator finds bugs: each of these one-place changes of the engine is killed by a few seeds.

Run as a script, it prints a table of all mutants with the seed and the invariant that killed each; the exit code is 1
if one survives. Most are the interoperability defects that Open-MX had once (differences document, section 3).
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.mutants_planned import PLANNED, BeyondPlans
from tests.mutation.operators import PACKAGE, compiled, functions_in, functions_of, tree_of

SEEDS = 400
"""Number of seeds within which every mutant must be killed."""
PLANNED_OPTIONS = ("dialect", "profiles", "discovery", "resend_maximum", "local")
SEEDS_OF_PLANS = 12
"""Seeds whose plans of up to one fault are played: they differ in the calls of the applications."""


@dataclass(frozen=True)
class Mutant:
    """A change of the engine that must be noticed."""

    name: str
    why: str
    """The rule that it breaks; before it the release of Open-MX that fixed the defect, if real hosts have had it."""
    function: str
    """The qualified name of the function of the engine that is changed."""
    old: str
    """An expression or statements, which the function has once."""
    new: str
    options: dict[str, object] = field(default_factory=dict)
    """Fields of the scenarios that are not drawn from the seed; profiles and dialects by name."""

    @property
    def mended_in(self) -> str:
        """The release of Open-MX that fixed it; empty if no release is known to have had it."""
        return self.why.partition(", ")[0] if not self.why.startswith("R-") else ""

    @property
    def rule(self) -> str:
        """The rule that it breaks."""
        return self.why.rpartition(", ")[2]

    def fixed(self) -> dict[str, object]:
        """The fields of the scenarios that are not drawn, as :func:`mxwire.simulation.draw_scenario` takes them."""
        return fixed_by(self.options)

    def planned(self) -> dict[str, object]:
        """The fields that runs of plans have too: the others draw faults, or belong to other workloads."""
        one_host = {"hosts": 1, "processes": 2} if "local" in self.options else {}
        return one_host | {name: value for name, value in self.fixed().items() if name in PLANNED_OPTIONS}

    @property
    def file(self) -> str:
        """Path of the function below ``mxwire/protocol``."""
        files = _files().get(self.function, [])
        if len(files) != 1:
            raise LookupError(f"{self.name}: {len(files)} files have the function {self.function}")
        return files[0]

    @property
    def module(self) -> str:
        """The module of the file."""
        return ".".join(("mxwire", "protocol", *Path(self.file).with_suffix("").parts))

    def code(self) -> CodeType:
        """The code of the function that is changed."""
        tree = tree_of(f"protocol/{self.file}")
        function = next(found for name, found in functions_of(tree) if name == self.function)
        old, new = (ast.parse(text).body for text in (self.old, self.new))
        places = [*_places(function, old, new)]
        if len(places) != 1:
            raise LookupError(f"{self.name}: {self.function} has {len(places)} times: {self.old!r}")
        replace, *arguments = places[0]
        replace(*arguments)
        line = min(each.lineno for each in (function, *function.decorator_list))
        codes = functions_in(compiled(f"protocol/{self.file}", tree))
        return next(each for each in codes if (each.co_qualname, each.co_firstlineno) == (self.function, line))


@cache
def _files() -> dict[str, list[str]]:
    """The files below ``mxwire/protocol`` by the functions that they have."""
    folder = PACKAGE / "protocol"
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        file = str(path.relative_to(folder))
        for name, _ in functions_of(tree_of(f"protocol/{file}")):
            found.setdefault(name, []).append(file)
    return found


def _places(function: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[tuple[Any, ...]]:
    """The places where a function has statements, or a single expression, each as a call that replaces it."""
    match old, new:
        case [ast.Expr(value=before)], [ast.Expr(value=after)]:
            olds, news = [before], [after]
        case _:
            olds, news = old, new
    wanted = [*map(ast.dump, olds)]
    for parent in ast.walk(function):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST) and [ast.dump(value)] == wanted:
                yield setattr, parent, name, *news
            elif isinstance(value, list):
                dumped = [ast.dump(each) if isinstance(each, ast.AST) else "" for each in value]
                for place in range(len(value)):
                    if dumped[place : place + len(wanted)] == wanted:
                        yield value.__setitem__, slice(place, place + len(wanted)), news


NATIVE = {"dialect": "mxoe", "profiles": ["native-mx", "open-mx"], "largest": 40_000}
KILLS = {"kill": 2}
PROCESSES = {"local": "two-copies", "workload": "same-host"}
LONG = {"largest": 2_000_000, "messages": 10, "dialect": "omx:1500"}
LOSSY = {"loss": 0.15}
_NACK = (
    "NackLib(dst_mac=peer.address, src_mac=self.address, dst_src_peer_index=index, src_endpoint=frame.dst_endpoint,"
    " nack_type=why, dst_endpoint=frame.src_endpoint, dst_src_peer_index_copy=index, lib_seqnum=frame.lib_seqnum)"
)

MUTANTS = (
    Mutant("pipeline ignored", "1.3.2, R-MED-02", "Reassembly._offset", "number << pipeline", "number << 12", NATIVE),
    Mutant(
        "index echo in HOST_REPLY",
        "0.7.0, R-HOST-06",
        "Names.answer",
        "query.src_dst_peer_index if echo else peer.index",
        "query.src_dst_peer_index",
        {"discovery": "nameless", "hosts": 3},
    ),
    Mutant(
        "libacks carry the last number", "0.1.0, R-ACK-01", "_liback", "partner.rx_done", "partner.rx_done - 1 & 0xFFFF"
    ),
    Mutant(
        "piggybacks carry the last number",
        "0.1.0, R-ACK-01",
        "OwedAck.piggyback",
        "return partner.rx_done",
        "return partner.rx_done - 1 & 0xFFFF",
    ),
    Mutant(
        "wrong pipeline value",
        "0.1.0, R-MED-02",
        "fragment_pipeline",
        "dialect.fragment_payload.bit_length() - 1",
        "dialect.fragment_payload.bit_length()",
        {"dialect": "mxoe"},
    ),
    Mutant("status numbers not those of MX", "0.1.0, R-CON-09", "take_request", "ConnectStatus.BAD_KEY", "10"),
    Mutant("libacks without counter", "0.1.0, R-ACK-06", "_liback", "partner.liback_out", "0"),
    Mutant(
        "session bits dropped",
        "0.4.0, R-SEQ-03",
        "successor",
        "value & SESSION_NUMBER_MASK | value + 1 & NUMBER_MASK",
        "value + 1 & NUMBER_MASK",
        {"partition": 3, "resend_maximum": 2, "loss": 0.0},
    ),
    Mutant(
        "frame numbers modulo 256 confused by the puller",
        "0.5.0, R-PUL-05",
        "PullTransfer.reply",
        "-(-offset // payload) != first + ahead",
        "False",
        LONG
        | {
            "profiles": ["open-mx-1.5-as-found"],
            "duplicate": 0.2,
            "reorder": 0.0,
            "jitter": 0,
            "held": 1_000_000,
            "judged": False,
        },
    ),
    Mutant("frame numbers modulo 128 by the replier", "R-PUL-13", "_on_wire", "0xFF", "0x7F", LONG | {"judged": False}),
    Mutant(
        "duplicate NOTIFY completes another send",
        "0.5.0, R-NOT-02",
        "ProgressEndpoint.progress",
        "partner.window.arrive(event)",
        (
            "if hasattr(event, 'transferred'):\n"
            "    for (region, _), send in list(partner.large_sends.items()):\n"
            "        if region == event.region:\n"
            "            send.notified(event.transferred)\n"
            "partner.window.arrive(event)"
        ),
        {"duplicate": 0.2, "judged": False, "workload": "stream", "messages": 40},
    ),
    Mutant(
        "blocks not retired",
        "1.0.4, R-PUL-02",
        "PullTransfer.advance",
        ("while self.blocks and (not self.blocks[0].missing):\n    self.blocks.popleft()"),
        ("if self.blocks and (not self.blocks[0].missing):\n    self.blocks.popleft()"),
        LONG | {"loss": 0.05},
    ),
    Mutant(
        "stale start number in the connect reply",
        "R-CON-08",
        "_answer",
        "partner.rx_next",
        "FIRST_NUMBER",
        {"partition": 2, "resend_maximum": 2, "judged": False},
    ),
    Mutant(
        "reverse index per host, not per interface",
        "1.1.1, R-LOC-03",
        "Peer.index_for",
        "self.reverse.get(interface, NO_PEER_INDEX)",
        "next(iter(self.reverse.values()), NO_PEER_INDEX)",
        {"interfaces": 2, "processes": 2},
    ),
    Mutant(
        "nack type shifted",
        "0.4.0, R-NAK-03",
        "HostInterface._nack_lib",
        _NACK,
        _NACK.replace("=why", "=NackType.NONE").replace("=frame.src_endpoint", "=why"),
        KILLS,
    ),
    Mutant(
        "stale replies match a new pull",
        "0.2.0, R-PUL-03",
        "HandleSlots.give_back",
        ("self._generations[slot] = handle + 1 & GENERATION_MASK\nself._free.append(slot)"),
        ("self._generations[slot] = handle & GENERATION_MASK\nself._free.appendleft(slot)"),
        {
            "duplicate": 0.3,
            "largest": 40_000,
            "messages": 60,
            "workload": "stream",
            "gap": 0,
            "delay": 1000,
            "jitter": 0,
            "held": 2_000_000,
            "judged": False,
        },
    ),
    Mutant(
        "region offset not served",
        "0.9.1, R-PUL-13",
        "message_offset",
        "pull.frame_index * payload - pull.pulled_rdma_offset % payload",
        "pull.frame_index * payload",
        {"profiles": ["open-mx-1.0"]},
    ),
    Mutant(
        "RNDV consumed by the handler, sender left waiting",
        "1.0.4, R-MAT-06",
        "EngineEndpoint.answer_consumed",
        "enqueue_notify(message.partner, message.rendezvous, 0, None)",
        "return",
    ),
    Mutant(
        "wrong length for a consumed RNDV",
        "1.1.901, R-MAT-06",
        "EngineEndpoint.answer_consumed",
        "enqueue_notify(message.partner, message.rendezvous, 0, None)",
        "enqueue_notify(message.partner, message.rendezvous, message.length, None)",
    ),
    Mutant(
        "truncated mediums written beyond the buffer",
        "1.1.901, R-MED-04",
        "Segments.put",
        "min(len(data), max(0, self.length - offset))",
        "len(data)",
    ),
    Mutant(
        "nothing to pull, and no NOTIFY",
        "0.1.0, R-RDV-04",
        "Receive.take_rendezvous",
        "not min(arrival.length, self.memory.length)",
        "False",
    ),
    Mutant(
        "nacks do not end connects",
        "1.3.1, R-NAK-06",
        "Partner.refused",
        "next(iter(self.pending_connects.values())).refuse(status)",
        "pass",
    ),
    Mutant(
        "duplicates provoke no ack",
        "R-ORD-03",
        "Window.arrive",
        "self.partner.acks.fire(AckEvent.AT_ONCE)",
        "pass",
        LOSSY | {"resend_maximum": 16},
    ),
    Mutant(
        "the newest message again",
        "R-ORD-03",
        "Window.place",
        "WindowPlace.JUST_BEFORE",
        "WindowPlace.NEXT",
        {"duplicate": 0.1},
    ),
    Mutant(
        "incomplete mediums acked",
        "R-ACK-02",
        "Partner.advance",
        "next(iter(self.incomplete)) if self.incomplete else self.rx_next",
        "self.rx_next",
        LOSSY,
    ),
    Mutant(
        "repeated fragments counted",
        "R-MED-03",
        "Reassembly.add",
        "self._seen |= bit",
        "pass",
        LOSSY | {"duplicate": 0.1},
    ),
    Mutant(
        "mediums never retransmitted",
        "R-RTX-02",
        "ResendQueue.end_transmission",
        ("for each in self._in_transmission:\n    each.resend_tick = self.sent(each)"),
        "pass",
        LOSSY,
    ),
    Mutant(
        "no PULL again at the timer",
        "R-PUL-08",
        "_request_again",
        "pull.request(block)",
        "pass",
        LOSSY | {"largest": 150_000},
    ),
    Mutant(
        "sessions not checked",
        "R-EP-02",
        "HostInterface._target",
        "frame.session != endpoint.session",
        "False",
        {"kill": 2, "largest": 150_000, "messages": 25},
    ),
    Mutant(
        "early packets outlive a reset",
        "R-CLS-05",
        "Partner._clear",
        "self.window.clear()",
        "pass",
        {"kill": 2, "loss": 0.2, "reorder": 0.3, "messages": 40},
    ),
    Mutant(
        "unexpected messages outlive a reset",
        "R-CLS-05",
        "Partner._clear",
        "self.endpoint.matching.drop(self)",
        "()",
        {"kill": 3, "messages": 40, "gap": 30_000_000},
    ),
    Mutant(
        "large sends complete without NOTIFY",
        "R-NOT-02",
        "LargeSend.acked",
        "self.fire(LargeSendEvent.ACK)",
        ("self.state, self.rows = (LargeSendState.DONE, {})\n_complete_large(self)"),
    ),
    Mutant("abandoned after two retransmissions", "R-RTX-03", "Delivery.exhausted", "self.maximum", "2", LOSSY),
    Mutant(
        "receives tried in no order",
        "R-MAT-02",
        "PostedReceives.oldest",
        "first.order < best.order",
        "first.order > best.order",
    ),
    Mutant(
        "probe and receive take the newest",
        "R-MAT-02",
        "SelectableQueue.first",
        "return queue[0]",
        "return next(item for item in reversed(queue) if item.waiting)",
    ),
    Mutant(
        "pieces of a vector begin with the first bytes",
        "R-MSC-03",
        "Segments.put",
        "data[done : done + count]",
        "data[:count]",
    ),
    Mutant(
        "regions never given back",
        "R-RDV-01",
        "LargeSend.release_region",
        "self.endpoint.card.regions.release(region)",
        "pass",
    ),
    Mutant(
        "a truncated message to another process is a success",
        "R-MSC-01",
        "Neighbour._take_ended",
        "min(transferred, send.length)",
        "send.length",
        PROCESSES,
    ),
)


def fixed_by(options: dict[str, object]) -> dict[str, object]:
    """Options with profiles and dialect in the place of their names."""
    from mxwire.protocol import profile_by_name
    from mxwire.wire.dialect import dialect_by_name

    fixed = dict(options)
    if "profiles" in fixed:
        fixed["profiles"] = tuple(map(profile_by_name, fixed["profiles"]))
    if "dialect" in fixed:
        fixed["dialect"] = dialect_by_name(fixed["dialect"])
    return fixed


@contextmanager
def changed(mutant: Mutant | None) -> Iterator[None]:
    """Give the loaded engine a mutant's change until the end; without a mutant leave it as it is."""
    if mutant is None:
        yield
        return
    module, code = import_module(mutant.module), mutant.code()
    found: object = module
    for name in code.co_qualname.split("."):
        found = vars(found)[name]
    function = found.fget if isinstance(found, property) else found
    assert isinstance(function, FunctionType), f"{mutant.name}: {code.co_qualname} is not a function"
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before
        for each in vars(module).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()


@contextmanager
def engine(mutant: Mutant | None) -> Iterator[ModuleType]:
    """The simulation on an engine with a mutant's change, as a module; without a mutant on the engine as it is."""
    with changed(mutant):
        yield import_module("mxwire.simulation")


def verdict(mutant: Mutant | None, seeds: int = SEEDS, options: dict[str, object] | None = None) -> list | None:
    """Seed, invariant and text that killed a mutant, or None if it lives; without one, the engine as it is."""
    with engine(mutant) as simulation:
        fixed = fixed_by(mutant.options if mutant is not None else options or {})
        for seed in range(seeds):
            outcome = simulation.Simulation(simulation.draw_scenario(seed, **fixed)).run()
            if not outcome.held:
                return [seed, outcome.breaches[0].invariant, outcome.breaches[0].text]
    return None


def verdict_by_plans(mutant: Mutant, bound: int) -> list | None:
    """Seed, workload and plan, invariant and text that killed a mutant by ``bound`` faults; None if it lives."""
    with engine(mutant) as simulation:
        scenarios = [
            (faults, simulation.Scenario(seed, workload=workload, **mutant.planned()))
            for faults in range(bound + 1)
            for seed in range(SEEDS_OF_PLANS if faults < 2 else 1)
            for workload in simulation.SMALL_WORKLOADS
        ]
        for faults, scenario in scenarios:
            for outcome in simulation.ExhaustivePlay(scenario, faults).outcomes():
                if not outcome.held:
                    plan = ",".join(map(str, outcome.scenario.faults)) or "-"
                    address = f"{scenario.seed} {scenario.workload} {plan}"
                    return [address, outcome.breaches[0].invariant, outcome.breaches[0].text]
    return None


def _tried(mutant: Mutant, bound: int | None = None) -> tuple[int | str | None, str]:
    """The seed (or plan of up to ``bound`` faults) that killed a mutant, if one did, and the report of it.

    A mutant that no such plan can kill is not tried, since that takes 20 minutes.
    """
    known = PLANNED.get(mutant.name)
    if bound is not None and isinstance(known, BeyondPlans):
        return "-", f"not by plans: {known.why}"
    try:
        killed = verdict(mutant) if bound is None else verdict_by_plans(mutant, bound)
    except LookupError as error:
        return None, f"CANNOT BE MADE: {error}"
    return (None, "SURVIVES") if killed is None else (killed[0], f"{killed[1]}: {killed[2]}")


def main(bound: int | None = None) -> int:
    """Try all mutants by random seeds, or by all plans of up to ``bound`` faults; print a line for each."""
    alive = 0
    columns = "{:50} {:24} {:10} {:10} {:>5}  {}" if bound is None else "{:50} {:24} {:10} {:10} {:26}  {}"
    print(columns.format("mutant", "file", "mended in", "rule", "seed" if bound is None else "plan", "killed by"))
    with ProcessPoolExecutor() as pool:
        for mutant, (seed, found) in zip(MUTANTS, pool.map(partial(_tried, bound=bound), MUTANTS), strict=True):
            alive += seed is None
            shown = "-" if seed is None else seed
            line = columns.format(mutant.name, mutant.file, mutant.mended_in or "-", mutant.rule, shown, found[:120])
            print(line, flush=True)
    historic = sum(bool(each.mended_in) for each in MUTANTS)
    print(f"{len(MUTANTS)} mutants, {historic} of them defects of former releases of Open-MX")
    print(f"{len(MUTANTS) - alive} killed, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--exhaustive", type=int, metavar="FAULTS")
    sys.exit(main(parser.parse_args().exhaustive))
