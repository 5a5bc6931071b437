"""Matching of posted receives with arriving messages, and of unexpected messages with new receives (section 9).

Both queues are indexed by mask: for each mask in use there is a table from masked match information to the items that
have it, in order. The oldest match is thus found without a search, however many items wait. Applications use few
different masks, so there are few tables. Nothing here depends on the kind of message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from mxwire.protocol.library.layered_table import LayeredTable
from mxwire.protocol.profile import Profile

ALL_BITS: Final = (1 << 64) - 1
"""The mask that compares all bits of the match information."""
_STALE_ALLOWED: Final = 1024
"""Number of removed items that may stay in the tables before a sweep, so that sweeps are rare for small queues too."""

_SPACING: Final = 1 << 16
"""Distance between the order numbers of two items, so that others can be inserted between them."""
_EMPTY_KEPT: Final = 64
"""Maximum number of empty queues kept for reuse, because creating one takes as long as a search."""


class HandlerCalls:
    """The calls of unexpected handlers on a host.

    A handler is called in the middle of a pass, or, if ``deferred``, after the pass by the caller of the node: see
    ``Node.offering``.
    """

    __slots__ = ("deferred", "raised", "running")

    def __init__(self) -> None:
        self.deferred = False
        """True if the caller of the node calls the handlers."""
        self.running = False
        """True if a handler is running in the middle of a pass."""
        self.raised: list[Exception] = []
        """Exceptions of handlers, raised by the node's ``receive`` or ``transmit`` when its work is done."""


class Selectable:
    """An object that can be selected by its match information."""

    __slots__ = ("match_info", "order", "waiting")

    def __init__(self, match_info: int) -> None:
        self.match_info = match_info
        self.order = 0
        self.waiting = True


class Keepable(Selectable):
    """A message that can be kept until a receive is posted."""

    __slots__ = ()

    @property
    def source(self) -> Any:
        """The partner that has sent it."""
        raise NotImplementedError

    @property
    def buffered(self) -> int:
        """Bytes of memory that the message occupies."""
        raise NotImplementedError


Posted = TypeVar("Posted")
Kept = TypeVar("Kept", bound=Keepable)
Selected = TypeVar("Selected", bound=Selectable)


class SelectableQueue(Generic[Selected]):
    """Items in order, selected by their match information; removed items are skipped, and swept from time to time."""

    def __init__(self) -> None:
        self.order = 0
        """The order number of the newest item."""
        self._stale = 0
        self.live: dict[int, Selected] = {}
        """The items that wait, by order of arrival."""
        self.by_mask: dict[int, dict[int, deque[Selected]]] = {}
        self._empty: list[deque[Selected]] = []
        """Queues of tables that have become empty, to be used again."""

    def add(self, item: Selected) -> None:
        """Append an item."""
        self.order = order = self.order + _SPACING
        item.order = order
        self.live[order] = item
        for mask, table in self.by_mask.items():
            key = item.match_info & mask
            queue = table.get(key)
            if queue is None:
                queue = table[key] = self._empty.pop() if self._empty else deque()
            queue.append(item)

    def insert(self, item: Selected, position: int) -> None:
        """Add an item before all whose order is above ``position``; this takes time in proportion to their number."""
        item.order = position + 1
        while item.order in self.live:
            item.order += 1
        items = sorted([*self.live.values(), item], key=lambda each: each.order)
        self.live.clear()
        self.live.update({each.order: each for each in items})
        # The tables are made again by ``index``.
        self.by_mask.clear()
        self._stale = 0

    def index(self, mask: int) -> dict[int, deque[Selected]]:
        """The table of a mask, created if it is new."""
        table = self.by_mask.get(mask)
        if table is None:
            table = self.by_mask[mask] = {}
            for item in self.live.values():
                table.setdefault(item.match_info & mask, deque()).append(item)
        return table

    def first(self, mask: int, value: int) -> Selected | None:
        """The oldest waiting item for a mask and a value."""
        table = self.by_mask.get(mask)
        queue = table.get(value) if table else None
        if not queue:
            return None
        while queue and not queue[0].waiting:
            queue.popleft()
            self._stale -= 1
        if not queue:
            assert table is not None
            del table[value]
            return None
        return queue[0]

    def remove(self, item: Selected) -> None:
        """Remove an item."""
        item.waiting = False
        del self.live[item.order]
        for mask, table in self.by_mask.items():
            key = item.match_info & mask
            queue = table.get(key)
            if not queue or queue[0] is not item:
                self._stale += 1
                continue
            queue.popleft()
            if not queue:
                # Nearly all items are taken in order, so their entries are removed here at once and do not keep their
                # memory alive.
                del table[key]
                if len(self._empty) < _EMPTY_KEPT:
                    self._empty.append(queue)
        if not self.live and (self._stale or len(self.by_mask) > 1):
            # Drop the tables of masks that are no longer used: each costs a step per message.
            self.by_mask.clear()
            self._stale = 0
        elif self._stale > _STALE_ALLOWED + 2 * len(self.live) * len(self.by_mask):
            self._sweep()

    def _sweep(self) -> None:
        self._stale = 0
        for table in self.by_mask.values():
            for value, queue in list(table.items()):
                kept = deque(item for item in queue if item.waiting)
                if kept:
                    table[value] = kept
                else:
                    del table[value]


