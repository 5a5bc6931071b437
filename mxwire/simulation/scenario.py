"""What a run is made of, as data: all but the randomness, which comes from the seed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from mxwire.errors import MxwireError
from mxwire.protocol import Profile
from mxwire.protocol.profile import OPEN_MX_1_5
from mxwire.units import MICROSECOND, MILLISECOND, SECOND
from mxwire.wire.dialect import MXOE, Dialect

WORKLOADS: Final = ("ping-pong", "stream", "many-to-one", "all-to-all")
DISCOVERIES: Final = ("static", "nameless", "announce")
HOSTS_MAXIMUM: Final = 8

RATES: Final = ("loss", "duplicate", "reorder", "corrupt", "tamper")
"""Faults that befall a frame with a probability."""
INCIDENTS: Final = ("kill", "crash", "pause", "stall", "partition", "filter", "mtu")
"""Faults that happen a number of times."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run. Rates are probabilities a frame, incidents are counts, times are nanoseconds, lengths bytes."""

    seed: int = 0
    hosts: int = 2
    messages: int = 100
    workload: str = "all-to-all"
    dialect: Dialect = MXOE
    profiles: tuple[Profile, ...] = (OPEN_MX_1_5,)
    """What the hosts are, in turn."""
    processes: int = 1
    """Applications a host, with an endpoint each."""
    interfaces: int = 1
    """Interfaces a host."""
    discovery: str = "static"
    """How hosts come to know each other: entered with names, without names, or by announcements."""
    largest: int = 1 << 20
    """No message is longer than this, in bytes."""
    resend_maximum: int | None = None
    """Retransmissions until a partner is given up; None: as the profiles say."""
    gap: int = 2 * MILLISECOND
    """Applications wait up to this long between two calls."""
    loss: float = 0.0
    """Frames that are lost."""
    duplicate: float = 0.0
    """Frames that arrive twice."""
    reorder: float = 0.0
    """Frames that are held back for a while."""
    corrupt: float = 0.0
    """Frames that the frame check finds damaged: dropped."""
    tamper: float = 0.0
    """Frames with changed bytes that no check finds."""
    delay: int = 10 * MICROSECOND
    """How long a frame is on its way."""
    jitter: int = 0
    """How much longer it may be."""
    held: int = 2 * MILLISECOND
    """How long reordered frames and duplicates are held back at most."""
    coalescing: int = 0
    """Frames that arrive within such an interval are handed to the host at once."""
    kill: int = 0
    """Applications that die, and are started anew."""
    crash: int = 0
    """Hosts that lose their power, and start again with nothing remembered."""
    pause: int = 0
    """Hosts whose libraries stop for a while; their cards go on."""
    stall: int = 0
    """Applications that do something else for a while."""
    partition: int = 0
    """Times that frames from one host do not reach another one."""
    filter: int = 0
    """Times that frames of one packet type are dropped."""
    mtu: int = 0
    """Times that long frames do not pass."""
    incident_longest: int = 3 * SECOND
    """How long an incident lasts at most."""
    judged: bool = True
    """Whether the frames are held against the rules."""

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not 2 <= self.hosts <= HOSTS_MAXIMUM:
            raise MxwireError(f"{self.hosts} hosts: a simulated network has 2 to {HOSTS_MAXIMUM}")
        if self.workload not in WORKLOADS:
            raise MxwireError(f"no workload {self.workload!r}: use one of {', '.join(WORKLOADS)}")
        if self.discovery not in DISCOVERIES:
            raise MxwireError(f"no discovery {self.discovery!r}: use one of {', '.join(DISCOVERIES)}")
        for name in RATES:
            if not 0 <= getattr(self, name) < 1:
                raise MxwireError(f"{name} {getattr(self, name)}: a rate lies between 0 and 1")
        for name in ("messages", "processes", "interfaces"):
            if getattr(self, name) < 1:
                raise MxwireError(f"{name} {getattr(self, name)}: at least 1 is needed")
        for name in INCIDENTS:
            if getattr(self, name) < 0:
                raise MxwireError(f"{name} {getattr(self, name)}: a count is not negative")
        if not self.profiles:
            raise MxwireError("a simulation needs a profile")

    @property
    def faulty(self) -> bool:
        """Whether single frames may meet a fault or another way through the network."""
        return any(getattr(self, name) for name in RATES) or bool(self.jitter)

    @property
    def faults_end(self) -> int:
        """When rates of faults go back to 0, at the latest, in ns of virtual time."""
        return 10 * SECOND + self.messages * 100 * MILLISECOND

    @property
    def slowest(self) -> int:
        """No frame is longer on its way than this, in ns, apart from waiting for the link to be free."""
        return self.delay + self.jitter + 2 * self.held + self.coalescing

    def profile_of(self, host: int) -> Profile:
        """What a host is."""
        profile = self.profiles[host % len(self.profiles)]
        return profile if self.resend_maximum is None else replace(profile, resend_maximum=self.resend_maximum)

    def differences(self) -> dict[str, object]:
        """What is not as in a plain scenario, by name; the seed always. Dialect and profiles are given as text."""
        plain = Scenario()
        found: dict[str, object] = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name == "seed" or getattr(self, each.name) != getattr(plain, each.name)
        }
        if "dialect" in found:
            found["dialect"] = self.dialect.name
        if "profiles" in found:
            found["profiles"] = ",".join(f"{each.name}/{each.hz}" for each in self.profiles)
        return found
