"""The conversation: a client that plays the worked examples one after another, and a server that answers and echoes.

Run it as ``python -m tests.live.independent.peer --interface veth0 --name beta:0 --role client --to alpha:0``, from the
root of the repository. It prints one JSON object per line for each event. A deviation from the examples is a line with
``deviation``, ``expected`` and ``found``, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from .endpoint import ANY_LENGTH, Endpoint
from .frames import ETHERTYPE, Codec, Dialect, Unreadable, dialect
from .journal import Journal, Write
from .neighbours import QUERY_INTERVAL, Neighbour, Neighbours
from .partner import Message
from .transport import PacketSocket, Transport

MATCH = 0x0001000200030004
PATIENCE = 10.0
"""Seconds that every step may take."""
LINGER = 0.1
"""Seconds without a frame until a conversation counts as over."""
FOREIGN_REGION = 200
UNUSED_HANDLE = 0x3FC00023
QUIET = ("PULL_REPLY", "MEDIUM")
"""Packets that are too numerous for a line each."""


@dataclass(frozen=True)
class Settings:
    """The properties of this host."""

    name: str
    mac: bytes
    spoken: Dialect
    endpoint: int = 0
    key: int = 0x12345678
    session: int = 0x11112222
    serial: int = 0x2DACB56D
    first_place: int = 3
    """In our peer table, for the first other host."""
    noise: int = 0xA5
    """In every undefined byte."""
    region_offset: int = 0
    """The offset in their regions at which large messages begin, as with native MX."""
    receive_limit: int = ANY_LENGTH
    """Maximum length in bytes that is pulled of a large message."""
    announcing: bool = True
    """False for a host that finds others in a static table only."""
    listening_first: bool = False
    """True if it first waits for another host to announce itself."""
    connects_back: bool = True
    provoked: bool = False
    """True if the other side is going to send frames that must be refused, or queries that no host would send."""
    fresh: bool = True
    """True if the other endpoint was opened for this host, and has sent nothing before."""


class Peer:
    """A host with one endpoint on a transport."""

    def __init__(self, transport: Transport, settings: Settings, write: Write) -> None:
        self._transport = transport
        self._settings = settings
        self._codec = Codec(settings.spoken, settings.noise)
        self.journal = Journal(write)
        self.neighbours = Neighbours(
            settings.mac,
            settings.name,
            settings.serial,
            settings.first_place,
            settings.announcing,
            settings.provoked,
            self._send,
            self.journal,
            settings.listening_first,
        )
        self.endpoint = Endpoint(
            self._send,
            transport.now,
            self.neighbours,
            self.journal,
            settings.spoken,
            number=settings.endpoint,
            key=settings.key,
            session=settings.session,
            region_offset=settings.region_offset,
            receive_limit=settings.receive_limit,
            connects_back=settings.connects_back,
            provoked=settings.provoked,
            fresh=settings.fresh,
        )

    # --- frames and time

    def run_until(self, done: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Work until ``done`` is true; return False if it is not within ``seconds``."""
        deadline = self._transport.now() + seconds
        while not done():
            now = self._transport.now()
            due = min(self.neighbours.on_time(now), self.endpoint.on_time(now), deadline)
            if done():
                break
            if now >= deadline:
                return False
            raw = self._transport.receive(max(0.0, due - now))
            if raw is not None:
                self._take(raw)
        return True

    def _send(self, kind: str, to: bytes, data: bytes = b"", **fields: Any) -> None:
        self._transport.send(self._codec.build(kind, {"dst_mac": to, "src_mac": self._settings.mac, **fields}, data))

    def _take(self, raw: bytes) -> None:
        try:
            frame = self._codec.read(raw)
        except Unreadable as why:
            self.journal.deviation("frame", "a packet of the dialect", f"{why}: {raw[:64].hex()}")
            return
        if frame.kind not in QUIET:
            self.journal.saw(frame)
        self.journal.expect(f"length of the {frame.kind} frame", self._codec.proper_length(frame), frame.length)
        self.journal.expect_fields(frame, ethertype=ETHERTYPE, **self._codec.constants(frame.kind))
        if frame.kind == "RAW":
            self.neighbours.on_announcement(frame, self._transport.now())
        elif frame.kind == "HOST_QUERY":
            self.neighbours.on_query(frame)
        elif frame.kind == "HOST_REPLY":
            self.neighbours.on_reply(frame)
        else:
            self.endpoint.handle(frame)

    def _wait(self, what: str, done: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        if self.run_until(done, seconds):
            return True
        self.journal.deviation("waiting", what, f"nothing within {seconds} s")
        return False

    # --- steps of both roles

    def discover(self, name: str, seconds: float = PATIENCE) -> Neighbour:
        """Announce this host until the other has announced its name and queried this one; raises :class:`Missing`."""
        found = self._wait(f"a host that calls itself {name}", lambda: self.neighbours.named(name) is not None, seconds)
        if not found:
            raise Missing
        host = self.neighbours.named(name)
        assert host is not None
        if self._settings.announcing:
            # Its first query is dropped if it came before its announcement; the next one follows 5 s later.
            self._wait("a HOST_QUERY for our name", lambda: host.has_asked, QUERY_INTERVAL + PATIENCE)
        self.journal.note("discovered", name=host.name, mac=host.mac, index=host.index)
        return host

    def finish(self) -> None:
        """Wait until nothing is left to be acked and the other side is silent."""
        self._wait("acks of everything", lambda: self.endpoint.settled)
        self.endpoint.line.acknowledge_now()
        self.run_until(lambda: False, LINGER)
        self.endpoint.line.acknowledge_now()
        self._wait("acks of everything", lambda: self.endpoint.settled)

    # --- the client

    def connect(self, host: Neighbour, endpoint: int, key: int, expected: str = "status 0") -> None:
        """Section 2; raises :class:`Missing` if there is no answer."""
        with self._provoking(expected.startswith("nack")):
            request = self.endpoint.connect(host, endpoint, key)
            if not self._wait("an answer to the CONNECT request", lambda: request.answer is not None):
                raise Missing
            nacks = [f"LIB {expected[-1]} 0"] if expected.startswith("nack") else []
            self.journal.expect("nacks of the CONNECT request", nacks, self.endpoint.nacks)
        self.journal.expect("answer to the CONNECT request", expected, request.answer)
        self.journal.note("connected", answer=request.answer, transmissions=request.times)

    def send(self, message: Message, echo: bool) -> None:
        """Send one message, wait until it is acked (and pulled), and for its echo."""
        self.journal.note("sending", bytes=len(message.data), synchronous=message.synchronous)
        self.endpoint.send(message)
        self._wait(f"an ack of {len(message.data)} bytes", lambda: self.endpoint.settled)
        if not echo:
            return
        if self._wait(f"an echo of {len(message.data)} bytes", lambda: bool(self.endpoint.inbox)):
            self._compare(message, self.endpoint.inbox.pop(0))

    def send_stale(self) -> None:
        """A message with a session that the endpoint does not have (section 9)."""
        with self._provoking():
            number = self.endpoint.send_with_session(Message(MATCH, b"stale"), 0xDEADBEEF)
            self._wait("NACK_LIB 3", lambda: bool(self.endpoint.nacks))
            self.journal.expect("nacks of a wrong session", [f"LIB 3 {number}"], self.endpoint.nacks)

    def pull_stale(self) -> None:
        """A PULL for a region that does not exist (section 9)."""
        with self._provoking():
            self.endpoint.pull_from_nowhere(FOREIGN_REGION, UNUSED_HANDLE)
            self._wait("NACK_MCP 4", lambda: bool(self.endpoint.nacks))
            self.journal.expect("nacks of an unknown region", [f"MCP 4 {UNUSED_HANDLE:#x}"], self.endpoint.nacks)

    @contextmanager
    def _provoking(self, really: bool = True) -> Iterator[None]:
        """The nacks received in this time are the expected result."""
        self.endpoint.line.provoking = really or self._settings.provoked
        try:
            yield
        finally:
            self.endpoint.line.provoking = self._settings.provoked
            self.endpoint.nacks.clear()

    def _compare(self, sent: Message, received: Message) -> None:
        self.journal.expect("match information of the echo", f"{sent.match:#018x}", f"{received.match:#018x}")
        self.journal.expect("messages that the echo leaves unacked", 0, received.unacked)
        self.journal.expect("bytes of the echo", len(sent.data), len(received.data))
        self.journal.expect("the echo is what was sent", True, sent.data == received.data)
        self.journal.note("echoed", bytes=len(received.data))

    # --- the server

    def serve(self, messages: int, seconds: float, echo: bool = True) -> None:
        """Take ``messages`` messages, and send each back; ``seconds`` is the longest silence."""
        for number in range(messages):
            if not self._wait(f"message {number + 1} of {messages}", lambda: bool(self.endpoint.inbox), seconds):
                break
            message = self.endpoint.inbox.pop(0)
            digest = hashlib.sha256(message.data).hexdigest()
            match = f"{message.match:#018x}"
            self.journal.note("received", bytes=len(message.data), match=match, digest=digest)
            if echo:
                self.endpoint.send(message)
        self.finish()

    def listen(self) -> None:
        """Answer requests until a SIGTERM."""
        ended: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
        while not ended:
            self.run_until(lambda: bool(ended), LINGER)


class Missing(Exception):
    """The other side does not answer, which is recorded as a deviation; the remaining steps cannot be played."""


@cache
def content(length: int) -> bytes:
    """Bytes that differ from place to place, so that a piece in a wrong place is seen."""
    return random.Random(length).randbytes(length)


def messages() -> dict[str, Message]:
    """One message of each kind, the sizes being those of the examples."""
    return {
        "tiny": Message(MATCH, b"hello"),
        "empty": Message(MATCH, b""),
        "small": Message(MATCH, bytes(range(40))),
        "medium": Message(MATCH, content(10000)),
        "large": Message(MATCH, content(100000)),
        "huge": Message(MATCH, content(1 << 20)),
        "synchronous": Message(MATCH, b"hello", synchronous=True),
        "synchronous-empty": Message(MATCH, b"", synchronous=True),
    }


REFUSED = ("wrong-key", "closed", "beyond")
"""Connects that must fail."""
STALE = ("stale-session", "stale-region")
STEPS = (*REFUSED, *messages(), *STALE)
DEFAULT_STEPS = (*REFUSED, "tiny", "empty", "small", "medium", "large", "huge", "synchronous", "synchronous-empty")


def play_client(
    peer: Peer,
    to: str,
    endpoint: int,
    key: int,
    steps: Sequence[str] = DEFAULT_STEPS,
    echo: bool = True,
    patience: float = PATIENCE,
) -> None:
    """The whole conversation of the client; ``patience`` is for finding the other host."""
    host = peer.discover(to, patience)
    for step in [each for each in steps if each in REFUSED]:
        play_refused(peer, host, endpoint, key, step)
    peer.connect(host, endpoint, key)
    for step in [each for each in steps if each not in REFUSED]:
        if step in STALE:
            (peer.send_stale if step == "stale-session" else peer.pull_stale)()
        else:
            peer.send(messages()[step], echo)
    peer.finish()


def play_refused(peer: Peer, host: Neighbour, endpoint: int, key: int, step: str) -> None:
    """A connect that fails: another key, a closed endpoint, one that no host has."""
    if step == "wrong-key":
        peer.connect(host, endpoint, key ^ 1, "status 11")
    elif step == "closed":
        peer.connect(host, endpoint ^ 31, key, "nack 2")
    else:
        peer.connect(host, 40, key, "nack 1")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    given = _options().parse_args(arguments)
    transport = PacketSocket(given.interface)
    settings = Settings(
        given.name,
        transport.mac,
        dialect(given.dialect),
        endpoint=given.endpoint,
        first_place=given.first_place,
        key=given.key,
        session=random.SystemRandom().randrange(1, 0xFFFFFFFF),
        serial=random.SystemRandom().randrange(1 << 32),
        noise=given.noise,
        region_offset=given.region_offset,
        announcing=not given.static,
        listening_first=given.listen_first,
        provoked=given.provoked,
        fresh=given.fresh,
    )
    peer = Peer(transport, settings, lambda entry: print(json.dumps(entry), flush=True))
    for each in given.static:
        mac, _, name = each.partition("=")
        peer.neighbours.add(bytes.fromhex(mac.replace(":", "")), name)
    peer.journal.note("ready", mac=transport.mac, name=given.name, dialect=given.dialect)
    try:
        if given.role == "server":
            peer.serve(given.messages, given.patience, given.echo)
        elif given.role == "listener":
            peer.listen()
        else:
            play_client(peer, given.to, given.to_endpoint, given.key, given.steps, given.echo, given.patience)
    except Missing:
        pass
    peer.journal.note("end", deviations=len(peer.journal.deviations), resent=peer.endpoint.line.resent)
    return 1 if peer.journal.deviations else 0


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--interface", required=True)
    options.add_argument("--name", required=True, help="our host name, such as beta:0")
    options.add_argument("--role", choices=("client", "server", "listener"), required=True)
    options.add_argument("--dialect", default="mxoe", help="mxoe or omx:M (default: mxoe)")
    options.add_argument("--endpoint", type=int, default=0, help="our own")
    options.add_argument("--key", type=lambda text: int(text, 0), default=0x12345678)
    options.add_argument("--to", help="name of the host that a client talks to")
    options.add_argument("--to-endpoint", type=int, default=0)
    options.add_argument(
        "--steps", type=lambda text: text.split(","), default=list(DEFAULT_STEPS), help=",".join(STEPS)
    )
    options.add_argument("--first-place", type=int, default=3, help="of another host in our peer table")
    options.add_argument("--no-echo", dest="echo", action="store_false", help="messages are not sent back")
    options.add_argument("--messages", type=int, default=8, help="how many a server takes before it ends")
    options.add_argument(
        "--patience", type=float, default=30.0, help="longest silence of a server, or search of a client, in seconds"
    )
    options.add_argument("--listen-first", action="store_true", help="first wait for another host")
    options.add_argument("--static", action="append", default=[], metavar="MAC=NAME", help="no discovery: these hosts")
    options.add_argument("--provoked", action="store_true", help="the other side sends what must be refused")
    options.add_argument(
        "--used", dest="fresh", action="store_false", help="the other endpoint has had partners before"
    )
    options.add_argument("--noise", type=lambda text: int(text, 0), default=0xA5, help="value of undefined bytes")
    options.add_argument("--region-offset", type=int, default=0, help="where in its region a large message begins")
    return options


if __name__ == "__main__":
    sys.exit(main())
