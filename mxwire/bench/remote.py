"""Studies between two machines: ``mxwire bench serve`` on one, the study on the other, over the measured interface.

Requests are those of line-rate tests (JSON, repeated until they are answered), but with an EtherType of their own, so
that a host that is measured receives none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import SystemRandom
from typing import Any, Final

from mxwire.bench import machine
from mxwire.bench.channels.channel import SilenceError
from mxwire.bench.processors import placement
from mxwire.bench.record import Conditions, load_average, now_text
from mxwire.bench.stage import PATIENCE, ProcessSide, SideLostError, StageError, StudySide, StudyStage
from mxwire.bench.worker import SideSetup, failure
from mxwire.errors import MxwireError
from mxwire.ethernet import BROADCAST, ETHERTYPE, SOURCE, mac_text
from mxwire.frames import FrameBatch
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
_POLL: Final = 0.02
_KEPT: Final = 64


def _retyped(frame: bytes) -> bytes:
    """A control frame with the EtherType of studies."""
    return frame[: ETHERTYPE.start] + CONTROL_ETHERTYPE.to_bytes(2, "big") + frame[ETHERTYPE.stop :]


class StudyRequest(ControlRequest):
    """A request of a study."""

    def transmit(self, now: int) -> list[bytes]:
        """Return the request, if it is due."""
        return [_retyped(each) for each in super().transmit(now)]


class RemoteSide(StudySide):
    """The passive side, on another machine."""

    def __init__(self, link: Link, address: bytes | None) -> None:
        self._link = link
        self._number = SystemRandom().randrange(1 << 30)
        self.address = address or BROADCAST
        self.about = self._ask("hello", _ANSWERS)
        self._running = False

    def _ask(self, verb: str, timeout: float, **fields: Any) -> Mapping[str, Any]:
        self._number += 1
        message = ControlMessage(f"study {verb}", self._number, fields)
        request = StudyRequest(message, self._link.address, self.address)
        found = converse(self._link, request, request.done, timeout)
        if found is None:
            if self.address == BROADCAST:
                raise StageError(f"no other machine answers on {self._link.name}: start mxwire bench serve -i IF there")
            raise SideLostError(f"the side at {mac_text(self.address)} does not answer")
        if len(found) > 1:
            names = ", ".join(mac_text(each) for each in found)
            raise StageError(f"several machines answer ({names}): choose one with -d MAC")
        self.address, answer = next(iter(found.items()))
        if "error" in answer:
            if answer.get("lost"):
                raise SilenceError(str(answer["error"]))
            raise StageError(f"passive side: {answer['error']}")
        return answer

    def start(self, role: str, parameters: dict[str, Any]) -> None:
        """Begin a role; the answer arrives when its channel is open."""
        self._ask("start", _OPENING, role=role, parameters=parameters, ip=machine.ip_address(self._link.name))

    def ready(self) -> None:
        """Return at once: the answer to the start reported it."""

    def result(self) -> dict[str, Any]:
        """Ask for the result until there is one."""
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._ask("result", _ANSWERS)
            if "result" in answer:
                return dict(answer["result"])
            if time.monotonic() > end:
                raise SideLostError(f"the side at {mac_text(self.address)} has no result within {PATIENCE:g} s")
            time.sleep(_POLL)

    def close(self) -> None:
        """Do nothing: the other machine ends its side when another one is started."""


class RemoteStage(StudyStage):
    """One side here and one on another machine that runs ``mxwire bench serve``.

    ``address`` is its Ethernet address; None: the machine that answers a broadcast. Raises :class:`StageError` if none
    does, and :class:`~mxwire.link.errors.LinkError` if the interface cannot be used.
    """

    def __init__(self, interface: str, address: bytes | None = None) -> None:
        super().__init__()
        self._load, self._time = load_average(), now_text()
        self._interface = interface
        try:
            link = PacketLink.open(interface, ethertype=CONTROL_ETHERTYPE)
            self._held.callback(link.close)
            remote = RemoteSide(link, address)
            self.own = machine.interface_record(interface)
            if remote.about["mtu"] != self.own["mtu"]:
                raise StageError(f"MTU {self.own['mtu']} here and {remote.about['mtu']} there: set the same on both")
            addresses = (self.own["ip"], remote.about["ip"])
            setup = SideSetup(
                interface,
                True,
                processor=placement()[0],
                own=self.own["address"],
                other=remote.address.hex(),
                addresses=None if None in addresses else addresses,
            )
            local = ProcessSide(setup, machine.compiled_folder())
            self._held.callback(local.close)
        except BaseException:
            self.close()
            raise
        self.sides = local, remote
        self._addressed = setup.addresses is not None

    def can_use(self, carrier: str) -> str | None:
        """Return the reason why a carrier cannot be used."""
        if carrier in ("tcp", "udp") and not self._addressed:
            return "both interfaces need an IPv4 address"
        if carrier == "shared memory":
            return "two machines share no memory"
        return xdp_refusal(read_interface(self._interface)) if "xdp" in carrier else None

    @property
    def conditions(self) -> Conditions:
        """The circumstances of this machine."""
        local, own = self.sides[0], self.own
        assert isinstance(local, ProcessSide)
        return Conditions(
            **machine.machine_conditions(),
            time=self._time,
            stage="machines",
            compiled=bool(local.about["compiled"]),
            load=self._load,
            mtu=own["mtu"],
            offloads=tuple(own["offloads"]),
            driver=own["driver"],
            coalescing=own["coalescing"],
            placement=placement()[:1],
        )


class StudyServer:
    """The passive side for studies on other machines, one after the other. ``on_role`` is called with each role."""

    def __init__(self, interface: str, on_role: Callable[[str], object] = lambda _: None) -> None:
        self._interface = interface
        self._link = PacketLink.open(interface, ethertype=CONTROL_ETHERTYPE)
        self._on_role = on_role
        self._side: ProcessSide | None = None
        self._partner: tuple[bytes, str | None] = (b"", None)
        self._replies: dict[tuple[bytes, int], bytes] = {}

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
            except (MxwireError, ValueError, TypeError, KeyError) as error:
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
        if verb == "start":
            role, parameters, ip = str(fields["role"]), dict(fields["parameters"]), fields.get("ip")
            self._on_role(f"{mac_text(source)}: {role} over {parameters.get('carrier')}")
            side = self._side_for(source, ip if isinstance(ip, str) else None)
            try:
                side.start(role, parameters)
                side.ready()
            except SideLostError:
                self._end_side()
                raise
            return {"ready": True}
        if verb == "result" and self._side is not None:
            if self._side.pending:
                return {"pending": True}
            found = self._side.result()
            return {"result": {key: value for key, value in found.items() if key in ("use", "frames", "interval")}}
        raise StageError("there is no role under way")

    def _side_for(self, source: bytes, ip: str | None) -> ProcessSide:
        """The process for a partner; a new one if the last role has not ended, as after an abandoned study."""
        if self._side is not None and (self._partner != (source, ip) or self._side.busy):
            self._end_side()
        if self._side is None:
            own = machine.interface_record(self._interface)
            setup = SideSetup(
                self._interface,
                False,
                processor=placement()[1],
                own=own["address"],
                other=source.hex(),
                addresses=None if ip is None or own["ip"] is None else (own["ip"], ip),
            )
            self._side, self._partner = ProcessSide(setup, machine.compiled_folder()), (source, ip)
        return self._side

    def _end_side(self) -> None:
        if self._side is not None:
            self._side.close()
            self._side = None

    def close(self) -> None:
        """End the side, and close the link."""
        self._end_side()
        self._link.close()
