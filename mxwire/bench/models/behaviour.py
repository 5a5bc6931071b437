"""The cells of tables 1 and 2 of Araki and others (1998), as the behaviour of the models shows them.

Each function plays a model, and returns the value of its row as the facts have it, or another text if the model does
something that no library of the paper does. They are counted, and so the same on every machine: claims on the libraries
are judged by them, and tests compare them with the facts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from mxwire.bench.models.catalogue import MODELS, UNSYNCHRONISED
from mxwire.bench.models.header import ONLY, FrameKind, ModelFrame
from mxwire.bench.models.layer import CallError, CatastropheError, ModelLayer
from mxwire.bench.models.stream import MessageStream, body
from mxwire.bench.models.wire import ModelWire

LIBRARIES: Final = ("gam", "am2", "bip", "fm2", "fm2.1", "pm", "vmmc2")
"""The columns of the paper."""
LONG: Final = 20_000
_STEPS: Final = 400
_TAG: Final = 7


def unannounced(name: str, count: int) -> MessageStream:
    """A stream whose receiver does not announce that it will receive."""
    return MessageStream(UNSYNCHRONISED if name == "bip" else name, count, 512)


def unreceived(stream: MessageStream, steps: int = _STEPS) -> bool:
    """Let the sender make its calls, and the receiver none; return whether the receiver has ever stopped the link."""
    stopped = False
    for each in stream.ports:
        each.start()
    for _ in range(steps):
        stream.step(receiving=False)
        stream.wire.move()
        stopped |= stream.wire.inlets[1].stopped_at is not None or stream.wire.inlets[1].resets > 0
    return stopped


def program_memory(stream: MessageStream) -> bytes:
    """The memory of the receiver's program into which data may be deposited."""
    return bytes(stream.ports[1].program_memory)


def deposited(stream: MessageStream) -> bool:
    """Return whether the first message is in the receiver's program memory."""
    return body(0, stream.size) in program_memory(stream)


def model(name: str) -> str:
    """RPC: each message is answered. Direct deposit: data arrive without a call of the receiver."""
    alone = MessageStream(name, 1, 512)
    unreceived(alone)
    if deposited(alone):
        return "direct deposit"
    stream = MessageStream(name, 3, 512).run()
    if stream.received != [body(number, 512) for number in range(3)]:
        return "nothing is received"
    replies = sum(kind == FrameKind.REPLY for source, _, kind in stream.wire.log if source == 1)
    return "RPC" if replies == 3 else "send/recv"


def transfer(name: str) -> str:
    """Combined: a message announces itself. Separate: only if the sender asks for that. Data only: never."""
    stream = unannounced(name, 1)
    if name == "vmmc2":
        return _separate(stream)
    if unreceived(stream):
        # The program must know that a message comes: otherwise it does not even enter its host.
        return "data only" if MessageStream(name, 1, 512).run().received else "nothing is received"
    stream.run()
    return "combined" if stream.received else "nothing is received"


def _separate(stream: MessageStream) -> str:
    sender, receiver = stream.layers
    notified: list[Any] = []
    receiver.handler = lambda *found: notified.append(found)
    unreceived(stream)
    receiver.poll()
    silent, there = not notified, deposited(stream)
    port: Any = stream.ports[0]
    sender.send(port.imported, 0, memoryview(b"loud"), notify=True)
    stream.wire.run()
    receiver.poll()
    return "separate" if silent and there and notified else "not separate"


def within(name: str) -> bool:
    """A process that does not receive stops the link of its host for all others, or it does not."""
    return not unreceived(unannounced(name, 64))


_FORGED: Final[dict[str, dict[str, Any]]] = {
    "gam": {"kind": FrameKind.REQUEST, "key": 99},
    "am2": {"kind": FrameKind.REQUEST, "key": 99},
    "bip": {"kind": FrameKind.DATA, "place": _TAG, "key": 6, "data": b"forged"},
    "fm2": {"kind": FrameKind.DATA, "place": 99, "data": b"forged"},
    "fm2.1": {"kind": FrameKind.DATA, "place": 99, "data": b"forged"},
    "pm": {"kind": FrameKind.DATA, "key": 99, "data": b"forged"},
    "vmmc2": {"kind": FrameKind.DEPOSIT, "key": 99, "data": b"forged"},
}
"""A frame per library that a partner could not send by its calls, since it lacks the permission."""


