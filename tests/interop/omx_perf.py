"""A stand-in for a real ``omx_perf``, in both roles, as a process: what it puts on the wire is an Open-MX host's.

It is written from the specification of the application protocol and from recordings, and is independent of ``mxwire
perf``, which is tested against it. The receiver is the one that the matrix plays (``mxwire.interop.programs``). ::

    python -m tests.interop.omx_perf -i veth1 --name node7:0 -s
    python -m tests.interop.omx_perf -i veth1 --name node7:0 -d alpha:0 -N 3 -W 1
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from mxwire.host.perf.parameters import MATCH, PerfParameters
from mxwire.interop.cell_player import casting_of
from mxwire.interop.impairments import treatment_by_name
from mxwire.interop.implementations import implementation_by_name
from mxwire.interop.live_testbed import LiveTestbed
from mxwire.interop.programs import start
from mxwire.interop.roles import EndpointAddress
from mxwire.interop.testbed import Testbed
from mxwire.link import PacketLink

FOR_EVER = 1e6
"""Seconds."""
SENDERS_ENDPOINT = 2


def open_testbed(interface: str, name: str, implementation: str) -> LiveTestbed:
    """A host on an interface, with sessions of its own each time."""
    casting = casting_of(implementation_by_name(implementation), name.partition(":")[0])
    links = (PacketLink.open(interface),)
    seed = time.time_ns()
    return LiveTestbed((casting,), links, treatment_by_name("none"), seed, introduction="announcements", patience=30)


def send(testbed: Testbed, to: str, parameters: PerfParameters) -> None:
    """Measure as the sender of omx_perf: from a buffer that is never filled, with one message under way at a time.

    The receive is posted when the send has completed, and the endpoint is closed right after the last answer.
    """
    testbed.until(lambda: testbed.left.node.peers.by_name(to) is not None)
    end = testbed.left.open(SENDERS_ENDPOINT)
    partner = end.connect(EndpointAddress(to, 0))
    end.wait(end.send(partner, parameters.pack(), MATCH, synchronous=True))
    end.took(end.receive(0, 0, 0), b"", match_info=0)
    for length in parameters.lengths():
        for _ in range(parameters.warmup + parameters.iterations):
            end.wait(end.send(partner, bytes(length), MATCH, synchronous=parameters.synchronous))
            answer = end.receive(length, MATCH)
            transferred = end.wait(answer).transferred
            assert transferred == parameters.answer_length(length), (transferred, length)
        print(f"length {length:9}", flush=True)
    end.close()


def main(words: Sequence[str]) -> None:
    """Play a role until it is over; the receiver until it is interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", dest="interface", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--implementation", default="open-mx-1.5-as-found")
    parser.add_argument("-s", dest="slave", action="store_true")
    parser.add_argument("-d", dest="destination")
    for letter, name, default in ("N", "iterations", 3), ("W", "warmup", 1), ("S", "start", 0), ("E", "end", 100_000):
        parser.add_argument(f"-{letter}", dest=name, type=int, default=default)
    parser.add_argument("-M", dest="multiplier", type=int, default=16)
    parser.add_argument("-U", dest="unidirectional", action="store_true")
    parser.add_argument("-Y", dest="synchronous", action="store_true")
    given = vars(parser.parse_args(words))
    testbed = open_testbed(given.pop("interface"), given.pop("name"), given.pop("implementation"))
    destination = given.pop("destination")
    if given.pop("slave"):
        testbed.applications.append(start(testbed.left, "perf"))
        print("listening", flush=True)
        testbed.until(lambda: False, FOR_EVER)
    else:
        send(testbed, destination, PerfParameters(**given))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
