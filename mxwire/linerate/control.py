"""Control messages between a generator and a sink: JSON in RAW packets, repeated until they are answered.

RAW packets carry data between the programs of two hosts (wire format, section 6.1), so generator and sink agree by MXoE
itself, over the interface that is measured, and need no network besides it. Each request has a number, and its reply
repeats the number; a sink that receives a request again repeats its reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import SystemRandom
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.ethernet import BROADCAST, SOURCE, mac_text
from mxwire.link.dialogue import converse
from mxwire.link.errors import LinkError
from mxwire.link.interface import read_interface
from mxwire.link.link import Link
from mxwire.units import MILLISECOND
from mxwire.wire.codec import codec_of
from mxwire.wire.dialect import MXOE
from mxwire.wire.enums import PacketType
from mxwire.wire.layout import TYPE_OFFSET
from mxwire.wire.numbers import RAW_FRAME_MAXIMUM
from mxwire.wire.packets import Raw

MARK: Final = b"mxwire linerate\x001"
"""Begins the contents of a control message; the last character is the version."""
_REPEAT_NS: Final = 100 * MILLISECOND
"""Interval between repetitions of a request."""
_DATA_AT: Final = TYPE_OFFSET + 1
_LONGEST_VERB: Final = 16
_NUMBER_BITS: Final = 64
"""Limits of a received message: a reply repeats both fields and must fit into a frame."""


@dataclass(frozen=True)
class ControlMessage:
    """A request to a sink, or its reply."""

    verb: str
    number: int
    """Number of the request, chosen by its sender."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    reply: bool = False

    def encode(self, destination: bytes, source: bytes) -> bytes:
        """Build the frame of the message. Raises ValueError if it is too long for a RAW packet."""
        content = {"verb": self.verb, "number": self.number, "reply": self.reply, "fields": dict(self.fields)}
        data = MARK + json.dumps(content, separators=(",", ":")).encode()
        if _DATA_AT + len(data) > RAW_FRAME_MAXIMUM:
            raise ValueError(f"a control message has at most {RAW_FRAME_MAXIMUM} bytes, not {_DATA_AT + len(data)}")
        return codec_of(MXOE).build(Raw(dst_mac=destination, src_mac=source, opaque=data))


