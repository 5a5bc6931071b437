"""Testbeds: two sides and the path between them, with one API: ``run(role, **parameters)`` plays a role on both.

:class:`NamespaceTestbed` has its sides in two network namespaces joined by a virtual cable, :class:`RemoteTestbed` one
here and one on another machine (``mxwire bench serve``), :class:`MemoryTestbed` both in this process on a network in
memory, for counts and shapes without root.

Order of a run: the passive side opens its channel and reports so, then the active side opens its own; their first
messages are a barrier. A round in which a message was lost is repeated, and counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final, Self

from mxwire.bench.channels.carriers import is_host
from mxwire.bench.errors import SilenceError
from mxwire.bench.models.catalogue import has_card, is_model
from mxwire.bench.record import Conditions, now_text
from mxwire.bench.roles.common import BARE_ETHERTYPE, IP_ADDRESSES
from mxwire.bench.worker import SideSetup, failure, run_role
from mxwire.errors import MxwireError
from mxwire.lab import machine
from mxwire.lab.child import ChildEndedError, ChildProcess
from mxwire.lab.namespaces import NamespacePort, namespaces_refusal, private_cable
from mxwire.link import MemoryNetwork
from mxwire.link.ethtool import change_offload
from mxwire.native import is_compiled

Found = dict[str, Any]
WORKER: Final = "mxwire.bench.worker"
PATIENCE: Final = 120.0
"""Timeout of a role in seconds, longer than any role takes: a side that does not answer by then has died."""
_STARTING: Final = 30.0
REPETITIONS: Final = 3
"""Repetitions of a round in which messages were lost, before the study ends."""
OFFLOADS: Final = ("tso", "gso", "gro")
"""Offloads that make TCP a different contest."""


class TestbedError(MxwireError):
    """A testbed cannot be set up, or a side has failed."""


class SideLostError(TestbedError):
    """A side has ended, or does not answer: what was measured before remains valid."""


class StudySide(ABC):
    """One side of a testbed: start a role, wait until its channel is open, and take its result."""

    name: str
    busy = False
    """True while a role is under way."""
    _opened = False

    def start(self, role: str, parameters: Found) -> None:
        """Begin a role."""
        self._opened, self.busy = False, True
        self._begin(role, parameters)

    def ready(self) -> None:
        """Wait until the channel is open; raise the error of the side if it cannot be opened."""
        answer = self._next(_STARTING)
        self.busy = "error" not in answer
        _checked(answer, self.name)
        self._opened = True

    def result(self) -> Found:
        """Wait for the end of the role, and return its values.

        Raises :class:`~mxwire.bench.errors.SilenceError` if messages were lost.
        """
        if not self._opened:
            self.ready()
        answer = self._next(PATIENCE)
        self.busy = False
        found: Found = _checked(answer, self.name)["result"]
        return found

    @abstractmethod
    def _begin(self, role: str, parameters: Found) -> None:
        """Have the side begin a role."""

    @abstractmethod
    def _next(self, timeout: float) -> Found:
        """Wait for the next answer: that the channel is open, the result, or an error."""

    @abstractmethod
    def close(self) -> None:
        """End the side."""


def _checked(answer: Found, side: str) -> Found:
    if "error" in answer:
        if answer.get("lost"):
            raise SilenceError(answer["error"])
        raise TestbedError(f"{side} side: {answer['error']}")
    return answer


class ProcessSide(StudySide):
    """A side in a process of its own, interpreted or compiled: a ``module`` that speaks as ``mxwire.bench.worker``."""

    def __init__(self, setup: Any, package: Path | None = None, module: str = WORKER, name: str = "") -> None:
        self.name = name or ("the active" if setup.active else "the passive")
        environment = {} if package is None else {"PYTHONPATH": str(package)}
        self._child = ChildProcess(
            [sys.executable, "-P", "-m", module], environment=environment, stderr=subprocess.DEVNULL
        )
        try:
            self._write(asdict(setup))
            self.about: Found = _checked(self._next(_STARTING), self.name)["side"]
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process identifier."""
        return self._child.pid

    def _write(self, value: Found) -> None:
        try:
            self._child.write_line(json.dumps(value).encode())
        except ChildEndedError:
            raise SideLostError(f"{self.name} side has ended") from None

    def _next(self, timeout: float) -> Found:
        try:
            line = self._child.read_line(timeout)
        except ChildEndedError:
            raise SideLostError(f"{self.name} side has ended") from None
        if line is None:
            raise SideLostError(f"{self.name} side does not answer within {timeout:g} s")
        answer: Found = json.loads(line)
        return answer

    @property
    def pending(self) -> bool:
        """True if no answer has arrived."""
        return self._child.silent

    def _begin(self, role: str, parameters: Found) -> None:
        self._write({"role": role, "parameters": parameters})

    def close(self) -> None:
        """Kill the process, even if it is busy."""
        self._child.end()


