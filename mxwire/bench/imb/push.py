"""Large messages by push, as MPICH on GM has them: RTS, CTS and data, over any communicator.

The receiver's rank must see the RTS in a call, and the sender's the CTS, before the data leave. RTS and CTS are
messages without data; short messages are those of the communicator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mxwire.bench.imb.communicator import Buffer, Operation
from mxwire.wire.numbers import RENDEZVOUS_THRESHOLD

_RTS, _CTS, _DATA = (1 << 28, 2 << 28, 3 << 28)
"""Tags of the messages of a push, above those of the application."""
_NOTHING: Final = np.zeros(0, np.uint8)


class PushOperation:
    """A send or receive in three steps: ``posted`` at once, and done with its data."""

    posted = True

    def __init__(self, first: Operation, rank: int, data: Buffer, tag: int) -> None:
        self.waits = first
        self.rank, self.payload, self.tag = rank, data, tag
        self.data: Operation | None = None

    @property
    def done(self) -> bool:
        """True if the data have been sent or received."""
        return self.data is not None and self.data.done


class Pushes:
    """The large messages of a rank; ``isend`` and ``irecv`` post messages of its communicator."""

    def __init__(self, isend: Callable[..., Any], irecv: Callable[..., Any]) -> None:
        self._isend, self._irecv = isend, irecv
        self._sends: list[PushOperation] = []
        self._receives: list[PushOperation] = []

    def isend(self, target: int, data: Buffer, tag: int = 0) -> Any:
        """Post a send; of a large message only the RTS leaves now."""
        if data.nbytes <= RENDEZVOUS_THRESHOLD:
            return self._isend(target, data, tag)
        self._isend(target, _NOTHING, tag | _RTS)
        self._sends.append(PushOperation(self._irecv(target, _NOTHING, tag | _CTS), target, data, tag))
        return self._sends[-1]

    def irecv(self, source: int, data: Buffer, tag: int = 0) -> Any:
        """Post a receive; that of a large message waits for its RTS."""
        if data.nbytes <= RENDEZVOUS_THRESHOLD:
            return self._irecv(source, data, tag)
        self._receives.append(PushOperation(self._irecv(source, _NOTHING, tag | _RTS), source, data, tag))
        return self._receives[-1]

    def advance(self) -> None:
        """Take the next steps of large messages, within a call."""
        for each in [each for each in self._sends if each.waits.done]:
            self._sends.remove(each)
            each.data = self._isend(each.rank, each.payload, each.tag | _DATA)
        for each in [each for each in self._receives if each.waits.done]:
            self._receives.remove(each)
            each.data = self._irecv(each.rank, each.payload, each.tag | _DATA)
            self._isend(each.rank, _NOTHING, each.tag | _CTS)

    @property
    def steps(self) -> list[Operation]:
        """The operations after which a large message can take its next step."""
        return [each.waits for each in (*self._sends, *self._receives)]
