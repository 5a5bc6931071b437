"""Matching of posted receives with arriving messages, and of unexpected messages with new receives (section 9).

Both queues are indexed by mask: for each mask in use there is a table from masked match information to the items that
have it, in order. The oldest match is thus found without a search, however many items wait. Applications use few
different masks, so there are few tables. Nothing here depends on the kind of message.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from mxwire.protocol.profile import Profile

ALL_BITS: Final = (1 << 64) - 1
"""The mask that compares all bits of the match information."""
_STALE_ALLOWED: Final = 1024
"""Removed items that may stay in the tables before a sweep, so that a sweep is rare for small queues too."""

_EMPTY_KEPT: Final = 64
"""Empty queues kept: creating one takes as long as a search."""


class HandlerCalls:
    """The calls of unexpected handlers on a host.

    A handler is called in the middle of a pass, or, if ``deferred``, by the caller of the node after it: see
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


class Postable(Protocol):
    """A receive that can be posted."""

    value: int
    mask: int
    order: int
    waiting: bool


class Selectable(Protocol):
    """An object that can be selected by its match information."""

    match_info: int
    order: int
    waiting: bool


class Keepable(Selectable, Protocol):
    """A message that can be kept until a receive is posted."""

    @property
    def partner(self) -> Any:
        """The source."""

    @property
    def buffered(self) -> int:
        """Bytes of memory that the message occupies."""


class _Queued(Protocol):
    order: int
    waiting: bool


Item = TypeVar("Item", bound=_Queued)
Posted = TypeVar("Posted", bound=Postable)
Kept = TypeVar("Kept", bound=Keepable)
Selected = TypeVar("Selected", bound=Selectable)


class _Queue(ABC, Generic[Item]):
    """Items in order, found by masked match information; removed items are skipped, and swept from time to time."""

    def __init__(self) -> None:
        self._order = 0
        self._stale = 0
        self.live: dict[int, Item] = {}
        """The items that wait, by order of arrival."""
        self.by_mask: dict[int, dict[int, deque[Item]]] = {}
        self._empty: list[deque[Item]] = []
        """Queues of tables that have become empty, to be used again."""

    @abstractmethod
    def _key(self, item: Item, mask: int) -> int:
        """The key of an item in the table of a mask."""

    def add(self, item: Item, masks: tuple[int, ...]) -> None:
        self._order = order = self._order + 1
        item.order = order
        self.live[order] = item
        for mask in masks:
            table = self.by_mask.get(mask)
            if table is None:
                table = self.by_mask[mask] = {}
            key = self._key(item, mask)
            queue = table.get(key)
            if queue is None:
                queue = table[key] = self._empty.pop() if self._empty else deque()
            queue.append(item)

    def index(self, mask: int) -> dict[int, deque[Item]]:
        """The table of a mask, created if it is new."""
        table = self.by_mask.get(mask)
        if table is None:
            table = self.by_mask[mask] = {}
            for item in self.live.values():
                table.setdefault(self._key(item, mask), deque()).append(item)
        return table

    def first(self, mask: int, value: int) -> Item | None:
        """The oldest item that waits under a mask and a value."""
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

    def remove(self, item: Item) -> None:
        item.waiting = False
        del self.live[item.order]
        for mask in self.by_mask:
            self._take_out(item, mask, self._key(item, mask))
        self._tidy()

    def _take_out(self, item: Item, mask: int, key: int) -> None:
        """Remove an item from the table of a mask, if it is the first of its queue."""
        table = self.by_mask[mask]
        queue = table.get(key)
        if not queue or queue[0] is not item:
            self._stale += 1
            return
        queue.popleft()
        if not queue:
            # Nearly all items are taken in order, and leave no entry behind that would keep their memory alive.
            del table[key]
            if len(self._empty) < _EMPTY_KEPT:
                self._empty.append(queue)

    def _tidy(self) -> None:
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


class _PostedQueue(_Queue[Posted]):
    def _key(self, item: Posted, mask: int) -> int:
        return item.value

    def remove(self, item: Posted) -> None:
        item.waiting = False
        del self.live[item.order]
        # A receive is only in the table of its own mask.
        self._take_out(item, item.mask, item.value)
        self._tidy()


class SelectableQueue(_Queue[Selected]):
    """Objects in order, selected by their match information."""

    def _key(self, item: Selected, mask: int) -> int:
        return item.match_info & mask


class Matching(Generic[Posted, Kept]):
    """The posted receives and the unexpected messages of an endpoint."""

    def __init__(self, profile: Profile, calls: HandlerCalls) -> None:
        self._profile = profile
        self._calls = calls
        self._posted: _PostedQueue[Posted] = _PostedQueue()
        self._unexpected: SelectableQueue[Kept] = SelectableQueue()
        self._by_partner: dict[Any, dict[Kept, None]] = {}
        """The unexpected messages by their source."""
        self._bytes = 0
        self.offered: deque[Kept] = deque()
        """Messages without a receive, in order, for which the unexpected handler is still to be called."""
        self.handler: Callable[[Kept], object] | None = None
        """Unexpected handler: called with each message without a receive, before it is kept; True if it consumes it."""

    @property
    def posted(self) -> int:
        """Number of posted receives."""
        return len(self._posted.live)

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

    def post(self, receive: Posted) -> Kept | None:
        """Return the first unexpected message that matches a new receive; without one the receive waits (R-MAT-02)."""
        mask = receive.mask
        found = self.probe(receive.value, mask) if self._unexpected.live else None
        if found is not None:
            self._take(found)
            return found
        self._posted.add(receive, (mask,))
        return None

    def arrive(self, match_info: int) -> Posted | None:
        """Take the oldest posted receive that matches a message (R-MAT-01 to R-MAT-03)."""
        best: Posted | None = None
        posted = self._posted
        for mask in posted.by_mask:
            receive = posted.first(mask, match_info & mask)
            if receive is not None and (best is None or receive.order < best.order):
                best = receive
        if best is not None:
            posted.remove(best)
        return best

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
        self._unexpected.add(message, tuple(self._unexpected.by_mask))
        return True

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
            self._unexpected.add(message, tuple(self._unexpected.by_mask))
        else:
            message.waiting = False
            self._release(message)

    def _has_room(self, message: Kept) -> bool:
        return (
            self.unexpected + len(self.offered) < self._profile.unexpected_maximum
            and self._bytes + message.buffered <= self._profile.unexpected_bytes_maximum
        )

    def _account(self, message: Kept) -> None:
        self._bytes += message.buffered
        self._by_partner.setdefault(message.partner, {})[message] = None

    def offer(self, message: Kept) -> bool:
        """Return whether the unexpected handler consumes a message (R-MAT-06); a handler that raises does not."""
        handler, calls = self.handler, self._calls
        if handler is None:
            return False
        calls.running = True
        try:
            return bool(handler(message))
        except Exception as error:
            calls.raised.append(error)
            return False
        finally:
            calls.running = False

    def cancel(self, receive: Posted) -> None:
        """Remove a posted receive."""
        self._posted.remove(receive)

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
        others = self._by_partner[message.partner]
        del others[message]
        if not others:
            del self._by_partner[message.partner]
