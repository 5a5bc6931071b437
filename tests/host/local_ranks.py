"""Processes on one interface for the tests of the local path: ranks that are forked by one interpreter.

    python local_ranks.py NAME FACE COUNT [copies]

Each opens the endpoint of its rank, connects to all, sends messages of all size classes to each and checks what it
receives. The interface has no wire, so that whatever would leave is lost. FACE is "blocking" or "asyncio".
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import traceback
from random import Random
from typing import Any

from mxwire.host import AsyncHost, Host, HostError
from mxwire.host.sharing import MachineSharing
from mxwire.link import MemoryNetwork

PATIENCE = 60.0
SIZES = (0, 1, 32, 33, 128, 129, 4096, 4097, 32768, 32769, 1_000_000)


def content(source: int, target: int, size: int) -> bytes:
    return Random(source << 40 | target << 32 | size).randbytes(size)


def opened(kind: Any, name: str, copies: int = 1) -> Any:
    """A host that shares the interface ``name`` with other processes."""
    sharing = MachineSharing([name])
    sharing.path.single_copy = copies == 1
    return kind(MemoryNetwork().attach(), sharing=sharing, name="ranks", announce=False)


def blocking(name: str, rank: int, count: int, copies: int) -> None:
    with opened(Host, name, copies) as host:
        endpoint = host.open_endpoint(rank)
        partners = []
        limit = time.monotonic() + PATIENCE
        while len(partners) < count:
            try:
                partners.append(endpoint.connect(host.name, len(partners), timeout=PATIENCE))
            except HostError:
                # That rank has not opened its endpoint yet.
                assert time.monotonic() < limit
                time.sleep(0.02)
        receives = {
            (source, size): endpoint.ireceive(source << 32 | size, maximum=size)
            for source in range(count)
            for size in SIZES[::2]
        }
        sends = [
            (endpoint.issend if size == 33 else endpoint.isend)(partner, content(rank, target, size), rank << 32 | size)
            for size in SIZES
            for target, partner in enumerate(partners)
        ]
        for source in range(count):
            for size in SIZES:
                request = receives.get((source, size)) or endpoint.ireceive(source << 32 | size, maximum=size)
                message = endpoint.wait(request, PATIENCE)
                assert bytes(message.data) == content(source, rank, size), (source, size)
                assert message.partner is not None and message.partner.number == source
        for each in sends:
            endpoint.wait(each, PATIENCE)
        frames = host.core.links[0].statistics().sent
        assert not frames, f"{frames} frames were sent"


async def with_asyncio(name: str, rank: int, count: int, copies: int) -> None:
    host = opened(AsyncHost, name, copies)
    async with host:
        endpoint = host.open_endpoint(rank)
        partners = []
        limit = time.monotonic() + PATIENCE
        while len(partners) < count:
            try:
                partners.append(await endpoint.connect(host.name, len(partners), timeout=PATIENCE))
            except HostError:
                assert time.monotonic() < limit
                await asyncio.sleep(0.02)
        sends = [
            endpoint.isend(partner, content(rank, target, size), rank << 32 | size)
            for size in SIZES
            for target, partner in enumerate(partners)
        ]

        async def take(source: int) -> None:
            for size in SIZES:
                message = await endpoint.receive(source << 32 | size, timeout=PATIENCE)
                assert bytes(message.data) == content(source, rank, size), (source, size)

        await asyncio.gather(*(take(source) for source in range(count)))
        for each in sends:
            await endpoint.wait(each, PATIENCE)


def main() -> int:
    name, face, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    copies = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    children = []
    for rank in range(count):
        child = os.fork()
        if not child:
            code = 1
            try:
                if face == "blocking":
                    blocking(name, rank, count, copies)
                else:
                    asyncio.run(with_asyncio(name, rank, count, copies))
                code = 0
            except BaseException:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


if __name__ == "__main__":
    sys.exit(main())
