"""The application's side of a channel to an agent: a node with the peers of the agent, by their indexes.

``records.py`` describes the records. There are two such nodes: the endpoints of one are in the agent (``attached.py``),
those of the other only have their card's side there (``attached_card.py``). A call whose result the application needs
at once (an open, a probe, a cancellation) waits for the agent's answer, by ``wait``, which the caller of the node
provides.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final, Protocol

import numpy as np

from mxwire.errors import InvalidRecordError, MxwireError
from mxwire.protocol.agent.records import (
    AGENT_HEAD_SIZE,
    AGENT_VERSION,
    INLINE_MAXIMUM,
    PLACE,
    TOKEN,
    AgentEndedError,
    AgentHead,
    AgentRecord,
    AgentRefusalError,
    RecordFlag,
    RecordOutbox,
)
from mxwire.protocol.agent.tokens import MOVE_MAXIMUM
from mxwire.protocol.arguments import Segments, ethernet_address
from mxwire.protocol.local_channel import LocalChannel, LocalPath
from mxwire.protocol.node import Node
from mxwire.protocol.peers import Peer
from mxwire.protocol.profile import OPEN_MX_1_5, Profile, profile_by_name
from mxwire.protocol.status import EventKind, LocalProtocolError, Status
from mxwire.wire.dialect import as_dialect
from mxwire.wire.numbers import NO_PEER_INDEX

_MOVES: Final = 8
"""Maximum number of unanswered records that move data of one call."""
_RECORDS: Final = 4096
"""Maximum number of records taken before the caller of the node has its turn."""


class AgentFacts:
    """The properties of an agent's host, as the agent describes them.

    Raises :class:`~mxwire.errors.InvalidRecordError` for a description of another form.
    """

    __slots__ = ("addresses", "dialect", "interfaces", "mtus", "name", "profile", "version")

    def __init__(self, data: bytes) -> None:
        try:
            facts = json.loads(data)
            self.version = str(facts["version"])
            self.name = str(facts["name"])
            """Host name without the number of an interface."""
            self.interfaces = [str(each) for each in facts["interfaces"]]
            self.addresses = [ethernet_address(bytes.fromhex(each)) for each in facts["addresses"]]
            self.mtus = [int(each) for each in facts["mtus"]]
            self.dialect = as_dialect(str(facts["dialect"]))
            self.profile: Profile = _profile(str(facts["profile"]))
        except (ValueError, KeyError, TypeError, MxwireError) as error:
            raise InvalidRecordError(f"the agent describes itself in another form: {error!r}") from None
        if not len(self.interfaces) == len(self.addresses) == len(self.mtus) or not self.interfaces:
            raise InvalidRecordError("the agent describes its interfaces incompletely")


def _profile(name: str) -> Profile:
    try:
        return profile_by_name(name)
    except MxwireError:
        # A profile that a program of the agent has made: the application uses only its limits.
        return OPEN_MX_1_5


class AgentIndexes:
    """The indexes of peers, which the agent chooses: the :class:`~mxwire.protocol.peers.Sharing` of a node that is
    attached to it."""

    def __init__(self) -> None:
        self.indexes: dict[bytes, int] = {}

    def place_of(self, address: bytes) -> int | None:
        """The index that the agent has reported."""
        return self.indexes.get(address)

    def leave(self, address: bytes) -> None:
        """Forget a peer."""
        self.indexes.pop(address, None)

    def index_of(self, address: bytes) -> int | None:
        """None: all peers of the agent are in the table of the node."""
        return None

    def address_at(self, index: int) -> bytes | None:
        """None: all peers of the agent are in the table of the node."""
        return None

    def news(self) -> Sequence[bytes]:
        """No addresses: the agent reports new peers."""
        return ()

    def name_of(self, address: bytes) -> str | None:
        """None: the agent reports the names."""
        return None

    def learn(self, address: bytes, name: str | None) -> None:
        """Do nothing: the agent learns the names."""

    def may_query(self, interface: int, address: bytes, now: int, interval: int) -> bool:
        """False: the agent queries."""
        return False

    def elsewhere(self, interface: int, endpoint: int) -> bool:
        """False: no frame arrives here."""
        return False

    def speaks(self, interface: int) -> bool:
        """False: the agent answers for the interface."""
        return False


def _ignore_end(_: AgentEndedError) -> None:
    """Do nothing: there is no host yet."""


class AgentSide(Protocol):
    """An endpoint that has its other side at the agent."""

    handle: int
    """Handle of the other side."""

    def take_record(self, head: AgentHead, data: bytes | memoryview) -> None:
        """Take a record that concerns this endpoint."""


class AgentNode(Node):
    """A node whose endpoints have their other side at an agent, behind ``channel``.

    ``wait`` returns when the channel has records or has ended, and raises an error if the agent does not answer;
    ``agent`` names the agent in errors. ``path`` is required for messages to other nodes of this host, unless the agent
    passes them on. Raises :class:`~mxwire.protocol.status.LocalProtocolError` if the agent refuses, for example because
    its version is another one.
    """

    def __init__(
        self,
        channel: LocalChannel,
        wait: Callable[[], None],
        agent: str,
        *,
        path: LocalPath | None = None,
        rng: Random | None = None,
    ) -> None:
        self.ended = False
        """True if the agent has ended, or the host has left it."""
        self.channel = channel
        self.out = RecordOutbox(channel)
        """Records for the agent."""
        self.wait = wait
        self.on_end: Callable[[AgentEndedError], object] = _ignore_end
        """Called before a question raises the error, so that the host ends with it."""
        self.agent = agent
        self._shared: list[tuple[int, int]] = []
        """Address and length of memory that the agent has mapped too."""
        self.in_place = False
        """True if the agent can access the memory of this process."""
        # The number of the first question is the version, which the answer repeats.
        self._numbers = AGENT_VERSION - 1
        self._answers: dict[int, tuple[AgentHead, bytes]] = {}
        self._early: list[tuple[AgentHead, bytes]] = []
        """Peers that were reported before the node was complete, and records of endpoints that are being opened."""
        self._sides: dict[int, AgentSide] = {}
        """The open endpoints by handle."""
        self._handle = 0
        """The newest handle."""
        self._news = False
        """True if records were taken outside of :meth:`receive_local`, whose effects the caller has not seen."""
        self._complete = False
        self._indexes = AgentIndexes()
        self.facts = self._attach_to_agent()
        facts = self.facts
        # The constructor of the node enters the interfaces of the agent, with the indexes that have just been reported.
        for head, _ in self._early:
            self._indexes.indexes[head.address] = head.number
        super().__init__(
            facts.addresses,
            facts.name,
            dialect=facts.dialect,
            profile=facts.profile,
            rng=Random(0) if rng is None else rng,
            sharing=self._indexes,
            path=path,
            report_completed=False,
        )
        self._complete = True
        for head, data in self._early:
            self._take_peer(head, data)
        self._early.clear()

    def _attach_to_agent(self) -> AgentFacts:
        number = self.next_number()
        self.out.put(AgentRecord.ATTACH, number=number)
        answer, data = self._answer_to(number)
        self.in_place = bool(answer.flags & RecordFlag.IN_PLACE)
        return AgentFacts(data)

    def describe(self, memory: Segments) -> bytes:
        """Addresses and lengths of the segments of a long message, for the agent; empty if it cannot access them."""
        return b"" if memory.length <= INLINE_MAXIMUM else self._describe(memory)

    def _describe(self, memory: Segments) -> bytes:
        if not (self.in_place or self._shared):
            return b""
        places = memory.places()
        if not self.in_place and not (len(places) == 1 and self._is_shared(*places[0])):
            return b""
        return b"".join(PLACE.pack(*each) for each in places)

    def put_message(
        self,
        kind: AgentRecord,
        memory: Segments,
        length: int,
        *,
        flags: int = 0,
        handle: int,
        number: int,
        partner: int,
        match_info: int = 0,
        mask: int = 0,
        extra: int = 0,
        kept: bool = True,
    ) -> None:
        """Append a record with the content of ``memory``: within the record, in DATA records before it, or, if the
        memory is ``kept``, in place."""
        places = self.describe(memory) if kept else b""
        inline = memory.length <= INLINE_MAXIMUM
        if places:
            flags |= RecordFlag.IN_PLACE
        elif inline:
            flags |= RecordFlag.DATA
        else:
            self.out.put_data(handle, number, memory, memory.length)
        self.out.put(
            kind,
            flags=flags,
            handle=handle,
            number=number,
            partner=partner,
            match_info=match_info,
            mask=mask,
            length=length,
            extra=extra,
            data=memory.copy() if inline else places,
        )

    def _is_shared(self, place: int, size: int) -> bool:
        return any(start <= place and place + size <= start + length for start, length in self._shared)

    def share(self, place: int, length: int) -> bool:
        """Announce memory at an address, whose descriptor the caller has passed to the agent; return False if the agent
        does not map it, since it has mapped too many areas."""
        # Without waiting, more descriptors could be passed than the agent keeps until it takes their records.
        mapped = self.confirms(AgentRecord.SHARE, extra=place, length=length)
        if mapped:
            self._shared.append((place, length))
        return mapped

    # Memory for other applications.

    def register_memory(self, memory: Segments) -> int:
        """Register memory for other applications of the agent, and return its token.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if the agent cannot access it, or has too many
        regions of this application.
        """
        places = self._describe(memory)
        if not memory.length or not places:
            text = "no memory to register" if not memory.length else f"{self.agent} may not access this memory"
            raise LocalProtocolError(Status.BAD_REQUEST, f"{text}: register memory of endpoint.allocate()")
        return self.ask(AgentRecord.REGISTER, data=places)[0].match_info

    def deregister_memory(self, tokens: Sequence[int]) -> None:
        """Release regions of this application, many by one record.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if some of them are not its own.
        """
        batch, released = INLINE_MAXIMUM // TOKEN.size, 0
        for first in range(0, len(tokens), batch):
            data = b"".join(map(TOKEN.pack, tokens[first : first + batch]))
            released += self.ask(AgentRecord.DEREGISTER, data=data)[0].length
        if released < len(tokens):
            text = f"{len(tokens) - released} of {len(tokens)} tokens are not of registered memory of this host"
            raise LocalProtocolError(Status.REMOTE_RDMA_WINDOW_BAD_ID, text)

    def put_memory(self, token: int, offset: int, data: Segments) -> None:
        """Copy data to an offset in a region; return when it is there.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if there is no such region, or not all is within it.
        """
        self._move(AgentRecord.PUT, token, offset, data)

    def get_memory(self, token: int, offset: int, memory: Segments) -> None:
        """Fill memory from an offset in a region; see :meth:`put_memory`."""
        self._move(AgentRecord.GET, token, offset, memory)

    def _move(self, kind: AgentRecord, token: int, offset: int, memory: Segments) -> None:
        places = self.describe(memory)
        most = MOVE_MAXIMUM if places else INLINE_MAXIMUM
        asked: deque[tuple[int, int]] = deque()
        refusal: AgentRefusalError | None = None
        # At least one record, so that a token is also checked by an access to no bytes.
        left = deque(range(0, max(memory.length, 1), most))
        while left or asked:
            if left and len(asked) < _MOVES:
                begin, number = left.popleft(), self.next_number()
                count = min(most, memory.length - begin)
                data: Any = places
                if not places and kind == AgentRecord.PUT:
                    data = np.empty(count, np.uint8)
                    memory.take(begin, data)
                self.out.put(
                    kind,
                    flags=RecordFlag.IN_PLACE if places else RecordFlag.DATA,
                    number=number,
                    match_info=token,
                    mask=begin if places else 0,
                    length=count,
                    extra=offset + begin,
                    data=data,
                )
                asked.append((number, begin))
                continue
            number, begin = asked.popleft()
            try:
                _, found = self._answer_to(number)
            except AgentRefusalError as error:
                # The answers to the others must be taken, too.
                refusal = error
                left.clear()
                continue
            if not places and kind == AgentRecord.GET:
                memory.put(begin, found)
        if refusal is not None:
            raise refusal

    # Records.

    def next_number(self) -> int:
        """A number for a request or a question."""
        self._numbers += 1
        return self._numbers

    def ask(self, kind: AgentRecord, **fields: Any) -> tuple[AgentHead, bytes]:
        """Ask the agent, and wait for its answer.

        Raises :class:`~mxwire.protocol.status.LocalProtocolError` if it refuses, and
        :class:`~mxwire.protocol.agent.records.AgentEndedError` or the error of ``wait`` if it has ended.
        """
        number = self.next_number()
        self.out.put(kind, number=number, **fields)
        return self._answer_to(number)

    def confirms(self, kind: AgentRecord, **fields: Any) -> bool:
        """Ask the agent a question, and return whether its answer is yes."""
        return bool(self.ask(kind, **fields)[0].flags & RecordFlag.YES)

    def _answer_to(self, number: int) -> tuple[AgentHead, bytes]:
        while number not in self._answers:
            try:
                self._must_not_have_ended()
            except AgentEndedError as error:
                self.on_end(error)
                raise
            self.wait()
            self._take_all()
            self._news = True
        head, data = self._answers.pop(number)
        if head.kind == AgentRecord.REFUSED:
            raise AgentRefusalError(head.status, data.decode("utf-8", "replace"))
        return head, data

    def receive_local(self, channels: Sequence[LocalChannel], now: int) -> None:
        """Take the records of the agent.

        Raises :class:`~mxwire.protocol.agent.records.AgentEndedError` if the agent has ended.
        """
        self._take_all()
        self._must_not_have_ended()

    def _must_not_have_ended(self) -> None:
        if self.ended:
            raise AgentEndedError(
                f"endpoint closed: {self.agent} has ended; open the host again to attach to another agent"
            )

    def _take_all(self) -> None:
        channel = self.channel
        try:
            # Unlike the agent's loop (``served.py``), this one has no other side to let have its turn, and it notices
            # the end of the channel only after the last record before it.
            for _ in range(_RECORDS):
                record = channel.peek()
                if record is None:
                    break
                self._take(record)
                channel.advance()
            else:
                return
            channel.settle()
        except InvalidRecordError:
            channel.ended = True
        self.out.flush()
        if channel.ended:
            self.leave()

    def _take(self, record: bytes | memoryview) -> None:
        head = AgentHead(record)
        data = record[AGENT_HEAD_SIZE:]
        if head.kind in (AgentRecord.ANSWER, AgentRecord.REFUSED):
            self._answers[head.number] = head, bytes(data)
        elif head.kind == AgentRecord.PEER:
            if head.number >= NO_PEER_INDEX or head.partner >> 48:
                raise InvalidRecordError("an impossible peer")
            if self._complete:
                self._take_peer(head, data)
            else:
                self._early.append((head, bytes(data)))
        else:
            side = self._sides.get(head.handle)
            if side is not None:
                side.take_record(head, data)
            elif head.handle > self._handle:
                # Its endpoint is being opened.
                self._early.append((head, bytes(data)))

    def _take_peer(self, head: AgentHead, data: bytes | memoryview) -> None:
        address, index = head.address, head.number
        before = self.peers.entries.get(index)
        if before is not None and before.address != address:
            # The agent has given its index to another host.
            self.peers.withdraw(before)
        self._indexes.indexes[address] = index
        peer = self.peers.by_address(address)
        if peer is None:
            peer = self.peers.enter(address)
            if peer is None:
                return
            self.report(EventKind.PEER_FOUND, peer=peer)
        name = bytes(data).decode("utf-8", "replace") or None
        if name != peer.name:
            peer.name = name
            if name is not None:
                self.report(EventKind.PEER_NAMED, peer=peer)
        peer.heard = bool(head.flags & RecordFlag.HEARD)
        if peer.own is None and head.extra < NO_PEER_INDEX:
            peer.reverse[0] = head.extra

    def leave(self) -> None:
        """End all requests and the channel, since the agent has ended, or is left."""
        if self.ended:
            return
        # First, because the requests that end below must not ask the agent any more.
        self.ended = True
        self.abandon()
        self.channel.close()

    @abstractmethod
    def abandon(self) -> None:
        """End all requests, since the agent has ended, or is left."""

    def enter_side(self, handle: int, side: AgentSide) -> None:
        """Take the records of an endpoint from now on, and those received since it was opened."""
        self._handle = handle
        self._sides[handle] = side
        early, self._early = self._early, []
        for head, data in early:
            if head.handle == handle:
                side.take_record(head, data)

    def close_side(self, handle: int) -> None:
        """Close an endpoint, or the card's side of one, at the agent, which then does not use its memory any more."""
        if not self.ended:
            # Its records that are not in the channel yet would delay the end.
            self.out.drop(handle)
            # If the agent ends now, it does not use the memory either.
            with suppress(MxwireError):
                self.ask(AgentRecord.CLOSE, handle=handle)
        self._sides.pop(handle, None)

    # Calls of hosts.

    def add_peer(self, address: bytes, name: str | None = None) -> Peer:
        """Add a peer to the agent's table; see :meth:`Node.add_peer`."""
        address = ethernet_address(address)
        known = self.peers.entries.get(self._indexes.indexes.get(address, NO_PEER_INDEX))
        if known is not None and (name is None or known.name == name):
            return known
        self.ask(
            AgentRecord.ADD_PEER, partner=int.from_bytes(address, "big"), data=(name or "").encode("utf-8", "replace")
        )
        # The agent has reported the peer before the answer.
        return self.peers.add(address)

    def discover_peer(self, address: bytes) -> Peer | None:
        """The peer at an address, if the agent has it."""
        return self.peers.by_address(address)

    def ask_names(self) -> None:
        """Have the agent query all nameless peers again."""
        self.out.put(AgentRecord.NAMES)

    def forget_names(self) -> None:
        """Have the agent forget all host names, and query them again."""
        self.out.put(AgentRecord.NAMES, flags=RecordFlag.YES)
