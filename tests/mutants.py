"""Proof that the simulator finds bugs: each of these one-place changes of the engine is killed by a few seeds.

Run as a script, it prints a table of all mutants with the seed and the invariant that killed each; the exit code is 1
if one survives. Most are the interoperability defects that Open-MX had once (differences document, section 3).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

PACKAGE = Path(__file__).parents[1] / "mxwire"
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
    file: str
    """Path below ``mxwire/protocol``."""
    old: str
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

    def code(self) -> CodeType:
        """The code of the function that is changed."""
        text = (PACKAGE / "protocol" / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise LookupError(f"{self.name}: {self.file} has the text {text.count(self.old)} times: {self.old!r}")
        before, after = (
            list(_functions(compile(each, self.file, "exec", dont_inherit=True)))
            for each in (text, text.replace(self.old, self.new))
        )
        changed = [new for old, new in zip(before, after, strict=True) if _unlined(old) != _unlined(new)]
        if len(changed) != 1:
            raise LookupError(f"{self.name}: {len(changed)} functions of {self.file} are changed, not one")
        return changed[0]

    @property
    def module(self) -> str:
        """The module of the file."""
        return ".".join(("mxwire", "protocol", *Path(self.file).with_suffix("").parts))


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and its classes, without those inside functions."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & CO_OPTIMIZED:
                yield each
            else:
                yield from _functions(each)


def _unlined(code: CodeType) -> CodeType:
    """The code without the numbers of its lines."""
    consts = tuple(_unlined(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=consts)


NATIVE = {"dialect": "mxoe", "profiles": ["native-mx", "open-mx"], "largest": 40_000}
KILLS = {"kill": 2}
PROCESSES = {"local": "two-copies", "workload": "same-host"}
LONG = {"largest": 2_000_000, "messages": 10, "dialect": "omx:1500"}
LOSSY = {"loss": 0.15}

MUTANTS = (
    Mutant(
        "pipeline ignored",
        "1.3.2, R-MED-02",
        "library/inbound.py",
        "return number << pipeline",
        "return number << 12",
        NATIVE,
    ),
    Mutant(
        "index echo in HOST_REPLY",
        "0.7.0, R-HOST-06",
        "discovery.py",
        "query.src_dst_peer_index if echo else peer.index",
        "query.src_dst_peer_index",
        {"discovery": "nameless", "hosts": 3},
    ),
    Mutant(
        "libacks carry the last number",
        "0.1.0, R-ACK-01",
        "library/reliability.py",
        "sequence = partner.rx_done\n",
        "sequence = (partner.rx_done - 1) & 0xFFFF\n",
    ),
    Mutant(
        "piggybacks carry the last number",
        "0.1.0, R-ACK-01",
        "library/reliability.py",
        "return partner.rx_done\n",
        "return (partner.rx_done - 1) & 0xFFFF\n",
    ),
    Mutant(
        "wrong pipeline value",
        "0.1.0, R-MED-02",
        "library/endpoint.py",
        "dialect.fragment_payload.bit_length() - 1",
        "dialect.fragment_payload.bit_length()",
        {"dialect": "mxoe"},
    ),
    Mutant(
        "status numbers not those of MX",
        "0.1.0, R-CON-09",
        "library/connect.py",
        "== endpoint.key else ConnectStatus.BAD_KEY",
        "== endpoint.key else 10",
    ),
    Mutant(
        "libacks without counter",
        "0.1.0, R-ACK-06",
        "library/reliability.py",
        "session, partner.liback_out, sequence",
        "session, 0, sequence",
    ),
    Mutant(
        "session bits dropped",
        "0.4.0, R-SEQ-03",
        "library/reliability.py",
        "return (value & SESSION_NUMBER_MASK) | ((value + 1) & NUMBER_MASK)",
        "return (value + 1) & NUMBER_MASK",
        {"partition": 3, "resend_maximum": 2, "loss": 0.0},
    ),
    Mutant(
        "frame numbers modulo 256 confused by the puller",
        "0.5.0, R-PUL-05",
        "card/pull.py",
        "if -(-offset // payload) != first + ahead:",
        "if False:",
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
    Mutant(
        "frame numbers modulo 128 by the replier",
        "R-PUL-13",
        "card/replies.py",
        "return number & 0xFF",
        "return number & 0x7F",
        LONG | {"judged": False},
    ),
    Mutant(
        "duplicate NOTIFY completes another send",
        "0.5.0, R-NOT-02",
        "library/endpoint.py",
        "                partner.window.arrive(event)\n",
        "                if hasattr(event.frame, 'total_length'):\n"
        "                    for (region, _), send in list(partner.large_sends.items()):\n"
        "                        if region == event.frame.pulled_rdma_id:\n"
        "                            send.notified(event.frame.total_length)\n"
        "                partner.window.arrive(event)\n",
        {"duplicate": 0.2, "judged": False, "workload": "stream", "messages": 40},
    ),
    Mutant(
        "blocks not retired",
        "1.0.4, R-PUL-02",
        "card/pull.py",
        "while self.blocks and not self.blocks[0].missing:",
        "if self.blocks and not self.blocks[0].missing:",
        LONG | {"loss": 0.05},
    ),
    Mutant(
        "stale start number in the connect reply",
        "R-CON-08",
        "library/connect.py",
        "            target_recv_seqnum_start=partner.rx_next,\n            connect_seqnum=frame.connect_seqnum,",
        "            target_recv_seqnum_start=FIRST_NUMBER,\n            connect_seqnum=frame.connect_seqnum,",
        {"partition": 2, "resend_maximum": 2, "judged": False},
    ),
    Mutant(
        "reverse index per host, not per interface",
        "1.1.1, R-LOC-03",
        "peers.py",
        "return self.reverse.get(interface, NO_PEER_INDEX)",
        "return next(iter(self.reverse.values()), NO_PEER_INDEX)",
        {"interfaces": 2, "processes": 2},
    ),
    Mutant(
        "nack type shifted",
        "0.4.0, R-NAK-03",
        "card/interface.py",
        "nack_type=why,\n                dst_endpoint=frame.src_endpoint,",
        "nack_type=NackType.NONE,\n                dst_endpoint=why,",
        KILLS,
    ),
    Mutant(
        "stale replies match a new pull",
        "0.2.0, R-PUL-03",
        "card/endpoint.py",
        "(handle + 1) & GENERATION_MASK\n        self._free.append(slot)",
        "handle & GENERATION_MASK\n        self._free.appendleft(slot)",
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
        "card/replies.py",
        "- pull.pulled_rdma_offset % payload +",
        "+",
        {"profiles": ["open-mx-1.0"]},
    ),
    Mutant(
        "RNDV consumed by the handler, sender left waiting",
        "1.0.4, R-MAT-06",
        "library/endpoint.py",
        "enqueue_notify(message.partner, message.rendezvous, 0, None)",
        "return",
    ),
    Mutant(
        "wrong length for a consumed RNDV",
        "1.1.901, R-MAT-06",
        "library/endpoint.py",
        "enqueue_notify(message.partner, message.rendezvous, 0, None)",
        "enqueue_notify(message.partner, message.rendezvous, message.length, None)",
    ),
    Mutant(
        "truncated mediums written beyond the buffer",
        "1.1.901, R-MED-04",
        "arguments.py",
        "room = min(len(data), max(0, self.length - offset))",
        "room = len(data)",
    ),
    Mutant(
        "nothing to pull, and no NOTIFY",
        "0.1.0, R-RDV-04",
        "library/receive.py",
        "nothing = not min(frame.msg_length, self.memory.length)",
        "nothing = False",
    ),
    Mutant(
        "nacks do not end connects",
        "1.3.1, R-NAK-06",
        "library/partner.py",
        "            next(iter(self.pending_connects.values())).refuse(status)",
        "            pass",
    ),
    Mutant(
        "duplicates provoke no ack",
        "R-ORD-03",
        "library/inbound.py",
        "            self.partner.acks.fire(AckEvent.AT_ONCE)\n",
        "            pass\n",
        LOSSY | {"resend_maximum": 16},
    ),
    Mutant(
        "the newest message again",
        "R-ORD-03",
        "library/inbound.py",
        "return WindowPlace.JUST_BEFORE if ahead == JUST_BEFORE",
        "return WindowPlace.NEXT if ahead == JUST_BEFORE",
        {"duplicate": 0.1},
    ),
    Mutant(
        "incomplete mediums acked",
        "R-ACK-02",
        "library/partner.py",
        "done = next(iter(self.incomplete)) if self.incomplete else self.rx_next",
        "done = self.rx_next",
        LOSSY,
    ),
    Mutant(
        "repeated fragments counted",
        "R-MED-03",
        "library/inbound.py",
        "        self._seen |= bit\n",
        "",
        LOSSY | {"duplicate": 0.1},
    ),
    Mutant(
        "mediums never retransmitted",
        "R-RTX-02",
        "library/reliability.py",
        "            for each in self._leaving:\n                each.resend_tick = self.sent(each)\n",
        "",
        LOSSY,
    ),
    Mutant(
        "no PULL again at the timer",
        "R-PUL-08",
        "card/pull.py",
        "            pull.request(block)\n    pull.deadline",
        "            pass\n    pull.deadline",
        LOSSY | {"largest": 150_000},
    ),
    Mutant(
        "sessions not checked",
        "R-EP-02",
        "card/interface.py",
        "        if frame.session != endpoint.session:\n",
        "        if False:\n",
        {"kill": 2, "largest": 150_000, "messages": 25},
    ),
    Mutant(
        "early packets outlive a reset",
        "R-CLS-05",
        "library/partner.py",
        "        self.window.clear()\n",
        "",
        {"kill": 2, "loss": 0.2, "reorder": 0.3, "messages": 40},
    ),
    Mutant(
        "unexpected messages outlive a reset",
        "R-CLS-05",
        "library/partner.py",
        "self.endpoint.matching.drop(self):",
        "():",
        {"kill": 3, "messages": 40, "gap": 30_000_000},
    ),
    Mutant(
        "large sends complete without NOTIFY",
        "R-NOT-02",
        "library/outbound.py",
        "self.fire(LargeSendEvent.ACK)",
        "self.state, self.rows = LargeSendState.DONE, {}\n        _complete_large(self)",
    ),
    Mutant(
        "abandoned after two retransmissions",
        "R-RTX-03",
        "library/reliability.py",
        "return self.transmissions > self.maximum",
        "return self.transmissions > 2",
        LOSSY,
    ),
    Mutant(
        "receives tried in no order",
        "R-MAT-02",
        "library/matching.py",
        "first.order < best.order",
        "first.order > best.order",
    ),
    Mutant(
        "probe and receive take the newest",
        "R-MAT-02",
        "library/matching.py",
        "        return queue[0]\n",
        "        return next(item for item in reversed(queue) if item.waiting)\n",
    ),
    Mutant(
        "pieces of a vector begin with the first bytes",
        "R-MSC-03",
        "arguments.py",
        "view[start : start + count] = data[done : done + count]",
        "view[start : start + count] = data[:count]",
    ),
    Mutant(
        "regions never given back",
        "R-RDV-01",
        "library/outbound.py",
        "            self.endpoint.card.regions.release(region)\n",
        "",
    ),
    Mutant(
        "a truncated message to another process is a success",
        "R-MSC-01",
        "neighbours.py",
        "send.received(min(transferred, send.length))",
        "send.received(send.length)",
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
    # As a script, this file is not of a package.
    planned = import_module("mutants_planned" if __package__ in (None, "") else f"{__package__}.mutants_planned")
    known = planned.PLANNED.get(mutant.name)
    if bound is not None and isinstance(known, planned.BeyondPlans):
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
