"""Ranks for the tests of the local path: processes on one interface, forked by one interpreter.

    python local_ranks.py FACE INTERFACE NAME:COUNT[,NAME:COUNT…] [copies]

There is a rank per endpoint of each host in the list; the first host is this one. Each rank connects to all others,
itself included, sends messages of all size classes to each, and checks the ones that it receives. An interface named
"memory…" has no wire, so that frames on it are lost. FACE is "blocking" or "asyncio"; with "match-" or "card-" before
it, every second rank is attached to the agent of the interface, with this progress.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import traceback
from inspect import isawaitable
from random import Random
from typing import Any

from mxwire.host import AsyncHost, Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork

PATIENCE = 60.0
SIZES = (0, 1, 32, 33, 128, 129, 4096, 4097, 32768, 32769, 1_000_000)

Member = tuple[str, int]
"""A rank: host name and endpoint number."""


def content(source: int, target: int, size: int) -> bytes:
    return Random(source << 40 | target << 32 | size).randbytes(size)


def number_of(member: Member) -> int:
    """Number of a rank, the same in all ranks."""
    return sum(member[0].encode()) << 8 & 0xFF00 | member[1]


def opened(kind: Any, interface: str, copies: int = 1, name: str = "ranks", agent: str = "") -> Any:
    """A host that shares an interface with other processes, or is attached to its agent."""
    if agent:
        return kind.open(interface, name=name, agent=agent)
    if interface.startswith("memory"):
        sharing = MachineSharing([interface])
        host = kind(MemoryNetwork().attach(), sharing=sharing, name=name, announce=False)
    else:
        host = kind.open(interface, name=name)
    host.sharing.path.single_copy = copies == 1
    return host


async def result_of(value: Any) -> Any:
    """A value of a blocking host, or of an awaitable of the other kind."""
    return await value if isawaitable(value) else value


async def talk(host: Any, me: Member, members: list[Member]) -> None:
    """Exchange messages with all members, through a host of either kind."""
    endpoint = host.open_endpoint(me[1])
    partners: dict[Member, Any] = {}
    limit = time.monotonic() + PATIENCE
    for member in members:
        while member not in partners:
            try:
                connected = endpoint.connect(f"{member[0]}:0", member[1], timeout=PATIENCE)
                partners[member] = await result_of(connected)
            except HostError:
                # That rank has not opened its endpoint yet.
                assert time.monotonic() < limit
                await asyncio.sleep(0.02)
    receives = {
        (source, size): endpoint.ireceive(number_of(source) << 32 | size, maximum=size)
        for source in members
        for size in SIZES[::2]
    }
    sends = [
        (endpoint.issend if size == 33 else endpoint.isend)(
            partners[target], content(number_of(me), number_of(target), size), number_of(me) << 32 | size
        )
        for size in SIZES
        for target in members
    ]

    async def take(source: Member) -> None:
        for size in SIZES:
            match = number_of(source) << 32 | size
            request = receives.get((source, size)) or endpoint.ireceive(match, maximum=size)
            message = await result_of(endpoint.wait(request, PATIENCE))
            assert bytes(message.data) == content(number_of(source), number_of(me), size), (source, size)
            assert message.partner is not None and message.partner.number == source[1]

    await asyncio.gather(*map(take, members))
    for each in sends:
        await result_of(endpoint.wait(each, PATIENCE))
    await result_of(endpoint.flush(PATIENCE))
    frames = host.core.links[0].statistics().sent
    assert frames == 0 or len({name for name, _ in members}) > 1, f"{frames} frames were sent"


async def blocking(*rank: Any) -> None:
    with opened(Host, *rank[:4]) as host:
        await talk(host, *rank[4:])


async def with_asyncio(*rank: Any) -> None:
    async with opened(AsyncHost, *rank[:4]) as host:
        await talk(host, *rank[4:])


def run_rank(face: str, interface: str, me: Member, members: list[Member], copies: int) -> int:
    try:
        agent = face.rpartition("-")[0] if me[1] % 2 == 0 else ""
        rank = blocking if face.endswith("blocking") else with_asyncio
        asyncio.run(rank(interface, copies, me[0], agent, me, members))
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> int:
    face, interface, hosts = sys.argv[1:4]
    copies = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    counts = {name: int(count) for name, count in (each.split(":") for each in hosts.split(","))}
    own = next(iter(counts))
    members = [(name, number) for name in sorted(counts) for number in range(counts[name])]
    children = []
    for number in range(counts[own]):
        child = os.fork()
        if not child:
            code = run_rank(face, interface, (own, number), members, copies)
            sys.stderr.flush()
            os._exit(code)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


if __name__ == "__main__":
    sys.exit(main())