class MemorySide(StudySide):
    """A side in a thread of this process."""

    def __init__(self, setup: SideSetup, network: MemoryNetwork, bare: MemoryNetwork) -> None:
        self.name = "active" if setup.active else "passive"
        self._setup = setup
        self._networks = {True: network, False: bare}
        self._answers: Queue[Found] = Queue()

    def _begin(self, role: str, parameters: Found) -> None:
        network, answers = self._networks[is_host(str(parameters.get("carrier")))], Queue[Found]()

        def play() -> None:
            request = {"role": role, "parameters": parameters}
            try:
                result = run_role(self._setup, request, lambda: answers.put({"ready": True}), network=network)
            except Exception as error:
                answers.put(failure(error))
            else:
                answers.put({"result": result})

        # A queue per role: the thread of an abandoned one may still answer.
        self._answers = answers
        Thread(target=play, daemon=True).start()

    def _next(self, timeout: float) -> Found:
        try:
            return self._answers.get(timeout=timeout)
        except Empty:
            raise SideLostError(f"the {self.name} side does not answer within {timeout:g} s") from None

    def close(self) -> None:
        """Do nothing: the thread ends with its role."""


def play_on(sides: tuple[StudySide, StudySide], role: str, parameters: Found) -> tuple[Found, Found]:
    """Play a role on an active and a passive side once, and return their values."""
    active, passive = sides
    passive.start(role, parameters)
    passive.ready()
    active.start(role, parameters)
    results, errors = [], []
    for side in (active, passive):
        try:
            results.append(side.result())
        except SideLostError:
            raise
        except MxwireError as error:
            errors.append(error)
    if errors:
        # If one side fails, the other one receives nothing; the error of the failed side is more informative.
        raise next((each for each in errors if not isinstance(each, SilenceError)), errors[0])
    return results[0], results[1]


