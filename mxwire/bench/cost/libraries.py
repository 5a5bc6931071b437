"""The five libraries of 1998 as data paths in virtual time, on the hosts of the table ``myrinet-1998``.

Theory of operation
===================

A message is cut into packets. Each passes five stations in order: the sender's processor, the sender's adapter, the
link, the receiver's adapter and the receiver's processor. A station handles one packet after another, so a packet
leaves it at max(arrival, end of the packet before) + cost. The paper's tables 1 to 3 decide the costs of a library, as
the models of :mod:`mxwire.bench.models` have them: a processor writes short messages to the adapter word by word, or
copies a message, or leaves a descriptor; a send returns when its buffer may be reused, or at once.

Neither the calls of the libraries nor their recovery are modelled. LogP and bandwidths are measured by the paper's
fragments, as :mod:`mxwire.bench.logp` does live. All libraries use one table. The numbers to which it was fitted, and
those that only repeat a data path, are not evidence for a claim.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mxwire.bench.cost.tables import MYRINET_FITTED, Costs, FittedNumber
from mxwire.bench.models import active_messages, bip, vmmc2
from mxwire.bench.models.catalogue import MODELS

HEADER: Final = 16
"""Bytes of a header; not in the paper."""
WORD: Final = 4
LINE: Final = 32
"""Bytes of a cache line, which write combining transfers at once."""
_WINDOW: Final = 8
"""Messages in flight before a sender waits for one to be consumed; not in the paper."""
_FLOOD: Final = 32
"""Messages of a flood, whose second half is the steady state."""
_BURST: Final = 4
"""Messages that no sender waits for."""
_WORK: Final = (1.5, 2.0, 3.0)
"""Work of the loaded floods, as multiples of the interval without work."""
_FIT_CHANGE: Final = 0.02
_FIT_WEIGHT: Final = 0.02


@dataclass(frozen=True, slots=True)
class DataPath:
    """The data path of a library. Lengths are in bytes."""

    name: str
    packet: int = 4096
    """Maximum packet length."""
    written: int = 0
    """Maximum length of messages that the processor writes to the adapter; longer messages are transferred by DMA."""
    combined: bool = False
    """True if writes are combined into lines."""
    copied: bool = False
    """True if the sender copies what it does not write, and waits for the DMA."""
    receive_copies: bool = False
    returns_at_once: bool = False
    """True if a send by DMA returns when its descriptor is written."""
    waits_for_receive: bool = False
    """True if a send by DMA waits for the receive to be posted, and returns when the message has been delivered."""
    protected: bool = False
    reliable: bool = False
    replies: bool = False
    """True if each message is a request that is answered."""
    deposits: bool = False
    """True if the receiver's processor takes no part."""
    cuts_through: bool = False
    """True if a packet enters the network while its DMA still runs."""


def _path(name: str, model: str, **more: Any) -> DataPath:
    """The data path of a model, which its rows of tables 1 to 3 decide, except for ``more``."""
    facts = MODELS[model].facts
    gathered, to_adapter, _, delivered, taken = facts.stages
    return DataPath(
        name,
        MODELS[model].payload,
        copied=gathered != "-",
        receive_copies=taken != "-",
        # A stage that is part of L occupies no processor; BIP's sender is occupied until the message is delivered.
        returns_at_once=to_adapter == "L",
        waits_for_receive=delivered == "o_s",
        protected=facts.within,
        reliable=facts.reliability == "firmware",
        replies=facts.model == "RPC",
        deposits=facts.model == "direct deposit",
        **more,
    )


LIBRARIES: Final = (
    _path("AM", "gam", written=active_messages.SHORT, combined=True),
    _path("BIP", "bip", written=bip.SHORT - WORD),
    _path("FM", "fm2", written=1 << 30, combined=True),
    _path("PM", "pm", cuts_through=True),
    _path("VMMC", "vmmc2", written=vmmc2.WRITTEN),
)
"""The measured libraries. The packets of FM are a guess."""


@dataclass(slots=True)
class _Stations:
    """Times in ns at which the stations of a direction are free."""

    sender: float = 0.0
    adapter: float = 0.0
    link: float = 0.0
    delivery: float = 0.0
    receiver: float = 0.0
    posted: float = 0.0
    """Time at which the next receive was posted."""
    consumed: deque[float] = field(default_factory=deque)
    """Times at which the last messages were consumed."""