def between(name: str) -> bool:
    """A forged frame has no effect, or it reaches the program."""
    layer: Any = MODELS[name].layer(1)
    reached: list[Any] = []
    memory = bytearray(6)
    if name in ("gam", "am2"):
        layer.register(reached.append)
    elif name == "vmmc2":
        layer.export(memoryview(memory))
    layer.take((0, 0), ModelFrame(flags=ONLY, **_FORGED[name]))
    with suppress(CatastropheError):
        match name:
            case "gam" | "am2":
                layer.poll()
            case "bip":
                reached.append(layer.take_short(_TAG))
            case "fm2" | "fm2.1":
                layer.extract()
            case "pm":
                reached.append(layer.receive())
    return not (any(each is not None for each in reached) or layer.catastrophe or any(memory))


def multiprogramming(name: str) -> bool:
    """A second process of a node may use the library, and receives its own messages."""
    layers: list[Any] = [MODELS[name].layer(1), MODELS[name].layer(1, port=1)]
    try:
        wire = ModelWire(layers)
    except CallError:
        return False
    sender = MODELS[name].layer(0)
    wire.attach(sender)
    sender.emit((1, 1), ModelFrame(FrameKind.DATA, ONLY, data=b"for the second process"))
    counts = [each.counts["frames received"] for each in layers]
    for _ in range(4):
        wire.move()
    return bool(layers[1].counts["frames received"] > counts[1])


def overflow(name: str) -> str:
    """The receiver makes no calls while 200 messages are sent, and then receives."""
    stream = MessageStream(name, 200, 64)
    unreceived(stream)
    blocked, (here, there) = stream.sent < 200, stream.layers
    stream.run()
    whole = stream.received == [body(number, 64) for number in range(200)]
    if there.counts["lost"] or there.counts["dropped"]:
        return "data loss"
    if there.counts["nacks"] and whole:
        return "tolerated"
    if blocked and whole:
        return "prevented"
    unlimited = not blocked and not here.catastrophe and not there.counts["refused"] and not stream.catastrophe
    return "impossible" if unlimited and deposited_last(stream) else "neither"


def deposited_last(stream: MessageStream) -> bool:
    """Return whether the last message is in the receiver's program memory."""
    return body(stream.count - 1, stream.size) in program_memory(stream)


def _lossy(name: str) -> MessageStream:
    return MessageStream(name, 300, 64, faults={"loss": 0.03, "seed": 4}).run()


def errors(name: str) -> str:
    """The network loses frames."""
    stream = _lossy(name)
    if stream.received == [body(number, 64) for number in range(300)] and not stream.catastrophe:
        return "tolerated"
    named = any(each.catastrophe.startswith("network error") for each in stream.layers)
    return "catastrophic" if named else "data loss"


def management(name: str) -> str:
    """A node that is not in the table of nodes."""
    layers: list[Any] = [MODELS[name].layer(0), MODELS[name].layer(7)]
    imported: Any = None
    wire = ModelWire(layers)
    for _ in range(20):
        wire.move()
    here, target = layers[0], (7, 0)
    if 7 in here.nodes:
        return "dynamic, full"
    try:
        match name:
            case "gam" | "am2":
                here.request(target, 0)
            case "bip":
                here.send(target, 1, memoryview(b"data"))
            case "fm2" | "fm2.1":
                here.begin_message(target, 4, 0)
            case "pm":
                here.send(target, here.acquire(), 4)
            case _:
                layers[1].export(memoryview(bytearray(4)))
                imported = here.import_buffer(target, 0)
    except CallError:
        return "static"
    wire.run()
    found = imported is not None and imported.length == 4 and 7 in here.nodes
    return "dynamic, on demand" if found else "not at all"


def _long(name: str, *, copied: bool = True) -> MessageStream:
    return MessageStream(name, 4, LONG, copied=copied).run()


def send(name: str) -> str:
    """Long messages from any memory."""
    stream = _long(name)
    here = stream.layers[0]
    if len(stream.received) < 4:
        return "nothing is received"
    if here.written.length >= 4 * LONG:
        return "PIO (WC)"
    if here.transferred.length < 4 * LONG:
        return "not at all"
    return _by_transfer(here, stream.copies()[0])


def receive(name: str) -> str:
    """Long messages to any memory."""
    stream = _long(name)
    there = stream.layers[1]
    if len(stream.received) < 4:
        return "nothing is received"
    if there.transferred.length < 4 * LONG:
        return "not at all"
    return _by_transfer(there, stream.copies()[1])


