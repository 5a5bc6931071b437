"""The smallest plan of faults that kills each mutant of the engine (``tests/mutants.py``) in a small workload.

Each is a run that ``python tests/mutants.py --exhaustive 2`` finds, with fewer faults first. The tests repeat these
runs, on the mutant and on the engine as it is; ``docs/simulate.md`` has the table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KillingPlan:
    """A run of a small workload in which the mutant violates an invariant."""

    workload: str
    faults: str
    """As in ``--faults``; empty for none."""
    invariant: str
    seed: int = 0


@dataclass(frozen=True)
class BeyondPlans:
    """The reason why no plan of two faults in a small workload kills a mutant."""

    why: str
    plan: KillingPlan | None = None
    """A larger plan that does."""


_LONG = "needs a message of more than {} reply frames: the small ones have few, so that all their faults can be played"

PLANNED: dict[str, KillingPlan | BeyondPlans] = {
    "pipeline ignored": KillingPlan("medium", "", "content"),
    "index echo in HOST_REPLY": BeyondPlans(
        "two hosts have the same index in each other's peer table; a third differs"
    ),
    "libacks carry the last number": KillingPlan("tiny", "", "liveness"),
    "piggybacks carry the last number": KillingPlan("tiny", "", "rules"),
    "wrong pipeline value": KillingPlan("medium", "", "rules"),
    "status numbers not those of MX": KillingPlan("pair", "die:1@5", "rules", seed=2),
    "libacks without counter": KillingPlan("tiny", "", "rules"),
    "session bits dropped": KillingPlan("train", "lose@5,pause:0@10", "rules"),
    "frame numbers modulo 256 confused by the puller": BeyondPlans(_LONG.format(256)),
    "frame numbers modulo 128 by the replier": BeyondPlans(_LONG.format(128)),
    "duplicate NOTIFY completes another send": BeyondPlans(
        "needs a region that is used again: the sends of a small workload have regions of their own"
    ),
    "blocks not retired": KillingPlan("large", "lose@8", "delivery"),
    "stale start number in the connect reply": KillingPlan("exchange", "pause:1@16", "numbers"),
    "reverse index per host, not per interface": BeyondPlans("needs applications on two interfaces of a host"),
    "nack type shifted": KillingPlan("tiny", "", "rules"),
    "stale replies match a new pull": KillingPlan("pair", "delay@10,delay@26", "rules"),
    "region offset not served": KillingPlan("large", "", "rules"),
    "RNDV consumed by the handler, sender left waiting": KillingPlan("handled", "", "liveness"),
    "wrong length for a consumed RNDV": KillingPlan("handled", "", "rules"),
    "truncated mediums written beyond the buffer": KillingPlan("train", "die:1@5", "exception", seed=2),
    "nothing to pull, and no NOTIFY": KillingPlan("synchronous", "", "delivery"),
    "nacks do not end connects": KillingPlan("tiny", "", "liveness"),
    "duplicates provoke no ack": KillingPlan("tiny", "lose@8", "partner"),
    "the newest message again": KillingPlan("tiny", "pause:1@10", "rules"),
    "incomplete mediums acked": KillingPlan("medium", "", "delivery"),
    "repeated fragments counted": KillingPlan("medium", "double@7", "delivery"),
    "mediums never retransmitted": KillingPlan("medium", "lose@7", "delivery"),
    "no PULL again at the timer": KillingPlan("large", "lose@9", "delivery"),
    "sessions not checked": BeyondPlans(
        "needs a PULL under way while the sender of the message restarts: killed applications start again when none is"
    ),
    "early packets outlive a reset": KillingPlan("overlapping", "lose@7,die:0@13", "leftovers"),
    "unexpected messages outlive a reset": BeyondPlans(
        "needs a receive that is posted after the sender has started again: those of small workloads are posted before"
    ),
    "large sends complete without NOTIFY": KillingPlan("large", "", "status"),
    "abandoned after two retransmissions": BeyondPlans(
        "needs three losses of one packet", KillingPlan("tiny", "lose@7,lose@8,lose@9", "partner")
    ),
    "receives tried in no order": KillingPlan("overlapping", "", "order"),
    "probe and receive take the newest": KillingPlan("overlapping", "die:1@5", "order", seed=11),
    "pieces of a vector begin with the first bytes": KillingPlan("tiny", "", "content"),
    "regions never given back": KillingPlan("large", "", "leftovers"),
    "a truncated message to another process is a success": KillingPlan("handled", "", "status"),
}
"""By the name of the mutant, in their order."""
