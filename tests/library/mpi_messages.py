"""A program of mpi4py for two or more ranks; each part raises at the first wrong value. Rank 0 prints "right"."""

from array import array
from threading import Thread

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size


def content(length: int, seed: int) -> bytearray:
    return bytearray((place * 7 + seed) % 256 for place in range(length))


def require(condition: bool) -> None:
    if not condition:
        world.Abort(1)


def reverse() -> None:
    """Long unexpected messages with one tag from all ranks, received in reverse order of rank."""
    for length in (0, 100, 32_753, 200_000):
        if rank:
            request = world.Isend(content(length, rank), 0, 7)
            world.Ssend(b"", 0, 8)
            request.Wait()
            continue
        for source in range(1, size):
            world.Recv(bytearray(), source, 8)
        for source in reversed(range(1, size)):
            place = bytearray(length)
            world.Recv(place, source, 7)
            require(place == content(length, source))


def probes() -> None:
    """Probe, Mprobe and Improbe from any source."""
    if rank:
        for tag in range(3):
            world.Send(content(40_000, rank + tag), 0, tag)
        return
    for tag in range(3):
        for _ in range(size - 1):
            status = MPI.Status()
            if tag == 0:
                world.Probe(tag=tag, status=status)
                message = world.Mprobe(status.source, tag)
            elif tag == 1:
                message = world.Mprobe(tag=tag, status=status)
            else:
                message = None
                while message is None:
                    message = world.Improbe(tag=tag, status=status)
            place = bytearray(status.Get_count(MPI.BYTE))
            message.Recv(place)
            require(place == content(40_000, status.source + tag))


def requests() -> None:
    """A cancel, persistent requests, and a derived datatype of many segments."""
    request = world.Irecv(bytearray(8), tag=99)
    request.Cancel()
    status = MPI.Status()
    request.Wait(status)
    require(status.Is_cancelled())
    sent, received = content(100_000, rank), bytearray(100_000)
    both = [world.Recv_init(received, left, 4), world.Send_init(sent, right, 4)]
    for _ in range(5):
        received[:] = bytes(100_000)
        MPI.Prequest.Startall(both)
        MPI.Request.Waitall(both)
        require(received == content(100_000, left))
    column = MPI.BYTE.Create_vector(2000, 1, 3)
    column.Commit()
    sent, received = content(6000, rank), bytearray(6000)
    world.Sendrecv([sent, 1, column], right, 3, [received, 1, column], left, 3)
    require(received[: 3 * 2000 : 3] == content(6000, left)[: 3 * 2000 : 3] and not any(received[1::3]))
    column.Free()


def collectives() -> None:
    each = 240_000
    place = bytearray(each * size)
    world.Alltoall(content(each, rank) * size, place)
    require(place == b"".join(content(each, source) for source in range(size)))
    require(world.allreduce(rank) == sum(range(size)))


def one_sided() -> None:
    """Put, get and accumulate between fences."""
    memory, sent, got = array("i", bytes(4 * 1001)), array("i", range(rank, rank + 1000)), array("i", bytes(4000))
    window = MPI.Win.Create(memory, 4, comm=world)
    window.Fence()
    window.Put(sent, right)
    window.Accumulate(array("i", [1]), 0, (1000, 1, MPI.INT))
    window.Fence()
    require(memory[:1000] == array("i", range(left, left + 1000)) and (rank > 0 or memory[1000] == size))
    window.Fence()
    window.Get(got, right)
    window.Fence()
    require(got == sent)
    window.Free()


def threads() -> None:
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return

    def exchange(tag: int) -> None:
        place = bytearray(20_000)
        for turn in range(10):
            world.Sendrecv(content(20_000, rank + tag + turn), right, tag, recvbuf=place, source=left, recvtag=tag)
            require(place == content(20_000, left + tag + turn))

    started = [Thread(target=exchange, args=(tag,)) for tag in range(100, 103)]
    for each in started:
        each.start()
    for each in started:
        each.join()


for part in (reverse, probes, requests, collectives, threads):
    part()
    world.Barrier()
if MPI.Get_library_version().startswith("Open MPI v4"):
    pass  # its one-sided transfers over providers exist for one thread only, and mpi4py asks for several
else:
    one_sided()
if rank == 0:
    print("right", flush=True)