def _by_transfer(layer: ModelLayer, copies: float) -> str:
    translated = " + v2p" if layer.translated.length >= 4 * LONG else ""
    return f"DMA{translated}{' + copy' if copies else ''}"


def protection(name: str) -> str:
    """The separation of the processes of a node: turns, checked translations, or copies through buffers."""
    if _takes_turns(name):
        return "gang scheduling"
    stream = _long(name)
    here = stream.layers[0]
    if here.translated.length:
        return "v2p" if between(name) else "none"
    copies = here.send_copies.length
    if not copies:
        return "none"
    return "PIO + copy" if copies == here.written.length else "copy"


def _takes_turns(name: str) -> bool:
    """Return whether a process can be switched out, and then takes nothing from the network."""
    stream = MessageStream(name, 1, 64)
    there = stream.layers[1]
    if not hasattr(there, "switch_out"):
        return False
    there.switch_out()
    unreceived(stream, 50)
    return there.receive() is None and there.counts["nacks"] > 0


def reliability(name: str) -> str:
    """Lost frames are retransmitted from copies, or from user memory, or not at all."""
    stream = _lossy(name)
    here = stream.layers[0]
    found = errors(name)
    if found == "catastrophic":
        return "none"
    if found != "tolerated" or not here.counts["retransmitted"]:
        return "neither"
    kept = here.send_copies.length - here.written.length
    return "library + copy" if kept >= 300 * 64 else "firmware" if not here.send_copies.length else "library"


def notification(name: str) -> str:
    """The program is notified when it polls, when it looks at its own memory (n/a), or never."""
    stream = unannounced(name, 1)
    stopped = unreceived(stream)
    port, there = stream.ports[1], stream.layers[1]
    if stopped:
        return "none" if transfer(name) == "data only" else "neither"
    if deposited(stream):
        return "n/a"
    if port.handled or there.counts["catastrophes"]:
        return "interrupt"
    stream.run()
    return "polling" if stream.received else "nothing is received"


_TABLE_1: Final = (model, transfer, within, between, multiprogramming, overflow, errors, management)
_TABLE_2: Final = (send, receive, protection, reliability, notification)
ROWS: Final[dict[str, Callable[[str], Any]]] = {each.__name__: each for each in (*_TABLE_1, *_TABLE_2)}
"""The rows of tables 1 and 2 by the attribute of the facts."""


def looks(senders: int) -> dict[str, float]:
    """Mean number of places at which a receiver looks for the next of ``senders`` messages, by library.

    VMMC has a place per sender, and the others one queue for all of them.
    """
    receiver: Any = MODELS["vmmc2"].layer(0)
    nodes = range(senders + 1)
    places = [receiver.export(memoryview(bytearray(4))) for _ in nodes[1:]]
    layers: list[Any] = [receiver, *(MODELS["vmmc2"].layer(node) for node in nodes[1:])]
    wire = ModelWire(layers)
    imported = [layer.import_buffer((0, 0), place.number) for layer, place in zip(layers[1:], places, strict=True)]
    wire.run()
    count = 0
    for layer, buffer in zip(layers[1:], imported, strict=True):
        layer.send(buffer, 0, memoryview(b"next"))
        wire.run()
        seen = [each.arrived for each in places]
        count += seen.index(1) + 1
        places[seen.index(1)].arrived = 0
    shared: Any = MODELS["pm"].layer(0, nodes=nodes)
    others: list[Any] = [MODELS["pm"].layer(node, nodes=nodes) for node in nodes[1:]]
    wire = ModelWire([shared, *others])
    for layer in others:
        layer.send((0, 0), layer.acquire(), 4)
    wire.run()
    calls = 0
    while shared.receive() is not None:
        calls += 1
    return {"vmmc2": count / senders, "pm": senders / max(calls, 1)}


def copies(name: str, *, copied: bool = True) -> tuple[float, float]:
    """Copies per byte of a long message, at the sender and at the receiver: from and to any memory if ``copied``."""
    return _long(name, copied=copied).copies()


def delivered(name: str, count: int) -> tuple[int, str]:
    """Number of ``count`` messages that arrive through a network which loses 1 % of the frames; the catastrophe."""
    stream = MessageStream(name, count, 64, faults={"loss": 0.01, "seed": 1}).run()
    ends = [each.catastrophe for each in stream.layers if each.catastrophe]
    # The other side then waits without an event.
    return len(stream.received), min(ends, key=lambda each: not each.startswith("network error"), default="")
