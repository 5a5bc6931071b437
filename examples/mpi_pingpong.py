"""Half a round trip between two ranks of MPI, for messages of 0 bytes to 4 MiB; docs/mpi.md shows how to start it.

    mpirun -n 2 --host alpha,beta python3 mpi_pingpong.py [--rounds N]

The median of the rounds counts; each received byte is checked once per length.
"""

import argparse
from statistics import median

from mpi4py import MPI

LENGTHS = (0, *(1 << power for power in range(23)))

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--rounds", type=int, default=100, help="round trips per length")
rounds = options.parse_args().rounds

world = MPI.COMM_WORLD
if world.size != 2:
    raise SystemExit(f"mpi_pingpong needs 2 ranks, not {world.size}")
other = 1 - world.rank
if world.rank == 0:
    print(f"{'bytes':>9} {'half round trip, us':>20} {'MB/s':>9}", flush=True)
for length in LENGTHS:
    sent = bytearray((place * 31 + length) % 256 for place in range(min(length, 256))) * max(length // 256, 1)
    received = bytearray(length)
    seconds = []
    for _ in range(rounds + 1):
        start = MPI.Wtime()
        if world.rank == 0:
            world.Send(sent, other)
            world.Recv(received, other)
        else:
            world.Recv(received, other)
            world.Send(sent, other)
        seconds.append((MPI.Wtime() - start) / 2)
    if received != sent:
        raise SystemExit(f"a message of {length} bytes arrives with other bytes")
    if world.rank == 0:
        # The first round connects, and registers memory.
        half = median(seconds[1:])
        print(f"{length:>9} {half * 1e6:>20.1f} {length / half / 1e6:>9.1f}", flush=True)