class LibraryPair:
    """Two hosts of a table with one of the libraries, and the paper's fragments. Times are in ns."""

    def __init__(self, costs: Costs, path: DataPath) -> None:
        self._costs = costs
        self._path = path

    def half_round_trip(self, size: int) -> float:
        """The time from the call of a send until the message has been received."""
        return self._message(_Stations(), size, synchronised=False)

    def interval(self, size: int, *, work: float = 0.0, received_work: float = 0.0, synchronised: bool = True) -> float:
        """The interval of messages in the steady state, with work after each send or receive.

        With ``synchronised``, a library whose receives must be posted beforehand exchanges a message to ensure this.
        """
        stations, times = _Stations(), []
        for _ in range(_FLOOD):
            self._message(stations, size, synchronised=synchronised)
            stations.sender += work
            stations.receiver += received_work
            times.append(max(stations.sender, stations.receiver) if received_work else stations.sender)
        half = _FLOOD // 2
        return (times[-1] - times[half - 1]) / half

    def send_overhead(self, size: int) -> float:
        """The time that the sender's processor spends on a message."""
        if self._path.replies:
            stations = _Stations()
            for _ in range(_BURST):
                self._message(stations, size, answered=False)
            return stations.sender / _BURST
        gap = self.interval(size)
        return sum(self.interval(size, work=each * gap) - each * gap for each in _WORK) / len(_WORK)

    def receive_overhead(self, size: int) -> float:
        """The time that the receiver's processor spends on a message; 0 if it takes no part."""
        if self._path.deposits:
            return 0.0
        gap = self.interval(size)
        return sum(self.interval(size, received_work=each * gap) - each * gap for each in _WORK) / len(_WORK)

    def _message(self, stations: _Stations, size: int, *, synchronised: bool = True, answered: bool = True) -> float:
        """Send a message, and return the time at which it has been received."""
        costs, path = self._costs, self._path
        dma = size > path.written
        consumed = stations.consumed
        if len(consumed) == _WINDOW:
            stations.sender = max(stations.sender, consumed.popleft())
        if dma and path.waits_for_receive and synchronised:
            # The receiver announces each receive by a short message.
            stations.sender = max(stations.sender, stations.posted + self.half_round_trip(WORD))
        stations.sender += costs.call
        if path.protected and not path.deposits:
            stations.sender += costs.protection
        if path.replies:
            stations.sender += costs.request
        places = range(0, max(size, 1), path.packet)
        for place in places:
            length = min(path.packet, size - place)
            self._packet(stations, length, dma)
        if path.deposits:
            stations.receiver = stations.delivery
        else:
            stations.receiver = max(stations.receiver, stations.delivery) + self._receive_call()
        if dma and path.waits_for_receive:
            stations.sender = max(stations.sender, stations.delivery)
        if path.replies:
            # The handler answers before the message counts as received.
            stations.receiver += costs.request + self._written(0)
            if answered:
                stations.sender += costs.call
        stations.posted = stations.receiver
        consumed.append(stations.receiver)
        return stations.receiver

    def _receive_call(self) -> float:
        return self._costs.call + (self._costs.protection if self._path.protected else 0.0)

    def _packet(self, stations: _Stations, length: int, dma: bool) -> None:
        costs, path = self._costs, self._path
        whole = length + HEADER
        stations.sender += self._written(0 if dma else length)
        if dma and path.copied:
            stations.sender += length * costs.copy_cold
        handling = costs.firmware
        if path.deposits:
            handling += costs.protection
        if path.reliable:
            handling += costs.reliability
        transfer = length * costs.to_adapter if dma else 0.0
        started = max(stations.sender, stations.adapter) + handling + (costs.dma_start if dma else 0.0)
        stations.adapter = started + transfer
        if dma and path.copied:
            stations.sender = stations.adapter
        ready = started if path.cuts_through else stations.adapter
        on_link = whole * 8e9 / costs.line
        stations.link = max(max(ready, stations.link) + on_link, stations.adapter)
        arrival = stations.link + costs.adapter_send
        stations.delivery = max(arrival, stations.delivery) + handling + costs.dma_start + whole * costs.from_adapter
        if path.receive_copies:
            stations.receiver = max(stations.receiver, stations.delivery) + length * costs.copy_warm

    def _written(self, length: int) -> float:
        """The time in which the processor writes a header and ``length`` bytes to the adapter."""
        whole = length + HEADER
        if self._path.combined:
            return -(-whole // LINE) * self._costs.pio_line
        return -(-whole // WORD) * self._costs.pio_word


def numbers_of(costs: Costs) -> dict[FittedNumber, float]:
    """The numbers to which a table was fitted, with what the model finds."""
    pairs = {each.name: LibraryPair(costs, each) for each in LIBRARIES}
    numbers = {}
    for each in costs.fitted_to:
        pair, size = pairs[each.name], int(each.x)
        if each.series == "bandwidth":
            numbers[each] = size / pair.interval(size) * 1e3
        else:
            numbers[each] = (pair.interval(size) if each.series == "g" else pair.half_round_trip(size)) / 1e3
    return numbers


def fit(costs: Costs, names: Sequence[str] = MYRINET_FITTED, steps: int = 12) -> Costs:
    """Fit the values ``names`` of a table to the numbers that it states, by least squares of their ratios.

    The fit starts at the present values and is weakly bound to them, so that a value on which no number depends is
    unchanged.
    """
    start = np.log([getattr(costs, each) for each in names])

    def table(values: NDArray[np.float64]) -> Costs:
        fitted: dict[str, Any] = dict(zip(names, map(float, np.exp(values)), strict=True))
        return replace(costs, **fitted)

    def errors(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([log(found / each.value) for each, found in numbers_of(table(values)).items()])

    values, unit = start, np.eye(len(names))
    for _ in range(steps):
        error = errors(values)
        slopes = np.array([(errors(values + _FIT_CHANGE * each) - error) / _FIT_CHANGE for each in unit]).T
        weighted = np.vstack([slopes, _FIT_WEIGHT * unit])
        step, *_ = np.linalg.lstsq(weighted, -np.concatenate([error, _FIT_WEIGHT * (values - start)]), rcond=None)
        values = values + np.clip(step, -0.5, 0.5)
    return table(values)
