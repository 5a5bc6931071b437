"""The testbed in virtual time: both sides on modelled hosts, which take the times of a table of costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from mxwire.bench.channels.carriers import is_host, mtu_refusal
from mxwire.bench.channels.virtual import RankThread
from mxwire.bench.cost.hosts import EndpointFabric, ModelHostOptions
from mxwire.bench.cost.libraries import LibraryFabric
from mxwire.bench.cost.ranks import ModelFabric
from mxwire.bench.cost.streams import StreamFabric
from mxwire.bench.cost.tables import Costs
from mxwire.bench.models.catalogue import has_card, is_model
from mxwire.bench.record import VIRTUAL_TIME, Conditions
from mxwire.bench.testbed import Found, StudyTestbed, TestbedError
from mxwire.bench.worker import SideSetup, run_role
from mxwire.units import SECOND
from mxwire.wire.dialect import Dialect, as_dialect

MODELLED: Final = "modelled"
"""Mark of times that are those of a model."""


class VirtualTestbed(StudyTestbed):
    """Two hosts with the costs of a table, or of one table per host. Each run begins with new hosts.

    ``delay`` and ``coalescing`` are in seconds.
    """

    virtual = True
    marks = (MODELLED,)

    def __init__(
        self, costs: Costs | tuple[Costs, Costs], *, mtu: int = 9000, delay: float = 0.0, coalescing: float = 0.0
    ) -> None:
        super().__init__()
        self.tables = costs if isinstance(costs, tuple) else (costs, costs)
        self._mtu = mtu
        self._delay = delay
        self._coalescing = coalescing

    def host_options(self, place: int, dialect: Dialect, **more: Any) -> ModelHostOptions:
        """The options of a host of mxwire with the costs of its table."""
        return ModelHostOptions(self.tables[place], dialect, coalescing=self._coalescing * SECOND, **more)

    def fabric(self, hosts: Sequence[ModelHostOptions] | None, ranks: int = 2, *, blocks: bool = False) -> ModelFabric:
        """Make ranks on ``hosts`` of mxwire, or with None on hosts that use TCP.

        Raises :class:`~mxwire.bench.testbed.TestbedError` for TCP if the table has no costs of it.
        """
        delay, coalescing = self._delay * SECOND, self._coalescing * SECOND
        if hosts is None:
            reason = self.can_use("tcp")
            if reason is not None:
                raise TestbedError(f"tcp: {reason}")
            return StreamFabric(self.tables[0], ranks, mtu=self._mtu, coalescing=coalescing, delay=delay, blocks=blocks)
        return EndpointFabric(hosts, ranks, delay=delay, blocks=blocks)

    def _pair(self, parameters: Found) -> ModelFabric:
        carrier = str(parameters.get("carrier"))
        if carrier == "tcp":
            return self.fabric(None)
        if is_model(carrier):
            sizes = parameters.get("sizes", [parameters.get("size", 0)])
            depth, delay = parameters.get("depth", 2), self._delay * SECOND
            return LibraryFabric(self.tables[0], carrier, size=max(sizes), depth=depth, delay=delay)
        dialect = as_dialect(carrier)
        return self.fabric([self.host_options(place, dialect) for place in range(len(self.tables))])

    def can_use(self, carrier: str) -> str | None:
        """Return the reason why a carrier cannot be used: there are mxwire's hosts, TCP and libraries."""
        if has_card(carrier):
            return "the card of each library is modelled in virtual time, too"
        if is_model(carrier):
            named = self.tables[0].name
            return (
                None if self.tables[0].firmware else f"the cost table {named} has no costs of an adapter with firmware"
            )
        if carrier == "tcp":
            return None if self.tables[0].models_tcp else f"the cost table {self.tables[0].name} has no costs of TCP"
        if not is_host(carrier) or "xdp" in carrier:
            return "not in virtual time"
        return mtu_refusal(carrier, self._mtu)

    def run_alone(self, role: str, **parameters: Any) -> Found:
        """Refuse: a role without a channel has no virtual time."""
        raise TestbedError(f"{role}: not in virtual time")

    def _run(self, role: str, parameters: Found) -> tuple[Found, Found]:
        fabric = self._pair(parameters)
        request = {"role": role, "parameters": parameters}
        threads = []
        for rank in fabric.ranks:
            setup = SideSetup("", active=rank.rank == 0)
            play = partial(_play, setup, request)
            threads.append(RankThread(rank, play))
        try:
            found = fabric.run(lambda comm: threads[comm.rank].program())
        finally:
            for each in threads:
                each.abandon()
        # The use of processors is that of the model's own process.
        active, passive = ({key: value for key, value in each.items() if key != "use"} for each in found)
        return active, passive

    @property
    def conditions(self) -> Conditions:
        """The circumstances, with the table of costs of the first host."""
        return self._conditions(f"{VIRTUAL_TIME}, {self.tables[0].name}", delay=self._delay)


def _play(setup: SideSetup, request: Found, thread: RankThread) -> Found:
    return run_role(setup, request, lambda: None, thread=thread)
