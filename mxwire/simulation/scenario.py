"""The parameters of a run, as data: given, or drawn from a seed for campaigns in which every run has its own faults."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from functools import cache
from random import Random
from typing import Any, Final

from mxwire.errors import OptionError
from mxwire.protocol import Profile
from mxwire.protocol.profile import NATIVE_MX, OPEN_MX_0_5, OPEN_MX_1_0, OPEN_MX_1_1, OPEN_MX_1_5, OPEN_MX_1_5_AS_FOUND
from mxwire.simulation.faults import Plan, plan_text
from mxwire.simulation.randomness import stream
from mxwire.units import MICROSECOND, MILLISECOND, SECOND
from mxwire.wire.dialect import MXOE, Dialect, omx

DRAWN_WORKLOADS: Final = ("ping-pong", "stream", "many-to-one", "all-to-all")
SAME_HOST: Final = "same-host"
WORKLOADS: Final = (*DRAWN_WORKLOADS, SAME_HOST)
SMALL_WORKLOADS: Final = {
    "tiny": ((0, "tiny"),),
    "small": ((0, "small"),),
    "medium": ((0, "medium"),),
    "large": ((0, "large"),),
    "synchronous": ((0, "synchronous"),),
    "handled": ((0, "handled medium"), (0, "handled large")),
    "overlapping": ((0, "any"), (0, "any")),
    "pair": ((0, "large"), (0, "large")),
    "exchange": ((0, "tiny"), (1, "tiny")),
    "crossing": ((0, "medium"), (1, "large")),
    "train": ((0, "tiny"), (0, "medium"), (0, "large")),
}
"""Workloads of a few given messages between applications 0 and 1, each with its sender and kind (``workload.py``).
They are small enough for all their faults to be played (``exhaustive.py``).
"""
LOCAL_PATHS: Final = {"shared": 0, "one-copy": 1, "two-copies": 2}
"""Paths between the applications of a host: a shared engine, or channels, by the number of copies that they make."""
DISCOVERIES: Final = ("static", "nameless", "announce")
HOSTS_MAXIMUM: Final = 8
DIALECTS: Final = (MXOE, omx(1500), omx(9000))
"""Dialects of drawn scenarios."""

RATES: Final = ("loss", "duplicate", "reorder", "corrupt", "tamper")
"""Faults that happen to a frame with a probability."""
IN_MICROSECONDS: Final = ("delay", "jitter", "held", "coalescing", "gap")
"""Times whose options are in microseconds."""
INCIDENTS: Final = ("kill", "crash", "pause", "stall", "partition", "filter", "mtu")
"""Faults that are given as a count."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run. Rates are probabilities per frame, incidents are counts, times are nanoseconds, lengths bytes."""

    seed: int = 0
    hosts: int = 2
    messages: int = 100
    workload: str = "all-to-all"
    dialect: Dialect = MXOE
    profiles: tuple[Profile, ...] = (OPEN_MX_1_5,)
    """Profiles of the hosts, assigned in turn."""
    processes: int = 1
    """Applications per host, with one endpoint each."""
    local: str = "shared"
    """Path between the applications of a host: one of ``LOCAL_PATHS``."""
    interfaces: int = 1
    """Interfaces per host."""
    discovery: str = "static"
    """Origin of the peer tables: static entries with names, static entries without names, or announcements."""
    largest: int = 1 << 20
    """Length of the longest message, in bytes."""
    resend_maximum: int | None = None
    """Retransmissions until a partner is abandoned; None: as the profiles define."""
    gap: int = 2 * MILLISECOND
    """Maximum time between two calls of an application."""
    loss: float = 0.0
    """Frames that are lost."""
    duplicate: float = 0.0
    """Frames that arrive twice."""
    reorder: float = 0.0
    """Frames that are held back."""
    corrupt: float = 0.0
    """Frames that arrive with a bad checksum: dropped."""
    tamper: float = 0.0
    """Frames with changed bytes that no checksum detects."""
    delay: int = 10 * MICROSECOND
    """Transit time of a frame."""
    jitter: int = 0
    """Maximum additional transit time."""
    held: int = 2 * MILLISECOND
    """Maximum time for which reordered frames and duplicates are held back."""
    coalescing: int = 0
    """Interval whose frames are handed to the host at once."""
    kill: int = 0
    """Applications that die, and are restarted."""
    crash: int = 0
    """Hosts that lose power, and restart with empty tables."""
    pause: int = 0
    """Hosts whose libraries stop for a while; their cards continue."""
    stall: int = 0
    """Applications that stop calling the library for a while."""
    partition: int = 0
    """Time spans in which frames from one host do not reach another one."""
    filter: int = 0
    """Time spans in which frames of one packet type are dropped."""
    mtu: int = 0
    """Time spans in which long frames do not pass."""
    incident_longest: int = 3 * SECOND
    """Maximum duration of an incident."""
    faults: Plan = ()
    """Faults at given frames and steps, beside those that are drawn."""
    judged: bool = True
    """Check the frames against the rules."""

    def __post_init__(self) -> None:
        """Refuse impossible parameters."""
        if not 1 <= self.hosts <= HOSTS_MAXIMUM:
            raise OptionError(f"{self.hosts} hosts: a simulated network has 1 to {HOSTS_MAXIMUM}")
        if self.hosts == 1 and self.processes < 2:
            raise OptionError("one host with one application has no partner: use --processes 2 or more, or --hosts 2")
        if self.hosts == 1 and self.partition:
            raise OptionError("--partition separates two hosts, and there is one")
        if self.workload not in (*WORKLOADS, *SMALL_WORKLOADS):
            raise OptionError(f"no workload {self.workload!r}: use one of {', '.join((*WORKLOADS, *SMALL_WORKLOADS))}")
        if self.workload in SMALL_WORKLOADS and self.hosts * self.processes != 2:
            raise OptionError(
                f"workload {self.workload!r} has two applications: use 2 hosts with 1 process each, or 1 with 2"
            )
        struck = [each.place for each in self.faults if each.victim is None]
        if twice := [place for place in struck if struck.count(place) > 1]:
            raise OptionError(f"frame {twice[0]} has {len(twice)} faults: a frame has at most one")
        for fault in self.faults:
            if fault.victim is not None and fault.victim >= self.hosts * self.processes:
                raise OptionError(f"fault {fault}: the applications are 0 to {self.hosts * self.processes - 1}")
        if self.local not in LOCAL_PATHS:
            raise OptionError(f"no local path {self.local!r}: use one of {', '.join(LOCAL_PATHS)}")
        if self.workload == SAME_HOST and self.processes < 2:
            raise OptionError(f"workload {SAME_HOST!r} needs several applications per host: use --processes 2 or more")
        if self.discovery not in DISCOVERIES:
            raise OptionError(f"no discovery {self.discovery!r}: use one of {', '.join(DISCOVERIES)}")
        for name in RATES:
            if not 0 <= getattr(self, name) < 1:
                raise OptionError(f"{name} {getattr(self, name)}: a rate lies between 0 and 1")
        for name in ("messages", "processes", "interfaces"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} {getattr(self, name)}: at least 1 is needed")
        for name in INCIDENTS:
            if getattr(self, name) < 0:
                raise OptionError(f"{name} {getattr(self, name)}: a count cannot be negative")
        if not self.profiles:
            raise OptionError("a simulation needs at least one profile")

    @property
    def interrupted(self) -> bool:
        """Return whether a planned fault stops or kills an application."""
        return any(each.victim is not None for each in self.faults)

    @property
    def faulty(self) -> bool:
        """Return whether frames may be dropped, changed, duplicated or delayed individually."""
        return any(getattr(self, name) for name in RATES) or bool(self.jitter)

    @property
    def faults_end(self) -> int:
        """Return the latest time at which the rates of faults become 0, in ns of virtual time."""
        return 10 * SECOND + self.messages * 100 * MILLISECOND

    @property
    def slowest(self) -> int:
        """Return the longest transit time of a frame, in ns, without the wait for the link."""
        return self.delay + self.jitter + 2 * self.held + self.coalescing

    def profile_of(self, host: int) -> Profile:
        """Return the profile of a host."""
        profile = self.profiles[host % len(self.profiles)]
        return profile if self.resend_maximum is None else _with_limit(profile, self.resend_maximum)

    def differences(self) -> dict[str, object]:
        """Return the fields that differ from the defaults, and the seed, by name; dialect and profiles as text."""
        plain = Scenario()
        values: dict[str, object] = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name == "seed" or getattr(self, each.name) != getattr(plain, each.name)
        }
        if "dialect" in values:
            values["dialect"] = self.dialect.name
        if "faults" in values:
            values["faults"] = plan_text(self.faults)
        if "profiles" in values:
            values["profiles"] = ",".join(f"{each.name}/{each.hz}" for each in self.profiles)
        return values

    def command(self) -> str:
        """Return the command that runs the scenario."""
        words = ["mxwire", "simulate"]
        for name, value in self.differences().items():
            if name == "judged":
                words.append("--judge" if value else "--no-judge")
                continue
            assert isinstance(value, (int, float, str))
            option = "profile" if name == "profiles" else name.replace("_", "-")
            words += [f"--{option}", str(int(value) // MICROSECOND if name in IN_MICROSECONDS else value)]
        return shlex.join(words)


@cache
def _with_limit(profile: Profile, resend_maximum: int) -> Profile:
    """Return a profile with another limit of retransmissions."""
    return replace(profile, resend_maximum=resend_maximum)


_HIGHEST_RATES: Final = {"loss": 0.2, "duplicate": 0.2, "reorder": 0.3, "corrupt": 0.05}


def draw_scenario(seed: int, **fixed: Any) -> Scenario:
    """Return the scenario of a seed, small enough to run many of them; ``fixed`` fields are not drawn."""
    rng = stream(seed, "mixture")
    dialect = rng.choice(DIALECTS)
    drawn: dict[str, Any] = {
        "hosts": rng.choice((2, 2, 2, 3, 3, 4, 5)),
        "messages": rng.choice((6, 12, 25, 40)),
        "workload": rng.choice(DRAWN_WORKLOADS),
        "dialect": dialect,
        "profiles": _profiles(rng, fixed.get("dialect", dialect)),
        "processes": rng.choice((1, 1, 1, 2)),
        "interfaces": rng.choice((1, 1, 2)),
        "discovery": rng.choices(DISCOVERIES, (8, 1, 1))[0],
        "largest": rng.choice((129, 40_000, 40_000, 150_000, 150_000, 2_000_000)),
        "resend_maximum": rng.choice((16, 24, 40)),
        "gap": rng.choice((0, 100 * MICROSECOND, 2 * MILLISECOND, 30 * MILLISECOND)),
        "delay": rng.choice((1, 10, 100, 2000)) * MICROSECOND,
        "jitter": rng.choice((0, 0, 5, 50, 1000)) * MICROSECOND,
        "held": rng.choice((20, 200, 3000, 30_000)) * MICROSECOND,
        "coalescing": rng.choice((0, 0, 10, 50)) * MICROSECOND,
    }
    for name, most in _HIGHEST_RATES.items():
        drawn[name] = round(rng.random() * most, 3) if rng.random() < 0.4 else 0.0
    for name in INCIDENTS:
        drawn[name] = rng.choice((1, 1, 2)) if rng.random() < 0.15 else 0
    if rng.random() < 0.2 and not (fixed.get("loss") or fixed.get("corrupt")):
        # Abandon partners soon, but only if nothing except incidents drops frames.
        drawn |= {"resend_maximum": 3, "loss": 0.0, "corrupt": 0.0}
    elif rng.random() < 0.03:
        drawn["tamper"] = 0.01
    alone = fixed.get("hosts") == 1
    if alone:
        drawn["partition"] = 0
    if alone or fixed.get("local", "shared") != "shared" or fixed.get("workload") == SAME_HOST:
        drawn["processes"] = stream(seed, "processes").choice((2, 2, 3))
    return replace(Scenario(seed), **(drawn | fixed))


def _profiles(rng: Random, dialect: Dialect) -> tuple[Profile, ...]:
    """Return one to three profiles that are compatible with each other."""
    known = [OPEN_MX_1_5, OPEN_MX_1_5, OPEN_MX_1_0, OPEN_MX_0_5]
    # A host that ignores the pipeline cannot interpret fragments of a host with another pipeline.
    known += [NATIVE_MX, NATIVE_MX] if rng.random() < 0.6 or dialect.family != "mxoe" else [OPEN_MX_1_1]
    if rng.random() < 0.08:
        known.append(OPEN_MX_1_5_AS_FOUND)
    profiles = [rng.choice(known) for _ in range(rng.choice((1, 2, 3)))]
    return tuple(replace(each, hz=rng.choice((100, 250, 1000))) for each in profiles)
