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
from dataclasses import fields, replace
from typing import Any, Final

from mxwire.bench.imb.carriers import EndpointCommunicator, RankSetup, StreamCommunicator, open_communicator
from mxwire.bench.imb.collectives import barrier_dissemination
from mxwire.bench.imb.patterns import benchmark_by_name
from mxwire.bench.overlap_programs import OVERLAP_PROGRAMS
from mxwire.bench.processors import read_use, scheduled
from mxwire.errors import MxwireError
from mxwire.lab.machine import pin
from mxwire.lab.namespaces import inside
from mxwire.native import is_compiled

MODULE: Final = "mxwire.bench.imb.rank"
"""This module, as a program."""


def setup_of(record: dict[str, Any]) -> RankSetup:
    """The setup of a JSON object."""
    known = {each.name for each in fields(RankSetup)}
    places = tuple((address, ip, number) for address, ip, number in record.pop("places"))
    return RankSetup(places=places, **{name: value for name, value in record.items() if name in known})


def main() -> None:
    """Run the rank of standard input."""
    setup = setup_of(json.loads(sys.stdin.readline()))
    try:
        pin(setup.processor)
        # Connections, too, belong to the namespace in which they are made.
        with inside(setup.namespace):
            _serve(setup)
    except (MxwireError, OSError) as error:
        _answer({"error": str(error)})


def _serve(setup: RankSetup) -> None:
    comm = open_communicator(setup)
    try:
        _answer({"side": {"compiled": is_compiled(), "pid": os.getpid()}})
        for line in sys.stdin:
            request = json.loads(line)
            _answer({"ready": True})
            parameters = request["parameters"]
            if request["role"] == "connect":
                comm.connect()
                comm.run(barrier_dissemination(comm))
                _answer({"result": {}})
            elif request["role"] == "open":
                comm.close()
                comm = open_communicator(replace(setup, **parameters))
                _answer({"result": comm.processors()})
            elif request["role"] == "play":
                comm.slept = parameters.pop("slept")
                program = OVERLAP_PROGRAMS[parameters.pop("program")](**parameters)
                before = {name: scheduled(process) for name, process in comm.parties().items()}
                answer = comm.run(program(comm))
                used = {name: _since(scheduled(comm.parties()[name]), earlier) for name, earlier in before.items()}
                _answer({"result": {"answer": answer, "used": used}})
            else:
                _answer({"result": _measure(comm, parameters)})
    finally:
        comm.close()


def _since(now: tuple[int, int], earlier: tuple[int, int]) -> tuple[int, int]:
    return now[0] - earlier[0], now[1] - earlier[1]


def _measure(comm: EndpointCommunicator | StreamCommunicator, asked: dict[str, Any]) -> dict[str, Any]:
    benchmark = benchmark_by_name(asked["benchmark"])
    before, used = comm.counts(), read_use()
    parameters = {each: asked[each] for each in ("length", "algorithm", "warmup", "count")}
    times = comm.run(benchmark.program(comm, **parameters))
    frames = {name: value - before[name] for name, value in comm.counts().items()}
    return {"times": times, "frames": frames, "use": (read_use() - used).record()}


def _answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
