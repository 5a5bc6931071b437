"""The engine's side of libmyriexpress.so: functions of ``c/entries.h`` and ``c/direct.h``, on a host without a driver.

The waits of programs, and the loop that polls links and runs timers, are in C (``c/progress.c``), because a program
that polls must not enter Python unless there is work to do. The functions here never block. They return ``OK`` plus a
return code of MX: cffi returns 0 when Python cannot be reached, which would otherwise be read as MX_SUCCESS. The end of
a request is written as a record into memory that C reads (``c/interface.h``), as is the state of the links and queues.
"""

from __future__ import annotations

import logging
import struct
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from mxwire.errors import MxwireError
from mxwire.host.base_endpoint import BaseEndpoint
from mxwire.host.errors import HostClosedError, HostError
from mxwire.host.waits import PendingAcks, PendingPeer
from mxwire.link import LinkError, PacketLink
from mxwire.link.local import SharedMemoryChannel, SharedMemoryPath
from mxwire.myriexpress.program_host import ProgramHost
from mxwire.myriexpress.program_options import FILES, ProgramOptions, read_options
from mxwire.myriexpress.stamp import stamp
from mxwire.protocol import Counter, LocalProtocolError, Partner, Peer, Request, Status
from mxwire.protocol.corridor import SHARED_THRESHOLD
from mxwire.protocol.library.completions import CompletionQueue
from mxwire.protocol.library.connect import ConnectCall
from mxwire.protocol.library.inbound import Unexpected
from mxwire.protocol.library.matching import Matching
from mxwire.protocol.library.outbound import medium_threshold
from mxwire.protocol.peers import name_field
from mxwire.wire.numbers import SMALL_MAXIMUM

OK: Final = 1000
"""Result of an entry that has succeeded; the return codes of MX are added to it."""
_ENDED_SEND: Final = 2000
"""Result of a send that has ended already, for which there is no record."""
_COPIED_SEND: Final = 2001
"""Result of a send whose data was copied."""
_FAILURE: Final = OK + 1
_NOT_COMPLETED: Final = 19
_NIC_DEAD: Final = 39
_CODES: Final = {Status.NOT_SUPPORTED_IN_HANDLER: 41} | {each: each for each in Status if each <= 38 or each == 42}
"""Return codes of MX by status; all others are MX_BAD_BAD_BAD."""
_NO_PARTNER: Final = 0xFFFF_FFFF
_ENDPOINT_NUMBERS: Final = 0xFF
_KNOWN_HOSTS: Final = 0x100
"""Info key of the library itself: the number of hosts in the peer table."""
_WORK, _ENDED, _LINKS, _CHANNELS, _DESCRIPTORS, _WORD = range(2, 8)
"""Places of the first fields of ``struct mxw_shared``, in units of 8 bytes."""
_SUCCESS: Final = Status.SUCCESS
_LOOKS: Final = 16
"""Polls for the next reply to a PULL, some 5 µs, before C polls again: a step from C takes half a microsecond more."""
_STEPS: Final = 64
"""Maximum number of these steps before the program continues."""
_RETIREMENT: Final = 1.0
"""Seconds for which the memory of a channel that is gone stays mapped."""
_log = logging.getLogger(__name__)


class RecordQueue(CompletionQueue[Request]):
    """Queue of completed requests for the library in C, which holds the queue itself and receives a record per
    request."""

    def __init__(self, record: Callable[[Request], None]) -> None:
        super().__init__()
        self._record = record

    def add(self, request: Request) -> None:
        """Record a request that has just ended, unless its handle has not been returned to the program yet."""
        if request.context is not None:
            self._record(request)


class PublishedCount:
    """The number of unexpected messages of an endpoint, as last written to the memory that C reads."""

    __slots__ = ("count", "matching", "word")

    def __init__(self, matching: Matching[Any, Any], word: int) -> None:
        self.matching = matching
        self.word = word
        """Its place in ``struct mxw_shared``, in units of 8 bytes."""
        self.count = 0


