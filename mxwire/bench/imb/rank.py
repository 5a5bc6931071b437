"""A live rank as a process: ``python -m mxwire.bench.imb.rank``.

The first line of standard input is its setup as JSON; each further one is a measurement, which is answered by a line
with the times of all repetitions in ns, or with an error. The end of the input ends the rank.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields
from typing import Any

from mxwire.bench.imb.carriers import EndpointCommunicator, RankSetup, StreamCommunicator, open_communicator
from mxwire.bench.imb.collectives import barrier_dissemination
from mxwire.bench.imb.patterns import benchmark_by_name, measured
from mxwire.errors import MxwireError
from mxwire.interop.namespaces import inside


def setup_of(record: dict[str, Any]) -> RankSetup:
    """The setup of a JSON object."""
    known = {each.name for each in fields(RankSetup)}
    places = tuple((address, ip, number) for address, ip, number in record.pop("places"))
    return RankSetup(places=places, **{name: value for name, value in record.items() if name in known})


def main() -> None:
    """Run the rank of standard input."""
    setup = setup_of(json.loads(sys.stdin.readline()))
    if setup.processor is not None:
        os.sched_setaffinity(0, {setup.processor})
    try:
        # Connections, too, belong to the namespace in which they are made.
        with inside(setup.namespace):
            _serve(open_communicator(setup))
    except (MxwireError, OSError) as error:
        _answer({"error": str(error)})


def _serve(comm: EndpointCommunicator | StreamCommunicator) -> None:
    """Connect when all ranks have opened, then measure what is requested."""
    try:
        _answer({"ready": True})
        if not sys.stdin.readline():
            return
        comm.connect()
        comm.run(barrier_dissemination(comm))
        _answer({"connected": True})
        for line in sys.stdin:
            _answer(_measure(comm, json.loads(line)))
    finally:
        comm.close()


def _measure(comm: EndpointCommunicator | StreamCommunicator, request: dict[str, Any]) -> dict[str, Any]:
    benchmark = benchmark_by_name(request["benchmark"])
    length, algorithm = request["length"], request["algorithm"]
    before = comm.counts()
    program = measured(comm, lambda rank: benchmark.make(rank, length, algorithm), request["warmup"], request["count"])
    times = comm.run(program)
    counts = {name: value - before[name] for name, value in comm.counts().items()}
    return {"times": times, "counts": counts}


def _answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
