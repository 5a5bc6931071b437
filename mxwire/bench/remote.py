"""Studies between two machines: ``mxwire bench serve`` on one, the study on the other, over the measured interface.

Requests are those of line-rate tests (JSON, repeated until they are answered), but with an EtherType of their own, so
that a host that is measured receives none of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from mxwire.bench.channels.carriers import is_host, mtu_refusal
from mxwire.bench.errors import SilenceError
from mxwire.bench.imb.rank import MODULE, setup_of
from mxwire.bench.record import Conditions
from mxwire.bench.testbed import ProcessSide, SideLostError, StudySide, StudyTestbed, TestbedError
from mxwire.bench.worker import SideSetup, failure
from mxwire.errors import MxwireError
from mxwire.ethernet import BROADCAST, ETHERTYPE, SOURCE, mac_text
from mxwire.frames import FrameBatch
from mxwire.lab import machine
from mxwire.lab.machine import placement
from mxwire.linerate.control import ControlMessage, ControlRequest, decode_control
from mxwire.link import Link, PacketLink
from mxwire.link.dialogue import converse
from mxwire.link.interface import read_interface
from mxwire.link.xdp import xdp_refusal

CONTROL_ETHERTYPE: Final = 0x88B5
"""EtherType of requests: the first for local experiments."""
_ANSWERS: Final = 5.0
"""Seconds for an answer to a request that needs no work."""
_OPENING: Final = 30.0
_CLOSING: Final = 1.0
_POLL: Final = 0.02
_KEPT: Final = 64
_SIDE: Final = "side"
RANK: Final = "rank"
"""Kinds of processes that a machine starts for others."""
_RANK_ROLES: Final = ("connect", "measure")
"""Roles of a rank that another machine may start: the others open interfaces and start agents."""
_RETURNED: Final = ("use", "frames", "interval", "times")
"""Values of a role that are returned: those that fit into a frame."""
_STUDY: Final = SystemRandom().randrange(1 << 30)
"""Identifies the studies of this process: a study of another process ends the processes left by this one."""


def _retyped(frame: bytes) -> bytes:
    """A control frame with the EtherType of studies."""
    return frame[: ETHERTYPE.start] + CONTROL_ETHERTYPE.to_bytes(2, "big") + frame[ETHERTYPE.stop :]


class StudyRequest(ControlRequest):
    """A request of a study."""

    def transmit(self, now: int) -> list[bytes]:
        """Return the request, if it is due."""
        return [_retyped(each) for each in super().transmit(now)]


class RemoteMachine:
    """The conversation with a machine that runs ``mxwire bench serve``; ``address`` None: the one that answers."""

    def __init__(self, link: Link, address: bytes | None) -> None:
        self._link = link
        # Random, since the other machine repeats its reply to a number that it has already answered.
        self._number = SystemRandom().randrange(1 << 30)
        self.address = address or BROADCAST
        self.about = self.ask("hello")

    def ask(self, verb: str, timeout: float = _ANSWERS, **fields: Any) -> Mapping[str, Any]:
        """Send a request, and return the fields of its answer.

        Raises :class:`~mxwire.bench.testbed.SideLostError` without one, :class:`TestbedError` with the other machine's
        error, and :class:`~mxwire.bench.errors.SilenceError` if messages were lost there.
        """
        self._number += 1
        message = ControlMessage(f"study {verb}", self._number, {"study": _STUDY} | fields)
        request = StudyRequest(message, self._link.address, self.address)
        found = converse(self._link, request, request.done, timeout)
        if found is None:
            if self.address == BROADCAST:
                raise TestbedError(
                    f"no other machine answers on {self._link.name}: start mxwire bench serve -i IF there"
                )
            raise SideLostError(f"the side at {mac_text(self.address)} does not answer")
        if len(found) > 1:
            names = ", ".join(mac_text(each) for each in found)
            raise TestbedError(f"several machines answer ({names}): choose one with -d MAC")
        self.address, answer = next(iter(found.items()))
        if "error" in answer:
            if answer.get("lost"):
                raise SilenceError(str(answer["error"]))
            raise TestbedError(f"passive side: {answer['error']}")
        return answer


class RemoteSide(StudySide):
    """A side on another machine: a process that it starts with a setup, if there is none with the same one."""

    def __init__(self, machine: RemoteMachine, kind: str, setup: dict[str, Any], *, interpreted: bool = False) -> None:
        self._machine = machine
        self._process = {"kind": kind, "setup": setup, "interpreted": interpreted}
        self._started = False
        self.name = f"the remote {kind}'s"

    def _begin(self, role: str, parameters: dict[str, Any]) -> None:
        self._started = True
        self._machine.ask("start", _OPENING, process=self._process, role=role, parameters=parameters)

    def _next(self, timeout: float) -> dict[str, Any]:
        """Request the result until it is available; the answer to the start has reported the open channel."""
        end = time.monotonic() + timeout
        while self._opened:
            answer = self._machine.ask("result", process=self._process)
            if "result" in answer:
                return dict(answer)
            if time.monotonic() > end:
                address = mac_text(self._machine.address)
                raise SideLostError(f"the side at {address} has no result within {timeout:g} s")
            # Requests pass through the measured interface: they must be few.
            time.sleep(_POLL)
        return {"ready": True}

    def close(self) -> None:
        """End the process; one that cannot be reached ends when the next study begins there."""
        if self._started:
            self._started = False
            with suppress(MxwireError):
                self._machine.ask("end", _CLOSING, process=self._process)


class RemoteTestbed(StudyTestbed):
    """One side here and one on another machine that runs ``mxwire bench serve``.

    ``address`` is its Ethernet address; None: the machine that answers a broadcast. ``package`` is the folder with the
    mxwire that the local side runs; if it is the interpreted one of this process, so is that of the other side. Raises
    :class:`TestbedError` if no machine answers, and :class:`~mxwire.link.errors.LinkError` if the interface cannot be
    used.
    """

    def __init__(self, interface: str, address: bytes | None = None, package: Path | None = None) -> None:
        super().__init__()
        self._interface = interface
        self._package = package
        try:
            link = PacketLink.open(interface, ethertype=CONTROL_ETHERTYPE)
            self._held.callback(link.close)
            self._machine = RemoteMachine(link, address)
            self.own, self.about = machine.interface_record(interface), self._machine.about
            if self.about["mtu"] != self.own["mtu"]:
                raise TestbedError(f"MTU {self.own['mtu']} here and {self.about['mtu']} there: set the same on both")
            self._addressed = None not in (self.own["ip"], self.about["ip"])
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        addresses = (self.own["ip"], self.about["ip"]) if self._addressed else None
        setup = SideSetup(
            self._interface,
            True,
            processor=placement()[0],
            card_processor=placement()[1],
            own=self.own["address"],
            other=self._machine.address.hex(),
            addresses=addresses,
        )
        local = ProcessSide(setup, self._package)
        self._held.callback(local.close)
        self.compiled = bool(local.about["compiled"])
        theirs = {"other": self.own["address"], "addresses": None if addresses is None else addresses[::-1]}
        self.sides = local, self._remote(_SIDE, theirs)

    def _remote(self, kind: str, setup: dict[str, Any]) -> RemoteSide:
        interpreted = self._package is not None and self._package == machine.own_folder()
        side = RemoteSide(self._machine, kind, setup, interpreted=interpreted)
        self._held.callback(side.close)
        return side

    def can_use(self, carrier: str) -> str | None:
        """Return the reason why a carrier cannot be used."""
        if carrier in ("tcp", "udp") and not self._addressed:
            return "both interfaces need an IPv4 address"
        if carrier == "shared memory":
            return "two machines share no memory"
        refusal = mtu_refusal(carrier, self.own["mtu"]) if is_host(carrier) else None
        if refusal is not None:
            return refusal
        return xdp_refusal(read_interface(self._interface)) if "xdp" in carrier else None

    @property
    def conditions(self) -> Conditions:
        """The circumstances of this machine."""
        return self._conditions("machines", self.own, placement=placement()[:1])


class StudyServer:
    """The passive side for studies on other machines, one after another. ``on_role`` is called with each role."""

    def __init__(self, interface: str, on_role: Callable[[str], object] = lambda _: None) -> None:
        self._interface = interface
        self._link = PacketLink.open(interface, ethertype=CONTROL_ETHERTYPE)
        self._on_role = on_role
        self._sides: dict[str, ProcessSide] = {}
        """Processes of the study under way, by their description."""
        self._study: tuple[bytes, Any] = (b"", None)
        self._replies: dict[tuple[bytes, int], bytes] = {}
        self.studies = self.roles = 0
        """Number of studies and of their roles so far."""

    def step(self, timeout: float) -> None:
        """Answer the requests that arrive within ``timeout`` seconds.

        Raises :class:`~mxwire.link.errors.LinkError` if the interface is gone.
        """
        batch = self._link.receive(timeout)
        for frame in [batch.frame(place) for place in range(len(batch))]:
            message = decode_control(frame)
            if message is not None and not message.reply and message.verb.startswith("study "):
                self._reply(frame[SOURCE], message)

    def _reply(self, source: bytes, message: ControlMessage) -> None:
        key = source, message.number
        frame = self._replies.get(key)
        if frame is None:
            try:
                fields = self._answer(source, message.verb.removeprefix("study "), message.fields)
            except (MxwireError, ValueError, TypeError, LookupError, AttributeError) as error:
                fields = failure(error)
                fields.pop("trace", None)
            reply = ControlMessage(message.verb, message.number, fields, reply=True)
            try:
                frame = _retyped(reply.encode(source, self._link.address))
            except ValueError as error:
                reply = ControlMessage(message.verb, message.number, {"error": str(error)}, reply=True)
                frame = _retyped(reply.encode(source, self._link.address))
            self._replies[key] = frame
            while len(self._replies) > _KEPT:
                del self._replies[next(iter(self._replies))]
        self._link.send(FrameBatch.from_frames([frame]))

    def _answer(self, source: bytes, verb: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        if verb == "hello":
            return machine.interface_record(self._interface)
        if self._study != (source, fields["study"]):
            self._end_sides()
            self._study = source, fields["study"]
            self.studies += 1
        process = fields["process"]
        key = json.dumps(process, sort_keys=True)
        if verb == "start":
            role, parameters = str(fields["role"]), dict(fields["parameters"])
            if process["kind"] == RANK and role not in _RANK_ROLES:
                raise TestbedError(f"no role {role!r} for a rank of another machine: use {', '.join(_RANK_ROLES)}")
            self.roles += 1
            self._on_role(f"{mac_text(source)}: {_described(role, parameters)}")
            if key in self._sides and self._sides[key].busy:
                # Its last role was abandoned.
                self._sides.pop(key).close()
            if key not in self._sides:
                self._sides[key] = self._opened(process)
            side = self._sides[key]
            try:
                side.start(role, parameters)
                side.ready()
            except SideLostError:
                self._sides.pop(key).close()
                raise
            return {"ready": True}
        if verb == "end":
            if key in self._sides:
                self._sides.pop(key).close()
            return {"ended": True}
        if verb == "result" and key in self._sides:
            if self._sides[key].pending:
                return {"pending": True}
            result = self._sides[key].result()
            if "times" in result:
                # A frame has no room for individual times, and only their mean is used.
                result["times"] = [round(sum(result["times"]) / len(result["times"]))]
            return {"result": {key: value for key, value in result.items() if key in _RETURNED}}
        raise TestbedError("no role is running")

    def _opened(self, process: Mapping[str, Any]) -> ProcessSide:
        """Start a process: a side of a study, or a rank."""
        given, interpreted = dict(process["setup"]), bool(process["interpreted"])
        package = machine.own_folder() if interpreted else machine.compiled_folder()
        if process["kind"] == _SIDE:
            own = machine.interface_record(self._interface)["address"]
            addresses = given["addresses"]
            setup = SideSetup(
                self._interface,
                False,
                processor=placement()[1],
                card_processor=placement()[0],
                own=own,
                other=str(given["other"]),
                addresses=None if addresses is None else (str(addresses[0]), str(addresses[1])),
            )
            return ProcessSide(setup, package)
        rank = replace(setup_of(given), interface=self._interface, namespace=None, agent=False)
        processors = placement(rank.size)
        rank = replace(rank, processor=processors[rank.places[rank.rank][2]])
        return ProcessSide(rank, package, MODULE, f"rank {rank.rank}'s")

    def _end_sides(self) -> None:
        for each in self._sides.values():
            each.close()
        self._sides.clear()

    def close(self) -> None:
        """End the sides, and close the link."""
        self._end_sides()
        self._link.close()


def _described(role: str, parameters: Mapping[str, Any]) -> str:
    """A role in words."""
    if "benchmark" in parameters:
        return f"{parameters['benchmark']}, {parameters.get('length')} bytes"
    return f"{role} over {parameters['carrier']}" if "carrier" in parameters else role
