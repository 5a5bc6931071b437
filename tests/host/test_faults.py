"""Live hosts over links that lose, repeat, reorder and delay frames, in real time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from mxwire.host import AsyncHost, Host
from mxwire.link import FaultyLink, MemoryNetwork
from mxwire.link.faults import Faults
from mxwire.protocol import Status

from .exchanges import content

SIZES = [0, 10, 100, 3000, 30_000, 400_000] * 2
PATIENCE = 60.0
FAULTS = {
    "loss": Faults(loss=0.05),
    "duplicates": Faults(duplicate=0.1),
    "reordering": Faults(reorder=0.1),
    "all": Faults(loss=0.03, duplicate=0.05, reorder=0.05, delay=0.0005),
}


def links(faults: Faults) -> list[FaultyLink]:
    network = MemoryNetwork()
    found = [network.attach(), network.attach()]
    return [FaultyLink(each, seed=seed, sending=faults) for seed, each in enumerate(found)]


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS)
def test_every_message_arrives_once_and_as_it_was(faults):
    ends = links(faults)
    peers = {each.address: name for each, name in zip(ends, ("alpha", "beta"), strict=True)}
    with Host(ends[0], name="alpha", peers=peers) as alpha, Host(ends[1], name="beta", peers=peers) as beta:
        one, two = alpha.open_endpoint(), beta.open_endpoint(3)
        partner = one.connect("beta", 3, timeout=PATIENCE)
        with ThreadPoolExecutor(1) as pool:
            sent = [one.issend(partner, content(size, number), number) for number, size in enumerate(SIZES)]
            ended = pool.submit(one.wait_all, sent, PATIENCE)
            for number, size in reversed(list(enumerate(SIZES))):
                assert bytes(two.receive(number, timeout=PATIENCE)) == content(size, number)
            assert ended.result() == [Status.SUCCESS] * len(SIZES)
        one.flush(PATIENCE)
        assert two.iprobe() is None and one.undelivered == 0
        faulty = ends[0].faults_sending
        assert sum(getattr(faulty, each) for each in ("lost", "duplicated", "reordered")) > 0


def test_the_asyncio_face_recovers_from_losses_as_well():
    async def play() -> None:
        ends = links(FAULTS["loss"])
        peers = {each.address: name for each, name in zip(ends, ("alpha", "beta"), strict=True)}
        async with AsyncHost(ends[0], name="alpha", peers=peers) as alpha, AsyncHost(ends[1], name="beta") as beta:
            beta.add_peer(ends[0].address, "alpha")
            one, two = alpha.open_endpoint(), beta.open_endpoint(3)
            partner = await one.connect("beta", 3, timeout=PATIENCE)
            sent = [one.isend(partner, content(size, number), number) for number, size in enumerate(SIZES)]
            for number, size in enumerate(SIZES):
                assert bytes(await two.receive(number, timeout=PATIENCE)) == content(size, number)
            await one.wait_all(sent, PATIENCE)
            await one.flush(PATIENCE)

    asyncio.run(play())
