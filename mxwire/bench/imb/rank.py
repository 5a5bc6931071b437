"""A live rank as a process: ``python -m mxwire.bench.imb.rank``.

It uses the protocol of the sides of a testbed (``bench/worker.py``): the first line of standard input is its setup,
each further one a role with its parameters, answered by ``ready`` and then by a result or an error. The roles are
``connect``, ``measure`` (a benchmark of IMB), ``open`` (open the communicator from scratch, with other values of the
setup) and ``play`` (a program of ``bench overlap``; the result has its ``answer``, and by process ``used``: the ns for
which it has run, and has waited for a processor). The end of the input ends the rank.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np

from mxwire.bench.imb.carriers import EndpointCommunicator, RankSetup, StreamCommunicator, open_communicator
from mxwire.bench.imb.collectives import barrier_dissemination
from mxwire.bench.imb.patterns import benchmark_by_name
from mxwire.bench.overlap_programs import OVERLAP_PROGRAMS
from mxwire.bench.processors import read_use, scheduled
from mxwire.bench.worker import answer, serve
from mxwire.native import is_compiled

MODULE: Final = "mxwire.bench.imb.rank"
"""This module, as a program."""


def setup_of(record: dict[str, Any]) -> RankSetup:
    """The setup of a JSON object."""
    known = {each.name for each in fields(RankSetup)}
    places = tuple((address, ip, number) for address, ip, number in record.pop("places"))
    return RankSetup(places=places, **{name: value for name, value in record.items() if name in known})


class RankProgram:
    """A rank, which plays roles."""

    comm: EndpointCommunicator | StreamCommunicator

    def __init__(self, setup: RankSetup) -> None:
        self._setup = setup

    def about(self) -> dict[str, Any]:
        """Open the communicator."""
        self.comm = open_communicator(self._setup)
        return {"compiled": is_compiled(), "pid": os.getpid()}

    def play(self, request: dict[str, Any]) -> dict[str, Any]:
        """Play a role."""
        answer(ready=True)
        return _ROLES[request["role"]](self, **request["parameters"])

    def _connect(self) -> dict[str, Any]:
        self.comm.connect()
        self.comm.run(barrier_dissemination(self.comm))
        return {}

    def _open(self, **changes: Any) -> dict[str, list[int]]:
        self.comm.close()
        self.comm = open_communicator(replace(self._setup, **changes))
        return self.comm.processors()

    def _play(self, slept: bool, program: str, **parameters: Any) -> dict[str, Any]:
        comm, parties = self.comm, self.comm.parties()
        comm.slept = slept
        function = OVERLAP_PROGRAMS[program](**parameters)
        before = [scheduled(process) for process in parties.values()]
        found = comm.run(function(comm))
        after = [scheduled(process) for process in parties.values()]
        used = zip(parties, np.subtract(after, before).tolist(), strict=True)
        return {"answer": found, "used": dict(used)}

    def _measure(self, benchmark: str, **parameters: Any) -> dict[str, Any]:
        comm = self.comm
        before, used = comm.counts(), read_use()
        times = comm.run(benchmark_by_name(benchmark).program(comm, **parameters))
        frames = {name: value - before[name] for name, value in comm.counts().items()}
        return {"times": times, "frames": frames, "use": (read_use() - used).record()}

    def close(self) -> None:
        """Close the communicator, if it was opened."""
        if hasattr(self, "comm"):
            self.comm.close()


_ROLES: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "connect": RankProgram._connect,
    "open": RankProgram._open,
    "play": RankProgram._play,
    "measure": RankProgram._measure,
}


def main() -> None:
    """Run the rank of standard input."""
    setup = setup_of(json.loads(sys.stdin.readline()))
    rank = RankProgram(setup)
    serve(setup.namespace, setup.processor, rank.about, rank.play)
    rank.close()


if __name__ == "__main__":
    main()