class Posting(Generic[Posted]):
    """A receive that waits for a message, in the chain of those with the same mask and value."""

    __slots__ = ("after", "before", "last", "mask", "order", "receive", "value")

    def __init__(self, receive: Posted, value: int, mask: int) -> None:
        self.receive: Posted | None = receive
        """The receive; None when it no longer waits."""
        self.value = value
        self.mask = mask
        """A message matches if its masked match information is ``value`` (R-MAT-01)."""
        self.order = 0
        self.before: Posting[Posted] | None = None
        self.after: Posting[Posted] | None = None
        self.last: Posting[Posted] | None = None
        """The last posting of the chain, if this is the first."""


class PostedReceives(Generic[Posted]):
    """The posted receives. Each is in one chain only, from which it is removed without a search."""

    def __init__(self) -> None:
        self._order = 0
        self.count = 0
        """Number of receives."""
        self.by_mask: dict[int, LayeredTable[int, Posting[Posted]]] = {}
        """The first of each chain, by mask and value."""
        self._only: LayeredTable[int, Posting[Posted]] | None = None
        """The table of ``_mask``, if that is the only mask in use; None otherwise."""
        self._mask = 0

    def add(self, posting: Posting[Posted]) -> None:
        """Append a receive to its chain."""
        self._order += 1
        posting.order = self._order
        self.count += 1
        table = self._table(posting.mask)
        first = table.get(posting.value)
        if first is None:
            first = posting
            table.add(posting.value, posting)
        else:
            last = first.last
            assert last is not None
            last.after = posting
            posting.before = last
        first.last = posting

    def _table(self, mask: int) -> LayeredTable[int, Posting[Posted]]:
        """The table of a mask, created if it is new."""
        if self._only is not None and self._mask == mask:
            return self._only
        table = self.by_mask.get(mask)
        if table is None:
            table = self.by_mask[mask] = LayeredTable()
            self._only, self._mask = (table, mask) if len(self.by_mask) == 1 else (None, 0)
        return table

    def oldest(self, match_info: int) -> Posting[Posted] | None:
        """The oldest receive that matches a message."""
        if self._only is not None:
            return self._only.get(match_info if self._mask == ALL_BITS else match_info & self._mask)
        best: Posting[Posted] | None = None
        for mask, table in self.by_mask.items():
            first = table.get(match_info & mask)
            if first is not None and (best is None or first.order < best.order):
                best = first
        return best

    def remove(self, posting: Posting[Posted]) -> None:
        """Remove a receive from its chain."""
        table, before, after = self._table(posting.mask), posting.before, posting.after
        if before is not None:
            before.after = after
            if after is not None:
                after.before = before
            else:
                first = table.get(posting.value)
                assert first is not None
                first.last = before
        elif after is not None:
            table.replace(posting.value, after)
            after.before = None
            after.last = posting.last
        else:
            table.pop(posting.value)
        posting.receive = posting.before = posting.after = posting.last = None
        self.count -= 1
        if not self.count and len(self.by_mask) > 1:
            # Drop the tables of masks that are no longer used: each costs a step per message.
            self.by_mask.clear()
            self._only = None