def decode_control(frame: bytes) -> ControlMessage | None:
    """Return the control message in a frame; None for any other frame."""
    if len(frame) <= _DATA_AT or frame[TYPE_OFFSET] != PacketType.RAW or not frame[_DATA_AT:].startswith(MARK):
        return None
    try:
        content = json.loads(frame[_DATA_AT + len(MARK) :].rstrip(b"\0"))
        verb, number, fields = content["verb"], content["number"], content["fields"]
        reply = content["reply"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not (isinstance(verb, str) and type(number) is int and isinstance(fields, dict) and isinstance(reply, bool)):
        return None
    if len(verb) > _LONGEST_VERB or number.bit_length() > _NUMBER_BITS:
        return None
    return ControlMessage(verb, number, fields, reply)


class SinkUnreachableError(MxwireError):
    """No sink answers."""


@dataclass(frozen=True)
class SinkAddress:
    """A sink that has answered."""

    address: bytes
    fields: Mapping[str, Any]
    """Its description of itself."""

    def __str__(self) -> str:
        """Its name and address."""
        return f"{self.fields.get('host', '?')} ({mac_text(self.address)})"

    def record(self) -> dict[str, Any]:
        """The sink as an object for JSON."""
        return {"address": mac_text(self.address), **self.fields}


class ControlRequest:
    """A request that is repeated until a reply has arrived: a speaker for ``converse``."""

    def __init__(self, message: ControlMessage, own: bytes, destination: bytes) -> None:
        self._message = message
        self._own = own
        self._destination = destination
        self.replies: dict[bytes, Mapping[str, Any]] = {}
        """Fields of the replies by address."""
        self.deadline = 0

    def transmit(self, now: int) -> list[bytes]:
        """Return the request, if it is due."""
        if now < self.deadline:
            return []
        self.deadline = now + _REPEAT_NS
        return [self._message.encode(self._destination, self._own)]

    def receive(self, raw: bytes) -> None:
        """Keep the reply to this request."""
        found = decode_control(raw)
        if found is not None and found.reply and found.number == self._message.number:
            self.replies[raw[SOURCE]] = found.fields

    def done(self) -> dict[bytes, Mapping[str, Any]] | None:
        """Return the replies, if there are any."""
        return self.replies or None


class SinkControl:
    """Requests of one generator, over its link. ``number`` is the number of the first request."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self._number = number

    def _next(self, verb: str, fields: Mapping[str, Any]) -> ControlMessage:
        self._number += 1
        return ControlMessage(verb, self._number, fields)

    def find(self, timeout: float, settle: float = 0.3) -> list[SinkAddress]:
        """Return the sinks that answer a broadcast within ``settle`` seconds of the first answer.

        Raises :class:`SinkUnreachableError` if none answers within ``timeout`` seconds.
        """
        request = ControlRequest(self._next("hello", {}), self._link.address, BROADCAST)
        if converse(self._link, request, request.done, timeout) is None:
            raise SinkUnreachableError(
                f"no sink answers on {self._link.name} within {timeout:g} s: "
                + (
                    _own_fault(self._link)
                    or "start one on the other side (mxwire linerate sink -i IF), or send to an address without one "
                    "(--to MAC --no-sink)"
                )
            )
        # Others may answer later: a generator must not use the fastest sink by chance.
        converse(self._link, request, lambda: None, settle)
        return [SinkAddress(address, fields) for address, fields in sorted(request.replies.items())]

    def ask(self, sink: bytes, verb: str, timeout: float = 5.0, **fields: Any) -> Mapping[str, Any]:
        """Return the fields of a sink's reply.

        Raises :class:`SinkUnreachableError` without a reply in time, and :class:`~mxwire.errors.MxwireError` if the
        sink refuses.
        """
        request = ControlRequest(self._next(verb, fields), self._link.address, sink)
        found = converse(self._link, request, request.done, timeout)
        if found is None:
            why = _own_fault(self._link) or "it has ended, or the path to it is broken"
            raise SinkUnreachableError(f"the sink at {mac_text(sink)} does not answer any more: {why}")
        reply = next(iter(found.values()))
        if "error" in reply:
            raise MxwireError(f"the sink at {mac_text(sink)} refuses: {reply['error']}")
        return reply


def _own_fault(link: Link) -> str:
    """Return the reason why no answer can arrive through a link, if the state of its interface prevents it."""
    try:
        found = read_interface(link.name)
    except LinkError:
        # The interface is gone, or in another network namespace.
        return ""
    if found.address != link.address or (found.up and found.carrier):
        return ""
    remedy = f"set it up (ip link set {link.name} up)" if not found.up else "check its cable and the other side"
    return f"{link.name} {'has no carrier' if found.up else 'is down'}: {remedy}"


def find_sinks(link: Link, addresses: Sequence[bytes], timeout: float) -> tuple[SinkControl, list[SinkAddress]]:
    """Find the sinks with these addresses, by default all that answer, and open the control of their runs.

    Raises :class:`SinkUnreachableError` if one of them, or none at all, answers within ``timeout`` seconds.
    """
    control = SinkControl(link, SystemRandom().randrange(1 << 30))
    if not addresses:
        return control, control.find(timeout)
    found = []
    for address in addresses:
        try:
            found.append(SinkAddress(address, control.ask(address, "hello", timeout)))
        except SinkUnreachableError:
            raise SinkUnreachableError(
                f"no sink answers at {mac_text(address)} within {timeout:g} s: "
                + (_own_fault(link) or "start one there (mxwire linerate sink -i IF), or send without one (--no-sink)")
            ) from None
    return control, found


def find_sink(link: Link, address: bytes | None, timeout: float) -> tuple[SinkControl, SinkAddress]:
    """Find the sink with an address, or the only one on the network, as :func:`find_sinks` does.

    Raises :class:`~mxwire.errors.MxwireError` if several answer.
    """
    control, found = find_sinks(link, () if address is None else (address,), timeout)
    if len(found) > 1:
        names = ", ".join(map(str, found))
        raise MxwireError(f"{len(found)} sinks answer: {names}; choose one with --to MAC")
    return control, found[0]