class StudyTestbed(ABC):
    """Two sides. Attributes describe what the testbed can do."""

    sides: tuple[StudySide, StudySide]
    virtual = False
    """True if times are those of a model."""
    marks: tuple[str, ...] = ()
    """Marks of all measurements on this testbed."""
    placement: tuple[int, ...] = ()
    """Processor of each side on this machine."""
    cards: tuple[int, ...] = ()
    """Processor of each side's card, where that is a process of its own."""

    def __init__(self) -> None:
        self.lost = 0
        """Rounds that were repeated because messages were lost."""
        self.compiled = is_compiled()
        """True if the sides run compiled modules."""
        self._held = ExitStack()
        # Times of a model do not depend on other programs: their number is then counted only for a recording.
        self._load, self._time = None if self.virtual else machine.other_programs(), now_text()

    @property
    @abstractmethod
    def conditions(self) -> Conditions:
        """The circumstances, for the recording."""

    def _conditions(self, testbed: str, interface: Mapping[str, Any] | None = None, **more: Any) -> Conditions:
        """The circumstances of this machine, of the record of an ``interface``, and ``more``."""
        if interface is not None:
            more |= {each: interface[each] for each in ("mtu", "driver", "coalescing")}
            more["offloads"] = tuple(interface["offloads"])
        about, load = machine.machine_conditions(), machine.other_programs() if self._load is None else self._load
        return Conditions(**about, time=self._time, testbed=testbed, compiled=self.compiled, load=load, **more)

    @property
    def spins(self) -> bool:
        """True if each side may have a processor to poll on."""
        return True

    def can_use(self, carrier: str) -> str | None:
        """Return the reason why a carrier cannot be used here; None if it probably can."""
        return None

    def passive_polls(self, carrier: str) -> bool:
        """Return whether the passive side may poll: not while cards, which are processes, use its processor."""
        return self.spins and not (has_card(carrier) and bool(set(self.placement[1:]) & set(self.cards)))

    def run(self, role: str, **parameters: Any) -> tuple[Found, Found]:
        """Play a role on both sides, and return their values: the active side's and the passive side's.

        A round with lost messages is repeated up to :data:`REPETITIONS` times; ``lost`` in the active side's values is
        the number of repetitions. Raises :class:`SideLostError` if a side is gone, :class:`TestbedError` if one
        fails, and :class:`~mxwire.bench.errors.SilenceError` if all repetitions lose messages.
        """
        for lost in range(REPETITIONS + 1):
            try:
                active, passive = self._run(role, parameters)
            except SilenceError:
                self.lost += 1
                if lost == REPETITIONS:
                    raise
            else:
                return active | {"lost": lost}, passive
        raise AssertionError("unreachable")

    def run_alone(self, role: str, **parameters: Any) -> Found:
        """Play a role that needs no other side on the active one, and return its values."""
        side = self.sides[0]
        side.start(role, parameters)
        side.ready()
        return side.result()

    def _run(self, role: str, parameters: Found) -> tuple[Found, Found]:
        return play_on(self.sides, role, parameters)

    def close(self) -> None:
        """End both sides, and remove what was created for them."""
        self._held.close()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the testbed."""
        self.close()


@dataclass(frozen=True)
class TestbedOptions:
    """Settings of a testbed in namespaces."""

    mtu: int = 9000
    steered: bool = True
    """Frames are processed by the receiver's processor, as between two machines; otherwise by the sender's."""
    delay: float = 0.0
    """Seconds added to each frame in each direction."""
    offloads: bool | None = None
    """Turn all of :data:`OFFLOADS` on or off; None leaves them as they are."""
    package: Path | None = None
    """Folder with the mxwire that the sides run; None: the one that runs here."""


class NamespaceTestbed(StudyTestbed):
    """Two namespaces of this machine with a virtual cable between them, and a process pinned in each. Needs root.

    Raises :class:`TestbedError` or :class:`~mxwire.lab.namespaces.NamespaceError` if it cannot be set up.
    """

    def __init__(self, options: TestbedOptions | None = None) -> None:
        super().__init__()
        self.options = options = options or TestbedOptions()
        self.placement, self.cards = machine.placement(), machine.card_processors()
        # Also after Ctrl-C, which would otherwise leave namespaces on the machine.
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        options = self.options
        self.ports = self._held.enter_context(private_cable("bench", options.mtu))
        """Interface of each side."""
        for port, address in zip(self.ports, IP_ADDRESSES, strict=True):
            port.namespace.ip("addr", "add", f"{address}/24", "dev", port.interface)
            if options.offloads is not None:
                with port.namespace.inside():
                    for each in OFFLOADS:
                        change_offload(port.interface, each, options.offloads)
            if options.delay:
                _delay(port, options.delay)
        self.steer(options.steered)
        own = []
        for port in self.ports:
            with port.namespace.inside():
                own.append(machine.interface_record(port.interface))
        self.addresses = [str(each["address"]) for each in own]
        """Ethernet address of each side."""
        self.sides = self._start(self.addresses)
        self.about = own[0]

    def _start(self, addresses: list[str]) -> tuple[StudySide, StudySide]:
        sides = []
        for place, port in enumerate(self.ports):
            setup = SideSetup(
                port.interface,
                place == 0,
                port.namespace.name,
                self.placement[place],
                own=addresses[place],
                other=addresses[1 - place],
                addresses=(IP_ADDRESSES[place], IP_ADDRESSES[1 - place]),
                card_processor=self.cards[place],
                card_polls=machine.cards_are_alone(),
            )
            side = ProcessSide(setup, self.options.package)
            self._held.callback(side.close)
            sides.append(side)
        self.compiled = bool(sides[0].about["compiled"])
        return sides[0], sides[1]

    def steer(self, steered: bool) -> None:
        """Have frames processed by the receiver's processor from now on, or by the sender's."""
        self.options = replace(self.options, steered=steered)
        self._steer(self.placement)

    def _steer(self, receivers: tuple[int, ...]) -> None:
        self._receivers = receivers
        for port, processor in zip(self.ports, receivers, strict=True):
            port.steer(processor if self.options.steered else None)

    def _run(self, role: str, parameters: Found) -> tuple[Found, Found]:
        # A card receives the frames of its program.
        receivers = self.cards if has_card(str(parameters.get("carrier"))) else self.placement
        if self.options.steered and receivers != self._receivers:
            self._steer(receivers)
        return super()._run(role, parameters)

    def can_use(self, carrier: str) -> str | None:
        """Return the reason why AF_XDP cannot be used; everything else can."""
        if "xdp" not in carrier:
            return None
        from mxwire.link.interface import read_interface
        from mxwire.link.xdp import xdp_refusal

        with self.ports[0].namespace.inside():
            return xdp_refusal(read_interface(self.ports[0].interface))

    @property
    def spins(self) -> bool:
        """True if there are two processors."""
        return len(set(self.placement)) == 2

    @property
    def conditions(self) -> Conditions:
        """The circumstances, with the interface of the active side."""
        own = {"steered": self.options.steered, "delay": self.options.delay, "placement": self.placement}
        return self._conditions("namespaces", self.about, **own)


def _delay(port: NamespacePort, seconds: float) -> None:
    """Delay frames that a port transmits, by the queueing discipline netem."""
    words = ["tc", "-n", port.namespace.name, "qdisc", "add", "dev", port.interface, "root", "netem"]
    # Beyond its limit netem drops frames; that by default, 1000, is less than some windows have in flight.
    words += ["delay", f"{seconds * 1e6:g}us", "limit", "100000"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        raise TestbedError("a delay needs the program tc (package iproute2)") from None
    if done.returncode:
        reason = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "unknown reason"
        raise TestbedError(f"frames cannot be delayed: this kernel refuses netem ({reason})")


class MemoryTestbed(StudyTestbed):
    """Both sides in threads of this process, on a network in memory: for counts and shapes, never for times."""

    def __init__(self, mtu: int = 9000) -> None:
        super().__init__()
        self._mtu = mtu
        network, bare = MemoryNetwork(mtu=mtu), MemoryNetwork(mtu=mtu, ethertype=BARE_ETHERTYPE)
        names, addresses = ("memory0", "memory1"), ("020000000001", "020000000002")
        self.sides = (
            MemorySide(SideSetup(names[0], True, own=addresses[0], other=addresses[1]), network, bare),
            MemorySide(SideSetup(names[1], False, own=addresses[1], other=addresses[0]), network, bare),
        )

    @property
    def spins(self) -> bool:
        """False: both sides share the interpreter."""
        return False

    def can_use(self, carrier: str) -> str | None:
        """Return the reason why a carrier cannot be used: only hosts, models and the ring have links in memory."""
        model = is_model(carrier) and not has_card(carrier)
        usable = carrier == "ring" or model or (is_host(carrier) and "xdp" not in carrier)
        return None if usable else "not on a network in memory"

    @property
    def conditions(self) -> Conditions:
        """The circumstances, without those of a cable."""
        return self._conditions("memory", mtu=self._mtu)


@contextmanager
def open_testbed(options: TestbedOptions | None = None) -> Iterator[NamespaceTestbed]:
    """Yield a testbed in namespaces; raise :class:`TestbedError` with the reason if none can be made here."""
    reason = namespaces_refusal()
    if reason is not None:
        raise TestbedError(reason)
    with NamespaceTestbed(options) as testbed:
        yield testbed