class Matching(Generic[Posted, Kept]):
    """The posted receives and the unexpected messages of an endpoint."""

    def __init__(self, profile: Profile, calls: HandlerCalls) -> None:
        self._profile = profile
        self._calls = calls
        self._posted: PostedReceives[Posted] = PostedReceives()
        self._unexpected: SelectableQueue[Kept] = SelectableQueue()
        self._by_partner: dict[Any, dict[Kept, None]] = {}
        """The unexpected messages by their source."""
        self._bytes = 0
        self.arrivals = 0
        """The order of the newest message that was kept."""
        self.offered: deque[Kept] = deque()
        """Messages without a receive, in order, for which the unexpected handler is still to be called."""
        self.handler: Callable[[Kept], object] | None = None
        """The unexpected handler: called with each message without a receive before the message is kept; returns True
        to consume it."""
        self.consumer: Callable[[Kept], object] | None = None
        """Called before the unexpected handler, in the middle of a pass, with each message whose data has arrived;
        returns True to consume it. It must neither wait nor call the node."""
        self.handling: Kept | None = None
        """The message for which the handler is being called."""
        self.claimant: Posted | None = None
        """The receive that has claimed this message."""

    @property
    def posted(self) -> int:
        """Number of posted receives."""
        return self._posted.count

    @property
    def unexpected(self) -> int:
        """Number of unexpected messages."""
        return len(self._unexpected.live)

    @property
    def unexpected_bytes(self) -> int:
        """Number of bytes buffered for unexpected messages."""
        return self._bytes

    @property
    def deferred(self) -> bool:
        """True if the unexpected handler is called after the pass."""
        return self._calls.deferred

    @property
    def identity(self) -> int:
        """The identity of the message for which the handler is being called: its order, if it is kept."""
        return self._unexpected.order + _SPACING

    def find(self, identity: int) -> Kept | None:
        """The unexpected message with an identity, or None; it is not removed."""
        return self.handling if identity == self.identity else self._unexpected.live.get(identity)

    def claim(self, receive: Posted, message: Kept) -> bool:
        """Take a message for a receive, whatever others match; return False if the receive has to wait for the end of
        the handler."""
        if message is not self.handling:
            self._take(message)
            return True
        self.claimant = receive
        return False

    def handled(self, message: Kept, consumed: bool) -> Posted | None:
        """The receive for a message after the call of the handler (R-MAT-06): that which has claimed it or, unless it
        is consumed, the oldest that matches."""
        receive, self.claimant, self.handling = self.claimant, None, None
        if receive is None and not consumed:
            receive = self.arrive(message.match_info)
        if receive is not None or consumed:
            # No other message gets its identity.
            self._unexpected.order += _SPACING
        return receive

    def take(self, value: int, mask: int) -> Kept | None:
        """Take the first unexpected message that a new receive matches, or None (R-MAT-02)."""
        found = self.probe(value, mask)
        if found is not None:
            self._take(found)
        return found

    def post(self, receive: Posted, value: int, mask: int) -> Posting[Posted]:
        """Append a receive to those that wait for a message (R-MAT-02)."""
        posting = Posting(receive, value, mask)
        self._posted.add(posting)
        return posting

    def arrive(self, match_info: int) -> Posted | None:
        """Take the oldest posted receive that matches a message (R-MAT-01 to R-MAT-03)."""
        posting = self._posted.oldest(match_info)
        if posting is None:
            return None
        receive = posting.receive
        self._posted.remove(posting)
        return receive

    def probe(self, value: int, mask: int) -> Kept | None:
        """The first unexpected message that a receive would take; it is not removed."""
        if not self._unexpected.live:
            return None
        self._unexpected.index(mask)
        return self._unexpected.first(mask, value)

    def keep(self, message: Kept) -> bool:
        """Keep a message without a receive; return False if there is no memory for it (R-MAT-05)."""
        if not self._has_room(message):
            return False
        self._account(message)
        self._add(message)
        return True

    def put_back(self, message: Kept, position: int) -> None:
        """Keep a message that a receive had taken, before all messages that were kept since it arrived (R-MAT-02)."""
        self._account(message)
        self._unexpected.insert(message, position)

    @property
    def overfull(self) -> bool:
        """True beyond twice the messages or bytes for which there is room: more than receives can have returned."""
        profile = self._profile
        return self.unexpected > 2 * profile.unexpected_maximum or self._bytes > 2 * profile.unexpected_bytes_maximum

    def put_off(self, message: Kept) -> bool:
        """Keep a message until the unexpected handler is called; return False if there is no memory for it."""
        if not self._has_room(message):
            return False
        self._account(message)
        self.offered.append(message)
        return True

    def settle(self, message: Kept, *, keep: bool) -> None:
        """Take a message from those put off, and keep it or drop it."""
        self.offered.remove(message)
        if keep:
            self._add(message)
        else:
            message.waiting = False
            self._release(message)

    def _add(self, message: Kept) -> None:
        self._unexpected.add(message)
        self.arrivals = self._unexpected.order

    def _has_room(self, message: Kept) -> bool:
        return (
            self.unexpected + len(self.offered) < self._profile.unexpected_maximum
            and self._bytes + message.buffered <= self._profile.unexpected_bytes_maximum
        )

    def _account(self, message: Kept) -> None:
        self._bytes += message.buffered
        self._by_partner.setdefault(message.source, {})[message] = None

    def offer(self, message: Kept) -> bool:
        """Return whether the unexpected handler consumes a message (R-MAT-06); a handler that raises does not."""
        handler, calls = self.handler, self._calls
        if handler is None:
            return False
        self.handling = message
        calls.running = True
        try:
            return bool(handler(message))
        except Exception as error:
            calls.raised.append(error)
            return False
        finally:
            calls.running = False

    def cancel(self, posting: Posting[Posted]) -> None:
        """Remove a posted receive."""
        self._posted.remove(posting)

    def drop(self, partner: Any) -> list[Kept]:
        """Remove the unexpected messages of a partner (R-CLS-05), and return them."""
        dropped = list(self._by_partner.get(partner, ()))
        for message in dropped:
            if message in self.offered:
                self.settle(message, keep=False)
            else:
                self._take(message)
        return dropped

    def _take(self, message: Kept) -> None:
        self._release(message)
        self._unexpected.remove(message)

    def _release(self, message: Kept) -> None:
        self._bytes -= message.buffered
        others = self._by_partner[message.source]
        del others[message]
        if not others:
            del self._by_partner[message.source]