class Entries:
    """The entries of one process, and all state of its programs that Python keeps."""

    def __init__(self, ffi: Any, lib: Any, calls: Any) -> None:
        self._ffi, self._lib, self._calls = ffi, lib, calls
        self._write_record: Callable[[int, int, int, int, int, int], None] = calls.record
        self._host: ProgramHost
        self._options: ProgramOptions
        self._words = memoryview(bytearray(8)).cast("Q")
        self._failed = False
        """True if the host has lost an interface, and C was notified."""
        self._endpoints: dict[int, BaseEndpoint] = {}
        self._counts: list[PublishedCount] = []
        """The unexpected messages of each endpoint."""
        self._requests: dict[int, Request] = {}
        """Requests that have not ended, by handle, without buffered sends."""
        self._partners: list[Partner] = []
        self._places: dict[Partner, int] = {}
        """Places of partners in the table in C."""
        self._keys: dict[tuple[int, int, int], int] = {}
        """Places by endpoint, peer and number, so that a partner that reappears after a disconnect keeps its
        address."""
        self._sessions: list[int] = []
        self._free: list[int] = []
        """Places of partners whose endpoints were closed."""
        self._doubtful: list[tuple[ConnectCall, Peer]] = []
        """Connects to addresses from which no frame was received."""
        self._until = 0.0
        """Time until which unknown hosts may still be discovered."""
        self._lookups: dict[str, PendingPeer] = {}
        self._watching: tuple[SharedMemoryChannel, ...] = ()
        """The channels that C polls."""
        self._retired: list[tuple[float, SharedMemoryChannel]] = []
        """Channels that are gone, with the time when C was notified."""
        self._kept: Any = None
        """The memory of closed links, which a thread in C may still read."""

    def attach(self) -> None:
        """Define the functions of ``c/entries.h`` and ``c/direct.h``."""
        entries: tuple[Callable[..., int], ...] = (
            *(self.open, self.close, self.enter, self.pause, self.open_endpoint, self.close_endpoint, self.unacked),
            *(self.connect, self.cancel, self.disconnect, self.probe, self.suspend),
            *(self.handle, self.set_timeout, self.find_host, self.find_nic, self.board, self.info),
        )
        self._calls.attach(self.step, self.send, self.receive, self.claim, _code_of_error, SHARED_THRESHOLD)
        for each in entries:
            self._ffi.def_extern(f"mxw_{each.__name__}", error=_FAILURE, onerror=_code_of_error)(each)

    # The host.

    def open(self, shared: Any, error: Any, room: int) -> int:
        """Open the host with the options in the environment; a failure is described in ``error``."""
        try:
            built = self._text(self._lib.mxwc_build())
            if built != stamp():
                code = Status.BAD_LIB_ABI
                raise HostError(
                    code,
                    f"libmyriexpress.so was built by another version of mxwire ({built}): run mxwire library build",
                )
            self._open(shared)
        except MxwireError as failure:
            text = str(failure).encode()[: room - 1] + b"\0"
            self._ffi.memmove(error, text, len(text))
            return OK + _code_of_opening(failure)
        return OK

    def _open(self, shared: Any) -> None:
        self._options = options = read_options(self._getenv)
        boards, most = len(options.interfaces), self._field("produced") - _WORD
        if boards > most:
            raise MxwireError(f"MXWIRE_INTERFACE names {boards} interfaces: name at most {most}")
        self._host = host = ProgramHost.open(options)
        records = 8 * self._field("records")
        self._words = memoryview(self._ffi.buffer(shared, records)).cast("Q")
        self._failed = False
        self._unexpected = self._field("unexpected")
        self._produced, self._consumed = self._field("produced"), self._field("consumed")
        self._words[:] = memoryview(bytes(records)).cast("Q")
        descriptors = host.core.descriptors()
        self._words[_DESCRIPTORS] = len(descriptors)
        for place, each in enumerate(descriptors, self._field("descriptor")):
            self._words[place] = each
        # A link in memory has no other hosts, and is never polled.
        self._words[_LINKS] = len(options.interfaces)
        self._rings = [
            (_WORD + place, each) for place, each in enumerate(host.core.links) if isinstance(each, PacketLink)
        ]
        self._kept = [link.ring_memory for _, link in self._rings]
        self._until = time.monotonic() + options.discovery
        self._lookups.clear()
        host.core.step()
        self._publish()
        if options.verbose:
            where = ", ".join(options.interfaces) or "no interface"
            print(f"mxwire: host {host.name} on {where}, dialect {options.dialect}", file=sys.stderr, flush=True)
            if options.ignored:
                print(f"mxwire: without effect: {', '.join(options.ignored)}", file=sys.stderr, flush=True)

    def _field(self, name: str) -> int:
        """Place of a field of ``struct mxw_shared``, in units of 8 bytes."""
        return int(self._ffi.offsetof("struct mxw_shared", name)) // 8

    def close(self) -> int:
        """Close the host."""
        with self._host.core.section:
            # First, so that threads in C poll no link that is about to be closed.
            self._words[_LINKS] = self._words[_CHANNELS] = self._words[_DESCRIPTORS] = 0
            self._endpoints.clear()
            self._counts.clear()
            self._requests.clear()
            self._places.clear()
            self._keys.clear()
            self._partners.clear()
            self._sessions.clear()
            self._free.clear()
            self._doubtful.clear()
            self._host.close()
        return OK

    def enter(self) -> int:
        """Do nothing: cffi has already created the Python thread state of the calling thread."""
        return OK

    def step(self) -> int:
        """Receive waiting frames and transmit frames that are due."""
        core = self._host.core
        with core.section:
            core.step()
            if self._pulling():
                self._await_replies()
            if self._doubtful:
                self._examine_doubtful()
            self._publish()
        return OK

    def _pulling(self) -> bool:
        return any(len(each.timers) for each in self._host.core.node.interfaces)

    def _await_replies(self) -> None:
        """Receive the replies to PULLs while one follows another."""
        core = self._host.core
        for _ in range(_STEPS):
            active = core.active
            core.step(_LOOKS)
            if core.active == active or not self._pulling():
                return

    def pause(self) -> int:
        """Nanoseconds until ``step`` is due if no frame arrives; -1 without a limit."""
        core = self._host.core
        with core.section:
            pause = None if core.ended is not None else core.pause()
            return -1 if pause is None else pause

    def _publish(self) -> None:
        """Write the state of links and queues into the shared memory; within the section."""
        words = self._words
        if self._failed:
            return
        for place, link in self._rings:
            words[place] = link.next_word
        local = self._host.core.local
        if local is not None:
            self._publish_channels(local)
        for each in self._counts:
            found = each.matching.unexpected
            if found != each.count:
                words[each.word] = each.count = found
        if self._host.core.ended is not None and not self._host.core.section.in_handler:
            self._fail()

    def _publish_channels(self, local: SharedMemoryPath) -> None:
        """Write the positions in the channels to other processes of this host."""
        words, count, work = self._words, 0, 0
        neighbourhood, channels = self._host.core.node.neighbourhood, local.channels
        if not (channels or self._watching):
            return
        if channels != self._watching:
            # Another thread may still be reading the memory of a channel that is gone.
            now = time.monotonic()
            self._retired += [(now, each) for each in self._watching if each not in channels]
            self._retired = [each for each in self._retired if now - each[0] < _RETIREMENT]
            self._watching = channels
        for channel in channels:
            watched = channel.watched(neighbourhood.stuck(channel))
            if watched is None or count == self._consumed - self._produced:
                work = 1
                continue
            words[self._produced + count], words[self._consumed + count] = watched
            count += 1
        words[_CHANNELS], words[_WORK] = count, work

    def _fail(self) -> None:
        """End all requests, since the host has lost an interface, or was closed."""
        words = self._words
        self._failed = True
        words[_ENDED] = 1
        # The descriptor of an interface that is gone is always readable.
        words[_LINKS] = words[_CHANNELS] = words[_DESCRIPTORS] = words[_WORK] = 0
        ended = self._host.core.ended
        if not (isinstance(ended, HostClosedError) and ended.status is Status.CANCELLED):
            # Cancellations are expected: another thread has called mx_finalize.
            print(f"mxwire: {ended}", file=sys.stderr, flush=True)
        for endpoint in self._endpoints.values():
            endpoint._close()

    # Endpoints.

    def open_endpoint(self, place: int, board: int, number: Any, key: int, bits: int, shift: int, own: Any) -> int:
        """Open endpoint ``number`` of a board; MX_ANY_ENDPOINT is replaced by the number chosen."""
        host, options = self._host, self._options
        if board >= len(host.core.links):
            return OK + Status.BOARD_NOT_FOUND
        wanted = options.any_endpoint if number[0] == _NO_PARTNER else number[0]
        if not bits:
            bits, shift = options.context_id
        with host.core.section:
            host.core.must_be_open()
            endpoint = host.open_endpoint(wanted, key, board, bits, shift)
            engine = endpoint.engine
            engine.completions = RecordQueue(self._record)
            self._endpoints[place] = endpoint
            self._counts.append(PublishedCount(engine.matching, self._unexpected + place))
            number[0] = endpoint.number
            own[0] = self._place(endpoint.own_partner)
        return OK

    def close_endpoint(self, place: int) -> int:
        """Close an endpoint; its requests end."""
        endpoint = self._endpoints[place]
        endpoint._close()
        with self._host.core.section:
            del self._endpoints[place]
            self._counts = [each for each in self._counts if each.matching is not endpoint.engine.matching]
            for key in [each for each in self._keys if each[0] == place]:
                freed = self._keys.pop(key)
                self._places.pop(self._partners[freed], None)
                self._free.append(freed)
        return OK

    def unacked(self, place: int) -> int:
        """MX_NOT_COMPLETED while messages of an endpoint are not acknowledged."""
        with self._host.core.section:
            pending = self._host.core.ended is None and not PendingAcks(self._endpoints[place]).ready()
        return OK + _NOT_COMPLETED if pending else OK

    def suspend(self, place: int, suspended: int) -> int:
        """Suspend the progress of an endpoint, or resume it."""
        endpoint = self._endpoints[place]
        with self._host.core.section:
            endpoint.suspend() if suspended else endpoint.resume()
            self._publish()
        return OK

    def handle(self, place: int, handled: int) -> int:
        """Start or stop calling functions in C with unexpected messages: bit 0 of ``handled`` selects the unexpected
        handler, bit 1 the consumer."""
        call, consume, matching = self._calls.unexpected, self._calls.consume, self._endpoints[place].engine.matching

        def handler(message: Unexpected) -> bool:
            partner = self._known_place(message.partner)
            if partner is None:
                # The handler runs outside of the section, but other threads use the table of partners, too.
                with self._host.core.section:
                    partner = self._place(message.partner)
            return bool(call(place, partner, message.match_info, message.length, matching.identity, message.data))

        def consumer(message: Unexpected) -> bool:
            return bool(consume(place, self._place(message.partner), message.match_info, message.data))

        self._endpoints[place].handle_unexpected(handler if handled & 1 else None)
        with self._host.core.section:
            matching.consumer = consumer if handled & 2 else None
        return OK

    def set_timeout(self, place: int, request: int, milliseconds: int) -> int:
        """Limit the retransmissions of a request, or of all later requests of an endpoint."""
        with self._host.core.section:
            # 0 stands for all later requests; a request that is not in the table has ended, or its data was copied.
            if not request or request in self._requests:
                self._endpoints[place].engine.set_timeout(milliseconds / 1000, self._requests.get(request))
        return OK

    # Requests.

    def send(self, place: int, partner: int, data: Any, match_info: int, synchronous: bool, handle: int) -> int:
        """Post a send of ``data``: the bytes of a short message, otherwise one or more views of the program's
        memory."""
        core = self._host.core
        with core.section:
            if core.ended is not None:
                return OK + _NIC_DEAD
            target = self._partners[partner]
            request = self._endpoints[place].engine.send(target, data, match_info, synchronous=synchronous)
            core.transmit()
            if target.local:
                self._publish()
            if request.status is _SUCCESS and request.transferred == request.length:
                return _ENDED_SEND
            # Assign the handle only now, because the end of a request without a handle is not recorded.
            self._posted(request, handle)
            return _COPIED_SEND if request.buffered else OK

    def receive(self, place: int, memory: Any, match_info: int, mask: int, handle: int) -> int:
        """Post a receive into the program's memory, given as one or more views."""
        core = self._host.core
        with core.section:
            if core.ended is not None:
                return OK + _NIC_DEAD
            request = self._endpoints[place].engine.receive(memory, match_info, mask)
            self._posted(request, handle)
            if not request.waiting:
                core.transmit()
                self._publish()
        return OK

    def claim(self, place: int, memory: Any, identity: int, handle: int) -> int:
        """Post a receive for one unexpected message; MX_BAD_REQUEST if it is there no longer."""
        core = self._host.core
        with core.section:
            if core.ended is not None:
                return OK + _NIC_DEAD
            request = self._endpoints[place].engine.claim(memory, identity)
            if request is None:
                return OK + Status.BAD_REQUEST
            self._posted(request, handle)
            if request.partner is not None:
                core.transmit()
                self._publish()
        return OK

    def connect(self, place: int, nic_id: int, number: int, key: int, match_info: int, handle: int) -> int:
        """Post a connect; an address that is not known yet may still be discovered shortly after the start."""
        host, core = self._host, self._host.core
        if nic_id >> 48:
            return OK + Status.NIC_ID_NOT_FOUND
        if number > _ENDPOINT_NUMBERS:
            return OK + Status.REMOTE_ENDPOINT_BAD_ID
        with core.section:
            if core.ended is not None:
                return OK + _NIC_DEAD
            peer = self._peer(nic_id)
            known = peer is not None and (peer.own is not None or peer.name is not None or peer in host.heard_peers())
            if not known and time.monotonic() >= self._until:
                return OK + Status.NIC_ID_NOT_FOUND
            if peer is None:
                peer = core.node.add_peer(nic_id.to_bytes(6))
            posted = self._endpoints[place].engine.connect(peer, number, key)
            self._posted(posted, handle)
            if not known:
                self._doubtful.append((posted, peer))
            core.transmit()
            self._publish()
        return OK

    def cancel(self, place: int, handle: int) -> int:
        """Cancel a receive or connect; return MX_NOT_COMPLETED if it was matched or answered before."""
        core = self._host.core
        with core.section:
            request = self._requests.get(handle)
            if request is None:
                return OK + _NOT_COMPLETED
            # Do not record its end, because another thread, or a handler called here, could end the request too.
            request.context = None
            if not self._endpoints[place].engine.cancel(request):
                request.context = handle
                return OK + _NOT_COMPLETED
            del self._requests[handle]
            core.transmit()
        return OK

    def disconnect(self, place: int, partner: int) -> int:
        """Forget a partner and all unfinished requests with it."""
        endpoint = self._endpoints[place]
        with self._host.core.section:
            endpoint.disconnect(self._partners[partner])
            # An endpoint is always connected to itself: its own address stays valid.
            self._place(endpoint.own_partner)
        return OK

    def probe(self, place: int, match_info: int, mask: int, found: Any) -> int:
        """Describe the first unexpected message that matches; ``OK + 1`` if there is one."""
        with self._host.core.section:
            message = self._endpoints[place].engine.probe(match_info, mask)
            if message is None:
                return OK
            found.match_info, found.length = message.match_info, message.length
            found.partner = self._place(message.partner)
        return OK + 1

    # Hosts.

    def find_host(self, name: Any, nic_id: Any) -> int:
        """Address of a host by name; MX_NOT_COMPLETED while it may still be discovered."""
        text = self._text(name)
        with self._host.core.section:
            lookup = self._lookups.get(text)
            if lookup is None:
                lookup = self._lookups[text] = PendingPeer(self._host, text if ":" in text else f"{text}:0")
            if lookup.ready():
                nic_id[0] = int.from_bytes(lookup.result().address)
                return OK
            if self._host.core.node.eager():
                self._host.core.transmit()
        return self._unknown()

    def find_nic(self, nic_id: int, name: Any) -> int:
        """Name of a host by address; MX_NOT_COMPLETED while the host may still be discovered or its name be
        received."""
        if nic_id >> 48:
            return OK + Status.PEER_NOT_FOUND
        with self._host.core.section:
            peer = self._peer(nic_id)
            if peer is not None and peer.name is not None:
                # Truncate the name, because a name from the network may be longer as UTF-8 than in its packet.
                text = name_field(peer.name)
                self._ffi.memmove(name, text, len(text))
                return OK
        return self._unknown()

    def _unknown(self) -> int:
        return OK + (_NOT_COMPLETED if time.monotonic() < self._until else Status.PEER_NOT_FOUND)

    def board(self, board: int, nic_id: Any) -> int:
        """Address of a board."""
        links = self._host.core.links
        if board >= len(links):
            return OK + Status.BOARD_NOT_FOUND
        nic_id[0] = int.from_bytes(links[board].address)
        return OK

    def info(self, board: int, key: int, out: Any, room: int) -> int:
        """Write the value of an info key into ``room`` bytes."""
        node = self._host.core.node
        if board >= len(node.interfaces):
            return OK + Status.BOARD_NOT_FOUND
        value = self._info(board, key)
        if value is None:
            return OK + Status.BAD_INFO_KEY
        if len(value) > room:
            return OK + Status.BAD_INFO_LENGTH
        self._ffi.memmove(out, value, len(value))
        return OK

    def _info(self, board: int, key: int) -> bytes | None:
        """Value of an info key of ``mx_get_info``; None for an unknown key."""
        node, links = self._host.core.node, self._host.core.links
        numbers = {
            1: len(links),
            3: node.profile.endpoint_maximum,
            4: 0xFFFF_FFFF,
            5: len(Counter),
            11: 1,
            12: SMALL_MAXIMUM,
            13: medium_threshold(node.profile, node.dialect),
            14: 0,
            15: 1,
            # All hosts of a job must report the same value, whatever the speed of their interfaces.
            16: 1 if self._options.dialect.name == "mxoe" else 2,
            _KNOWN_HOSTS: len(node.peers),
        }
        if key in numbers:
            return struct.pack("I", numbers[key])
        if key == 2:
            return struct.pack(f"{len(links) + 1}Q", *(int.from_bytes(each.address) for each in links), 0)
        if key == 6:
            return b"".join(each.value.encode().ljust(128, b"\0") for each in Counter)
        if key == 7:
            return struct.pack(
                f"{len(Counter)}I", *(node.interfaces[board].counters[each] & _NO_PARTNER for each in Counter)
            )
        if key in (8, 9, 10):
            return b"N/A (mxwire)\0"
        return None

    # Internal.

    def _getenv(self, name: str) -> str | None:
        # A program with privileges of its own reads no file that its user names.
        value = (self._lib.secure_getenv if name in FILES else self._lib.getenv)(name.encode())
        return None if value == self._ffi.NULL else self._text(value)

    def _text(self, value: Any) -> str:
        return str(self._ffi.string(value).decode(errors="replace"))

    def _posted(self, request: Request, handle: int) -> None:
        """Enter a request that was just posted, and may have ended already."""
        request.context = handle
        if request.status is not None:
            self._record(request)
        else:
            self._requests[handle] = request

    def _record(self, request: Request, status: Status | None = None) -> None:
        """Write the record of a request that has ended."""
        handle, partner = request.context, request.partner
        ended = request.status if status is None else status
        assert ended is not None
        self._requests.pop(handle, None)
        self._write_record(
            handle,
            request.match_info,
            ended,
            _NO_PARTNER if partner is None else self._place(partner),
            request.length,
            request.transferred,
        )

    def _place(self, partner: Partner) -> int:
        """Place of a partner in the table in C, where it is entered when it is new or has another session."""
        place = self._known_place(partner)
        if place is not None:
            return place
        endpoint = next((each for each, opened in self._endpoints.items() if opened.engine is partner.endpoint), None)
        if endpoint is None:
            raise LookupError("another thread has closed the endpoint")
        key = (endpoint, partner.peer.index, partner.number)
        place = self._keys.get(key)
        if place is None:
            if self._free:
                place = self._free.pop()
            else:
                place = len(self._partners)
                self._partners.append(partner)
                self._sessions.append(0)
            self._keys[key] = place
        # The former partner of a reconnected endpoint has no unfinished request, and does not appear again.
        self._places.pop(self._partners[place], None)
        self._partners[place] = partner
        self._places[partner] = place
        self._sessions[place] = session = _session_of(partner) or 0
        self._lib.mxwc_name_partner(place, endpoint, int.from_bytes(partner.peer.address), partner.number, session)
        return place

    def _known_place(self, partner: Partner) -> int | None:
        """Place of a partner in the table in C, unless it has to be entered there first."""
        place, session = self._places.get(partner), _session_of(partner)
        return place if place is not None and (session is None or self._sessions[place] == session) else None

    def _peer(self, nic_id: int) -> Peer | None:
        self._host.query_shared_peers()
        return self._host.core.node.peers.by_address(nic_id.to_bytes(6))

    def _examine_doubtful(self) -> None:
        """End connects to addresses that were not discovered in time."""
        if time.monotonic() < self._until:
            self._doubtful = [each for each in self._doubtful if each[0].status is None]
            return
        heard = set(self._host.heard_peers())
        doubtful, self._doubtful = self._doubtful, []
        for request, peer in doubtful:
            if request.status is None and peer not in heard:
                # Without its handle the cancellation is not recorded; the program receives the reason instead.
                handle, request.context = request.context, None
                request.cancel()
                request.context = handle
                self._record(request, Status.NIC_ID_NOT_FOUND)


def _session_of(partner: Partner) -> int | None:
    """The session by which a partner is known, if there is one."""
    return partner.rev if partner.rev is not None else partner.fwd


def _code_of_opening(failure: MxwireError) -> int:
    """Return code of MX for a host that cannot be opened."""
    if isinstance(failure.__cause__, PermissionError):
        return Status.ACCESS_DENIED
    if isinstance(failure, LinkError):
        return Status.NO_DEVICE
    return _CODES.get(failure.status, 1) if isinstance(failure, HostError) else 1


def _code_of_error(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> int:
    """Result of an entry that has raised."""
    if isinstance(error, HostClosedError):
        return OK + _NIC_DEAD
    if isinstance(error, (HostError, LocalProtocolError)):
        return OK + _CODES.get(error.status, 1)
    if isinstance(error, LookupError):
        # Another thread has closed the endpoint after the lookup in C.
        return OK + Status.BAD_ENDPOINT
    _log.error("an entry of libmyriexpress.so has failed", exc_info=error)
    return _FAILURE


def attach(ffi: Any, lib: Any, calls: Any) -> None:
    """Define the entries; called once, when Python is first reached. ``calls`` is the module of ``embedding.c``."""
    Entries(ffi, lib, calls).attach()
