"""The program of several senders with one receiver, each pair with a mechanism of its own.

    python -m mxwire.bench.intranode.senders MECHANISM PROCESSOR PROCESSOR

It reads lines ``senders SENDERS SIZE COUNT``. Each sender gives ``COUNT`` messages, which the receiver takes from all
of them in turn. The program writes one line of JSON: the time per message, and the processor time of the receiver and
of the senders per message, in ns; the places that the receiver polls, and the bytes of shared memory; or an error. The
twin of ``cell-queue`` in C has one queue for all senders.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from functools import partial
from itertools import cycle

from mxwire.bench.intranode.catalogue import mechanism_named
from mxwire.bench.intranode.mechanism import Mechanism, MechanismError, Pool, run_program
from mxwire.lab.child import forked
from mxwire.lab.machine import pin


def _send(mechanism: Mechanism, size: int, count: int, processor: int) -> None:
    """Be a sender."""
    pin(processor)
    mechanism.join(1, os.getppid())
    mechanism.start()
    piece = Pool(size, full=True).piece(0, size)
    for _ in range(count):
        mechanism.give(piece)


def receive(name: str, senders: int, size: int, count: int, processors: list[int]) -> dict[str, float]:
    """Take all messages, and return the times per message.

    Raises :class:`~mxwire.bench.intranode.mechanism.MechanismError` if a sender fails, or sends other data.
    """
    mechanisms = [mechanism_named(name)() for _ in range(senders)]
    others = cycle(processors[1:])
    children = [forked(partial(_send, each, size, count, next(others))) for each in mechanisms]
    pin(processors[0])
    own_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    for each, child in zip(mechanisms, children, strict=True):
        each.join(0, child)
        each.start()
    pool = Pool(size, full=False)
    piece = pool.piece(0, size)
    begin, before = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(count):
        for each in mechanisms:
            arrived = each.take(piece)
            pool.check(piece, piece.view if arrived is None else arrived)
    took, own = time.perf_counter_ns() - begin, time.process_time_ns() - before
    codes = [os.waitpid(child, 0)[1] for child in children]
    if any(codes):
        raise MechanismError("a sender has failed")
    memory = sum(each.shared_bytes for each in mechanisms)
    for each in mechanisms:
        each.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    messages = senders * count
    sending = (used.ru_utime + used.ru_stime - own_children.ru_utime - own_children.ru_stime) * 1e9
    times = {"ns": took / messages, "receiver": own / messages, "senders": sending / messages}
    return times | {"places": len(mechanisms), "memory": memory}


def _serve() -> None:
    """Answer the lines of standard input."""
    name, *processors = sys.argv[1:]
    for line in sys.stdin:
        senders, size, count = map(int, line.split()[1:])
        print(json.dumps(receive(name, senders, size, count, list(map(int, processors)))), flush=True)


if __name__ == "__main__":
    sys.exit(run_program(_serve))
