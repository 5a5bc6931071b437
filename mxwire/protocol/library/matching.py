"""Matching: posted receives and unexpected messages find each other (behaviour, section 9).

Both sides are kept by mask: under each mask that is in use, a table from the masked match information to those that
have it, in order. So the first that matches is found without looking at the others, however many there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from mxwire.protocol.profile import Profile
from mxwire.wire.packets import Rndv

if TYPE_CHECKING:
    from mxwire.protocol.library.local import LocalSend
    from mxwire.protocol.library.partner import Partner
    from mxwire.protocol.library.reassembly import Reassembly
    from mxwire.protocol.library.receiving import Receiving

ALL_BITS: Final = (1 << 64) - 1
"""The mask that lets only equal match information match."""
_STALE_ALLOWED: Final = 1024

Handler = Callable[["Unexpected"], bool]
"""The application's unexpected handler: True where it has consumed the message (R-MAT-06)."""


class HandlerCalls:
    """The calls of the unexpected handlers of a host."""

    __slots__ = ("raised", "running")

    def __init__(self) -> None:
        self.running = False
        """Whether a handler is being called right now."""
        self.raised: list[Exception] = []
        """What handlers have raised; whoever has let the node work is told when the work is done."""


class Unexpected:
    """A message that nobody has asked for yet."""

    __slots__ = ("data", "length", "local", "match_info", "order", "partner", "reassembly", "rendezvous", "waiting")

    def __init__(
        self,
        partner: Partner,
        match_info: int,
        length: int,
        *,
        data: bytes | None = None,
        reassembly: Reassembly | None = None,
        rendezvous: Rndv | None = None,
        local: LocalSend | None = None,
    ) -> None:
        self.partner = partner
        self.match_info = match_info
        self.length = length
        """Length of the whole message in bytes."""
        self.data = data
        """The message, where it is all there."""
        self.reassembly = reassembly
        self.rendezvous = rendezvous
        self.local = local
        self.order = 0
        self.waiting = True

    @property
    def buffered(self) -> int:
        """Bytes of memory that it takes."""
        return self.length if self.rendezvous is None and self.local is None else 0


Item = TypeVar("Item", "Receiving", Unexpected)


class _Queue(ABC, Generic[Item]):
    """Things in order, found by masked match information; what was taken out is skipped, and swept now and then."""

    def __init__(self) -> None:
        self._order = 0
        self._stale = 0
        self.live: dict[int, Item] = {}
        """What waits, by order of arrival."""
        self.by_mask: dict[int, dict[int, deque[Item]]] = {}

    @abstractmethod
    def _key(self, item: Item, mask: int) -> int:
        """Under what an item is found in the table of a mask."""

    def add(self, item: Item, masks: tuple[int, ...]) -> None:
        self._order += 1
        item.order = self._order
        self.live[item.order] = item
        for mask in masks:
            self.by_mask.setdefault(mask, {}).setdefault(self._key(item, mask), deque()).append(item)

    def index(self, mask: int) -> dict[int, deque[Item]]:
        """The table of a mask, made if it is new."""
        table = self.by_mask.get(mask)
        if table is None:
            table = self.by_mask[mask] = {}
            for item in self.live.values():
                table.setdefault(self._key(item, mask), deque()).append(item)
        return table

    def first(self, mask: int, value: int) -> Item | None:
        """The oldest that waits under a mask and value."""
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
        for mask, table in self.by_mask.items():
            key = self._key(item, mask)
            queue = table.get(key)
            if not queue or queue[0] is not item:
                self._stale += 1
            elif len(queue) > 1:
                queue.popleft()
            else:
                # What is taken in order, as nearly all is, leaves nothing behind: its memory may be large.
                del table[key]
        if not self.live and (self._stale or len(self.by_mask) > 1):
            # Masks that are not used any more cost nothing for ever.
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


class _Posted(_Queue["Receiving"]):
    def _key(self, item: Receiving, mask: int) -> int:
        return item.value


class _Kept(_Queue[Unexpected]):
    def _key(self, item: Unexpected, mask: int) -> int:
        return item.match_info & mask


class Matching:
    """The posted receives and the unexpected messages of an endpoint."""

    def __init__(self, profile: Profile, calls: HandlerCalls) -> None:
        self._profile = profile
        self._calls = calls
        self._posted = _Posted()
        self._unexpected = _Kept()
        self._by_partner: dict[Partner, dict[Unexpected, None]] = {}
        """The unexpected messages by who has sent them."""
        self._bytes = 0
        self.handler: Handler | None = None
        """Called with each message that no posted receive takes, before it is kept."""
        self.consumed: Callable[[Unexpected], Any] | None = None
        """Told of a message that the handler has consumed."""

    @property
    def posted(self) -> int:
        """How many receives wait."""
        return len(self._posted.live)

    @property
    def unexpected(self) -> int:
        """How many messages wait."""
        return len(self._unexpected.live)

    def post(self, receive: Receiving) -> Unexpected | None:
        """The first unexpected message that a new receive takes; without one the receive waits (R-MAT-02)."""
        found = self.probe(receive.value, receive.mask)
        if found is not None:
            self._take(found)
            return found
        self._posted.add(receive, (receive.mask,))
        return None

    def arrive(self, match_info: int) -> Receiving | None:
        """The receive that was posted first of those that match a message (R-MAT-01 to R-MAT-03)."""
        best: Receiving | None = None
        posted = self._posted
        for mask in posted.by_mask:
            receive = posted.first(mask, match_info & mask)
            if receive is not None and (best is None or receive.order < best.order):
                best = receive
        if best is not None:
            posted.remove(best)
        return best

    def probe(self, value: int, mask: int) -> Unexpected | None:
        """The first unexpected message that would be taken; it stays where it is."""
        if not self._unexpected.live:
            return None
        self._unexpected.index(mask)
        return self._unexpected.first(mask, value)

    def keep(self, message: Unexpected) -> bool:
        """Keep a message that nobody has asked for; False where there is no memory for it (R-MAT-05)."""
        if self.handler is not None and self._offer(self.handler, message):
            message.waiting = False
            if self.consumed is not None:
                self.consumed(message)
            return True
        full = self.unexpected >= self._profile.unexpected_maximum
        if full or self._bytes + message.buffered > self._profile.unexpected_bytes_maximum:
            return False
        self._bytes += message.buffered
        self._by_partner.setdefault(message.partner, {})[message] = None
        self._unexpected.add(message, tuple(self._unexpected.by_mask))
        return True

    def _offer(self, handler: Handler, message: Unexpected) -> bool:
        """Whether the handler consumes a message; one that fails does not."""
        calls = self._calls
        calls.running = True
        try:
            return handler(message)
        except Exception as error:
            calls.raised.append(error)
            return False
        finally:
            calls.running = False

    def cancel(self, receive: Receiving) -> None:
        """Take a posted receive back."""
        self._posted.remove(receive)

    def drop(self, partner: Partner) -> None:
        """Throw away the unmatched messages of a partner (R-CLS-05)."""
        for message in list(self._by_partner.get(partner, ())):
            self._take(message)
            if message.local is not None:
                message.local.dropped()

    def _take(self, message: Unexpected) -> None:
        self._bytes -= message.buffered
        theirs = self._by_partner[message.partner]
        del theirs[message]
        if not theirs:
            del self._by_partner[message.partner]
        self._unexpected.remove(message)
